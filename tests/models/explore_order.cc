// Order across threads (guest/objects/last_use.h): guests post through channels of their own, or share one; a worker
// for each channel executes. What CUDA promises is that work executes in the order in which the program ordered its
// calls.
#include "tests/models/explored.h"
// after it:
#include "guest/objects/last_use.h"
#include "tests/models/scenarios.h"

namespace explore {
namespace {

using guest::Use;

// A channel without its ring: how many records were posted, how many executed. What a record does is to write a plain
// word, so that a call which is not ordered behind another is a data race.
struct Channel {
  std::atomic<std::uint64_t> posted{0}, executed{0};

  std::uint64_t post() { return posted.fetch_add(1, std::memory_order_acq_rel) + 1; }
  template <class Work>
  void execute(std::uint64_t position, Work work) {
    wait_for(&posted, position);
    work();
    executed.store(position, std::memory_order_release);  // X
  }
  bool await(std::uint64_t position) {
    wait_for(&executed, position);  // X
    return true;
  }
};

struct Base {
  Base() { share(work, sizeof work); }
  bool await(Use use) { return channel[use.channel].await(use.position); }
  void use(std::uint32_t c) {  // what a posted call does that names the object
    require(object.await_others(c, [this](Use u) { return await(u); }), "lost");
    const std::uint64_t position = channel[c].post();
    object.remember({c, position}, [this](Use u) { return await(u); });
  }
  void finish() {}

  Channel channel[2];
  guest::LastUse object;
  alignas(16) std::byte work[32] = {};
  std::atomic<std::uint32_t> done{0};  // how the program orders its threads
};

// A posts and hands over to B, whose call goes through another channel.
struct HandOver : Base {
  void first() {
    use(0);
    done.store(1, std::memory_order_release);
  }
  void second() {
    wait_for(&done, 1);
    use(1);
  }
  void worker_0() {
    channel[0].execute(1, [this] { writes(work, 16); });
  }
  void worker_1() {
    channel[1].execute(1, [this] { reads(work, 16); });
  }
};

// A and B use the object at a time, through channels of their own; C has waited for both.
struct AtATime : Base {
  void user_0() { user(0); }
  void user_1() { user(1); }
  void user(std::uint32_t c) {
    use(c);
    done.fetch_add(1, std::memory_order_acq_rel);
  }
  void third() {
    wait_for(&done, 2);
    object.await_others(9, [this](Use u) { return await(u); });
    reads(work, 32);  // its own call, which its worker makes at once
  }
  void worker_0() {
    channel[0].execute(1, [this] { writes(work, 16); });
  }
  void worker_1() {
    channel[1].execute(1, [this] { writes(work + 16, 16); });
  }
};

// A and B share a channel: the later record is remembered, whoever is late to remember.
struct Shared : Base {
  void user() {
    use(0);
    done.fetch_add(1, std::memory_order_acq_rel);
  }
  void third() {
    wait_for(&done, 2);
    object.await_others(9, [this](Use u) { return await(u); });
    reads(work, 32);
  }
  void worker() {
    channel[0].execute(1, [this] { writes(work, 16); });
    channel[0].execute(2, [this] { writes(work + 16, 16); });
  }
};

}  // namespace

std::vector<Scenario> order_scenarios() {
  return {
      {"order", "hand over",
       [](Options o) {
         return bounded<HandOver, &HandOver::first, &HandOver::second, &HandOver::worker_0, &HandOver::worker_1>(o, 3);
       }},
      {"order", "shared channel",
       [](Options o) { return bounded<Shared, &Shared::user, &Shared::user, &Shared::third, &Shared::worker>(o, 2); }},
      {"order", "at a time",
       [](Options o) {
         return bounded<AtATime, &AtATime::user_0, &AtATime::user_1, &AtATime::third, &AtATime::worker_0,
                        &AtATime::worker_1>(o, 2);
       }},
  };
}

}  // namespace explore
