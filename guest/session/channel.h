// A channel: a thread's request ring and reply mailbox, and how a thread waits on them.
//
// One thread at a time uses a channel, under the channel's lock, which is free while one thread alone uses the channel
// (channel_mutex.h). If a program has more threads than channels, threads share channels. A thread holds the lock while it waits for a reply, because the mailbox has space for one reply.
//
// Ordering: the acquiring side of the edges X and R; host/untrusted/channel.cc explains both and names their tests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "guest/session/channel_mutex.h"
#include "guest/session/sleeper.h"
#include "guest/session/slot/liveness.h"
#include "guest/session/slot/slot.h"
#include "guest/session/worker_doorbell.h"
#include "ring/api/cuda.h"
#include "ring/base/mutex.h"
#include "ring/queue/parking.h"
#include "ring/queue/record_ring.h"
#include "ring/queue/spin.h"
#include "ring/view.h"
#include "ring/wire/record.h"
#include "ring/wire/shared_reader.h"

namespace guest {

struct Reply {
  bool came = true;  // false: the guest gave up waiting, and the worker may still execute the record
  CUresult result = CUDA_SUCCESS;
  ring::SharedBytes payload;  // points into the mailbox: read it before releasing the lock
};

class Channel {
 public:
  Channel(Liveness& liveness, const Slot& slot, WorkerDoorbell& doorbell, const Sleeper& sleeper, std::uint32_t index);

  std::uint32_t index() const { return index_; }
  ChannelMutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }

  // The caller must hold the lock for the functions from here to the comment about calls without the lock.

  // Makes space for a record of this call with `payload` bytes, and points `writer` at the record in the ring. Waits
  // while the ring is full. An error changes nothing, and the call must return it. CUDA_ERROR_NOT_SUPPORTED: the worker
  // does not know the call. _INVALID_VALUE: the record can never fit. _DEVICE_UNAVAILABLE: the session is lost or
  // suspended.
  CUresult begin(int call, std::size_t payload, ring::Writer& writer) REQUIRES(mutex_);
  // Publishes the record of begin(), and wakes the worker if the worker sleeps. Returns the record's position.
  std::uint64_t publish(std::uint16_t flags) REQUIRES(mutex_);
  // Waits for the reply to the record at `position`. If the session is lost or suspended, the result is
  // CUDA_ERROR_DEVICE_UNAVAILABLE.
  Reply await_reply(std::uint64_t position) REQUIRES(mutex_);
  // Returns the error of an earlier posted call, once. Returns CUDA_SUCCESS if there is no such error.
  CUresult take_deferred() REQUIRES(mutex_);
  // Ends the session because a reply is too short for its call. Returns the error for the call.
  CUresult lose_to_short_reply() { return liveness_.lose_to_short_reply(); }
  // Called after reading a reply or staging memory. Returns false if the slot had ended by then and may have read as
  // zeros; the session is then lost.
  bool read_is_good() {
    if (slot_.intact()) return true;
    liveness_.lose_slot();
    return false;
  }
  // Returns whether take_deferred() has an error to return. A thread may call this function for its own channel without
  // the lock. Threads that share a channel may then see an error late.
  bool has_deferred_error() const {
    return control_[&ring::ChannelControl::deferred_count].load(std::memory_order_relaxed) !=
           deferred_seen_.load(std::memory_order_relaxed);
  }

  // Any thread may call the functions from here on without the lock.

  // Waits until the worker has executed the record at `position`. Returns false if the session is lost or suspended.
  // Only the thread that holds the lock may park; other threads use timed sleeps. A channel has one word to sleep on: a
  // second sleeper would clear the word on waking, and the worker would not wake the first sleeper.
  enum class Sleep : std::uint8_t { Park, Timed };
  bool await_executed(std::uint64_t position, Sleep sleep = Sleep::Timed);
  bool executed(std::uint64_t position) const {
    return control_[&ring::ChannelControl::executed].load(std::memory_order_acquire) >=
           position;  // edge X (host/untrusted/channel.cc)
  }
  std::uint64_t posted() const { return posted_.load(std::memory_order_relaxed); }
  // Returns how long the next wait polls before it sleeps.
  std::uint64_t polling_nanoseconds() const;

  struct Counts {
    std::atomic<std::uint64_t> waited_calls{0}, posted_calls{0}, bytes{0};
  };
  Counts counts;

 private:
  static constexpr bool fits(std::size_t payload) { return payload <= ring::max_record - sizeof(ring::RecordHeader); }
  // `awaited`: the position of the record whose execution should make `done` true.
  template <class Done>
  bool wait_until(Done done, std::uint64_t awaited, Sleep sleep = Sleep::Park);
  template <class Done>
  static bool poll_until(Done done, std::uint64_t end);  // `end`: a time of monotonic_nanoseconds()
  template <class Done>
  bool sleep_until(Done done, std::uint64_t awaited, Sleep sleep);
  enum class Slept : std::uint8_t { Done, LookAgain, SlotGone };
  template <class Done>
  Slept park(Done done, std::uint64_t awaited);
  std::uint64_t half_of_what_is_queued() const;

  Liveness& liveness_;
  const Slot& slot_;
  WorkerDoorbell& doorbell_;
  const Sleeper& sleeper_;
  const std::uint32_t index_;
  const ring::Shared<ring::ChannelControl> control_;
  const ring::SharedBytes mailbox_;
  ring::Producer producer_ GUARDED_BY(mutex_);
  struct Parked {
    ring::Parking worker, self;
  };
  Parked parked_;
  ring::AdaptiveSpin spin_{ring::AdaptiveSpin::Most::TwiceTheBound};
  ChannelMutex mutex_;
  struct PendingRecord {  // the record between begin() and publish()
    std::byte* at = nullptr;
    std::uint32_t bytes = 0;
    std::uint16_t call = 0;
  };
  PendingRecord record_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint32_t> deferred_seen_{0};
};

}  // namespace guest
