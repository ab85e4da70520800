// Captures that the program has begun in its streams, and that are not known to have ended. While there is one, calls cross
// that else the guest would answer, and none is posted: the driver may refuse any, and the program must learn it from that call.
// But launches into streams are accepted for as long as no call has failed, since nothing else invalidates a capture.
//
// A stream that joins a capture by an event is not known here. The driver is asked for each.
//
// Thread-safety: any thread. The count is relaxed: a thread that begins a capture has counted it before its call returns, and
// tells other threads of the capture by means of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

class Captures {
 public:
  // A stream's dependencies, as the program was last told. The driver lends its arrays, and so does this.
  struct Dependencies {
    std::vector<CUgraphNode> nodes;
    std::vector<CUgraphEdgeData> edges;
  };

  bool any() const { return open_.load(std::memory_order_relaxed) != 0; }
  // Whether a launch that is sound by itself is known to be accepted.
  bool accept_launches() const { return !disturbed_.load(std::memory_order_relaxed); }
  // A call has failed, or has ended a stream. Until no capture is open, every launch is waited for.
  void disturb() { disturbed_.store(true, std::memory_order_relaxed); }
  void began(Object& stream) {
    if (stream.begins_capture.exchange(true, std::memory_order_relaxed)) return;
    if (open_.fetch_add(1, std::memory_order_relaxed) == 0) disturbed_.store(false, std::memory_order_relaxed);
  }
  // The capture that was begun in the stream has ended, if there is one.
  void over(Object& stream) {
    if (stream.begins_capture.exchange(false, std::memory_order_relaxed)) open_.fetch_sub(1, std::memory_order_relaxed);
  }
  // They stay where they are until the stream's are kept again.
  const Dependencies& keep(const Object& stream, Dependencies dependencies) {
    const std::lock_guard lock(mutex_);
    return told_[&stream] = std::move(dependencies);
  }

 private:
  std::atomic<std::uint32_t> open_{0};
  std::atomic<bool> disturbed_{false};
  std::mutex mutex_;
  std::map<const Object*, Dependencies>
      told_;  // a place of the table of objects, so that there are no more than of these
};

}  // namespace guest
