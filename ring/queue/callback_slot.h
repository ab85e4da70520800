// A call from the worker to the program, in one callback slot (lane): the worker's half and the guest's half.
//
// Ordering. Two edges; each line below that releases or acquires one names it:
//   L fill -> call token, kind and status, and the memory that the function may read, are written before `sequence`
//   D call -> answer the result, and everything that the function has written, are written before `done`
// D also covers the next use: a lane is filled again only after its answer was seen, even if no thread waits for the
// answer (host/untrusted/callbacks/callback_slot_pool.h). ring/queue/parking.h describes how both sides sleep and wake. Covered by:
// the model callback_slots, the explorer's scenario callback_slots (docs/models.md), and ThreadSanitizer under tests/loopback/callback_slots.cc.
//
// Trust. Each side counts the uses of a lane in private memory, only publishes that count, and checks the other side's
// number against it. An honest peer shows one of two numbers; any other number is Peer::Broken. A duplicate answer has
// the number of a finished use, or of a use not yet begun. Token and kind mean nothing until the guest has looked them
// up.
//
// ```cpp
// void serve(ring::CallbackCallee& lane, std::int32_t (*call_by_token)(std::uint64_t token)) {
//   ring::CallbackRequest call;
//   if (lane.take(call) == ring::Peer::Ok) lane.answer(call_by_token(call.token));
// }
// bool ask(ring::CallbackCaller& lane, std::uint64_t token) {
//   return lane.post(IVGPU_CALLBACK_HOST_FUNCTION, token) == ring::Peer::Ok;  // then look() until it is Ok again
// }
// ```
#pragma once

#include <atomic>
#include <cstdint>

#include "ring/layout/layout.h"
#include "ring/queue/peer.h"
#include "ring/shared/shared.h"
#include "ring/verify/mutants.h"

namespace ring {

// The worker's half. One thread at a time may use it.
class CallbackCaller {
 public:
  CallbackCaller() = default;
  explicit CallbackCaller(Shared<CallbackSlot> callback_slot) : callback_slot_(callback_slot) {}

  // Fills the lane. Peer::Wait: its last use is unanswered, and nothing changes.
  Peer post(std::uint32_t kind, std::uint64_t token, std::int32_t status = 0) {
    if (const Peer last = look(); last != Peer::Ok && !wrong(Mutant::callback_refilled)) return last;
    if (wrong(Mutant::callback_early)) publish();
    callback_slot_[&CallbackSlot::token].store(token, std::memory_order_relaxed);
    callback_slot_[&CallbackSlot::kind].store(kind, std::memory_order_relaxed);
    callback_slot_[&CallbackSlot::status].store(status, std::memory_order_relaxed);
    if (!wrong(Mutant::callback_early)) publish();
    return Peer::Ok;
  }
  // Peer::Ok: the last use was answered, or there was none.
  Peer look() const {
    const std::uint64_t done = callback_slot_[&CallbackSlot::done].load(std::memory_order_acquire);  // D
    if (done == sequence_) return Peer::Ok;
    return done == sequence_ - 1 ? Peer::Wait : Peer::Broken;
  }
  // Preconditions: look() has returned Ok since the last post().
  std::int32_t result() const { return callback_slot_[&CallbackSlot::result].load(std::memory_order_relaxed); }

 private:
  void publish() { callback_slot_[&CallbackSlot::sequence].store(++sequence_, std::memory_order_release); }  // L

  Shared<CallbackSlot> callback_slot_;
  std::uint64_t sequence_ = 0;
};

struct CallbackRequest {
  std::uint32_t kind = 0;
  std::uint64_t token = 0;
  std::int32_t status = 0;
};

// The guest's half. Only the callback thread uses it.
class CallbackCallee {
 public:
  CallbackCallee() = default;
  explicit CallbackCallee(Shared<CallbackSlot> callback_slot) : callback_slot_(callback_slot) {}

  // Peer::Ok: the guest makes `call` and then answers it.
  Peer take(CallbackRequest& call) {
    const std::uint64_t sequence = callback_slot_[&CallbackSlot::sequence].load(std::memory_order_acquire);  // L
    if (sequence == done_) return Peer::Wait;
    if (sequence != done_ + 1) return Peer::Broken;
    call.kind = callback_slot_[&CallbackSlot::kind].load(std::memory_order_relaxed);
    call.token = callback_slot_[&CallbackSlot::token].load(std::memory_order_relaxed);
    call.status = callback_slot_[&CallbackSlot::status].load(std::memory_order_relaxed);
    return Peer::Ok;
  }
  // Preconditions: take() has returned Ok, and this use is unanswered.
  void answer(std::int32_t result) {
    if (wrong(Mutant::answer_early)) publish();
    callback_slot_[&CallbackSlot::result].store(result, std::memory_order_relaxed);
    if (!wrong(Mutant::answer_early)) publish();
  }

  // True if take() would find a call. For parking: needs no ordering of its own.
  bool anything() const { return callback_slot_[&CallbackSlot::sequence].load(std::memory_order_relaxed) != done_; }

 private:
  void publish() { callback_slot_[&CallbackSlot::done].store(++done_, std::memory_order_release); }  // D

  Shared<CallbackSlot> callback_slot_;
  std::uint64_t done_ = 0;
};

}  // namespace ring
