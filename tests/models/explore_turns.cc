// Turns on one GPU (ring/turn_gate.h). What the workers do around the gate (host/session/turns.cc) and the scheduler
// around its steps (host/turns/policy.cc) is told here once more, without times: a futex has no time-out, a keeper
// gives a turn back as soon as its worker is quiet, and the scheduler ends a turn as soon as somebody waits.
#include "tests/models/explored.h"
// after it:
#include "ring/turn_gate.h"
#include "tests/models/scenarios.h"

namespace explore {
namespace {

using ring::Entry, ring::Grant, ring::GrantMode;

struct Worker {
  ring::DeviceGrant grant;
  ring::DeviceRequest request;
  ring::TurnGate<2> gate{grant, request};
  Grant given;                             // of the scheduler
  int inside = 0, calls = 0;               // channels in the gate; channels in a call that was let in
  int done = 0;                            // calls
  alignas(16) std::byte work[2][16] = {};  // what each channel does on the GPU
};

template <std::size_t workers>
struct Gpu {
  Gpu() {
    for (Worker& worker : all) share(worker.work, sizeof worker.work);
  }
  // How scenarios begin: in the first worker's turn, or with a worker that has answered.
  void start_in_turn() {
    set(0, GrantMode::Turn);
    for (unsigned w = 1; w < workers; ++w) close(w);
    holder = 0;
    turn = all[0].given.number;
  }
  void close(unsigned w) {
    set(w, GrantMode::Closed);
    all[w].gate.give_back(all[w].given);
  }

  // ---- a channel

  void call(unsigned w, unsigned channel) {
    Worker& worker = all[w];
    Grant under;
    bool waits = false;
    for (Entry entry; (entry = worker.gate.enter(channel, under)) != Entry::LetIn; waits = true) {
      if (!waits)
        worker.request.waiting.fetch_add(1, std::memory_order_relaxed);
      else if (entry == Entry::Soon)
        pause();
      else
        futex_wait(&worker.grant.word, under.word());
    }
    ++worker.inside, ++worker.calls;
    taken |= holder == w;
    require(holder == everybody || holder == w, "a channel is let in in another worker's turn");
    submit(w, channel, under);
    if (waits) worker.request.waiting.fetch_add(~0u, std::memory_order_relaxed);  // one less
    --worker.calls;
    worker.gate.leave(channel);
    --worker.inside, ++worker.done;
  }
  // In a turn it finds what the others have done before.
  void submit(unsigned w, unsigned channel, Grant under) {
    writes(all[w].work[channel], sizeof all[w].work[channel]);
    if (under.mode != GrantMode::Turn) return;
    for (unsigned other = 0; other < workers; ++other)
      if (other != w) reads(all[other].work, sizeof all[other].work);
  }

  // ---- a keeper

  // Whether its work waits for a value in memory, which the last worker's call writes.
  bool stands(const Worker& worker) const {
    return awaits && &worker != &all[workers - 1] && all[workers - 1].done == 0;
  }
  [[noreturn]] void keep(unsigned w, bool gives_back_early) {
    Worker& worker = all[w];
    for (;;) {
      const Grant grant = worker.gate.grant();
      if (grant.mode == GrantMode::Turn && gives_back_early) hold(worker, grant);
      if (grant.mode == GrantMode::Closed) answer_end(worker, grant);
      futex_wait(&worker.grant.word, grant.word());
    }
  }
  void hold(Worker& worker, Grant turn) {
    while (worker.gate.grant() == turn) {
      const bool quiet = worker.calls == 0 && worker.request.waiting.load(std::memory_order_relaxed) == 0;
      if (quiet && worker.gate.withdraw(turn)) return worker.gate.give_back(turn);
      pause();
    }
  }
  void answer_end(Worker& worker, Grant closed) {
    while (!worker.gate.empty()) {
      if (worker.gate.grant() != closed) return;
      pause();
    }
    if (stands(worker)) worker.gate.hold_up(closed);
    while (stands(worker)) {
      if (worker.gate.grant() != closed) return;
      pause();
    }
    if (worker.gate.grant() == closed) worker.gate.give_back(closed);
  }

  // ---- the scheduler

  void set(unsigned w, GrantMode mode) {
    all[w].given = {mode, ++number};
    ring::give(all[w].grant, all[w].given);
  }
  void give(unsigned w, GrantMode mode) {
    set(w, mode);
    futex_wake(&all[w].grant.word);
  }
  std::uint32_t answer_of(unsigned w) const { return ring::answer_of(all[w].request); }
  // The newest value: with older ones a schedule might pass turns on for ever.
  bool waits(unsigned w) { return all[w].request.waiting.fetch_add(0, std::memory_order_relaxed) != 0; }

  void begin_turns() {
    for (unsigned w = 0; w < workers; ++w)
      if (all[w].given.mode != GrantMode::Closed) give(w, GrantMode::Closed);
    for (unsigned w = 0; w < workers; ++w)
      while (!ring::is_answered(all[w].given, answer_of(w))) pause();
    nobody_holds();
  }
  // One look at each worker. False: there was nothing to do.
  bool look() {
    for (unsigned w = 0; w < workers; ++w) {
      if (holder == w && ring::is_over(turn, all[w].given, answer_of(w))) return nobody_holds(), true;
      const bool ended = holder == w && all[w].given.mode == GrantMode::Closed;
      if (ended && ring::is_held_up(all[w].given, ring::held_up_under(all[w].request))) return nobody_holds(), true;
      if (holder == w || !waits(w)) continue;
      if (holder == nobody) return begin_turn(w), true;
      const bool had_its_turn = taken || !waits(holder);
      if (all[holder].given.mode == GrantMode::Turn && had_its_turn) return give(holder, GrantMode::Closed), true;
    }
    return false;
  }
  [[noreturn]] void schedule() {
    for (;;)
      if (!look()) pause();
  }
  void begin_turn(unsigned w) {
    holder = w;
    taken = false;
    turn = number + 1;
    give(w, GrantMode::Turn);
  }
  void nobody_holds() {
    holder = nobody;
    for (const Worker& worker : all) require(worker.inside == 0, "a turn is over while a channel is in the gate");
  }

  static constexpr unsigned nobody = 100, everybody = 101;
  Worker all[workers];
  std::uint32_t number = 0, turn = 0;
  unsigned holder = everybody;
  bool taken = false;   // the turn, by a channel
  bool awaits = false;  // what the first worker does waits for the second's call
};

// One worker, whose keeper gives turns back early.
struct GivenBack : Gpu<1> {
  GivenBack() { start_in_turn(); }
  void first() { call(0, 0), call(0, 0); }
  void second() { call(0, 1); }
  void keeper() { keep(0, true); }
  void scheduler() { schedule(); }
  void finish() {}
};

// Two workers. The second one's keeper is idle until its call is made, so that they are one thread.
struct Two : Gpu<2> {
  void first() { call(0, 0); }
  void keeper() { keep(0, true); }
  void patient_keeper() { keep(0, false); }
  void second() {
    call(1, 0);
    keep(1, false);
  }
  void finish() { require(all[1].done == 1, "a channel waits for ever"); }
};

// The first worker's turn is ended for the second one.
struct Ended : Two {
  Ended() { start_in_turn(); }
  void scheduler() { schedule(); }
};

// The same, while the first one's work waits for what the second one does.
struct HeldUp : Ended {
  HeldUp() { awaits = true; }
};

// The first worker submits when it likes, until turns begin. The second one has given its answer already.
struct Begin : Two {
  Begin() { close(1); }
  void scheduler() {
    begin_turns();
    schedule();
  }
};

// Both workers' gates were left shut by a scheduler that has ended. The first one's is passed, until the next scheduler's turns.
struct Left : Two {
  Left() { close(0), close(1); }
  void scheduler() {
    all[0].gate.left_alone(true);
    futex_wake(&all[0].grant.word);
    give(0, GrantMode::Open);
    begin_turns();
    schedule();
  }
};

}  // namespace

// Five threads that poll have so many schedules that few preemptions are searched. Each mutant and each weakened ordering
// shows in these.
std::vector<Scenario> turn_scenarios() {
  return {
      {"turns", "given back",
       [](Options o) {
         return bounded<GivenBack, &GivenBack::first, &GivenBack::keeper, &GivenBack::scheduler>(o, 1, 2);
       }},
      {"turns", "two channels",
       [](Options o) {
         return bounded<GivenBack, &GivenBack::first, &GivenBack::second, &GivenBack::keeper, &GivenBack::scheduler>(
             o, 0, 2);
       }},
      {"turns", "ended",
       [](Options o) {
         return bounded<Ended, &Ended::first, &Ended::patient_keeper, &Ended::second, &Ended::scheduler>(o, 1, 3);
       }},
      {"turns", "held up",
       [](Options o) {
         return bounded<HeldUp, &HeldUp::first, &HeldUp::patient_keeper, &HeldUp::second, &HeldUp::scheduler>(o, 0, 3);
       }},
      {"turns", "begin",
       [](Options o) {
         return bounded<Begin, &Begin::first, &Begin::patient_keeper, &Begin::second, &Begin::scheduler>(o, 0, 3);
       }},
      {"turns", "left",
       [](Options o) {
         return bounded<Left, &Left::first, &Left::patient_keeper, &Left::second, &Left::scheduler>(o, 0, 3);
       }},
  };
}

}  // namespace explore
