// A session's streams that wait for a value in memory (cuStreamWaitValue32 and its like). Another thread, process or
// machine writes that value, perhaps never. So whoever waits for all of the session's work must know what waits for one.
//
// An event before each such wait and one behind it tell: a stream stands while the first is done and the second is not.
// What else waits for a stream that stands, by an event or by the rules of the legacy stream, is not known; it seems to be
// at work. docs/design/043-value-waits.md has what the driver says of such streams, and what the events cost.
//
// Thread-safety: any thread may call. The driver is asked under a lock, under which nothing is called that may wait.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "ring/wire/record.h"

namespace host {

class Session;

class ValueWaits {
  // A context's number, a stream, and for a thread's own stream which channel's it is.
  using Place = std::tuple<unsigned, CUstream, std::uint32_t>;

 public:
  // What a context's streams do.
  enum class Found : std::uint8_t {
    NoWaits,  // none waits for a value
    Stand,    // those that do stand at it, and the others have nothing to do
    Beside,   // those that do stand at it; others have work, or wait for those
    Before,   // one that does has work before it
  };

  explicit ValueWaits(Session& session) : session_(session) {}
  ~ValueWaits();
  ValueWaits(const ValueWaits&) = delete;
  ValueWaits& operator=(const ValueWaits&) = delete;

  // Around a driver's call that makes this stream wait, in the context with this number, which is current. CU_STREAM_PER_THREAD
  // is that of the calling thread.
  class Mark {
   public:
    Mark(ValueWaits& waits, unsigned context, std::uint32_t channel, CUstream stream);
    ~Mark();
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    ValueWaits& waits_;
    const Place place_;
    CUevent behind_ = nullptr;  // null: nothing is noted of this wait
  };

  // Around a driver's call that ends this stream: nobody asks about it meanwhile.
  class StreamEnd {
   public:
    StreamEnd(ValueWaits& waits, CUstream stream);
    ~StreamEnd();
    StreamEnd(const StreamEnd&) = delete;
    StreamEnd& operator=(const StreamEnd&) = delete;

   private:
    ValueWaits& waits_;
    const CUstream stream_;
  };

  // Whether any stream may wait for a value.
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  // The same of a stream of this context.
  bool any_in(unsigned context) const { return counts_[context].load(std::memory_order_relaxed) != 0; }
  // Precondition: the context is current, and does not end meanwhile (Session::making()).
  Found look(unsigned context);
  // The context has ended, and its events with it.
  void forget(unsigned context);

 private:
  struct Wait {
    CUevent before = nullptr, behind = nullptr;
    bool made = false;  // the driver has been called; before that nothing is known
  };
  using Queue = std::deque<Wait>;
  static constexpr std::size_t most = 1024;  // more are work like any other: as many as a driver queues

  Wait note(const Place& place);
  bool is_noted(const Place& place, CUevent behind);
  Wait* find(const Place& place, CUevent behind);
  bool stands(Queue& queue);
  bool are_others_idle(unsigned context);
  void drop_passed(unsigned context, Queue& queue);
  bool take_events(unsigned context, Wait& wait);
  void count(unsigned context, std::size_t more) {
    count_.fetch_add(more, std::memory_order_relaxed);
    counts_[context].fetch_add(more, std::memory_order_relaxed);
  }

  Session& session_;
  std::mutex mutex_;
  std::map<Place, Queue> waits_;
  std::map<unsigned, std::vector<CUevent>> spare_;  // by context
  std::set<CUstream> ending_;
  std::atomic<std::size_t> count_{0};  // of waits that are noted
  std::array<std::atomic<std::size_t>, ring::max_contexts> counts_ = {};
};

}  // namespace host
