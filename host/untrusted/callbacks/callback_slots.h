// The worker's half of a session's callback slots (ring/queue/callback_slot.h), by which the guest calls the program's
// functions for the worker. Any thread of this process may use this class. serve() creates the object, and ends it with
// the session.
//
// A thread that waits for the guest holds no lock, since the guest may never answer. The wait ends with the session.
//
// Trust: the worker reads two of the guest's words: `done`, which it compares with a private count, and `result`, which
// it only passes on. A wrong `done` ends the session, as a bad record does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "host/session/session.h"
#include "host/untrusted/callbacks/callback_slot_pool.h"
#include "host/untrusted/callbacks/guest_waker.h"
#include "ring/base/mutex.h"
#include "ring/queue/parking.h"

namespace host {

class CallbackSlots {
 public:
  // `doorbell_fd` wakes the doorbell thread, which ends a broken session.
  CallbackSlots(Session& session, int doorbell_fd);
  // Waits for the threads in call() and post(), which return once end() was called.
  ~CallbackSlots();
  CallbackSlots(const CallbackSlots&) = delete;
  CallbackSlots& operator=(const CallbackSlots&) = delete;

  // Makes the guest call the function of the token, and waits for the answer. Returns the guest's result, which may be
  // any number, or nothing if the session ends.
  std::optional<std::int32_t> call(ring::CallbackKind kind, std::uint64_t token, CUresult status = CUDA_SUCCESS);
  // Like call(), without waiting for the answer. Waits for a callback slot if all slots are in use. Returns false if
  // the session ends.
  bool post(ring::CallbackKind kind, std::uint64_t token);

  // Called when the driver has ended a user object. Drops the object's id, and makes the guest call the destructor of
  // the token.
  void destroyed(std::uint64_t object, std::uint64_t token);

  // Wakes all waiting threads. The doorbell thread calls this on each doorbell, since a doorbell may follow an answer.
  void wake_all();
  // Ends every wait, present and future.
  void end();

 private:
  // A thread in call() or post().
  class Caller {
   public:
    explicit Caller(CallbackSlots& callback_slots);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    CallbackSlots& callback_slots_;
  };

  std::optional<std::size_t> take();
  bool fill(std::size_t callback_slot, ring::CallbackKind kind, std::uint64_t token, CUresult status = CUDA_SUCCESS);
  bool await(std::size_t callback_slot);
  template <class Done>
  bool polled(Done done) const;
  bool breaks();
  bool over() const {
    return ended_.load(std::memory_order_relaxed) || session_.protocol.broken.load(std::memory_order_relaxed);
  }
  ring::Parking sleeper(std::size_t callback_slot) const {
    return ring::Parking(
        session_.slot.callback_slot(static_cast<std::uint32_t>(callback_slot))[&ring::CallbackSlot::worker_asleep]);
  }

  Session& session_;
  const int doorbell_fd_;
  GuestWaker guest_;
  std::atomic<bool> used_{false}, ended_{false};
  CallbackSlotPool<ring::max_callback_slots> pool_;
  ring::Mutex mutex_;
  std::condition_variable none_calls_;
  unsigned callers_ GUARDED_BY(mutex_) = 0;
};

}  // namespace host
