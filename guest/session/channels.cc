#include "guest/session/channels.h"

#include <chrono>
#include <thread>

#include "guest/base/process_fence.h"
#include "guest/base/switches.h"
#include "guest/region/cache_probe.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

constexpr std::uint64_t last_senders_ns = 200'000'000;  // four sleeps of a parked thread

// Returns whether no thread holds the mutex now.
bool is_free(ChannelMutex& mutex) {
  if (!mutex.try_lock()) return false;
  mutex.unlock();
  return true;
}

}  // namespace

Channel& Channels::acquire() {
  ring::MutexLock lock(mutex_);
  if (liveness_.lost() && open() > 0) return shared(0);  // no thread begins a record in a channel of a lost session
  if (!free_.empty()) {
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return reserved(index);
  }
  const std::uint32_t open = open_.load(std::memory_order_relaxed);
  if (open >= slot_.most_channels()) return shared(share_next_++ % open);
  channels_[open] = std::make_unique<Channel>(liveness_, slot_, doorbell_, sleeper_, open);
  open_.store(open + 1, std::memory_order_release);  // edge C
  slot_.view().header()[&ring::SlotHeader::opened].fetch_or(ring::channel_bit(open), std::memory_order_release);
  doorbell_.ring();
  return reserved(open);
}

// Returns a channel that no other thread uses, unless the channel was shared before: its other users may still live.
Channel& Channels::reserved(std::uint32_t index) {
  if (switches().unlocked_channels && can_fence_process()) channels_[index]->mutex().reserve();
  return *channels_[index];
}

// Returns a channel that other threads use, too.
Channel& Channels::shared(std::uint32_t index) {
  channels_[index]->mutex().share();
  return *channels_[index];
}

void Channels::release(Channel& channel) {
  ring::MutexLock lock(mutex_);
  free_.push_back(channel.index());
}

// The program's other threads may still run, and the slot soon belongs to another process. begin() checks under the
// channel's lock that the session is not lost, and acquire() checks it under its own lock. Once each lock has been
// free, no thread writes any more. A thread that waits for a reply sees the loss after at most one sleep, and writes
// nothing.
void Channels::stop_senders() {
  { const ring::MutexLock opening(mutex_); }
  const std::uint64_t until = monotonic_nanoseconds() + last_senders_ns;
  for (std::uint32_t c = 0; c < open(); ++c) {
    channels_[c]->mutex().share();
    while (!is_free(channels_[c]->mutex()) && monotonic_nanoseconds() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace guest
