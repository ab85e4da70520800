// The captures that a session's streams have begun, and the capture mode of the worker's threads.
//
// Every thread that calls the driver has the capture mode RELAXED, so that a capture never prohibits the worker's own
// calls. A thread uses the program's mode only during a program's call, and only while a capture is open
// (ProgramsMode).
//
// Only the driver knows which streams are captured, since an event can add a stream to a capture. This class keeps only
// the streams in which a capture was begun.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "host/driver/driver.h"
#include "ring/api/cuda.h"
#include "ring/base/mutex.h"

namespace host {

class Captures {
 public:
  // Returns the stream's handle in the calling thread. The per-thread stream differs from thread to thread.
  static CUstream in_thread(CUstream stream, bool per_thread) {
    return stream == nullptr && per_thread ? CU_STREAM_PER_THREAD : stream;
  }

  bool any() const { return open_.load(std::memory_order_relaxed) != 0; }
  struct Begun {
    CUstream stream;
    CUgraph graph;  // the graph that the capture fills; null: the guest owns the graph, which survives a failed capture
    unsigned context;
  };
  void began(const Begun& capture) {
    const ring::MutexLock lock(mutex_);
    begun_[key_of(capture.stream)] = capture;
    open_.store(static_cast<std::uint32_t>(begun_.size()), std::memory_order_relaxed);
  }
  // Forgets the capture begun in the stream, and returns the capture's graph. Returns nothing if no capture was begun.
  std::optional<CUgraph> over(CUstream stream) {
    const ring::MutexLock lock(mutex_);
    const auto found = begun_.find(key_of(stream));
    if (found == begun_.end()) return std::nullopt;
    const CUgraph graph = found->second.graph;
    begun_.erase(found);
    open_.store(static_cast<std::uint32_t>(begun_.size()), std::memory_order_relaxed);
    return graph;
  }
  // Forgets and returns the captures in a context's streams, including the per-thread streams of other threads.
  std::vector<Begun> take_of(unsigned context) {
    const ring::MutexLock lock(mutex_);
    std::vector<Begun> taken;
    for (auto at = begun_.begin(); at != begun_.end();) {
      const bool is_its = at->second.context == context;
      if (is_its) taken.push_back(at->second);
      at = is_its ? begun_.erase(at) : std::next(at);
    }
    open_.store(static_cast<std::uint32_t>(begun_.size()), std::memory_order_relaxed);
    return taken;
  }

 private:
  using Key = std::pair<CUstream, std::thread::id>;
  static Key key_of(CUstream stream) {
    return {stream, stream == CU_STREAM_PER_THREAD ? std::this_thread::get_id() : std::thread::id()};
  }

  std::atomic<std::uint32_t> open_{0};
  ring::Mutex mutex_;
  std::map<Key, Begun> begun_ GUARDED_BY(mutex_);
};

// Must be the first call in each thread that calls the driver.
inline void become_relaxed(const Driver& driver) {
  auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (driver.cuThreadExchangeStreamCaptureMode != nullptr) driver.cuThreadExchangeStreamCaptureMode(&mode);
}

// While this object exists, the calling thread has the capture mode of the program's thread.
class ProgramsMode {
 public:
  ProgramsMode(const Driver& driver, const Captures& captures, unsigned mode)
      : driver_(captures.any() && mode != CU_STREAM_CAPTURE_MODE_RELAXED ? &driver : nullptr),
        mode_(static_cast<CUstreamCaptureMode>(mode)) {
    if (driver_ != nullptr) driver_->cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ~ProgramsMode() {
    if (driver_ != nullptr) driver_->cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ProgramsMode(const ProgramsMode&) = delete;
  ProgramsMode& operator=(const ProgramsMode&) = delete;

 private:
  const Driver* const driver_;
  CUstreamCaptureMode mode_;  // the mode to swap in next
};

}  // namespace host
