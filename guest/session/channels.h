// The session's channels: which thread sends through which. A thread takes one at its first record and gives it back
// when it ends; threads beyond their number share.
//
// Invariant: channels are opened in the order of their indices and never closed, so all below open() can be used by any
// thread. Trust: nothing of the other side is read here; how many channels a worker serves is bounded before start().
//
// Ordering, one edge:
//   C  make -> use   a channel is made before `open_` counts it
// The bit in `opened` is released for the worker's bell thread (host/untrusted/serve.cc), which takes records by the
// ring's own edges. Covered by: ThreadSanitizer under tests/loopback.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "guest/channel/channel.h"
#include "ring/view.h"

namespace guest {

class Session;

class Channels {
 public:
  explicit Channels(Session& session) : session_(session) {}

  // Once, before any thread sends: the slot that was taken, and how many channels its worker serves.
  void start(ring::SlotView slot, std::uint32_t most);

  Channel& acquire();
  void release(Channel& channel);
  // Channels that have been opened so far.
  std::uint32_t open() const { return open_.load(std::memory_order_acquire); }  // C
  // Preconditions: index < open().
  Channel& at(std::uint32_t index) { return *channels_[index]; }
  // Waits, not for ever, until no thread is in the middle of a record. Preconditions: the session is lost.
  void stop_senders();

 private:
  Session& session_;
  ring::SlotView slot_;
  std::uint32_t most_ = 1;
  std::mutex mutex_;
  std::array<std::unique_ptr<Channel>, ring::max_channels> channels_;
  std::vector<std::uint32_t> free_;
  std::uint32_t share_next_ = 0;
  std::atomic<std::uint32_t> open_{0};
};

}  // namespace guest
