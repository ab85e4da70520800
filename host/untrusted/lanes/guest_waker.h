// Wakes a thread of the guest's that sleeps on a word of its slot (ring/queue/parking.h), in the way that the word says.
// One for each such word: of each channel, and of the lanes. Any thread may use it.
//
// Trust. The word is the guest's, and the eventfd that interrupts it is shared with all that have the VM's socket and,
// where slots share an interrupt, with their workers. Each of them may fill its counter and make its writes block. So a
// worker writes only where nothing stands in it: what nobody has read interrupts the guest all the same, after the word
// was cleared. To block a worker somebody must then do both between two of its system calls; what waits is a thread of
// this session, and the broker ends it as any other.
#pragma once

#include <cstdint>

#include "ring/queue/parking.h"

namespace host {

class GuestWaker {
 public:
  // `interrupt_fd` stays the caller's; -1: nothing interrupts the guest.
  GuestWaker(ring::Shared<std::uint32_t> asleep, int interrupt_fd) : asleep_(asleep), interrupt_fd_(interrupt_fd) {}

  // Call it after publishing. `awaited` as in Parking::must_wake. True: the guest slept, and is woken.
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
