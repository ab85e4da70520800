// Wakes a guest thread that sleeps on a word of its slot (ring/queue/parking.h). The word's value determines how. Each
// channel has one waker, and the callback slots share one. Any thread may use it.
//
// Trust: the guest owns the word. All processes that have the VM's socket share the interrupt's eventfd, as do workers
// whose slots share an interrupt. Any of these processes may fill the eventfd's counter, which would block a write. The
// worker therefore writes only if the counter is 0: an unread signal interrupts the guest anyway, after the word was
// cleared. A process that fills the counter between the worker's two system calls blocks only a thread of this session,
// and the broker can still end this session.
#pragma once

#include <cstdint>

#include "ring/queue/parking.h"

namespace host {

class GuestWaker {
 public:
  // The caller owns `interrupt_fd`; -1: the guest cannot be interrupted.
  GuestWaker(ring::Shared<std::uint32_t> asleep, int interrupt_fd) : asleep_(asleep), interrupt_fd_(interrupt_fd) {}

  // Must be called after publishing. `awaited`: as in Parking::must_wake. Returns whether the guest slept and was
  // woken.
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
