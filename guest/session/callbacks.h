// Calls from the worker to the program: tokens for the program's functions, and the callback thread. This thread makes
// the calls that the worker puts into callback slots (docs/design/020-lanes.md). Any thread may create and end tokens.
//
// The thread starts with the first token, looks at the callback slots only while a token exists, and ends with the
// session. The thread makes one call at a time. The called function may not call CUDA; is_inside() detects such a call.
//
// Invariant: the slot's words are used only under the mutex, and not after stop() or the session's loss. The program's
// function is called without the mutex. Trust: the worker's sequence number in a callback slot is checked against a
// private count (ring/queue/callback_slot.h), and a token against the existing tokens. The worker can only cause calls
// of functions that the program has registered.
//
// After a fork the parent's thread continues, and the child has no such thread. The child uses only `forgotten_`, since
// a thread that the child does not have may hold the mutex.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "guest/session/sleeper.h"
#include "guest/session/slot/liveness.h"
#include "guest/session/slot/slot.h"
#include "guest/session/tokens.h"
#include "guest/session/worker_doorbell.h"
#include "ring/base/mutex.h"
#include "ring/layout/layout.h"
#include "ring/queue/callback_slot.h"
#include "ring/queue/parking.h"
#include "ring/queue/spin.h"

namespace guest {

// The session's callback slots, as the guest's thread reads them.
class CalleeLanes {
 public:
  // Preconditions: the slot is mapped and checked.
  void open(const ring::SlotView& slot) {
    for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k)
      callback_slots_[k] = ring::CallbackCallee(slot.callback_slot(k));
  }
  // Takes the next call. Returns null if there is none, or if a callback slot has a wrong sequence number; `peer` says
  // which.
  ring::CallbackCallee* take(ring::CallbackRequest& call, ring::Peer& peer) {
    for (std::size_t k = 0; k < callback_slots_.size(); ++k) {
      ring::CallbackCallee& callback_slot = callback_slots_[++last_ % callback_slots_.size()];
      peer = callback_slot.take(call);
      if (peer == ring::Peer::Ok) return &callback_slot;
      if (peer == ring::Peer::Broken) return nullptr;
    }
    return nullptr;
  }
  bool anything() const {
    return std::any_of(callback_slots_.begin(), callback_slots_.end(),
                       [](const ring::CallbackCallee& callback_slot) { return callback_slot.anything(); });
  }
  std::uint32_t index_of(const ring::CallbackCallee& callback_slot) const {
    return static_cast<std::uint32_t>(&callback_slot - callback_slots_.data());
  }

 private:
  std::array<ring::CallbackCallee, ring::max_callback_slots> callback_slots_;
  std::size_t last_ = 0;  // the search for a call starts after this callback slot
};

class Callbacks {
 public:
  Callbacks(Liveness& liveness, const Slot& slot, WorkerDoorbell& doorbell, const Sleeper& sleeper)
      : liveness_(liveness), slot_(slot), doorbell_(doorbell), sleeper_(sleeper) {}
  ~Callbacks();
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  // Creates a token by which the worker may call `callback` from now on. Returns 0 if the session is lost or belongs to
  // the parent process, or if no thread can be made. Preconditions: the slot is mapped and checked.
  std::uint64_t issue(const Callback& callback);
  // Returns the function of a token, or nothing if the token does not exist.
  std::optional<Callback> find(std::uint64_t token);
  // Returns whether the calling thread is inside a function that the worker called.
  static bool is_inside() { return started_.load(std::memory_order_relaxed) && inside(); }

  // Ends a token: later calls by the worker are refused, but a running call continues. Returns false if the token does
  // not exist.
  bool end(std::uint64_t token);
  // Called before the slot is given back. This object does not touch the slot from then on.
  void stop();
  // Called in a forked child.
  void forget() { forgotten_.store(true, std::memory_order_relaxed); }

 private:
  static bool inside();
  bool start() REQUIRES(mutex_);
  static void* run(void* self);
  void serve(ring::UniqueLock& lock) REQUIRES(mutex_);
  ring::CallbackCallee* find_call(ring::CallbackRequest& call) REQUIRES(mutex_);
  void make(const ring::CallbackRequest& call, ring::CallbackCallee& callback_slot) REQUIRES(mutex_);
  void answer(ring::CallbackCallee& callback_slot, CUresult result) REQUIRES(mutex_);
  void await_call() REQUIRES(mutex_);
  bool poll(std::uint64_t end) REQUIRES(mutex_);
  void sleep() REQUIRES(mutex_);
  void park() REQUIRES(mutex_);
  bool anything() const REQUIRES(mutex_) { return callback_slots_.anything(); }
  bool over() const REQUIRES(mutex_) { return stopped_ || liveness_.lost(); }
  bool forgotten() const { return forgotten_.load(std::memory_order_relaxed); }
  ring::Parking self() const { return ring::Parking(slot_.view().header()[&ring::SlotHeader::callbacks_asleep]); }

  static std::atomic<bool> started_;  // whether a thread of this process makes such calls, or has made some

  Liveness& liveness_;
  const Slot& slot_;
  WorkerDoorbell& doorbell_;
  const Sleeper& sleeper_;
  std::atomic<bool> forgotten_{false};
  ring::Mutex mutex_;
  std::condition_variable issued_, ended_;
  Tokens tokens_ GUARDED_BY(mutex_);
  CalleeLanes callback_slots_ GUARDED_BY(mutex_);
  std::uint64_t sleep_ns_ GUARDED_BY(mutex_) = 0;
  ring::AdaptiveSpin spin_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace guest
