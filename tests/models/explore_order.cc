// Order across threads (guest/objects/memory/last_use.h). Guest threads post through their own channels or share one;
// one worker thread per channel executes. CUDA promises that the calls execute in the order in which the program
// ordered them. A graph's launch may record an event that the launch does not name.
#include "tests/models/explored.h"
// The product's headers, after explored.h:
#include "guest/objects/known_done.h"
#include "guest/objects/memory/last_use.h"
#include "tests/models/scenarios.h"

namespace explore {
namespace {

using guest::LastUse, guest::Use;

// A channel without its ring: counters of posted and executed records. Executing a record writes a plain word, so an
// unordered call shows as a data race.
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
  bool await(Use use) {
    if (use.channel != LastUse::any_channel) return channel[use.channel].await(use.position);
    for (Channel& c : channel) c.await(c.posted.load(std::memory_order_relaxed));
    return true;
  }
  void use(std::uint32_t c) {  // a posted call that names the object
    require(object.await_others(c, [this](Use u) { return await(u); }), "lost");
    const std::uint64_t position = channel[c].post();
    object.remember({c, position}, [this](Use u) { return await(u); });
  }
  void finish() {}

  Channel channel[2];
  LastUse object;
  alignas(16) std::byte work[32] = {};
  std::atomic<std::uint32_t> done{0};  // the program's own synchronisation
};

// Thread A posts and signals thread B, whose call uses another channel.
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

// Threads A and B use the object concurrently, on their own channels. Thread C has waited for both.
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
    reads(work, 32);  // this thread's own call, which its worker executes at once
  }
  void worker_0() {
    channel[0].execute(1, [this] { writes(work, 16); });
  }
  void worker_1() {
    channel[1].execute(1, [this] { writes(work + 16, 16); });
  }
};

// Threads A and B share a channel. The object must remember the later record, in whichever order the threads store it.
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

// Thread A launches a graph that records the event. Thread B waits for A, and then names the event.
struct Launched : Base {
  void launch() {
    channel[0].post();
    done.fetch_add(1, std::memory_order_acq_rel);
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

// The graph contains the event from the beginning.
struct Recorded : Launched {
  Recorded() { object.used_by_graphs(); }
};

// Thread A adds the event to the graph and launches it, while thread B uses the event by name. Thread C waits for both.
struct RecordedAtATime : Launched {
  void first() {
    object.used_by_graphs();
    launch();
  }
  void second() {
    use(1);
    done.fetch_add(1, std::memory_order_acq_rel);
  }
  void third() {
    wait_for(&done, 2);
    object.await_others(9, [this](Use u) { return await(u); });
    reads(work, 32);
  }
  void worker_1() {
    channel[1].execute(1, [this] { writes(work + 16, 16); });
  }
};

// The event was complete before it joined the graph. Thread B queries the event by the rule of
// guest/marshal/done_question.h.
struct RecordedOnceDone : Launched {
  RecordedOnceDone() {
    known.for_queries.store(object.now(), std::memory_order_relaxed);
    object.used_by_graphs();
  }
  void second() {
    wait_for(&done, 1);
    const std::uint64_t last = object.now();
    if (last != LastUse::several && known.for_queries.load(std::memory_order_relaxed) == last)
      reads(work, 16);  // as a program does that considers the launch complete
    else
      use(1);
  }
  guest::KnownDone known;
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
      {"order", "recorded by a graph",
       [](Options o) {
         return bounded<Recorded, &Recorded::launch, &Recorded::second, &Recorded::worker_0, &Recorded::worker_1>(o, 3);
       }},
      {"order", "recorded by a graph once done",
       [](Options o) {
         using World = RecordedOnceDone;
         return bounded<World, &World::launch, &World::second, &World::worker_0, &World::worker_1>(o, 3, 1);
       }},
      {"order", "recorded by a graph at a time",
       [](Options o) {
         using World = RecordedAtATime;
         return bounded<World, &World::first, &World::second, &World::third, &World::worker_0, &World::worker_1>(o, 1);
       }},
      {"order", "at a time",
       [](Options o) {
         return bounded<AtATime, &AtATime::user_0, &AtATime::user_1, &AtATime::third, &AtATime::worker_0,
                        &AtATime::worker_1>(o, 2);
       }},
  };
}

}  // namespace explore
