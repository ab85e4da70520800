// Captures that the program has begun in its streams, and that may still be open. While a capture is open, every call
// crosses to the worker and waits for the reply: the driver may refuse any call, and the program must learn of the
// refusal from that call. Exception: launches into streams are posted until a call fails, since nothing else
// invalidates a capture.
//
// A stream that joins a capture through an event is not listed here: the guest asks the driver about such a stream.
//
// Thread-safety: any thread. The count is relaxed: a thread counts its capture before the call returns, and the program
// itself must synchronise with other threads that depend on the capture.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "guest/objects/objects.h"
#include "ring/api/cuda.h"
#include "ring/base/mutex.h"

namespace guest {

class Captures {
 public:
  // The dependencies of a stream that the last query returned. The program gets pointers to these arrays, as it does
  // from the driver.
  struct Dependencies {
    std::vector<CUgraphNode> nodes;
    std::vector<CUgraphEdgeData> edges;
  };

  bool any() const { return open_.load(std::memory_order_relaxed) != 0; }
  // Returns whether the driver certainly accepts a launch with valid arguments.
  bool accept_launches() const { return !disturbed_.load(std::memory_order_relaxed); }
  // Called when a call has failed or has destroyed a stream. From then on every launch waits for its reply, until no
  // capture is open.
  void disturb() { disturbed_.store(true, std::memory_order_relaxed); }
  void began(Object& stream) {
    if (stream.begins_capture.exchange(true, std::memory_order_relaxed)) return;
    if (open_.fetch_add(1, std::memory_order_relaxed) == 0) disturbed_.store(false, std::memory_order_relaxed);
  }
  // Ends the capture that began in this stream, if there is one.
  void over(Object& stream) {
    if (stream.begins_capture.exchange(false, std::memory_order_relaxed)) open_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Stores the arrays, which stay valid until the next keep() for the stream.
  const Dependencies& keep(const Object& stream, Dependencies dependencies) {
    const ring::MutexLock lock(mutex_);
    return reported_[&stream] = std::move(dependencies);
  }

 private:
  std::atomic<std::uint32_t> open_{0};
  std::atomic<bool> disturbed_{false};
  ring::Mutex mutex_;
  // Keyed by places of the object table, which bound the map's size.
  std::map<const Object*, Dependencies> reported_ GUARDED_BY(mutex_);
};

}  // namespace guest
