// A call from the worker to the program, in one callback slot (lane): the worker's half and the guest's half.
//
// Ordering. Two edges; each line below that releases or acquires one names it:
//   L  fill -> call    the worker writes token, kind, status and memory for the function before it writes `sequence`
//   D  call -> answer  the guest writes the result, and everything that the function writes, before `done` Edge D also
//      covers the next use: the worker fills a lane again only after it has seen the answer, even if no thread waits
//      for the answer (host/untrusted/callbacks/callback_slot_pool.h). ring/queue/parking.h describes how both sides
//      sleep and wake. Covered by: the model callback_slots, the explorer's scenario callback_slots (docs/models.md),
//      and ThreadSanitizer under tests/loopback/callback_slots.cc.
//
// Trust. Each side counts the uses of a lane in private memory, only publishes that count, and checks the other side's
// number against it. An honest peer writes one of two numbers; any other number is Peer::Broken. A duplicate answer has
// the number of a finished use, or of a use not yet begun. The guest uses token and kind only after it has looked them
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

// The worker's half of a callback slot. Only one thread at a time may use this object.
class CallbackCaller {
 public:
  CallbackCaller() = default;
  explicit CallbackCaller(Shared<CallbackSlot> callback_slot) : callback_slot_(callback_slot) {}

  // Fills the callback slot. Peer::Wait: its last use is unanswered, and nothing changes.
  Peer post(std::uint32_t kind, std::uint64_t token, std::int32_t status = 0) {
    if (const Peer last = look(); last != Peer::Ok && !wrong(Mutant::callback_refilled)) return last;
    if (wrong(Mutant::callback_early)) publish();
    callback_slot_[&CallbackSlot::token].store(token, std::memory_order_relaxed);
    callback_slot_[&CallbackSlot::kind].store(kind, std::memory_order_relaxed);
    callback_slot_[&CallbackSlot::status].store(status, std::memory_order_relaxed);
    if (!wrong(Mutant::callback_early)) publish();
    return Peer::Ok;
  }
  // Returns Peer::Ok if the last use was answered, or if there was none.
  Peer look() const {
    const std::uint64_t done = callback_slot_[&CallbackSlot::done].load(std::memory_order_acquire);  // edge D
    if (done == sequence_) return Peer::Ok;
    return done == sequence_ - 1 ? Peer::Wait : Peer::Broken;
  }
  // Preconditions: look() has returned Ok since the last post().
  std::int32_t result() const { return callback_slot_[&CallbackSlot::result].load(std::memory_order_relaxed); }

 private:
  void publish() { callback_slot_[&CallbackSlot::sequence].store(++sequence_, std::memory_order_release); }  // edge L

  Shared<CallbackSlot> callback_slot_;
  std::uint64_t sequence_ = 0;
};

struct CallbackRequest {
  std::uint32_t kind = 0;
  std::uint64_t token = 0;
  std::int32_t status = 0;
};

// The guest's half of a callback slot. Only the callback thread uses this object.
class CallbackCallee {
 public:
  CallbackCallee() = default;
  explicit CallbackCallee(Shared<CallbackSlot> callback_slot) : callback_slot_(callback_slot) {}

  // Looks for a call. Peer::Ok: the guest makes `call` and then answers it.
  Peer take(CallbackRequest& call) {
    const std::uint64_t sequence = callback_slot_[&CallbackSlot::sequence].load(std::memory_order_acquire);  // edge L
    if (sequence == done_) return Peer::Wait;
    if (sequence != done_ + 1) return Peer::Broken;
    call.kind = callback_slot_[&CallbackSlot::kind].load(std::memory_order_relaxed);
    call.token = callback_slot_[&CallbackSlot::token].load(std::memory_order_relaxed);
    call.status = callback_slot_[&CallbackSlot::status].load(std::memory_order_relaxed);
    return Peer::Ok;
  }
  // Answers the call. Preconditions: take() has returned Ok, and this use is unanswered.
  void answer(std::int32_t result) {
    if (wrong(Mutant::answer_early)) publish();
    callback_slot_[&CallbackSlot::result].store(result, std::memory_order_relaxed);
    if (!wrong(Mutant::answer_early)) publish();
  }

  // Returns whether take() would find a call. For parking, which needs no ordering of its own for this read.
  bool anything() const { return callback_slot_[&CallbackSlot::sequence].load(std::memory_order_relaxed) != done_; }

 private:
  void publish() { callback_slot_[&CallbackSlot::done].store(++done_, std::memory_order_release); }  // edge D

  Shared<CallbackSlot> callback_slot_;
  std::uint64_t done_ = 0;
};

}  // namespace ring
