// Programs on a GPU in virtual time (tests/turns/), under the shipping scheduler's decisions: that the world is like
// the machine that was measured, and that turns keep what is promised of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/turns/world.h"

namespace {

using namespace std::chrono_literals;
using namespace turns_world;

struct Vm {
  Load load;
  World::Share share;
};

struct Did {
  double each_second = 0;                 // kernels, or copies
  double p50 = 0, p99 = 0;                // of a piece of work, in us
  double wait_p99 = 0, longest_wait = 0;  // for a turn
};

double us(Time time) { return std::chrono::duration<double, std::micro>(time).count(); }

double quantile(std::vector<Time> times, double q) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  return us(times[static_cast<std::size_t>(static_cast<double>(times.size() - 1) * q)]);
}

Did did(const Program& program, Time in) {
  const auto& waits = program.worker().waits_for_turn();
  return {.each_second = static_cast<double>(program.worker().done()) / std::chrono::duration<double>(in).count(),
          .p50 = quantile(program.pieces(), .5),
          .p99 = quantile(program.pieces(), .99),
          .wait_p99 = quantile(waits, .99),
          .longest_wait = quantile(waits, 1)};
}

std::vector<Vm> vms(std::size_t count, const Load& load) { return {count, Vm{load, {}}}; }

// What each does, once all is as it goes on.
std::vector<Did> run(const World::Options& options, const std::vector<Vm>& all, Time warm = 2s, Time time = 2s) {
  World world(options);
  for (const Vm& vm : all) world.add(world.add_vm(vm.share), vm.load);
  world.run_for(warm);
  world.forget();
  world.run_for(time);
  std::vector<Did> result;
  for (const auto& program : world.programs()) result.push_back(did(*program, time));
  return result;
}

World::Options slices() {
  World::Options options;
  options.turns = false;
  return options;
}
World::Options turns() { return {}; }

double alone_once(const Load& load) {
  static std::map<std::string, double> known;
  const auto [found, is_new] = known.try_emplace(load.name);
  if (is_new) found->second = alone(load);
  return found->second;
}

double mean_rate(const std::vector<Did>& all) {
  double sum = 0;
  for (const Did& one : all) sum += one.each_second;
  return sum / static_cast<double>(all.size());
}

constexpr auto within = [](double value, double expected, double part) {
  return value >= expected * (1 - part) && value <= expected * (1 + part);
};
#define EXPECT_WITHIN_10_PERCENT(value, expected) EXPECT_PRED3(within, value, expected, 0.1)

// ---- the machine that was measured ---------------------------------------------------------------------------------
//
// shared/facts/h200-baseline.md; rates of each process.

TEST(TurnsWorld, OneProcessIsAsMeasured) {
  EXPECT_WITHIN_10_PERCENT(alone(launch_and_wait()), 109e3);
  EXPECT_WITHIN_10_PERCENT(alone(burst(20, 1500ns)), 20 / 75e-6);
  EXPECT_WITHIN_10_PERCENT(alone(trainer()) / 400, 240);
  EXPECT_WITHIN_10_PERCENT(alone(products()), 799);
  EXPECT_WITHIN_10_PERCENT(run(slices(), vms(1, inference()))[0].p50, 850);
}

struct Native {
  std::size_t processes;
  Load load;
  double rate, p50;
};
void PrintTo(const Native& native, std::ostream* out) { *out << native.processes << " of " << native.load.name; }

class TurnsWorldSlices : public testing::TestWithParam<Native> {};

TEST_P(TurnsWorldSlices, AreAsMeasured) {
  const Native& native = GetParam();
  const auto all = run(slices(), vms(native.processes, native.load));
  EXPECT_WITHIN_10_PERCENT(mean_rate(all), native.rate);
  EXPECT_WITHIN_10_PERCENT(all[0].p50, native.p50);
}

INSTANTIATE_TEST_SUITE_P(
    Mixes, TurnsWorldSlices,
    testing::Values(Native{2, launch_and_wait(), 3650, 274},                                           //
                    Native{4, launch_and_wait(), 1820, 549},                                           //
                    Native{8, launch_and_wait(), 900, 1100}, Native{4, burst(20, 1500ns), 30e3, 667},  //
                    Native{4, burst(20, 19500ns), 9500, 2109}, Native{2, burst(1, 91us), 2200, 456},   //
                    Native{4, long_kernels(), 510, 7800}, Native{2, trainer(), 241 * 400, 1e6 / 241},  //
                    Native{4, trainer(), 186 * 400, 1e6 / 186}));

TEST(TurnsWorld, AnInferenceUnderSlicesIsAsMeasured) {
  const auto train = run(slices(), {{trainer(), {}}, {inference(), {}}}, 1s, 10s);
  EXPECT_WITHIN_10_PERCENT(train[0].each_second / 400, 232);
  EXPECT_WITHIN_10_PERCENT(train[1].p50, 840);
  EXPECT_WITHIN_10_PERCENT(train[1].p99, 1250);
  const auto full = run(slices(), {{products(), {}}, {inference(), {}}}, 1s, 10s);
  EXPECT_WITHIN_10_PERCENT(full[0].each_second, 778);
  EXPECT_WITHIN_10_PERCENT(full[1].p50, 1360);
  EXPECT_WITHIN_10_PERCENT(full[1].p99, 2460);
}

TEST(TurnsWorld, LaunchAndWaitBesideLongKernelsIsAsMeasured) {
  Load kernels = products();
  kernels.kernel = 500us;
  const auto all = run(slices(), {{launch_and_wait(), {}}, {kernels, {}}});
  EXPECT_WITHIN_10_PERCENT(all[0].p50, 2278);
  EXPECT_WITHIN_10_PERCENT(all[1].each_second, 0.878 / 500e-6);
}

// What each of four does of what it does alone, by `ivgpu bench share` on an H200, 2026-11-26 (docs/benchmarks.md). Launches and
// waits of this world are quicker than that machine's, alone and in turns.
TEST(TurnsWorld, TurnsAreAsMeasured) {
  for (const auto& [load, part] :
       {std::pair{launch_and_wait(), 0.209}, {burst(20, 1400ns), 0.214}, {burst(20, 22us), 0.222}})
    EXPECT_PRED3(within, mean_rate(run(turns(), vms(4, load))) / alone(load), part, 0.12);
}

// ---- what turns are to reach ---------------------------------------------------------------------------------------

TEST(TurnsWorld, LaunchAndWaitReaches) {
  for (const auto& [count, rate, mean] : {std::tuple<std::size_t, double, double>{4, 18e3, 60}, {8, 9e3, 120}}) {
    const auto all = run(turns(), vms(count, launch_and_wait()), 1s, 1s);
    for (const Did& one : all) {
      EXPECT_GE(one.each_second, rate);
      EXPECT_LE(one.p50, 15);
      EXPECT_LE(1e6 / one.each_second, mean);
    }
  }
}

TEST(TurnsWorld, BurstsAndLongKernelsReach) {
  for (const Did& one : run(turns(), vms(4, burst(20, 1500ns)))) EXPECT_GE(one.each_second, 45e3);
  for (const Did& one : run(turns(), vms(4, burst(20, 19500ns)))) EXPECT_GE(one.each_second, 11e3);
  for (const Did& one : run(turns(), vms(4, long_kernels()))) EXPECT_GE(one.each_second, 505);
}

TEST(TurnsWorld, TrainersAreLeftAlone) {
  for (const std::size_t count : {2, 4, 12}) {
    const double native = mean_rate(run(slices(), vms(count, trainer()), 500ms, 1s));
    for (const Did& one : run(turns(), vms(count, trainer()), 1s, 1s)) EXPECT_GE(one.each_second, 0.98 * native);
  }
}

TEST(TurnsWorld, AnInferenceBesideATrainerIsNoSlower) {
  const std::vector<Vm> both = {{trainer(), {}}, {inference(), {}}};
  const auto native = run(slices(), both, 1s, 12s), all = run(turns(), both, 2s, 12s);
  EXPECT_GE(all[0].each_second, 0.98 * native[0].each_second);
  EXPECT_LE(all[1].p50, 1.02 * native[1].p50);
  EXPECT_LE(all[1].p99, 1.02 * native[1].p99);
}

// An inference is light, so it waits for what is under way and no more. Beside very long kernels that is all the same.
TEST(TurnsWorld, AnInferenceBesideProductsIsQuicker) {
  for (const auto& [other, most] : {std::pair{products(), 0.8}, {burst(8, 1250us), 0.8}, {burst(8, 6500us), 1.05}}) {
    const std::vector<Vm> both = {{other, {}}, {inference(), {}}};
    const auto native = run(slices(), both, 1s, 12s), all = run(turns(), both, 4s, 12s);
    EXPECT_GE(all[0].each_second, 0.96 * native[0].each_second);
    EXPECT_LE(all[1].p50, most * native[1].p50);
    EXPECT_LE(all[1].p99, most * native[1].p99);
  }
}

TEST(TurnsWorld, TheLatencyClassReaches) {
  for (const Load& full : {products(), burst(8, 1250us)}) {
    const auto native = run(slices(), {{full, {}}, {inference(), {}}}, 1s, 20s);
    const auto all = run(turns(), {{full, {}}, {inference(), {.weight = 1, .latency = true}}}, 4s, 20s);
    EXPECT_GE(all[0].each_second, 0.88 * native[0].each_second);
    EXPECT_LE(all[1].p50, 0.9 * native[1].p50);
    EXPECT_LE(all[1].p99, 0.9 * native[1].p99);
  }
}

// What is under way cannot be taken back: the driver slices between that and the other's work.
TEST(TurnsWorld, TheLatencyClassIsNotHeldUpByLongKernels) {
  const Load full = burst(8, 6500us);
  const auto native = run(slices(), {{full, {}}, {inference(), {}}}, 1s, 20s);
  const auto all = run(turns(), {{full, {}}, {inference(), {.weight = 1, .latency = true}}}, 4s, 20s);
  EXPECT_GE(all[0].each_second, 0.95 * native[0].each_second);
  EXPECT_LE(all[1].p50, 1.1 * native[1].p50);
  EXPECT_LE(all[1].p99, 1.4 * native[1].p99);
}

TEST(TurnsWorld, TheLatencyClassWaitsForNoTurnBesideTrainers) {
  for (const std::size_t trainers : {1, 2, 4}) {
    std::vector<Vm> all = vms(trainers, trainer());
    all.push_back({inference(), {.weight = 1, .latency = true}});
    const Did native = run(slices(), all, 500ms, 6s).back(), urgent = run(turns(), all, 500ms, 6s).back();
    EXPECT_LE(urgent.wait_p99, 1500);
    EXPECT_LE(urgent.p50, 1.02 * native.p50);
    EXPECT_LE(urgent.p99, 1.02 * native.p99);
  }
}

// ---- shares --------------------------------------------------------------------------------------------------------

// Of what each does, against what it does alone, over its weight.
std::vector<double> progress(const std::vector<Vm>& all, const std::vector<Did>& did) {
  std::vector<double> result;
  for (std::size_t i = 0; i < all.size(); ++i)
    result.push_back(did[i].each_second / alone_once(all[i].load) / all[i].share.weight);
  return result;
}

double jain(const std::vector<double>& all) {
  double sum = 0, squares = 0;
  for (const double one : all) sum += one, squares += one * one;
  return sum * sum / squares / static_cast<double>(all.size());
}

const std::vector<Vm> unlike = {
    {launch_and_wait(), {}}, {burst(20, 1500ns), {}}, {burst(20, 19500ns), {}}, {long_kernels(), {}}};

TEST(TurnsWorld, SharesOfUnlikeLoadsAreEven) {
  EXPECT_GE(jain(progress(unlike, run(turns(), unlike))), 0.99);
  std::vector<Vm> twice = unlike;
  twice.insert(twice.end(), unlike.begin(), unlike.end());
  EXPECT_GE(jain(progress(twice, run(turns(), twice))), 0.99);
}

TEST(TurnsWorld, WeightsAreParts) {
  for (const auto& loads : {std::vector<Load>(3, launch_and_wait()),
                            std::vector<Load>(3, burst(20, 1500ns)),
                            {launch_and_wait(), burst(20, 1500ns), burst(20, 19500ns)}}) {
    std::vector<Vm> all;
    for (double weight = 1; const Load& load : loads) all.push_back({load, {.weight = weight}}), weight *= 2;
    const auto parts = progress(all, run(turns(), all));
    for (const double one : parts) EXPECT_PRED3(within, one, parts[0], 0.05);
  }
}

// No program gets less than the smaller of 0.95 of what slices give it and its weight's part of what it gets alone.
struct Mix {
  std::string name;
  std::vector<Vm> vms;
};
void PrintTo(const Mix& mix, std::ostream* out) { *out << mix.name; }

class TurnsWorldFloor : public testing::TestWithParam<Mix> {};

TEST_P(TurnsWorldFloor, Holds) {
  const std::vector<Vm>& all = GetParam().vms;
  double weights = 0;
  for (const Vm& vm : all) weights += vm.share.weight;
  // A program that never waits has 1.3 seconds of work queued, which ends first, beside everybody else's.
  const bool deep = std::ranges::any_of(all, [](const Vm& vm) { return !vm.load.waits; });
  const auto native = run(slices(), all, 100ms, 1s);
  const auto now = run(turns(), all, 1s + deep * all.size() * 1500ms, 1s);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double rate = alone_once(all[i].load), part = all[i].share.weight / weights;
    // But for a turn, which may begin after the time that is measured, and a percent.
    EXPECT_GE(now[i].each_second, 0.99 * std::min(0.95 * native[i].each_second, part * rate) - 0.005 * rate)
        << all[i].load.name;
  }
}

const std::vector<std::pair<char, Load>> letters = {
    {'w', launch_and_wait()}, {'b', burst(20, 1500ns)}, {'B', burst(20, 19500ns)}, {'l', long_kernels()},
    {'t', trainer()},         {'i', inference()},       {'p', products()},         {'c', copies()},
    {'f', burst(8, 1250us)},  {'m', burst(1, 700us)}};

// A mix by the letters of its loads, each with its weight before it, unless that is 1.
Mix mix(const std::string& name) {
  Mix result{"", {}};
  World::Share share;
  for (const char c : name) {
    if (c >= '1' && c <= '9') {
      share.weight = c - '0';
      continue;
    }
    const auto load = std::ranges::find(letters, c, &std::pair<char, Load>::first)->second;
    result.name += (result.name.empty() ? "" : " | ") + load.name;
    result.vms.push_back({load, share});
    share = {};
  }
  return result;
}

std::vector<Mix> mixes() {
  std::vector<Mix> all;
  for (std::size_t i = 0; i < letters.size(); ++i)
    for (std::size_t j = i; j < letters.size(); ++j) all.push_back(mix({letters[i].first, letters[j].first}));
  for (const char* name : {"wwww", "bbbb", "BBBB", "llll", "tttt", "wBl", "wwll", "wwtt", "wwwp", "wppp", "wpi", "wti",
                           "wwc", "wbBltpci", "mmmm", "wwwwwwww", "w2B4l", "4wp", "2wwt"})
    all.push_back(mix(name));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Mixes, TurnsWorldFloor, testing::ValuesIn(mixes()));

// ---- waits, and idle VMs -------------------------------------------------------------------------------------------

TEST(TurnsWorld, AWaitIsTwoQuantaForEachOfTheOthersThatGain) {
  for (const std::size_t count : {2, 4, 8, 32}) {
    const double others = static_cast<double>(count - 1);
    for (const Did& one : run(turns(), vms(count, launch_and_wait()), 1s, 1s))
      EXPECT_LE(one.longest_wait, others * 2100);
  }
}

TEST(TurnsWorld, WaitsOfUnlikeLoadsAreBounded) {
  // Four quanta are the longest, and what is under way then may be two batches.
  for (const Did& one : run(turns(), unlike)) EXPECT_LE(one.longest_wait, 3 * (4000 + 2 * 1812 + 200));
}

TEST(TurnsWorld, AnIdleVmCostsTheOthersNothing) {
  World world(turns());
  Program &works = world.add(launch_and_wait()), &idles = world.add(launch_and_wait());
  world.run_for(500ms);
  EXPECT_TRUE(world.policy().takes_turns());
  idles.pause();
  world.run_for(200ms);
  EXPECT_FALSE(world.policy().takes_turns());
  world.forget();
  world.run_for(1s);
  EXPECT_GE(did(works, 1s).each_second, 0.999 * alone(launch_and_wait()));
}

TEST(TurnsWorld, AnIdleVmCostsThoseWhoTakeTurnsNothing) {
  World world(turns());
  Program& works = world.add(launch_and_wait());
  world.add(launch_and_wait());
  world.add(launch_and_wait()).pause();
  world.run_for(1s);
  world.forget();
  world.run_for(1s);
  EXPECT_GE(did(works, 1s).each_second, 0.999 * run(turns(), vms(2, launch_and_wait()))[0].each_second);
}

TEST(TurnsWorld, AVmThatComesBackHasItsTurnAfterThoseBeforeIt) {
  World world(turns());
  std::vector<Program*> all;
  for (int i = 0; i < 4; ++i) all.push_back(&world.add(launch_and_wait()));
  for (int i = 0; i < 20; ++i) {
    world.run_for(150ms);
    all[3]->pause();
    world.run_for(50ms);
    world.forget();
    all[3]->resume();
    world.run_for(20ms);
    ASSERT_FALSE(all[3]->worker().waits_for_turn().empty());
    EXPECT_LE(us(all[3]->worker().waits_for_turn().front()), 3 * 1100);
    EXPECT_LE(did(*all[0], 20ms).longest_wait, 5 * 2100) << "and those who were there wait a little longer";
  }
}

TEST(TurnsWorld, WhatDoesNotPayIsSeldomTried) {
  for (const char* name : {"ti", "tttt"}) {
    World world(turns());
    for (const Vm& vm : mix(name).vms) world.add(world.add_vm(vm.share), vm.load);
    int tries = 0;
    for (bool before = false; world.now() < 30s; before = world.policy().takes_turns()) {
      world.run_for(2ms);
      tries += world.policy().takes_turns() && !before;
    }
    EXPECT_LE(tries, 4) << name << " in half a minute";
  }
}

TEST(TurnsWorld, AKernelWithoutAnEndIsLeftToTheSlices) {
  const std::vector<Vm> both = {{burst(1, 100ms), {}}, {launch_and_wait(), {}}};
  const auto native = run(slices(), both, 1s, 10s), now = run(turns(), both, 1s, 10s);
  EXPECT_GE(now[0].each_second, 0.5 * alone(both[0].load)) << "held back by debts, its half";
  EXPECT_GE(now[1].each_second, 0.93 * native[1].each_second);
}

// The same seed, the same world.
TEST(TurnsWorld, ARunCanBeRepeated) {
  const auto first = run(turns(), mix("wti").vms, 500ms, 500ms), second = run(turns(), mix("wti").vms, 500ms, 500ms);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].each_second, second[i].each_second);
    EXPECT_EQ(first[i].longest_wait, second[i].longest_wait);
  }
}

}  // namespace
