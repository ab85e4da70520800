// The throughput of each VM on one GPU, in virtual time (tests/scheduler/world.h). "Alone" means without other VMs.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/scheduler/world.h"

namespace {

using namespace world;

const Program waits{}, bursts{.kernels = 20}, busy{.kernels = 20, .kernel = 20us}, large{.kernels = 2, .kernel = 20ms},
    full{.kernel = 52ms}, train{.kernels = 20, .kernel = 125us, .host = 50us},
    host_bound{.kernels = 300, .kernel = 9us, .submit = 14us}, deep{.kernels = 1000, .kernel = 5ms},
    inference{.kernels = 20, .kernel = 25us, .period = 10ms};
constexpr Policy::Share quick{.latency = true};

struct Alone {
  double used;
  Time p99;
};
Alone alone(const Program& program) {
  World world(false);
  world.add(program);
  world.run(1s);
  return {world.used(1), world.burst(1, .99)};
}

// Returns each program's throughput as a share of its throughput when it runs alone.
std::vector<double> parts(World& world, const std::vector<Program>& programs, Time time = 4s) {
  world.run(1500ms);
  world.forget();
  world.run(time);
  std::vector<double> all;
  for (std::size_t i = 0; i < programs.size(); ++i)
    all.push_back(world.used(static_cast<Policy::Vm>(i + 1)) / alone(programs[i]).used);
  return all;
}
std::vector<double> parts(const std::vector<Program>& programs) {
  World world;
  for (const Program& program : programs) world.add(program);
  return parts(world, programs);
}

TEST(Policy, OneVmAloneIsNeverSwitched) {
  World world;
  world.add(waits);
  world.add({.from = 1h});
  world.run(2s);
  EXPECT_EQ(world.calls, 0);
  EXPECT_FALSE(world.policy.is_contended());
}

TEST(Policy, VmsThatLaunchAndWaitShareWithoutLoss) {
  for (const int count : {2, 4, 8, 16}) {
    const std::vector<Program> programs(static_cast<std::size_t>(count), waits);
    for (const double part : parts(programs)) {
      EXPECT_GT(part, .93 / count) << count;
      EXPECT_LT(part, 1.03 / count) << count;
    }
  }
}

TEST(Policy, AVmThatLaunchesAndWaitsHasItsHalfBesideWhateverElseIsQueued) {
  for (const Program& other : {full, train, deep, large}) {
    const auto got = parts({waits, other});
    EXPECT_GT(got[0], .45);
    EXPECT_GT(got[1], .45);
  }
}

TEST(Policy, EqualProgramsOfEachKindShareEvenly) {
  for (const Program& program : {bursts, busy, large, full, train}) {
    const auto got = parts({program, program, program, program});
    for (const double part : got) EXPECT_NEAR(part, .245, .015);
  }
}

TEST(Policy, HostBoundProgramsFillEachOthersGaps) {
  const auto got = parts({host_bound, host_bound});
  EXPECT_GT(got[0] + got[1], 1.3);
  EXPECT_NEAR(got[0], got[1], .05);
}

// The program launches many times per wait, so driver time slicing serves it well together with similar programs.
TEST(Policy, AHostBoundProgramThatComesBackJoinsOthersOfItsKind) {
  World world;
  world.add(host_bound);
  world.add({.kernels = 100, .kernel = 5us, .submit = 9us, .period = 10ms});
  world.run(1500ms);
  world.forget();
  world.run(4s);
  EXPECT_GT(world.used(1) / alone(host_bound).used, .95);
  EXPECT_LT(world.in_calls(), .01);
}

TEST(Policy, WeightsHoldForProgramsOfEveryKind) {
  for (const Program& program : {waits, bursts, busy, large, full}) {
    SCOPED_TRACE(std::to_string(program.kernels) + " kernels of " + std::to_string(program.kernel / 1us) + " us");
    World world;
    for (const double weight : {1., 2., 4.}) world.add(program, {.weight = weight});
    world.run(1500ms);
    world.forget();
    world.run(20s);
    const double sum = world.used(1) + world.used(2) + world.used(3);
    for (const auto& [vm, part] : {std::pair{1U, 1 / 7.}, {2U, 2 / 7.}, {3U, 4 / 7.}})
      EXPECT_NEAR(world.used(vm) / sum / part, 1, .03) << "weight " << part;
  }
}

TEST(Policy, ALightVmPreemptsWithinItsShare) {
  for (const std::vector<Program>& others : {std::vector{train}, {large}, {large, large}, {waits, full}}) {
    World world;
    world.add(inference);
    for (const Program& other : others) world.add(other);
    world.run(1500ms);
    world.forget();
    world.run(4s);
    EXPECT_LT(world.burst(1, .99), alone(inference).p99 + 600us);
  }
}

TEST(Policy, TheLatencyClassPreemptsForLongBursts) {
  const Program five{.kernels = 100, .kernel = 50us, .period = 50ms},
      ten{.kernels = 100, .kernel = 100us, .period = 50ms},
      longer_than_a_lease{.kernels = 160, .kernel = 100us, .period = 50ms};
  for (const auto& [program, most, left] :
       {std::tuple{five, 1.25, .75}, {ten, 1.15, .75}, {longer_than_a_lease, 1.15, .6}})
    for (const Program& other : {train, large}) {
      World world;
      world.add(program, quick);
      world.add(other);
      const double batch = parts(world, {program, other})[1];
      EXPECT_LT(world.burst(1, .99).count(), static_cast<double>(alone(program).p99.count()) * most);
      EXPECT_GT(batch, left);
    }
}

TEST(Policy, AVmOfTheLatencyClassThatNeverStopsHasItsShareAndNoMore) {
  World world;
  world.add(waits, quick);
  world.add(train);
  const auto got = parts(world, {waits, train});
  EXPECT_NEAR(got[0], .5, .06);
  EXPECT_GT(got[1], .43);
}

// With one small kernel per millisecond, each driver call would wait for the switches.
TEST(Policy, PreemptionTakesNoMoreThanItsBudget) {
  World world;
  const Program small{.period = 1ms};
  world.add(small);
  world.add(large);
  const double batch = parts(world, {small, large})[1];
  EXPECT_LT(world.in_calls(), .15);
  EXPECT_GT(batch, .7);
  EXPECT_LT(world.burst(1, .99), 3ms) << "then the driver's slices share the GPU";
}

TEST(Policy, AReserveHoldsWhateverTheWeightsOfOthers) {
  World world;
  world.add(train, {.reserve = .5});
  for (int i = 0; i < 3; ++i) world.add(train, {.weight = 10});
  EXPECT_GT(parts(world, {train, train, train, train})[0], .46);
}

TEST(Policy, NobodyIsOffForLongerThanTheLongestOff) {
  World world(true, {.longest_off = 200ms});
  world.add(full, {.weight = 1});
  world.add(train, {.weight = 1000});
  world.run(1500ms);
  world.forget();
  world.run(4s);
  EXPECT_GT(world.used(1), 10ms / 260ms * .8);
}

TEST(Policy, NobodyOwesForTheTimeInWhichItWasAlone) {
  World world;
  world.add(waits);
  world.add({.kernels = 20, .kernel = 125us, .from = 4s});
  world.run(3500ms);
  world.forget();
  world.run(1s);
  EXPECT_GT(world.used(1), .4 * alone(waits).used);
  EXPECT_GT(world.used(2), .4);
}

TEST(Policy, ProgramsThatComeAndGoLeaveNobodyOff) {
  World world;
  for (int i = 0; i < 6; ++i)
    world.add({.host = i % 2 ? 60ms : Time::zero(), .from = i * 50ms, .until = 3s + i * 50ms});
  world.run(4s);
  EXPECT_FALSE(world.policy.any_off());
  EXPECT_FALSE(world.policy.is_contended());
}

TEST(Policy, WithoutSwitchingNothingIsOrderedAndAccountsGoOn) {
  World world;
  world.add(waits);
  world.add(full);
  world.run(500ms);
  world.policy.set_switching(false);
  EXPECT_FALSE(world.policy.any_off());
  const int before = world.calls;
  const auto had = world.policy.account(2).had;
  world.run(500ms);
  EXPECT_EQ(world.calls, before);
  EXPECT_GT(world.policy.account(2).had, had + 100ms);
}

// ---- the policy alone
// ------------------------------------------------------------------------------------------------

// Two VMs that want the GPU at 1 s. The first order has been carried out.
struct Two {
  Policy policy;
  Time now = 1s;
  std::uint64_t submitted[2] = {};

  // Each VM has launched and waited, so neither VM shares a lease.
  explicit Two(Policy::Share first = {}, Policy::Share second = {}) {
    policy.add(1, first), policy.add(2, second);
    for (int i = 0; i < 20; ++i) carry_out(look(i % 2 == 0, i % 2 != 0, 2ms));
    now += 2ms;
    for (int i = 0; i < 2; ++i) carry_out(look(false, false, 2ms));
    for (const Policy::Vm vm : {1U, 2U}) policy.update(vm, {submitted[vm - 1], submitted[vm - 1], false, false}, now);
  }
  std::optional<Policy::Order> look(bool first, bool second, Time passed = 50us, bool calls = false) {
    now += passed;
    policy.update(1, {submitted[0] += first, submitted[0], first, calls}, now);
    policy.update(2, {submitted[1] += second, submitted[1], second, calls}, now);
    return policy.step(now);
  }
  // Returns the VM with the lease, and the VM without it.
  std::pair<Policy::Vm, Policy::Vm> roles() const { return policy.holds(1) ? std::pair{1U, 2U} : std::pair{2U, 1U}; }
  void carry_out(const std::optional<Policy::Order>& order) {
    if (order) policy.done(now += 850us, 850us);
  }
};

TEST(PolicyByHand, OneHoldsAndTheOtherIsOff) {
  Two two;
  const auto order = two.look(true, true);
  ASSERT_TRUE(order);
  EXPECT_TRUE(order->on.empty());
  ASSERT_EQ(order->off.size(), 1U);
  EXPECT_FALSE(two.look(true, true)) << "one order at a time";
  two.carry_out(order);
  EXPECT_NE(two.policy.holds(1), two.policy.holds(2));
}

TEST(PolicyByHand, AVmThatIsOffAndStandsInAnyCallOfTheDriverIsLetOn) {
  Two two;
  two.carry_out(two.look(true, true));
  const auto [holder, other] = two.roles();
  bool on = false;
  for (int i = 0; i < 4000 && !on; ++i) {
    const auto order = two.look(holder == 1, holder == 2, 50us, true);  // a free waits in the driver
    on = order && order->on == std::vector{other};
    two.carry_out(order);
  }
  EXPECT_TRUE(on);
}

TEST(PolicyByHand, NewChannelsOfAVmThatIsOffAreSwitchedOff) {
  Two two;
  two.carry_out(two.look(true, true));
  const Policy::Vm other = two.roles().second;
  two.policy.channels_changed(other);
  const auto order = two.look(true, true);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->off, std::vector{other});
}

TEST(PolicyByHand, AVmThatIsRemovedWhileItHoldsLetsTheOtherOn) {
  Two two;
  two.carry_out(two.look(true, true));
  const auto [holder, other] = two.roles();
  two.policy.remove(holder);
  two.now += 5ms;
  two.policy.update(other, {two.submitted[other - 1] + 1, two.submitted[other - 1], true, false}, two.now);
  const auto order = two.policy.step(two.now);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->on, std::vector{other});
}

TEST(PolicyByHand, AccountsReportGpuTimeAndWaitingTime) {
  Two two;
  two.carry_out(two.look(true, true));
  const auto [holder, other] = two.roles();
  const auto held = two.policy.account(holder), waited = two.policy.account(other);
  two.look(true, true, 4ms);
  EXPECT_EQ(two.policy.account(holder).had - held.had, 4ms);
  EXPECT_EQ(two.policy.account(other).waited - waited.waited, 4ms);
  EXPECT_EQ(two.policy.account(other).had, waited.had);
}

}  // namespace
