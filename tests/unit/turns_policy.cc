// What the scheduler of turns decides (host/turns/policy.h): who may submit, when turns begin and end, whose is the
// next. A test plays the clients of one GPU, look by look. tests/unit/turns_world.cc has whole programs.
#include "host/turns/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "host/turns/suspicion.h"

namespace {

using namespace std::chrono_literals;
using host::turns::Limits;
using host::turns::Policy;
using host::turns::Request;
using host::turns::Time;
using ring::Grant;
using ring::GrantMode;

// The clients' pages, and the looks of a scheduler.
class Gpu {
 public:
  explicit Gpu(Limits limits = {}) : policy(limits) {}

  Policy::Client add(double weight = 1, bool latency = false) {
    policy.set_share(++clients_, weight, latency);
    policy.add(clients_, clients_);
    pages_[clients_];
    return clients_;
  }
  // A process more of the VM that this client is the first of, with a context of its own.
  Policy::Client start_another(Policy::Client of) {
    policy.add(++clients_, of, true);
    pages_[clients_];
    return clients_;
  }
  void remove(Policy::Client client) {
    pages_.erase(client);
    policy.remove(client, now);
  }

  Time look() {
    return policy.step(
        now,
        [this](Policy::Client client) {
          Page& page = pages_.at(client);
          if (client != deaf && page.grant.copies) page.request.heard = page.grant.number;
          return page.request;
        },
        [this](Policy::Client client, Grant grant) {
          pages_.at(client).grant = grant;
          given.push_back(client);
        });
  }
  Time look_after(Time time) {
    now += time;
    return look();
  }

  Request& request(Policy::Client client) { return pages_.at(client).request; }
  Grant grant(Policy::Client client) const { return pages_.at(client).grant; }
  GrantMode mode(Policy::Client client) const { return grant(client).mode; }
  bool has_turn(Policy::Client client) const { return mode(client) == GrantMode::Turn; }
  void asks(Policy::Client client) { request(client).waits_for_turn = true; }
  // What a worker says when it has nothing under way.
  void answers(Policy::Client client) { request(client).given_back = grant(client).number; }

  // What it says when all that it has under way waits for values in memory.
  void is_held_up(Policy::Client client) { request(client).held_up = grant(client).number; }

  // A client that launches and waits for so long; each wait takes `wait`.
  void launches_and_waits(Policy::Client client, Time time, Time wait) {
    const auto many = static_cast<std::uint64_t>(time / wait);
    request(client).submitted += many, request(client).waits += many;
    request(client).waited_ns += static_cast<std::uint64_t>(time.count());
  }
  void submits(Policy::Client client) { ++request(client).submitted; }

  // Slices for so long, in which these clients launch and wait.
  void slices(const std::vector<Policy::Client>& clients, Time time, Time wait = 549us) {
    for (const Time end = now + time; now < end && !is_closed(clients.front());) {
      for (const auto client : clients) launches_and_waits(client, 10ms, wait);
      look_after(10ms);
    }
  }
  bool is_closed(Policy::Client client) const { return mode(client) == GrantMode::Closed; }
  void all_answer() {
    for (const auto& [client, page] : pages_) answers(client);
  }
  // Until turns have begun and all of these want one. The first has it.
  void begin_turns(const std::vector<Policy::Client>& clients, Time wait = 549us) {
    slices(clients, 1s, wait);
    all_answer();
    for (const auto client : clients) asks(client);
    look_after(10us);
  }
  // The holder, if there is one. Whoever has given its turn back keeps the grant.
  std::optional<Policy::Client> holder() const {
    for (const auto& [client, page] : pages_)
      if (page.grant.mode == GrantMode::Turn && page.request.given_back != page.grant.number) return client;
    return {};
  }
  // What a client does until the next look that has a turn, or wants one: pieces of 10 us.
  void works(Policy::Client client) {
    const bool let_in = policy.takes_turns() && mode(client) == GrantMode::Open;  // of the latency class
    request(client).waits_for_turn = is_closed(client);
    if (is_closed(client)) answers(client);
    if (let_in || has_turn(client)) launches_and_waits(client, 10us, 10us);
  }
  // Turns for so long. Whoever has one works until it ends, and wants the next. `silent` says nothing.
  void turns(Time time, Policy::Client silent = 0) {
    for (const Time end = now + time; now < end; look_after(10us))
      for (auto& [client, page] : pages_) {
        const bool hears = client != deaf && page.grant.copies && is_closed(client);
        if (client != silent) works(client);
        if (client == silent && hears) answers(client);
      }
  }
  // Turns while one kernel of 1.9 ms runs. Whoever has none wants one; a holder gives its own back after the kernel if
  // `until` is Turn, and once it is told to if that is Closed.
  void turn_with_long_kernels(GrantMode until) {
    for (auto& [client, page] : pages_) {
      page.request.waits_for_turn = !has_turn(client);
      if (has_turn(client)) launches_and_waits(client, 1900us, 1900us);
      if (!has_turn(client) || until == GrantMode::Turn) answers(client);
    }
    look_after(1900us);
  }
  Time by_right(Policy::Client client) const { return policy.right_of(client, now).until; }
  Time held(Policy::Client client) const { return policy.account(client, now).held; }

  Policy policy;
  Time now = 1s;
  Policy::Client deaf = 0;            // its worker sees no grant
  std::vector<Policy::Client> given;  // whose grants were written

 private:
  struct Page {
    Request request;
    Grant grant;
  };
  std::map<Policy::Client, Page> pages_;
  Policy::Client clients_ = 0;
};

// ---- nothing to decide ---------------------------------------------------------------------------------------------

TEST(TurnsPolicy, OneClientIsOpenAndNeedsNoLook) {
  Gpu gpu;
  const auto a = gpu.add();
  EXPECT_EQ(gpu.look(), Time::max());
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  const Grant first = gpu.grant(a);
  for (int i = 0; i < 100; ++i) {
    gpu.launches_and_waits(a, 10ms, 10us);
    EXPECT_EQ(gpu.look_after(10ms), Time::max());
  }
  EXPECT_EQ(gpu.grant(a), first) << "a grant that does not change is not given again";
}

TEST(TurnsPolicy, WithTwoItLooksAHundredTimesASecond) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.look();
  gpu.submits(a), gpu.submits(b);
  EXPECT_EQ(gpu.look_after(10ms), 10ms);
  EXPECT_EQ(gpu.look_after(3ms), 7ms);
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_EQ(gpu.mode(b), GrantMode::Open);
}

TEST(TurnsPolicy, AfterASecondOfQuietItLooksSeldomUntilSomebodyRings) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.submits(a);
  gpu.look_after(10ms);
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_LE(gpu.look_after(900ms), 10ms);
  EXPECT_EQ(gpu.look_after(110ms), 100ms);
  EXPECT_EQ(gpu.mode(a), GrantMode::Told);
  EXPECT_EQ(gpu.mode(b), GrantMode::Told);
  gpu.submits(b);
  EXPECT_EQ(gpu.look_after(1ms), 9ms) << "also a millisecond after it fell asleep";
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_EQ(gpu.mode(b), GrantMode::Open);
}

TEST(TurnsPolicy, SwitchedOffEverybodyIsOpen) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  ASSERT_TRUE(gpu.has_turn(a));
  gpu.policy.set_on(false);
  EXPECT_EQ(gpu.look(), Time::max());
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_EQ(gpu.mode(b), GrantMode::Open);
  EXPECT_FALSE(gpu.policy.takes_turns());
}

// ---- when turns begin and end --------------------------------------------------------------------------------------

TEST(TurnsPolicy, TurnsBeginWhereWaitsTakeMostOfTheTime) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.slices({a, b}, 200ms, 274us);
  EXPECT_TRUE(gpu.is_closed(a));
  EXPECT_TRUE(gpu.is_closed(b));
  EXPECT_LT(gpu.now, 1100ms) << "within a tenth of a second";
}

TEST(TurnsPolicy, OneThatWaitsBesideOneThatNeverDoesIsEnough) {
  Gpu gpu;
  const auto waits = gpu.add(), fills = gpu.add();
  for (int i = 0; i < 20 && !gpu.is_closed(waits); ++i) {
    gpu.launches_and_waits(waits, 10ms, 2270us);
    gpu.submits(fills);
    gpu.look_after(10ms);
  }
  EXPECT_TRUE(gpu.is_closed(waits));
}

// As spare workers are: they do not look at their pages yet.
TEST(TurnsPolicy, NobodyWaitsForAWorkerThatIsStarting) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), starting = gpu.add();
  gpu.slices({a, b}, 200ms, 274us);
  ASSERT_TRUE(gpu.is_closed(a));
  const Time began = gpu.now;
  while (!gpu.policy.takes_turns() && gpu.now < began + 1s) {
    for (const auto client : {a, b})
      if (gpu.is_closed(client)) gpu.answers(client);
    gpu.look_after(100us);
  }
  EXPECT_LT(gpu.now - began, 10ms);
  EXPECT_TRUE(gpu.is_closed(starting));
}

// What a program did in turns makes it no reason for more of them when it ends.
TEST(TurnsPolicy, OneThatUsesTheGpuLessAndLessIsNoReason) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.turns(2s);
  gpu.policy.set_on(false);
  gpu.look_after(10us);
  gpu.policy.set_on(true);
  for (int i = 0; i < 300; ++i) {
    if (i % 5 == 0)
      for (const auto client : {a, b}) gpu.launches_and_waits(client, 1ms, 500us);
    gpu.look_after(10ms);
    ASSERT_EQ(gpu.mode(a), GrantMode::Open);
  }
}

// The last turns of programs that cease together are nearly all pause: one wait, and 150 us until the turn is given back.
TEST(TurnsPolicy, APauseAtTheEndOfATurnIsNoPartOfAPieceOfWork) {
  Gpu gpu;
  const std::vector<Policy::Client> all = {gpu.add(), gpu.add(), gpu.add(), gpu.add()};
  gpu.begin_turns(all);
  gpu.turns(1s);
  for (int i = 0; i < 40; ++i) {
    const auto holder = gpu.holder().value();
    for (const auto client : all) gpu.request(client).waits_for_turn = client != holder;
    gpu.launches_and_waits(holder, 10us, 10us);
    gpu.look_after(10us);
    gpu.answers(holder);
    gpu.look_after(150us);
  }
  for (const auto client : all) gpu.request(client).waits_for_turn = false, gpu.answers(client);
  for (int i = 0; i < 30; ++i) gpu.look_after(10ms);
  ASSERT_FALSE(gpu.policy.takes_turns());
  gpu.begin_turns(all);
  EXPECT_TRUE(gpu.policy.takes_turns()) << "their pieces are as short as they were";
}

TEST(TurnsPolicy, WaitsShorterThanAChangeHaveMetNone) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.slices({a, b}, 2s, 9us);
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
}

TEST(TurnsPolicy, ProgramsWithTimeOfTheirOwnAreLeftToTheSlices) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  for (int i = 0; i < 200; ++i) {
    for (const auto client : {a, b}) gpu.launches_and_waits(client, 3ms, 600us);  // of 10
    gpu.look_after(10ms);
    ASSERT_EQ(gpu.mode(a), GrantMode::Open);
  }
}

TEST(TurnsPolicy, ATryThatDoesNotPayIsMadeMoreAndMoreSeldom) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  std::vector<Time> tries;
  // Under slices a piece takes 3.3 ms, in a turn 1.9.
  while (gpu.now < 8s) {
    if (!gpu.policy.takes_turns()) {
      gpu.slices({a, b}, 10ms, 3300us);
      gpu.all_answer();
      gpu.look_after(10us);
      if (gpu.policy.takes_turns()) tries.push_back(gpu.now);
      continue;
    }
    gpu.turn_with_long_kernels(GrantMode::Turn);
  }
  EXPECT_GE(tries.size(), 1u) << "how long its waits are alone must be learnt";
  EXPECT_LE(tries.size(), 5u);
}

TEST(TurnsPolicy, WaitsLongerThanARoundOfSlicesAreOfLongPieces) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.slices({a, b}, 10s, 5ms);
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_EQ(gpu.now, 11s);
}

// One look or one turn tells little of a program whose threads wait for a processor meanwhile.
TEST(TurnsPolicy, ATryIsOfSeveralLooksAndTurnsHoweverLongQuantaAre) {
  for (const Time quantum : {200us, 1000us, 2000us, 5000us}) {
    Gpu gpu({.quantum = quantum});
    const auto a = gpu.add(), b = gpu.add();
    gpu.begin_turns({a, b}, 3300us);
    ASSERT_TRUE(gpu.policy.takes_turns());
    const Time began = gpu.now;
    while (gpu.policy.takes_turns()) gpu.turn_with_long_kernels(GrantMode::Closed);
    EXPECT_GE(gpu.now - began, 40ms) << quantum.count();
    EXPECT_GE(gpu.policy.account(a, gpu.now).turns + gpu.policy.account(b, gpu.now).turns, 6u) << quantum.count();
  }
}

TEST(TurnsPolicy, TurnsThatPayGoOn) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.turns(3s);
  EXPECT_TRUE(gpu.policy.takes_turns());
}

TEST(TurnsPolicy, TurnsEndWhenOnlyOneIsLeftThatSubmits) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.turns(300ms);
  gpu.request(b).waits_for_turn = false;
  gpu.answers(b);
  const Time begin = gpu.now;
  while (gpu.policy.takes_turns() && gpu.now < begin + 1s) {
    if (gpu.has_turn(a)) gpu.launches_and_waits(a, 100us, 10us);
    gpu.asks(a), gpu.answers(b);
    if (!gpu.has_turn(a)) gpu.answers(a);
    gpu.look_after(100us);
  }
  EXPECT_LE(gpu.now, begin + 110ms);
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_EQ(gpu.mode(b), GrantMode::Open);
}

TEST(TurnsPolicy, NoTurnBeginsBeforeWorkOfTheTimeBeforeIsDone) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.slices({a, b}, 1s);
  gpu.asks(a), gpu.asks(b);
  gpu.answers(a);
  gpu.look_after(1ms);
  EXPECT_FALSE(gpu.holder());
  gpu.answers(b);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.has_turn(a));
  EXPECT_TRUE(gpu.is_closed(b));
}

TEST(TurnsPolicy, WhileADeepQueueEndsTheOthersAreOpen) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), deep = gpu.add();
  gpu.submits(deep);
  gpu.slices({a, b}, 1s);
  ASSERT_TRUE(gpu.is_closed(deep));
  gpu.answers(a), gpu.answers(b);
  gpu.look_after(10ms);
  gpu.look_after(10us);
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_EQ(gpu.mode(b), GrantMode::Open);
  EXPECT_TRUE(gpu.is_closed(deep));
  for (int i = 0; i < 120; ++i) {
    gpu.asks(deep);
    gpu.launches_and_waits(a, 10ms, 2270us), gpu.launches_and_waits(b, 10ms, 2270us);
    gpu.look_after(10ms);
    ASSERT_EQ(gpu.mode(a), GrantMode::Open);
  }
  gpu.answers(deep);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(a));
  gpu.all_answer();
  gpu.asks(a);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.policy.takes_turns());
  EXPECT_TRUE(gpu.holder());
}

TEST(TurnsPolicy, WhoNeverEndsItsWorkIsLeftToTheSlices) {
  Gpu gpu;
  const auto a = gpu.add(), endless = gpu.add();
  const auto waits_in_vain = [&] {
    gpu.asks(endless);
    gpu.request(a).waits_for_turn = gpu.is_closed(a);
    if (gpu.is_closed(a))
      gpu.answers(a);
    else
      gpu.launches_and_waits(a, 10ms, 2270us);
    gpu.look_after(10ms);
  };
  Time closed{};
  for (int i = 0; i < 6000; ++i) {
    waits_in_vain();
    if (gpu.is_closed(endless)) closed += 10ms;
  }
  EXPECT_GT(closed, Time::zero());
  EXPECT_LE(closed, 5s) << "of a minute";
}

// ---- turns ---------------------------------------------------------------------------------------------------------

TEST(TurnsPolicy, OneHasTheTurnAndTheOthersAreClosed) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b, c});
  EXPECT_TRUE(gpu.has_turn(a));
  EXPECT_TRUE(gpu.is_closed(b));
  EXPECT_TRUE(gpu.is_closed(c));
  for (int i = 0; i < 20000; ++i) {
    gpu.turns(10us);
    int holders = 0;
    for (const auto client : {a, b, c}) holders += gpu.has_turn(client);
    ASSERT_LE(holders, 1);
  }
}

TEST(TurnsPolicy, ATurnEndsAfterTheQuantumIfSomebodyWaits) {
  Gpu gpu({.quantum = 2ms});
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.request(a).waits_for_turn = false;
  gpu.look_after(1990us);
  EXPECT_TRUE(gpu.has_turn(a));
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(a));
  EXPECT_TRUE(gpu.is_closed(b)) << "a has not said that its work is done";
  gpu.answers(a);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.has_turn(b));
}

// A thread that sleeps needs some time until it runs.
// As by a reload, under running programs.
TEST(TurnsPolicy, AnotherQuantumCountsAtOnce) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  const auto turn = [&] {
    while (!gpu.has_turn(a)) gpu.turns(10us);
    const Time begin = gpu.now;
    while (gpu.has_turn(a)) gpu.turns(10us);
    return gpu.now - begin;
  };
  gpu.turns(100ms);
  const Time before = turn();
  gpu.policy.set_limits({.quantum = 5ms});
  const Time after = turn();
  EXPECT_GE(after, 4 * before);
  EXPECT_LE(after, 6 * before);
}

TEST(TurnsPolicy, WhoGoesNextIsWokenBeforeTheTurnIsOver) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.request(a).waits_for_turn = false;
  const auto wakes = [&] { return std::ranges::count(gpu.given, b); };
  gpu.given.clear();
  gpu.look_after(850us);
  EXPECT_EQ(wakes(), 0);
  for (int i = 0; i < 10; ++i) gpu.look_after(8us);
  EXPECT_EQ(wakes(), 1) << "once is enough";
  EXPECT_TRUE(gpu.has_turn(a));
  gpu.look_after(100us);
  EXPECT_TRUE(gpu.is_closed(a));
  const auto until_the_end = wakes();
  for (int i = 0; i < 100; ++i) gpu.look_after(10us);
  EXPECT_GE(wakes(), until_the_end + 4) << "the holder's work takes long, and it sleeps again";
  EXPECT_LE(wakes(), until_the_end + 6);
}

TEST(TurnsPolicy, ThePagesOfATurnAreLookedAtMoreSeldomThanItsEnd) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  ASSERT_TRUE(gpu.has_turn(a));
  EXPECT_EQ(gpu.look_after(10us), 10us);
  EXPECT_EQ(gpu.look_after(1ms), 0us) << "it is to end";
  EXPECT_TRUE(gpu.is_closed(a));
}

TEST(TurnsPolicy, NobodyWaitsAndTheTurnGoesOn) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.request(a).waits_for_turn = gpu.request(b).waits_for_turn = false;
  const Grant turn = gpu.grant(a);
  for (int i = 0; i < 50; ++i) {
    gpu.launches_and_waits(a, 1ms, 10us);
    gpu.look_after(1ms);
    ASSERT_EQ(gpu.grant(a), turn);
  }
  gpu.asks(b);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(a)) << "its quantum is long over";
}

TEST(TurnsPolicy, WhatAHolderHadAloneIsNotHeldAgainstIt) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.request(a).waits_for_turn = gpu.request(b).waits_for_turn = false;
  for (int i = 0; i < 90; ++i) {
    gpu.launches_and_waits(a, 1ms, 10us);
    gpu.look_after(1ms);
  }
  const Time before = gpu.held(a);
  EXPECT_GE(before, 85ms) << "though it is counted";
  gpu.turns(50ms);
  EXPECT_NEAR(static_cast<double>((gpu.held(a) - before).count()), 25e6, 3e6);
}

TEST(TurnsPolicy, ATurnGivenBackEarlyPassesOnAtOnce) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.request(a).waits_for_turn = false;
  gpu.look_after(100us);
  gpu.answers(a);
  gpu.look_after(2us);
  EXPECT_TRUE(gpu.has_turn(b));
}

TEST(TurnsPolicy, AnAnswerToAnOlderGrantEndsNothing) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  const Grant first = gpu.grant(a);
  gpu.turns(5ms);
  while (!gpu.has_turn(a)) gpu.turns(10us);
  gpu.request(a).given_back = first.number;
  gpu.asks(b);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.has_turn(a));
}

TEST(TurnsPolicy, WorkThatOutlivesItsTurnDoesNotHoldTheOthersForEver) {
  Gpu gpu({.longest = 5ms});
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.look_after(1ms);
  ASSERT_TRUE(gpu.is_closed(a));
  gpu.look_after(4900us);
  EXPECT_TRUE(gpu.is_closed(b));
  gpu.look_after(100us);
  EXPECT_TRUE(gpu.has_turn(b));
  EXPECT_EQ(gpu.policy.account(a, gpu.now).overlong, 1u);
  EXPECT_GE(gpu.held(a), 6ms) << "the time until then is charged";
}

TEST(TurnsPolicy, WhoDoesItAgainAndAgainIsLeftToTheSlices) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  const Time begin = gpu.now;
  while (gpu.policy.takes_turns() && gpu.now < begin + 1s) {  // a never answers
    gpu.asks(a);
    gpu.request(b).waits_for_turn = !gpu.has_turn(b);
    gpu.launches_and_waits(b, 100us, 10us);
    if (gpu.is_closed(b)) gpu.answers(b);
    gpu.look_after(100us);
  }
  EXPECT_EQ(gpu.policy.account(a, gpu.now).overlong, 3u);
  EXPECT_EQ(gpu.policy.account(a, gpu.now).sliced, 1u);
  EXPECT_EQ(gpu.policy.account(b, gpu.now).sliced, 0u);
  EXPECT_EQ(gpu.mode(a), GrantMode::Open);
  EXPECT_EQ(gpu.mode(b), GrantMode::Open);
  for (const Time end = gpu.now + 1s; gpu.now < end;) {
    gpu.slices({a, b}, 10ms);
    ASSERT_EQ(gpu.mode(b), GrantMode::Open);
  }
}

TEST(TurnsPolicy, WorkThatWaitsForAValueHoldsNobody) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  ASSERT_TRUE(gpu.has_turn(a));
  gpu.request(a).waits_for_turn = false;
  gpu.is_held_up(a);
  gpu.look_after(10us);
  ASSERT_TRUE(gpu.is_closed(a)) << "long before its quantum is over";
  EXPECT_TRUE(gpu.is_closed(b)) << "it may still submit";
  gpu.is_held_up(a);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.has_turn(b));
  EXPECT_EQ(gpu.policy.account(a, gpu.now).held_up, 1U);
  EXPECT_EQ(gpu.policy.account(a, gpu.now).overlong, 0U);
  EXPECT_LE(gpu.held(a), 1ms);
}

// Three take turns, and what the first has left after its turn waits for a value.
class HeldUp : public Gpu {
 public:
  HeldUp() {
    begin_turns({a, b, c});
    request(a).waits_for_turn = false;
    while (!is_closed(a)) look_after(10us);
    is_held_up(a);
  }
  void others_work_for(
      Time time, const std::function<void()>& meanwhile = [] {}) {
    for (const Time end = now + time; now < end && !has_turn(a); look_after(10us)) {
      meanwhile();
      works(b), works(c);
    }
  }
  const Policy::Client a = add(), b = add(), c = add();
};

TEST(TurnsPolicy, WhoWaitsForAValueHasARightToGoOn) {
  HeldUp gpu;
  for (const Time end = gpu.now + 3s; gpu.now < end;) {  // where work that does not end ends the turns after a second
    gpu.others_work_for(10ms);
    ASSERT_EQ(gpu.by_right(gpu.a), gpu.now);
  }
  EXPECT_TRUE(gpu.policy.takes_turns());
  EXPECT_EQ(gpu.policy.account(gpu.a, gpu.now).sliced, 0U);
  gpu.answers(gpu.a);
  const Time ended = gpu.now;
  gpu.others_work_for(300ms);
  EXPECT_LE(gpu.by_right(gpu.a), ended + 10us);
}

TEST(TurnsPolicy, TurnsBeginBesideWorkThatWaitsForAValue) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.submits(c);
  gpu.slices({a, b}, 1s);
  ASSERT_TRUE(gpu.is_closed(a));
  gpu.answers(a), gpu.answers(b);
  gpu.asks(a), gpu.asks(b);
  gpu.look_after(10us);
  EXPECT_FALSE(gpu.holder()) << "c is not done";
  gpu.is_held_up(c);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.holder());
}

TEST(TurnsPolicy, WhoIsHeldUpAgainAndAgainTakesTurns) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  for (const Time end = gpu.now + 1s; gpu.now < end; gpu.look_after(10us)) {
    gpu.request(a).waits_for_turn = !gpu.has_turn(a);
    gpu.is_held_up(a);
    gpu.request(b).waits_for_turn = !gpu.has_turn(b);
    if (gpu.is_closed(b)) gpu.answers(b);
    if (gpu.has_turn(b)) gpu.launches_and_waits(b, 10us, 10us);
  }
  EXPECT_TRUE(gpu.policy.takes_turns());
  EXPECT_GE(gpu.policy.account(a, gpu.now).held_up, 100U);
  EXPECT_GE(gpu.held(b), 850ms) << "its turns are short, and charged with the changes that they cost";
}

TEST(TurnsPolicy, WorkThatGoesOnBesideOthersTurnsIsCharged) {
  HeldUp gpu;
  gpu.others_work_for(100ms);
  gpu.request(gpu.a).held_up = 0;  // the value is there
  gpu.others_work_for(100ms);      // of which each of them has had a half
  gpu.answers(gpu.a);
  gpu.asks(gpu.a);
  const Time asked = gpu.now;
  gpu.others_work_for(300ms);
  EXPECT_TRUE(gpu.has_turn(gpu.a));
  EXPECT_GE(gpu.now - asked, 80ms) << "it has had a part of the GPU for nothing";
  EXPECT_LE(gpu.now - asked, 120ms) << "the wait itself costs nothing";
}

// Its gate was shut meanwhile, and nobody else waits for a turn.
TEST(TurnsPolicy, WhoWasShutOutBesideAWaitForAValueHasItsTurnAnew) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.request(b).waits_for_turn = false;
  const Grant first = gpu.grant(a);
  gpu.asks(a);
  gpu.is_held_up(a);
  gpu.look_after(10us);
  ASSERT_TRUE(gpu.is_closed(a));
  gpu.is_held_up(a);
  gpu.look_after(10us);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.has_turn(a));
  EXPECT_NE(gpu.grant(a).number, first.number);
}

TEST(TurnsPolicy, TheTurnOfOneThatIsGonePassesOn) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b, c});
  ASSERT_TRUE(gpu.has_turn(a));
  gpu.remove(a);
  gpu.look_after(2us);
  EXPECT_TRUE(gpu.has_turn(b));
  gpu.remove(b);
  gpu.look_after(2us);
  EXPECT_EQ(gpu.mode(c), GrantMode::Open) << "and one alone is Open";
}

TEST(TurnsPolicy, AClientThatComesInTurnsIsClosed) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  const auto c = gpu.add();
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(c));
  gpu.turns(5ms);
  EXPECT_GT(gpu.held(c), 1ms);
}

// ---- who may use the GPU ---------------------------------------------------------------------------------------------

TEST(TurnsByRight, IsNowUntilTurnsBegin) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.look();
  EXPECT_EQ(gpu.by_right(b), gpu.now);
  gpu.slices({a, b}, 1s);
  ASSERT_TRUE(gpu.is_closed(b));
  gpu.look_after(10us);
  EXPECT_EQ(gpu.by_right(b), gpu.now) << "what was queued is being done";
}

TEST(TurnsByRight, InTurnsItIsTheHoldersAlone) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  ASSERT_TRUE(gpu.has_turn(a));
  const Time began = gpu.by_right(b);
  EXPECT_LE(began, gpu.now);
  gpu.look_after(100us);
  EXPECT_EQ(gpu.by_right(a), gpu.now);
  EXPECT_EQ(gpu.by_right(b), began);
  gpu.answers(a);  // it gives its turn back, though nobody has ended it
  gpu.request(a).waits_for_turn = false;
  gpu.look_after(100us);
  const Time back = gpu.now;
  gpu.look_after(100us);
  EXPECT_EQ(gpu.by_right(a), back);
  EXPECT_EQ(gpu.by_right(b), gpu.now);
}

TEST(TurnsByRight, WorkThatOutlivesItsTurnIsRightUntilItsEnd) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b, c});
  ASSERT_TRUE(gpu.has_turn(a));
  gpu.request(a).waits_for_turn = false;
  gpu.turns(600ms, a);
  ASSERT_TRUE(gpu.policy.takes_turns());
  EXPECT_EQ(gpu.policy.account(a, gpu.now).overlong, 1U);
  EXPECT_EQ(gpu.by_right(a), gpu.now);
  gpu.answers(a);
  gpu.look_after(10us);
  const Time ended = gpu.now;
  gpu.turns(100ms, a);
  EXPECT_EQ(gpu.by_right(a), ended);
}

TEST(TurnsByRight, WhoComesInTurnsAndSaysNothingHasNone) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.turns(10ms);
  const auto c = gpu.add();
  const Time came = gpu.now;
  EXPECT_EQ(gpu.by_right(c), came);
  gpu.turns(300ms, c);
  EXPECT_LE(gpu.by_right(c), came + 1ms);
}

TEST(TurnsByRight, IsEverybodysWhenTurnsEnd) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b});
  gpu.turns(300ms, c);
  ASSERT_LT(gpu.by_right(c), gpu.now);
  gpu.policy.set_on(false);
  gpu.look_after(10us);
  EXPECT_EQ(gpu.by_right(c), gpu.now);
}

// A client that answers that its turn's work is done has nothing to fear; one that never does keeps the driver slicing.
TEST(TurnsPolicy, WorkThatDoesNotEndInASecondEndsTheTurns) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b, c});
  ASSERT_TRUE(gpu.has_turn(a));
  gpu.request(a).waits_for_turn = false;
  gpu.turns(900ms, a);
  EXPECT_TRUE(gpu.policy.takes_turns());
  gpu.turns(200ms, a);
  EXPECT_FALSE(gpu.policy.takes_turns());
  gpu.answers(a);
  gpu.slices({b, c}, 19s);
  EXPECT_FALSE(gpu.is_closed(b)) << "though it is not active";
  gpu.slices({b, c}, 6s);
  EXPECT_TRUE(gpu.is_closed(b));
}

// How long turns go on when two programs, which had short pieces of work for this time, have long ones.
Time until_slices(Gpu& gpu, Policy::Client a, Policy::Client b) {
  const Time begin = gpu.now;
  while (gpu.policy.takes_turns()) {
    for (const auto client : {a, b}) {
      gpu.request(client).waits_for_turn = !gpu.has_turn(client);
      if (gpu.has_turn(client)) gpu.launches_and_waits(client, 1900us, 1900us);
      if (!gpu.has_turn(client)) gpu.answers(client);
    }
    gpu.look_after(1900us);
  }
  return gpu.now - begin;
}

TEST(TurnsPolicy, WatchedTurnsThatStopToPayGoOnUntilOneWithoutATurnCouldBeFound) {
  for (const bool watched : {false, true}) {
    Gpu gpu;
    const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
    gpu.policy.set_watched(watched);
    gpu.begin_turns({a, b});
    gpu.turns(1500ms, c);
    ASSERT_TRUE(gpu.policy.takes_turns());
    const Time time = until_slices(gpu, a, b);
    EXPECT_GE(time, watched ? 1s : 0s);
    EXPECT_LE(time, watched ? 1500ms : 600ms);
  }
}

TEST(TurnsPolicy, WithoutAnybodyToBeFoundWatchedTurnsEndAsOthersDo) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.policy.set_watched(true);
  gpu.begin_turns({a, b});
  gpu.turns(1500ms);
  EXPECT_LE(until_slices(gpu, a, b), 600ms);
}

// ---- work without a turn ---------------------------------------------------------------------------------------------

// Samples as NVML makes them of a GPU whose clients take turns: each 200 ms, late by up to `lag`, and wrong about its
// edges by as much. They name those that held turns, and the cheat.
class Samples {
 public:
  Samples(Gpu& gpu, std::vector<Policy::Client> clients, Time lag)
      : gpu_(gpu), clients_(std::move(clients)), lag_(lag) {
    for (const auto client : clients_) held_[client] = gpu_.held(client);
  }
  // The first that is found, and nobody if there is none for so long.
  std::optional<Policy::Client> found_in(Time time, Policy::Client cheat = 0) {
    for (const Time end = gpu_.now + time; gpu_.now < end;) {
      gpu_.turns(lag_, cheat);
      for (const auto client : clients_) held_[client] = gpu_.held(client);  // of the sample before, as told late
      const Time from = gpu_.now - lag_ / 2;
      gpu_.turns(200ms - lag_, cheat);
      for (const auto client : clients_)
        if (is_found(client, {from, gpu_.now, percent_of(client, cheat)})) return client;
    }
    return {};
  }

 private:
  unsigned percent_of(Policy::Client client, Policy::Client cheat) {
    if (client == cheat) return 50;
    return gpu_.held(client) > held_[client] ? 99 : 0;  // the one and the other, and at times with all of it
  }
  bool is_found(Policy::Client client, const host::turns::Suspicion::Sample& sample) {
    using Verdict = host::turns::Suspicion::Verdict;
    const Verdict verdict = suspicions_[client].named(sample, gpu_.policy.right_of(client, gpu_.now));
    if (verdict == Verdict::Suspected) gpu_.policy.suspect(client, gpu_.now);
    return verdict == Verdict::Caught;
  }

  Gpu& gpu_;
  const std::vector<Policy::Client> clients_;
  const Time lag_;
  std::map<Policy::Client, Time> held_;
  std::map<Policy::Client, host::turns::Suspicion> suspicions_;
};

TEST(TurnsCheat, WhoTakesItsTurnsIsNeverSuspected) {
  Gpu gpu;
  const std::vector<Policy::Client> clients = {gpu.add(), gpu.add(), gpu.add(0.01), gpu.add(), gpu.add()};
  gpu.begin_turns(clients);
  EXPECT_EQ(Samples(gpu, clients, 80ms).found_in(5s), std::nullopt) << "the third has few turns";
  EXPECT_TRUE(gpu.policy.takes_turns());
}

TEST(TurnsCheat, WhoWorksAndHasNoTurnIsFoundWithinASecond) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b});
  gpu.request(c).waits_for_turn = false;
  gpu.turns(10ms, c);
  EXPECT_EQ(Samples(gpu, {a, b, c}, 20ms).found_in(1050ms, c), std::optional(c));
}

// Large copies, which would be a reason not to answer, are none not to hear.
TEST(TurnsCheat, WhoDoesNotEvenHearIsFoundWithinASecond) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.deaf = c;
  gpu.begin_turns({a, b});
  gpu.request(c).waits_for_turn = false;
  Samples samples(gpu, {a, b, c}, 20ms);
  EXPECT_FALSE(gpu.policy.right_of(c, gpu.now).is_deaf) << "it has not been told";
  EXPECT_EQ(samples.found_in(1050ms, c), std::optional(c));
}

// Its work made theirs look long, for which no turns are taken.
TEST(TurnsCheat, WhenItIsGoneTurnsAreTriedAnew) {
  for (const bool was_suspected : {false, true}) {
    Gpu gpu;
    const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
    gpu.begin_turns({a, b});
    gpu.turns(100ms, c);
    if (was_suspected) gpu.policy.suspect(c, gpu.now);
    until_slices(gpu, a, b);
    gpu.remove(c);
    gpu.slices({a, b}, 2s);
    EXPECT_EQ(gpu.is_closed(a), was_suspected);
  }
}

TEST(TurnsCheat, AWorkerOfBeforeIsNotTakenForADeafOne) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.deaf = c;
  gpu.policy.take_over(c, {}, {});
  gpu.begin_turns({a, b});
  gpu.policy.suspect(c, gpu.now);
  gpu.turns(1s);
  EXPECT_FALSE(gpu.policy.right_of(c, gpu.now).is_deaf);
  gpu.request(c).heard = 1;  // now it is known to be a newer one
  gpu.turns(1s);
  EXPECT_TRUE(gpu.policy.right_of(c, gpu.now).is_deaf);
}

TEST(TurnsCheat, WhoIsSuspectedNeedsTurnsForItsCopiesForAWhile) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b});
  gpu.turns(10ms, c);
  EXPECT_EQ(gpu.policy.right_of(c, gpu.now).no_copies_since, std::nullopt);
  const Time before = gpu.by_right(c);
  gpu.policy.suspect(c, gpu.now);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(c) && gpu.grant(c).copies);
  EXPECT_EQ(gpu.policy.right_of(c, gpu.now).no_copies_since, std::nullopt) << "some may be under way";
  gpu.answers(c);
  gpu.look_after(10us);
  EXPECT_EQ(gpu.policy.right_of(c, gpu.now).no_copies_since, std::optional(gpu.now));
  EXPECT_EQ(gpu.by_right(c), before);
  gpu.turns(1s, c);
  EXPECT_TRUE(gpu.grant(c).copies);
  gpu.turns(10s, c);
  EXPECT_FALSE(gpu.grant(c).copies);
}

TEST(TurnsCheat, WhoIsSuspectedAndDoesNotAnswerEndsTheTurns) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b});
  gpu.policy.suspect(c, gpu.now);
  for (int i = 0; i < 3000 && gpu.policy.takes_turns(); ++i) {
    gpu.look_after(500us);
    for (const auto client : {a, b}) {
      gpu.request(client).waits_for_turn = !gpu.has_turn(client);
      if (gpu.has_turn(client)) gpu.launches_and_waits(client, 500us, 10us);
      if (gpu.is_closed(client)) gpu.answers(client);
    }
  }
  EXPECT_FALSE(gpu.policy.takes_turns());
}

// A queue of copies ends at some time. So who is silent for ever longer is one that gives no answer at all.
TEST(TurnsCheat, WhoNeverAnswersIsCaughtTheThirdTime) {
  using Verdict = host::turns::Suspicion::Verdict;
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  const auto turns_while_silent = [&] {
    gpu.begin_turns({a, b});
    gpu.policy.suspect(c, gpu.now);
    const Time begin = gpu.now;
    for (; gpu.policy.takes_turns() && gpu.now - begin < 20s; gpu.look_after(500us)) {
      gpu.policy.suspect(c, gpu.now);  // by a sample now and then
      for (const auto client : {a, b}) {
        gpu.request(client).waits_for_turn = !gpu.has_turn(client);
        if (gpu.has_turn(client)) gpu.launches_and_waits(client, 500us, 10us);
        if (gpu.is_closed(client)) gpu.answers(client);
      }
    }
    return gpu.now - begin;
  };
  const auto verdict = [&] {
    host::turns::Suspicion suspicion;
    const auto right = gpu.policy.right_of(c, gpu.now);
    return suspicion.named({right.until + 200ms, right.until + 400ms, 50}, right);
  };
  for (const Time most : {1s, 4s, 16s}) {
    EXPECT_EQ(verdict(), Verdict::Suspected);
    EXPECT_NEAR(std::chrono::duration<double>(turns_while_silent()).count(),
                std::chrono::duration<double>(most).count(), 0.1);
    gpu.slices({a, b}, 21s);
  }
  EXPECT_EQ(verdict(), Verdict::Caught);
}

TEST(TurnsCheat, OneAnswerAndItBeginsAnew) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b});
  for (int i = 0; i < 2400 && gpu.policy.takes_turns(); ++i) {
    gpu.policy.suspect(c, gpu.now);
    for (const auto client : {a, b}) {
      gpu.request(client).waits_for_turn = !gpu.has_turn(client);
      if (gpu.has_turn(client)) gpu.launches_and_waits(client, 500us, 10us);
      if (gpu.is_closed(client)) gpu.answers(client);
    }
    gpu.look_after(500us);
  }
  ASSERT_EQ(gpu.policy.right_of(c, gpu.now).unanswered, 1U);
  gpu.slices({a, b}, 21s);
  gpu.begin_turns({a, b});
  gpu.policy.suspect(c, gpu.now);
  gpu.look_after(10us);
  gpu.answers(c);
  gpu.look_after(10us);
  EXPECT_EQ(gpu.policy.right_of(c, gpu.now).unanswered, 0U);
}

// ---- starts and ends of workers ---------------------------------------------------------------------------------------

TEST(TurnsPolicy, AVmIsChargedWithTheContextsThatItMakesAndEnds) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.begin_turns({a, b});
  gpu.turns(50ms);
  const Time before = gpu.held(a) - gpu.held(b);
  for (int i = 0; i < 20; ++i) {
    const auto started = gpu.start_another(b);
    gpu.turns(5ms, started);
    gpu.remove(started);
    gpu.turns(45ms);
  }
  ASSERT_TRUE(gpu.policy.takes_turns());
  const double more = std::chrono::duration<double>(gpu.held(a) - gpu.held(b) - before).count();
  EXPECT_NEAR(more, 20 * 0.015, 0.04) << "it has had its part by them";
}

TEST(TurnsPolicy, WhatWasMadeUnderSlicesIsHeldAgainstNobody) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  for (int i = 0; i < 50; ++i) gpu.remove(gpu.start_another(b));
  gpu.begin_turns({a, b});
  const Time before = gpu.held(a) - gpu.held(b);
  gpu.turns(300ms);
  EXPECT_LE(std::chrono::abs(gpu.held(a) - gpu.held(b) - before), 10ms);
}

TEST(TurnsPolicy, WaitsForTurnsAreTold) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b, c});
  gpu.turns(300ms);
  const host::turns::Account account = gpu.policy.account(a, gpu.now);
  EXPECT_GT(account.turns, 40u);
  EXPECT_NEAR(account.waits.quantile(.5), 4e-3, 4e-4) << "two others, two quanta each, since they gain by turns";
  EXPECT_NEAR(static_cast<double>(account.waited.count()) * 1e-9, 0.2, 0.03);
}

TEST(WaitTimes, QuantilesAreWithinATenthAndOldWaitsAreForgotten) {
  host::turns::WaitTimes waits;
  EXPECT_EQ(waits.quantile(.5), 0);
  for (int i = 0; i < 99; ++i) waits.add(100us);
  waits.add(10ms);
  EXPECT_NEAR(waits.quantile(.5), 100e-6, 10e-6);
  EXPECT_NEAR(waits.quantile(.98), 100e-6, 10e-6);
  EXPECT_NEAR(waits.quantile(1), 10e-3, 1e-3);
  host::turns::WaitTimes both = waits;
  both += waits;
  EXPECT_NEAR(both.quantile(1), 10e-3, 1e-3);
  for (int i = 0; i < 100'000; ++i) waits.add(1h);
  EXPECT_GT(waits.quantile(.01), 10) << "more than any wait is told as the longest";
}

TEST(TurnsPolicy, AVmIsForgottenAfterItsClients) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b, c});
  gpu.policy.forget(a);
  gpu.turns(20ms);
  EXPECT_GT(gpu.policy.account(a, gpu.now).turns, 0u);
  gpu.remove(a);
  gpu.turns(20ms);
  EXPECT_EQ(gpu.policy.account(a, gpu.now).turns, 0u);
}

// ---- shares --------------------------------------------------------------------------------------------------------

double part(const Gpu& gpu, Policy::Client client, Time all) {
  return static_cast<double>(gpu.held(client).count()) / static_cast<double>(all.count());
}

TEST(TurnsPolicy, WeightsAreParts) {
  Gpu gpu;
  const auto a = gpu.add(1), b = gpu.add(2), c = gpu.add(4);
  gpu.begin_turns({a, b, c});
  gpu.turns(1s);
  // What is counted as held includes the beginnings of turns, which are not charged.
  EXPECT_NEAR(part(gpu, a, 1s) * 7, 1, 0.07);
  EXPECT_NEAR(part(gpu, b, 1s) * 7, 2, 0.14);
  EXPECT_NEAR(part(gpu, c, 1s) * 7, 4, 0.28);
}

TEST(TurnsPolicy, PartsAreOfVmsNotOfProcesses) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.policy.remove(c, gpu.now);
  gpu.policy.add(c, b);  // a second process of b's VM
  gpu.begin_turns({a, b, c});
  gpu.turns(1s);
  EXPECT_NEAR(part(gpu, a, 1s), 0.5, 0.02);
  EXPECT_NEAR(part(gpu, b, 1s), 0.5, 0.02);
}

TEST(TurnsPolicy, TheLatencyClassEndsATurnAtOnce) {
  Gpu gpu;
  const auto a = gpu.add(), urgent = gpu.add(1, true);
  gpu.submits(urgent);
  gpu.begin_turns({a});
  ASSERT_TRUE(gpu.has_turn(a));
  gpu.look_after(20us);
  EXPECT_EQ(gpu.mode(urgent), GrantMode::Open) << "it need not ask first";
  gpu.submits(urgent);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(a));
  gpu.asks(a), gpu.answers(a);
  gpu.request(urgent).under_way = true;
  gpu.look_after(2ms);
  EXPECT_TRUE(gpu.is_closed(a)) << "while the other waits for its work";
  gpu.request(urgent).under_way = false;
  gpu.look_after(10us);
  gpu.look_after(400us);
  EXPECT_TRUE(gpu.is_closed(a)) << "while the other may be in a pause";
  gpu.launches_and_waits(urgent, 2ms, 2ms);
  gpu.look_after(10us);
  gpu.look_after(100us);
  EXPECT_TRUE(gpu.is_closed(a)) << "while the other may go on after its wait";
  gpu.look_after(100us);
  EXPECT_TRUE(gpu.has_turn(a));
  EXPECT_EQ(gpu.mode(urgent), GrantMode::Open);
}

// Closed is nobody of the class while the others' queues are ended, before turns.
// For so long one uses all of the GPU, and the other this part of it.
void use_parts(Gpu& gpu, Policy::Client heavy, Policy::Client other, double part, Time time) {
  for (const Time end = gpu.now + time; gpu.now < end && !gpu.is_closed(heavy); gpu.look_after(10ms)) {
    gpu.launches_and_waits(heavy, 10ms, 5ms);
    gpu.submits(other);
    gpu.request(other).busy_ns += static_cast<std::uint64_t>(part * 1e7);
  }
}

TEST(TurnsPolicy, ALightVmEndsTurnsAtOnceBesideAHeavyOne) {
  Gpu gpu;
  const auto heavy = gpu.add(), light = gpu.add();
  use_parts(gpu, heavy, light, 0.1, 1s);
  ASSERT_TRUE(gpu.is_closed(heavy));
  gpu.answers(heavy), gpu.asks(heavy);
  gpu.look_after(10us);
  gpu.look_after(600us);
  ASSERT_TRUE(gpu.has_turn(heavy));
  EXPECT_EQ(gpu.mode(light), GrantMode::Open);
  gpu.look_after(10us);
  gpu.submits(light);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(heavy));
}

// A light VM beside a heavy one, in turns, where the heavy one has its turn.
struct LightBesideHeavy : Gpu {
  LightBesideHeavy() {
    use_parts(*this, heavy, light, 0.1, 1s);
    answers(heavy), asks(heavy);
    look_after(10us);
    look_after(600us);
  }
  // The light one does something and waits for it. Then: how long the heavy one still has no turn.
  Time after_its_wait() {
    submits(light);
    look_after(10us);
    if (is_closed(heavy)) answers(heavy), asks(heavy);
    look_after(10us);
    ++request(light).waits;
    look_after(10us);
    Time time{};
    for (; !has_turn(heavy) && time < 1ms; time += 10us) look_after(10us);
    return time;
  }
  const Policy::Client heavy = add(), light = add();
};

TEST(TurnsPolicy, OneThatAlwaysPausesAfterItsWaitIsDoneAtOnce) {
  LightBesideHeavy gpu;
  ASSERT_TRUE(gpu.has_turn(gpu.heavy));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(std::chrono::duration<double>(gpu.after_its_wait()).count(), 150e-6, 30e-6) << i;
    gpu.look_after(8ms);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(gpu.after_its_wait(), 30us) << i;
    gpu.look_after(8ms);
  }
  // It goes on soon after a wait, once.
  EXPECT_LE(gpu.after_its_wait(), 30us);
  EXPECT_NEAR(std::chrono::duration<double>(gpu.after_its_wait()).count(), 150e-6, 30e-6);
}

TEST(TurnsPolicy, WhoeverGoesNextIsWokenAtTheWait) {
  LightBesideHeavy gpu;
  gpu.submits(gpu.light);
  gpu.look_after(10us);
  gpu.answers(gpu.heavy), gpu.asks(gpu.heavy);
  gpu.look_after(10us);
  ++gpu.request(gpu.light).waits;
  gpu.given.clear();
  gpu.look_after(10us);
  ASSERT_EQ(gpu.given.size(), 1U) << "the same grant once more";
  EXPECT_EQ(gpu.given.front(), gpu.heavy);
  EXPECT_TRUE(gpu.is_closed(gpu.heavy));
}

TEST(TurnsCheat, WhoGoesFirstAndUsesMoreThanItSaysTakesTurns) {
  LightBesideHeavy gpu;
  const auto charged = gpu.policy.right_of(gpu.light, gpu.now).charged;
  ASSERT_TRUE(charged);
  EXPECT_LE(*charged, 0.35);
  EXPECT_FALSE(gpu.policy.right_of(gpu.heavy, gpu.now).charged);
  gpu.policy.suspect(gpu.light, gpu.now);
  gpu.look_after(10us);
  EXPECT_TRUE(gpu.is_closed(gpu.light));
  EXPECT_FALSE(gpu.policy.right_of(gpu.light, gpu.now).charged);
}

// What it says of its work's waits is held against what the GPU does.
TEST(TurnsCheat, WhoSaysThatItWaitsAndUsesTheGpuIsNotBelieved) {
  HeldUp gpu;
  gpu.others_work_for(10ms);
  ASSERT_TRUE(gpu.policy.right_of(gpu.a, gpu.now).charged) << "nobody looks how much it uses";
  EXPECT_FALSE(gpu.policy.right_of(gpu.b, gpu.now).charged);
  gpu.policy.suspect(gpu.a, gpu.now);
  gpu.others_work_for(1100ms, [&] { gpu.is_held_up(gpu.a); });
  EXPECT_FALSE(gpu.policy.takes_turns()) << "its work does not end";
}

TEST(TurnsPolicy, WhoUsesMuchOrHasNoHeavyOneBesideItIsNotLight) {
  Gpu one, other;
  const auto heavy = one.add(), half = one.add();
  use_parts(one, heavy, half, 0.4, 3s);
  EXPECT_FALSE(one.is_closed(heavy));
  const auto light = other.add(), as_light = other.add();
  for (int i = 0; i < 300; ++i) {
    for (const auto client : {light, as_light}) other.launches_and_waits(client, 1ms, 500us);
    other.look_after(10ms);
    ASSERT_EQ(other.mode(light), GrantMode::Open);
    ASSERT_FALSE(other.policy.takes_turns());
  }
}

// It says that it is hardly busy. In turns it submits all the time, and then it is not believed for a while.
TEST(TurnsPolicy, WhoWantsMoreThanItSaysIsNotLightForLong) {
  Gpu gpu;
  const auto heavy = gpu.add(), liar = gpu.add();
  Time closed{};
  for (int i = 0; i < 15'000; ++i) {
    gpu.request(heavy).waits_for_turn = gpu.is_closed(heavy);
    if (gpu.is_closed(heavy))
      gpu.answers(heavy), closed += 1ms;
    else
      gpu.launches_and_waits(heavy, 1ms, 1ms);
    if (gpu.is_closed(liar)) gpu.answers(liar);
    gpu.request(liar).waits_for_turn = gpu.is_closed(liar);
    if (!gpu.is_closed(liar)) gpu.submits(liar);
    gpu.look_after(1ms);
  }
  EXPECT_GT(closed, Time::zero());
  EXPECT_LE(closed, 700ms) << "of 15 s";
}

TEST(TurnsPolicy, TheLatencyClassGoesOnWhileOthersEndTheirWork) {
  Gpu gpu;
  const auto a = gpu.add(), urgent = gpu.add(1, true);
  for (int i = 0; i < 3; ++i) {
    gpu.submits(a), gpu.submits(urgent);
    gpu.look_after(10ms);
  }
  ASSERT_FALSE(gpu.policy.takes_turns());
  EXPECT_TRUE(gpu.is_closed(a));
  EXPECT_EQ(gpu.mode(urgent), GrantMode::Open);
}

// Work in a latency VM's turns puts it ahead, in the end so far that it is one of the others.
TEST(TurnsPolicy, WhoeverOfTheLatencyClassIsFarAheadIsClosed) {
  Gpu gpu;
  const auto a = gpu.add(), urgent = gpu.add(1, true);
  gpu.begin_turns({a, urgent});
  bool closed = false;
  for (const Time end = gpu.now + 50ms; gpu.now < end && !closed; gpu.look_after(10us)) {
    gpu.asks(a);
    if (gpu.is_closed(a)) gpu.answers(a);
    if (!gpu.is_closed(urgent)) gpu.launches_and_waits(urgent, 10us, 10us);
    closed = gpu.is_closed(urgent);
  }
  EXPECT_TRUE(closed);
}

TEST(TurnsPolicy, TheLatencyClassHasTurnsWithoutWaits) {
  Gpu gpu;
  const auto fills = gpu.add(), urgent = gpu.add(1, true);
  for (int i = 0; i < 3; ++i) {
    gpu.submits(fills), gpu.submits(urgent);
    gpu.look_after(10ms);
  }
  EXPECT_TRUE(gpu.is_closed(fills));
}

TEST(TurnsPolicy, TheLatencyClassGetsItsPartAndNotMore) {
  Gpu gpu;
  const auto a = gpu.add(), urgent = gpu.add(1, true);
  gpu.begin_turns({a, urgent});
  gpu.turns(1s);
  EXPECT_NEAR(part(gpu, a, 1s), 0.5, 0.02);
}

TEST(TurnsPolicy, ALightVmWaitsForAQuarterOfAQuantum) {
  Gpu gpu;
  const auto heavy = gpu.add(), light = gpu.add(), other = gpu.add();
  gpu.begin_turns({heavy, other});
  gpu.request(light).waits_for_turn = false;
  gpu.answers(light);
  for (int i = 0; i < 3000; ++i) {
    for (const auto client : {heavy, other}) {
      gpu.request(client).waits_for_turn = gpu.is_closed(client);
      if (gpu.is_closed(client)) gpu.answers(client);
    }
    gpu.look_after(10us);
  }
  while (!gpu.holder()) gpu.look_after(10us);
  const auto holder = *gpu.holder();
  for (const auto client : {heavy, other}) gpu.request(client).waits_for_turn = client != holder;
  gpu.asks(light);
  const Time begin = gpu.now;
  while (gpu.has_turn(holder) && gpu.now < begin + 10ms) gpu.look_after(10us);
  EXPECT_LE(gpu.now - begin, 260us);
}

TEST(TurnsPolicy, AVmThatComesBackIsNotOwedThePause) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add(), c = gpu.add();
  gpu.begin_turns({a, b, c});
  gpu.request(c).waits_for_turn = false;
  for (const Time end = gpu.now + 90ms; gpu.now < end; gpu.look_after(10us))
    for (const auto client : {a, b}) {
      gpu.request(client).waits_for_turn = gpu.is_closed(client);
      if (gpu.is_closed(client)) gpu.answers(client);
      if (gpu.has_turn(client)) gpu.launches_and_waits(client, 10us, 10us);
    }
  const Time before = gpu.held(c);
  gpu.turns(30ms);
  EXPECT_NEAR(static_cast<double>((gpu.held(c) - before).count()), 10e6, 3e6);
}

// ---- debts under slices, and bad words about them ---------------------------------------------------------------------

// Slices of 10 ms. The clients say that they are busy for these parts of the time; the result: how much of it each was
// Closed. tests/unit/turns_debts.cc has whole programs.
class Debts {
 public:
  explicit Debts(std::vector<double> busy) : busy_(std::move(busy)) {
    for (std::size_t i = 0; i < busy_.size(); ++i) clients_.push_back(gpu.add());
  }
  // Another process of the first VM.
  void add_to_first(double busy) {
    clients_.push_back(clients_.size() + 1);
    gpu.add();
    gpu.policy.remove(clients_.back(), gpu.now);
    gpu.policy.add(clients_.back(), clients_.front());
    busy_.push_back(busy);
  }
  std::vector<double> closed(Time time, bool answers = true) {
    std::vector<double> closed(clients_.size());
    for (const Time end = gpu.now + time; gpu.now < end; gpu.look_after(10ms))
      for (std::size_t i = 0; i < clients_.size(); ++i) act(clients_[i], busy_[i], answers, closed[i]);
    for (double& one : closed) one *= 0.01 / std::chrono::duration<double>(time).count();
    return closed;
  }
  Gpu gpu;
  Time longest{};

 private:
  void act(Policy::Client client, double busy, bool answers, double& closed) {
    const bool is_closed = gpu.is_closed(client);
    closed += is_closed;
    since_[client] = is_closed ? since_[client] + 10ms : 0ms;
    longest = std::max(longest, since_[client]);
    gpu.request(client).waits_for_turn = is_closed;
    if (is_closed && answers) gpu.answers(client);
    if (is_closed) return;
    gpu.submits(client);
    gpu.request(client).busy_ns += static_cast<std::uint64_t>(busy * 1e7);
  }

  std::vector<double> busy_;
  std::vector<Policy::Client> clients_;
  std::map<Policy::Client, Time> since_;
};

TEST(TurnsPolicyDebts, WhoHasMoreProcessesIsClosedForAPartOfTheTime) {
  Debts debts({1, 1});
  debts.add_to_first(1);
  debts.add_to_first(1);
  debts.closed(1s);
  const auto closed = debts.closed(4s);
  EXPECT_NEAR(closed[0], 0.4, 0.05);  // its work goes on for 10 ms, each time
  EXPECT_EQ(closed[1], 0);
  EXPECT_LE(debts.longest, 70ms);
  debts.gpu.policy.set_on(false);
  debts.gpu.look();
  EXPECT_EQ(debts.closed(1s)[0], 0) << "time slices alone";
}

TEST(TurnsPolicyDebts, NobodyIsClosedForOneThatUsesTheGpuNowAndThen) {
  for (const double less : {0.4, 0.5, 0.8}) {
    Debts debts({1, less});
    debts.add_to_first(1);
    EXPECT_EQ(debts.closed(3s), (std::vector<double>{0, 0, 0}));
  }
}

TEST(TurnsPolicyDebts, OfOneVmNobodyIsClosed) {
  Debts debts({1});
  debts.add_to_first(1);
  EXPECT_EQ(debts.closed(3s), (std::vector<double>{0, 0}));
}

TEST(TurnsPolicyDebts, GrantsSayWhoIsLookedAt) {
  Gpu gpu;
  const auto a = gpu.add(), b = gpu.add();
  gpu.submits(a);
  gpu.look_after(10ms);
  EXPECT_FALSE(gpu.grant(a).watched) << "its VM is alone";
  gpu.submits(b);
  gpu.look_after(10ms);
  EXPECT_TRUE(gpu.grant(a).watched);
  EXPECT_FALSE(gpu.grant(a).shallow);
  EXPECT_EQ(Grant::of(gpu.grant(a).word()), gpu.grant(a));
}

// As without debts: it has the parts of its processes. It is taken for light at first, and then found not to be.
TEST(TurnsPolicyDebts, WhoSaysThatItIsNeverBusyIsNotClosedNorAreOthersForIt) {
  Debts debts({0, 1, 1});
  debts.add_to_first(0);
  debts.closed(1s);
  EXPECT_EQ(debts.closed(3s), (std::vector<double>{0, 0, 0, 0}));
}

// An hour in each 10 ms is all of the time, and no more.
TEST(TurnsPolicyDebts, WhoSaysTooMuchIsChargedForItAndTakesNothingFromASingleProcess) {
  Debts debts({360'000, 1});
  EXPECT_EQ(debts.closed(3s)[1], 0);
}

TEST(TurnsPolicyDebts, TimeThatRunsBackwardsIsNone) {
  Debts debts({1, 1});
  debts.add_to_first(1);
  for (int i = 0; i < 300; ++i) {
    debts.gpu.request(2).busy_ns = ~std::uint64_t{0} - static_cast<std::uint64_t>(i) * 1'000'000'007;
    const auto closed = debts.closed(10ms);
    const bool is_known = i >= 100;  // it was taken for light at first
    EXPECT_TRUE(!is_known || closed == (std::vector<double>{0, 0, 0}));
  }
}

// A kernel of it may spin until its process submits another.
TEST(TurnsPolicyDebts, WhoNeverAnswersIsLetInAgain) {
  Debts debts({1, 1});
  debts.add_to_first(1);
  debts.closed(10s, false);
  EXPECT_GT(debts.longest, 100ms);
  EXPECT_LE(debts.longest, 510ms);
}

// ---- hostile requests ----------------------------------------------------------------------------------------------

// What an honest client still gets beside one that does `harm` at each look.
double honest_part(const std::function<void(Gpu&, Policy::Client, int)>& harm, int overlong = 0) {
  Gpu gpu;
  const auto honest = gpu.add(), hostile = gpu.add();
  gpu.begin_turns({honest, hostile});
  const Time begin = gpu.now;
  Time open{};
  for (int i = 0; gpu.now < begin + 2s; ++i, gpu.look_after(10us)) {
    gpu.request(honest).waits_for_turn = gpu.is_closed(honest);
    if (gpu.is_closed(honest)) gpu.answers(honest);
    if (gpu.has_turn(honest)) gpu.launches_and_waits(honest, 10us, 10us);
    if (gpu.mode(honest) == GrantMode::Open) {
      open += 10us;
      if (i % 54 == 0) gpu.launches_and_waits(honest, 540us, 540us);
    }
    harm(gpu, hostile, i);
  }
  EXPECT_GE(gpu.policy.account(hostile, gpu.now).overlong, static_cast<std::uint64_t>(overlong));
  return part(gpu, honest, 2s - open);
}

TEST(TurnsPolicyHostile, NeverGivesBack) {
  const double part = honest_part([](Gpu& gpu, auto client, int) { gpu.asks(client); }, 3);
  EXPECT_GE(part, 0.3) << "where turns are taken at all";
}

// As a program does that fills the GPU: the honest one, which gains by turns, pays for the changes.
TEST(TurnsPolicyHostile, AsksForEverAndSubmitsNothing) {
  EXPECT_GE(honest_part([](Gpu& gpu, auto client, int) {
              gpu.asks(client);
              if (gpu.is_closed(client)) gpu.answers(client);
            }),
            0.4);
}

TEST(TurnsPolicyHostile, SaysThatItIsHeldUp) {
  const auto part = [](int of) {
    return honest_part([of](Gpu& gpu, auto client, int i) {
      gpu.asks(client);
      if (i % of == 0) gpu.is_held_up(client);
    });
  };
  EXPECT_GE(part(1), 0.6);
  EXPECT_GE(part(50), 0.3);
}

TEST(TurnsPolicyHostile, AnswersAtRandom) {
  std::uint32_t state = 1;
  const double part = honest_part([&](Gpu& gpu, auto client, int) {
    gpu.asks(client);
    gpu.request(client).given_back = (state = state * 1664525 + 1013904223) & Grant::number_mask;
  });
  EXPECT_GE(part, 0.3);
}

TEST(TurnsPolicyHostile, CountsBackwards) {
  EXPECT_GE(honest_part([](Gpu& gpu, auto client, int i) {
              gpu.asks(client);
              if (gpu.is_closed(client)) gpu.answers(client);
              const auto number = ~std::uint64_t{0} - static_cast<std::uint64_t>(i) * 1000000007;
              gpu.request(client).submitted = gpu.request(client).waits = gpu.request(client).waited_ns = number;
            }),
            0.4);
}

// Each of its turns is short, and costs the other one a change.
TEST(TurnsPolicyHostile, GivesBackAtOnceAndAsksAgain) {
  EXPECT_GE(honest_part([](Gpu& gpu, auto client, int i) {
              gpu.request(client).waits_for_turn = !gpu.has_turn(client);
              if (gpu.is_closed(client) || i % 16 == 0) gpu.answers(client);
            }),
            0.6);
}

TEST(TurnsPolicyHostile, ClaimsWaitsThatItNeverHad) {
  Gpu gpu;
  const auto honest = gpu.add(), hostile = gpu.add();
  for (int i = 0; i < 100 && !gpu.is_closed(honest); ++i) {
    gpu.submits(honest);
    gpu.launches_and_waits(hostile, 1h, 1ms);
    gpu.look_after(10ms);
  }
  ASSERT_TRUE(gpu.is_closed(honest)) << "it brings turns about";
  gpu.all_answer();
  Time taken{};
  for (int i = 0; i < 100; ++i) {
    gpu.turns(10ms);
    if (gpu.policy.takes_turns()) taken += 10ms;
  }
  EXPECT_GE(part(gpu, honest, taken), 0.45) << "and gains nothing by them";
}

TEST(TurnsPolicyHostile, AnswersInTimeToProlongTheSettling) {
  Gpu gpu;
  const auto honest = gpu.add(), hostile = gpu.add();
  Time closed{};
  for (int i = 0; i < 20000; ++i) {
    if (gpu.is_closed(honest)) closed += 100us;
    if (gpu.is_closed(honest)) gpu.answers(honest);
    if (gpu.mode(honest) == GrantMode::Open && gpu.is_closed(hostile)) gpu.answers(hostile);
    for (const auto client : {honest, hostile}) gpu.launches_and_waits(client, 100us, 549us);
    gpu.request(honest).waits += i % 5 == 0;
    gpu.look_after(100us);
  }
  EXPECT_LE(closed, 1s) << "of two";
}

}  // namespace
