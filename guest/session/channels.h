// The session's channels, and the choice of a channel for each thread. A thread acquires a channel at its first record
// and gives the channel back when the thread ends. If there are more threads than channels, threads share channels.
//
// A channel's lock is reserved for the channel's thread until a second thread gets the channel, or until the session ends
// (channel_mutex.h).
//
// Invariant: channels are opened in the order of their indices and never closed, so any thread may use the channels
// with an index below open(). Trust: this class reads nothing that the host writes; slot.h bounds how many channels a
// worker serves.
//
// Ordering, one edge:
//   C  make -> use   a channel is made before `open_` counts it
// The bit in `opened` is stored with release for the worker's doorbell thread (host/untrusted/serve.cc); the edges of
// the ring order the records themselves. Covered by: ThreadSanitizer under tests/loopback.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "guest/session/channel.h"
#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace guest {

class Channels {
 public:
  // The slot may be mapped later, but before any thread sends.
  Channels(Liveness& liveness, const Slot& slot, WorkerDoorbell& doorbell, const Sleeper& sleeper)
      : liveness_(liveness), slot_(slot), doorbell_(doorbell), sleeper_(sleeper) {}

  Channel& acquire();
  void release(Channel& channel);
  // Returns the number of channels opened so far.
  std::uint32_t open() const { return open_.load(std::memory_order_acquire); }  // C
  // Preconditions: index < open().
  Channel& at(std::uint32_t index) { return *channels_[index]; }
  // Waits until no thread is writing a record, but at most 200 ms. Preconditions: the session is lost.
  void stop_senders();

 private:
  Channel& reserved(std::uint32_t index) REQUIRES(mutex_);
  Channel& shared(std::uint32_t index) REQUIRES(mutex_);

  Liveness& liveness_;
  const Slot& slot_;
  WorkerDoorbell& doorbell_;
  const Sleeper& sleeper_;
  ring::Mutex mutex_;
  std::array<std::unique_ptr<Channel>, ring::max_channels> channels_;
  std::vector<std::uint32_t> free_ GUARDED_BY(mutex_);
  std::uint32_t share_next_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint32_t> open_{0};
};

}  // namespace guest
