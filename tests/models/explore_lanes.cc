// Calls from the worker to the program (ring/queue/lane.h), with both sides' sleeps as host/untrusted/lanes.cc and
// guest/session/callbacks.cc make them: a futex that has no time-out.
#include "tests/models/explored.h"
// after it:
#include "ring/queue/lane.h"
#include "ring/queue/parking.h"
#include "tests/models/scenarios.h"
#include "tests/shared_word.h"

namespace explore {
namespace {

using Lane = ring::LaneControl;
constexpr std::uint32_t kind_of(std::uint64_t token) { return static_cast<std::uint32_t>(token + 40); }
constexpr std::int32_t status_of(std::uint64_t token) { return static_cast<std::int32_t>(token + 20); }
constexpr std::int32_t result_of(std::uint64_t token) { return static_cast<std::int32_t>(token + 70); }

// Lanes, the words to sleep on, and what both sides do around them. Each call is a token from 1 on.
template <std::size_t count>
struct Lanes {
  Lanes() {
    for (std::size_t k = 0; k < count; ++k) {
      const ring::Shared<Lane> lane(&words[k]);
      lane[&Lane::token].store(0, std::memory_order_relaxed);
      lane[&Lane::kind].store(0, std::memory_order_relaxed);
      lane[&Lane::status].store(0, std::memory_order_relaxed);
      lane[&Lane::sequence].store(0, std::memory_order_relaxed);
      lane[&Lane::worker_asleep].store(0, std::memory_order_relaxed);
      lane[&Lane::done].store(0, std::memory_order_relaxed);
      lane[&Lane::result].store(0, std::memory_order_relaxed);
      callers[k] = ring::LaneCaller(lane);
      callees[k] = ring::LaneCallee(lane);
    }
  }

  bool post(std::size_t k, std::uint64_t token) {
    const ring::Peer peer = callers[k].post(kind_of(token), token, status_of(token));
    require(peer != ring::Peer::Broken, "the worker calls a lane broken");
    if (peer == ring::Peer::Ok && guest.must_wake() != ring::Asleep::No) futex_wake(callbacks_asleep.address());
    return peer == ring::Peer::Ok;
  }
  void await(std::size_t k, std::uint64_t token) {
    const auto answered = [&] { return callers[k].look() == ring::Peer::Ok; };
    ring::Parking worker = sleeper(k);
    while (!answered() && worker.may_sleep(answered)) {
      futex_wait(&words[k].worker_asleep, 1);
      worker.woke();
    }
    require(callers[k].result() == result_of(token), "an answer is another call's");
  }

  // One call, wherever there is one; where there is none, a sleep.
  bool serve_one() {
    for (std::size_t k = 0; k < count; ++k) {
      ring::LaneCall call;
      const ring::Peer peer = callees[k].take(call);
      require(peer != ring::Peer::Broken, "the guest calls a lane broken");
      if (peer != ring::Peer::Ok) continue;
      require(call.kind == kind_of(call.token) && call.status == status_of(call.token),
              "a call's kind or status is another's");
      called |= 1u << call.token;
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

  ring::Parking sleeper(std::size_t k) { return ring::Parking(ring::Shared<Lane>(&words[k])[&Lane::worker_asleep]); }

  Lane words[count] = {};
  SharedWord<std::uint32_t> callbacks_asleep;
  ring::Parking guest{callbacks_asleep};
  ring::LaneCaller callers[count];
  ring::LaneCallee callees[count];
  std::uint32_t called = 0;  // of the guest alone: a bit for each token
};

// A lane is used twice, and each answer is waited for.
struct Awaited {
  void worker() {
    for (const std::uint64_t token : {1u, 2u}) {
      while (!lanes.post(0, token)) pause();
      lanes.await(0, token);
    }
  }
  void guest() {
    for (int served = 0; served < 2;) served += lanes.serve_one() ? 1 : 0;
  }
  void finish() { require(lanes.called == 0b110, "a call was not made"); }
  Lanes<1> lanes;
};

// A lane is used three times, and nobody waits but for the lane.
struct Left {
  void worker() {
    for (const std::uint64_t token : {1u, 2u, 3u})
      while (!lanes.post(0, token)) pause();
  }
  void guest() {
    for (int served = 0; served < 3;) served += lanes.serve_one() ? 1 : 0;
  }
  void finish() { require(lanes.called == 0b1110, "a call was not made, or another one twice"); }
  Lanes<1> lanes;
};

// Two threads of the worker, a lane each.
struct Both {
  void first() { one(0, 1); }
  void second() { one(1, 2); }
  void one(std::size_t lane, std::uint64_t token) {
    require(lanes.post(lane, token), "a fresh lane is not free");
    lanes.await(lane, token);
  }
  void guest() {
    for (int served = 0; served < 2;) served += lanes.serve_one() ? 1 : 0;
  }
  void finish() { require(lanes.called == 0b110, "a call was not made"); }
  Lanes<2> lanes;
};

// What the two sides do to other memory: the worker's bytes are the function's, the function's are the waiter's.
struct Effects {
  Effects() { share(bytes, sizeof bytes); }
  void worker() {
    for (std::uint8_t i = 1; i <= 2; ++i) {
      set(i);
      require(lanes.post(0, i), "a lane whose answer was seen is not free");
      lanes.await(0, i);
      require(get() == i + 10, "the waiter does not see what the function has done");
    }
  }
  void guest() {
    for (std::uint8_t i = 1; i <= 2; ++i) {
      ring::LaneCall call;
      while (lanes.callees[0].take(call) != ring::Peer::Ok) pause();
      require(get() == i, "the function does not see what was there before its call");
      set(static_cast<std::uint8_t>(i + 10));
      lanes.callees[0].answer(result_of(i));
      if (lanes.sleeper(0).must_wake() != ring::Asleep::No) futex_wake(&lanes.words[0].worker_asleep);
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
  Lanes<1> lanes;
};

}  // namespace

std::vector<Scenario> lane_scenarios() {
  return {
      {"lanes", "awaited", [](Options o) { return bounded<Awaited, &Awaited::worker, &Awaited::guest>(o, 3); }},
      {"lanes", "left", [](Options o) { return bounded<Left, &Left::worker, &Left::guest>(o, 3); }},
      {"lanes", "both", [](Options o) { return bounded<Both, &Both::first, &Both::second, &Both::guest>(o, 2); }},
      {"lanes", "effects", [](Options o) { return bounded<Effects, &Effects::worker, &Effects::guest>(o, 3); }},
  };
}

}  // namespace explore
