// Calls from the worker to the program through callback slots (ring/queue/callback_slot.h,
// host/untrusted/callbacks/callback_slot_pool.h). Both sides sleep as in host/untrusted/callbacks/callback_slots.cc and
// guest/session/callbacks.cc, on a futex without a time-out. The explorer's lock and condition variable replace the
// standard library's.
#include <condition_variable>

#include "tests/models/explored.h"

namespace std {
using explored_mutex = explore::Mutex;
using explored_condition = explore::Condition;
}  // namespace std
#define mutex explored_mutex
#define condition_variable explored_condition
// The product's headers, after explored.h:
#include "host/untrusted/callbacks/callback_slot_pool.h"
#include "ring/queue/callback_slot.h"
#include "ring/queue/parking.h"
#include "tests/models/scenarios.h"
#include "tests/shared_word.h"

namespace explore {
namespace {

using Entry = ring::CallbackSlot;
constexpr std::uint32_t kind_of(std::uint64_t token) { return static_cast<std::uint32_t>(token + 40); }
constexpr std::int32_t status_of(std::uint64_t token) { return static_cast<std::int32_t>(token + 20); }
constexpr std::int32_t result_of(std::uint64_t token) { return static_cast<std::int32_t>(token + 70); }

// Callback slots, the words that threads sleep on, and the surrounding code of both sides. Each call is a token,
// numbered from 1.
template <std::size_t count>
struct CallbackSlots {
  CallbackSlots() {
    for (std::size_t k = 0; k < count; ++k) {
      const ring::Shared<Entry> callback_slot(&words[k]);
      callback_slot[&Entry::token].store(0, std::memory_order_relaxed);
      callback_slot[&Entry::kind].store(0, std::memory_order_relaxed);
      callback_slot[&Entry::status].store(0, std::memory_order_relaxed);
      callback_slot[&Entry::sequence].store(0, std::memory_order_relaxed);
      callback_slot[&Entry::worker_asleep].store(0, std::memory_order_relaxed);
      callback_slot[&Entry::done].store(0, std::memory_order_relaxed);
      callback_slot[&Entry::result].store(0, std::memory_order_relaxed);
      pool.add(k, callback_slot);
      callees[k] = ring::CallbackCallee(callback_slot);
    }
  }

  bool post(std::size_t k, std::uint64_t token) {
    const ring::Peer peer = pool.caller(k).post(kind_of(token), token, status_of(token));
    require(peer != ring::Peer::Broken, "the worker calls a lane broken");
    if (peer == ring::Peer::Ok && guest.must_wake() != ring::Asleep::No) futex_wake(callbacks_asleep.address());
    return peer == ring::Peer::Ok;
  }
  void await(std::size_t k) {
    const auto answered = [&] { return pool.caller(k).look() == ring::Peer::Ok; };
    ring::Parking worker = sleeper(k);
    while (!answered() && worker.may_sleep(answered)) {
      futex_wait(&words[k].worker_asleep, 1);
      worker.woke();
    }
  }
  void await(std::size_t k, std::uint64_t token) {
    await(k);
    require(pool.caller(k).result() == result_of(token), "an answer is another call's");
  }

  // Same as CallbackSlots::call() and CallbackSlots::post() of host/untrusted/callbacks/callback_slots.cc. Uses any
  // free callback slot.
  void call_and_wait(std::uint64_t token) {
    const std::size_t k = fill(token);
    await(k, token);
    pool.give_back(k);
  }
  void call_and_leave(std::uint64_t token) { pool.leave(fill(token)); }
  std::size_t fill(std::uint64_t token) {
    const auto wait = [this](std::size_t k) { return await(k), true; };
    const std::size_t k = *pool.take(wait, [] { return false; });
    require(post(k, token), "a lane is filled again before its answer: the worker ends the session");
    return k;
  }

  // Serves one call from any callback slot, or sleeps if there is no call.
  bool serve_one() {
    for (std::size_t k = 0; k < count; ++k) {
      ring::CallbackRequest call;
      const ring::Peer peer = callees[k].take(call);
      require(peer != ring::Peer::Broken, "the guest calls a lane broken");
      if (peer != ring::Peer::Ok) continue;
      require(call.kind == kind_of(call.token) && call.status == status_of(call.token),
              "a call's kind or status is another's");
      require((called & 1u << call.token) == 0, "a call is made twice");
      called |= 1u << call.token;
      last_called = call.token;
      callees[k].answer(result_of(call.token));
      if (sleeper(k).must_wake() != ring::Asleep::No) futex_wake(&words[k].worker_asleep);
      return true;
    }
    const auto anything = [&] {
      for (std::size_t k = 0; k < count; ++k)
        if (callees[k].anything()) return true;
      return false;
    };
    if (guest.may_sleep(anything)) {
      futex_wait(callbacks_asleep.address(), 1);
      guest.woke();
    }
    return false;
  }

  ring::Parking sleeper(std::size_t k) { return ring::Parking(ring::Shared<Entry>(&words[k])[&Entry::worker_asleep]); }

  Entry words[count] = {};
  SharedWord<std::uint32_t> callbacks_asleep;
  ring::Parking guest{callbacks_asleep};
  host::CallbackSlotPool<count> pool;
  ring::CallbackCallee callees[count];
  std::uint32_t called = 0;  // a bit per token; only the guest uses this word
  std::uint64_t last_called = 0;
};

// The worker uses a callback slot twice, and waits for each answer.
struct Awaited {
  void worker() {
    for (const std::uint64_t token : {1u, 2u}) {
      while (!callback_slots.post(0, token)) pause();
      callback_slots.await(0, token);
    }
  }
  void guest() {
    for (int served = 0; served < 2;) served += callback_slots.serve_one() ? 1 : 0;
  }
  void finish() { require(callback_slots.called == 0b110, "a call was not made"); }
  CallbackSlots<1> callback_slots;
};

// The worker uses a callback slot three times, and waits only for the slot.
struct Left {
  void worker() {
    for (const std::uint64_t token : {1u, 2u, 3u})
      while (!callback_slots.post(0, token)) pause();
  }
  void guest() {
    for (int served = 0; served < 3;) served += callback_slots.serve_one() ? 1 : 0;
  }
  void finish() { require(callback_slots.called == 0b1110, "a call was not made, or another one twice"); }
  CallbackSlots<1> callback_slots;
};

// Two worker threads, each with its own callback slot.
struct Both {
  void first() { one(0, 1); }
  void second() { one(1, 2); }
  void one(std::size_t callback_slot, std::uint64_t token) {
    require(callback_slots.post(callback_slot, token), "a fresh lane is not free");
    callback_slots.await(callback_slot, token);
  }
  void guest() {
    for (int served = 0; served < 2;) served += callback_slots.serve_one() ? 1 : 0;
  }
  void finish() { require(callback_slots.called == 0b110, "a call was not made"); }
  CallbackSlots<2> callback_slots;
};

// Two worker threads share the callback slots. The first thread waits for a function's answer, and then tells the guest
// to end the function's token, without waiting. The second thread posts the call of a destructor.
template <std::size_t count>
struct Kinds {
  void waiter() {
    callback_slots.call_and_wait(function);
    callback_slots.call_and_leave(its_end);
  }
  void leaver() { callback_slots.call_and_leave(destructor); }
  void guest() {
    for (int served = 0; served < 3;) {
      if (!callback_slots.serve_one()) continue;
      ++served;
      require(callback_slots.last_called != its_end || (callback_slots.called & 1u << function) != 0,
              "a token ends before its function");
    }
  }
  void finish() { require(callback_slots.called == 0b1110, "a call was not made"); }

  static constexpr std::uint64_t function = 1, its_end = 2, destructor = 3;
  CallbackSlots<count> callback_slots;
};

// Memory outside the slots: the function reads the worker's bytes, and the waiting thread reads the function's bytes.
struct Effects {
  Effects() { share(bytes, sizeof bytes); }
  void worker() {
    for (std::uint8_t i = 1; i <= 2; ++i) {
      set(i);
      require(callback_slots.post(0, i), "a lane whose answer was seen is not free");
      callback_slots.await(0, i);
      require(get() == i + 10, "the waiter does not see what the function has done");
    }
  }
  void guest() {
    for (std::uint8_t i = 1; i <= 2; ++i) {
      ring::CallbackRequest call;
      while (callback_slots.callees[0].take(call) != ring::Peer::Ok) pause();
      require(get() == i, "the function does not see what was there before its call");
      set(static_cast<std::uint8_t>(i + 10));
      callback_slots.callees[0].answer(result_of(i));
      if (callback_slots.sleeper(0).must_wake() != ring::Asleep::No) futex_wake(&callback_slots.words[0].worker_asleep);
    }
  }
  void set(std::uint8_t value) {
    const std::uint8_t text[8] = {value};
    std::memcpy(bytes, text, sizeof bytes);
  }
  int get() {
    std::uint8_t text[8];
    std::memcpy(text, bytes, sizeof text);
    return text[0];
  }
  void finish() {}
  alignas(16) std::uint8_t bytes[8] = {};
  CallbackSlots<1> callback_slots;
};

}  // namespace

std::vector<Scenario> callback_slot_scenarios() {
  return {
      {"callback_slots", "two kinds on one lane",
       [](Options o) {
         using World = Kinds<1>;
         return bounded<World, &World::waiter, &World::leaver, &World::guest>(o, 1);
       }},
      {"callback_slots", "two kinds on two lanes",
       [](Options o) {
         using World = Kinds<2>;
         return bounded<World, &World::waiter, &World::leaver, &World::guest>(o, 1);
       }},
      {"callback_slots", "awaited",
       [](Options o) { return bounded<Awaited, &Awaited::worker, &Awaited::guest>(o, 3); }},
      {"callback_slots", "left", [](Options o) { return bounded<Left, &Left::worker, &Left::guest>(o, 3); }},
      {"callback_slots", "both",
       [](Options o) { return bounded<Both, &Both::first, &Both::second, &Both::guest>(o, 2); }},
      {"callback_slots", "effects",
       [](Options o) { return bounded<Effects, &Effects::worker, &Effects::guest>(o, 3); }},
  };
}

}  // namespace explore
