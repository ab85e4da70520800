// Wakes a guest thread that sleeps on a word of its slot (ring/queue/parking.h), by the method that the word names.
// Each channel has one waker, and the callback slots share one. Any thread may use it.
//
// Trust: the guest owns the word. All holders of the VM's socket share the interrupt's eventfd, and so do workers whose
// slots share an interrupt. Any of them may fill its counter, which would block a write. The worker therefore writes
// only if the counter is 0: an unread signal interrupts the guest anyway, after the word was cleared. A process that
// fills the counter between the worker's two system calls blocks only a thread of this session, and the broker can
// still end that.
#pragma once

#include <cstdint>

#include "ring/queue/parking.h"

namespace host {

class GuestWaker {
 public:
  // The caller owns `interrupt_fd`; -1: the guest cannot be interrupted.
  GuestWaker(ring::Shared<std::uint32_t> asleep, int interrupt_fd) : asleep_(asleep), interrupt_fd_(interrupt_fd) {}

  // Call it after publishing. `awaited` as in Parking::must_wake. True if the guest slept, and was woken.
  template <class Awaited>
  bool wake(Awaited awaited) {
    const ring::Asleep how = asleep_.must_wake(awaited);
    if (how != ring::Asleep::No) wake_by(how);
    return how != ring::Asleep::No;
  }
  bool wake() {
    return wake([] { return true; });
  }

 private:
  void wake_by(ring::Asleep how) const;

  ring::Parking asleep_;
  const int interrupt_fd_;
};

}  // namespace host
