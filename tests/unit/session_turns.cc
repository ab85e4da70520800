// A worker's half of taking turns: channels that wait for a grant, and the keeper's answers. The test is the scheduler.
#include "host/session/turns.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>
#include <vector>

#include "ring/turn_naps.h"
#include "tests/unit/session_in_turns.h"

namespace {

using namespace session_test;

TEST_F(SessionTurns, AnOpenGrantLetsEverybodySubmit) {
  submit();
  EXPECT_TRUE(was_submitted());
  EXPECT_EQ(ring::submissions(request()), 1U);
  EXPECT_EQ(request().waiting.load(), 0U);
  EXPECT_FALSE(has_rung());
}

TEST_F(SessionTurns, SubmissionsOfEachChannelAreCounted) {
  std::uint64_t all = 0;
  for (unsigned i = 1; i <= ring::DeviceRequest::counted_apart + 3; ++i) {
    submit(i);
    ASSERT_TRUE(was_submitted(all += i));
    EXPECT_EQ(ring::submissions(request()), all);
    begin_anew();
  }
}

TEST_F(SessionTurns, WhoIsToldToRingRingsOnceAndGoesOn) {
  give(GrantMode::Told);
  submit();
  ASSERT_TRUE(was_submitted(1));
  EXPECT_TRUE(has_rung());
  begin_anew();
  submit();
  ASSERT_TRUE(was_submitted(2));
  EXPECT_FALSE(has_rung());
}

TEST_F(SessionTurns, AClosedGateIsAnsweredAndHoldsEverybodyUntilTheTurn) {
  EXPECT_TRUE(is_given_back(give(GrantMode::Closed)));
  submit();
  ASSERT_TRUE(somebody_waits());
  EXPECT_EQ(queued(0), 1U) << "the guest is not told";
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(world_->driver.calls("cuMemsetD8Async"), 0U);
  give(GrantMode::Turn);
  EXPECT_TRUE(was_submitted());
  EXPECT_TRUE(comes_true([&] { return queued(0) == 0; }));
  EXPECT_TRUE(comes_true([&] { return request().waiting.load() == 0; }));
}

// Before anything that it awaits is done, so that it is awake by then.
TEST_F(SessionTurns, AGuestThatSleepsIsWokenWhenItsTurnBegins) {
  auto& control = other_side::control(world_->session->slot, 0);
  const auto asleep = other_side::shared(control.guest_asleep);
  other_side::shared(control.guest_awaits).store(100);  // far behind what is submitted here
  asleep.store(static_cast<std::uint32_t>(ring::Asleep::ByFutex));
  give(GrantMode::Closed);
  submit();
  ASSERT_TRUE(somebody_waits());
  std::this_thread::sleep_for(5ms);
  EXPECT_NE(asleep.load(), 0U) << "its turn has not begun";
  give(GrantMode::Turn);
  EXPECT_TRUE(comes_true([&] { return asleep.load() == 0; }));
  ASSERT_TRUE(was_submitted());
  begin_anew();

  const auto other = other_side::shared(other_side::control(world_->session->slot, 1).guest_asleep);
  other_side::shared(other_side::control(world_->session->slot, 1).guest_awaits).store(100);
  other.store(static_cast<std::uint32_t>(ring::Asleep::ByFutex));
  give(GrantMode::Open);
  submit();
  ASSERT_TRUE(was_submitted(2));
  EXPECT_NE(other.load(), 0U) << "it has waited for no turn";
}

TEST_F(SessionTurns, ATurnIsGivenBackWhenTheSessionIsQuiet) {
  give(GrantMode::Closed);
  submit();
  ASSERT_TRUE(somebody_waits());
  const std::uint64_t waits_before = world_->driver.calls("cuCtxSynchronize");
  const Grant turn = give(GrantMode::Turn);
  ASSERT_TRUE(was_submitted());
  EXPECT_TRUE(is_given_back(turn));
  EXPECT_GT(world_->driver.calls("cuCtxSynchronize"), waits_before) << "nobody looked whether the work is done";
  // Under the turn that was given back nobody submits any more.
  begin_anew();
  submit();
  ASSERT_TRUE(somebody_waits());
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(world_->driver.calls("cuMemsetD8Async"), 1U);
  give(GrantMode::Turn);
  EXPECT_TRUE(was_submitted(2));
}

TEST_F(SessionTurns, AllContextsThatWereUsedAreDrainedBeforeATurnIsGivenBack) {
  constexpr unsigned other = ring::first_created_context;
  const std::uint16_t flags = ring::context_flags(other);
  const Payload creation = Payload::record(
      api::CreateContextRecord{.number = other, .device = 0, .flags = 0, .affinities = 0, .sm_count = 0, .pad = 0});
  ASSERT_EQ(world_->send(ids::cuCtxCreate_v4, creation).result, CUDA_SUCCESS);
  ASSERT_EQ(world_->session->contexts.make_current(other), CUDA_SUCCESS);
  const std::uint64_t stream = world_->next(Handle::Stream);
  ASSERT_EQ(world_->send(ids::cuStreamCreate, Payload::of(stream, 0), flags).result, CUDA_SUCCESS);
  const Answer at = world_->send(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 0, 0}), flags);
  ASSERT_EQ(at.result, CUDA_SUCCESS);

  give(GrantMode::Closed);
  submit();
  Channel channel(*world_, channels_++);
  const Payload set = Payload::of(at.read<api::AllocateReply>().address, 1, 64, stream);
  channel.put(ids::cuMemsetD8Async, set, ring::flag_wants_reply | flags).publish();
  threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  ASSERT_TRUE(comes_true([&] { return request().waiting.load() == 2; }));
  const std::uint64_t waits_before = world_->driver.calls("cuCtxSynchronize");
  world_->driver.keep_working(true);
  const Grant turn = give(GrantMode::Turn);
  ASSERT_TRUE(was_submitted(2));
  std::this_thread::sleep_for(20ms);
  EXPECT_NE(request().given_back.load(), turn.number) << "its work is not done";
  world_->driver.keep_working(false);
  EXPECT_TRUE(is_given_back(turn));
  EXPECT_EQ(world_->driver.calls("cuCtxSynchronize"), waits_before + 2) << "one for each context";
}

// Beside threads that take the processors, so that the keeper is interrupted wherever it can be.
TEST_F(SessionTurns, ATurnIsKeptWhileSomebodyWaitsForIt) {
  std::atomic<bool> done{false};
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) {
      }
    });
  request().waiting.store(1);
  const Grant turn = give(GrantMode::Turn);
  std::this_thread::sleep_for(500ms);
  EXPECT_NE(request().given_back.load(), turn.number);
  request().waiting.store(0);
  EXPECT_TRUE(is_given_back(turn));
  done = true;
}

class SessionTurnsOfNaps : public SessionTurns {
 protected:
  SessionTurnsOfNaps() : SessionTurns(600s, true) {}
};

// A keeper that polls takes a whole processor.
TEST_F(SessionTurnsOfNaps, AKeeperThatNapsLeavesItsProcessorToOthers) {
  // How often other threads of this process have slept.
  const auto naps = [] {
    rusage all{}, mine{};
    getrusage(RUSAGE_SELF, &all), getrusage(RUSAGE_THREAD, &mine);
    return all.ru_nvcsw - mine.ru_nvcsw;
  };
  request().waiting.store(1);
  const Grant turn = give(GrantMode::Turn);
  EXPECT_TRUE(comes_true([&, before = naps()] { return naps() >= before + 1000; })) << "it polls";
  EXPECT_NE(request().given_back.load(), turn.number);
  request().waiting.store(0);
  EXPECT_TRUE(is_given_back(turn));
}

TEST_F(SessionTurnsOfNaps, AFullBatchIsWaitedForAndTheEndOfATurnIsAnswered) {
  submit_in_turn(200);
  ASSERT_TRUE(was_submitted_in_turns(200));
  EXPECT_GT(world_->driver.calls("cuCtxSynchronize"), 0U);
  begin_anew();
  request().waiting.store(1);
  give(GrantMode::Turn);
  EXPECT_TRUE(is_given_back(give(GrantMode::Closed)));
}

TEST(TurnNaps, AreTakenOnFewProcessors) {
  EXPECT_TRUE(ring::takes_turn_naps(1) && ring::takes_turn_naps(2));
  EXPECT_FALSE(ring::takes_turn_naps(3));
}

TEST_F(SessionTurns, AGateThatAnEndedSchedulerHasLeftShutIsPassedUntilTheNextOnesGrant) {
  EXPECT_TRUE(is_given_back(give(GrantMode::Closed)));
  submit();
  ASSERT_TRUE(somebody_waits());
  world_->session->turns.left_alone(true);
  ASSERT_TRUE(was_submitted()) << "it waits for a turn that nobody gives";
  EXPECT_TRUE(comes_true([&] { return request().waiting.load() == 0 && queued(0) == 0; }));
  begin_anew();
  world_->driver.close_gate();
  submit();
  ASSERT_TRUE(comes_true([&] { return world_->driver.somebody_waits(); })) << "the next call does not pass";
  // The next scheduler is told when that call is done, and not before.
  const Grant closed = give(GrantMode::Closed);
  std::this_thread::sleep_for(20ms);
  EXPECT_NE(request().given_back.load(), closed.number);
  world_->driver.open_gate();
  EXPECT_TRUE(is_given_back(closed));
  begin_anew();
  submit();
  ASSERT_TRUE(somebody_waits()) << "the next scheduler's gates are passed as well";
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(world_->driver.calls("cuMemsetD8Async"), 2U);
  give(GrantMode::Turn);
  EXPECT_TRUE(was_submitted(3));
}

TEST_F(SessionTurns, AGrantThatWasTakenForTheEndedSchedulersIsKeptOnceTheNextOneIsKnown) {
  EXPECT_TRUE(is_given_back(give(GrantMode::Closed)));
  world_->session->turns.left_alone(true);
  world_->session->turns.left_alone(false);
  submit();
  ASSERT_TRUE(somebody_waits());
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(world_->driver.calls("cuMemsetD8Async"), 0U);
  give(GrantMode::Turn);
  EXPECT_TRUE(was_submitted());
}

TEST_F(SessionTurns, TheEndOfATurnIsNotAnsweredWhileACallSubmits) {
  world_->driver.close_gate();
  give(GrantMode::Closed);
  submit();
  ASSERT_TRUE(somebody_waits());
  give(GrantMode::Turn);
  ASSERT_TRUE(comes_true([&] { return world_->driver.somebody_waits(); }));
  const Grant closed = give(GrantMode::Closed);
  std::this_thread::sleep_for(20ms);
  EXPECT_NE(request().given_back.load(), closed.number);
  world_->driver.open_gate();
  EXPECT_TRUE(is_given_back(closed));
}

TEST_F(SessionTurns, ASessionThatEndsDoesNotWaitForItsTurn) {
  give(GrantMode::Closed);
  submit();
  ASSERT_TRUE(somebody_waits());
  world_->session->broken = true;
  EXPECT_TRUE(comes_true([&] { return request().waiting.load() == 0; }));
}

// The first batch is of 16.
constexpr unsigned more_than_a_batch = 20;

TEST_F(SessionTurns, AFullBatchIsWaitedFor) {
  world_->driver.keep_working(true);
  submit_in_turn(more_than_a_batch);
  ASSERT_TRUE(was_submitted_in_turns(16));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(world_->driver.calls("cuMemsetD8Async"), 16U);
  world_->driver.keep_working(false);
  EXPECT_TRUE(was_submitted_in_turns(more_than_a_batch));
}

class SessionTurnsOfImpatience : public SessionTurns {
 protected:
  SessionTurnsOfImpatience() : SessionTurns(20ms) {}
};

TEST_F(SessionTurnsOfImpatience, AKernelThatWaitsForTheNextOneOfItsProcessGetsIt) {
  world_->driver.keep_working(true);
  submit_in_turn(more_than_a_batch);
  EXPECT_TRUE(was_submitted_in_turns(more_than_a_batch)) << "the channel waits for its work for ever";
}

TEST_F(SessionTurns, AChannelThatWaitsForItsBatchIsOutsideOfTheGate) {
  world_->driver.keep_working(true);
  submit_in_turn(more_than_a_batch);
  ASSERT_TRUE(was_submitted_in_turns(16));
  const Grant closed = give(GrantMode::Closed);
  std::this_thread::sleep_for(20ms);
  EXPECT_NE(request().given_back.load(), closed.number) << "its work is not done";
  EXPECT_EQ(world_->driver.calls("cuMemsetD8Async"), 16U) << "it submits after its turn";
  world_->driver.keep_working(false);
  EXPECT_TRUE(is_given_back(closed));
  give(GrantMode::Turn);
  EXPECT_TRUE(was_submitted_in_turns(more_than_a_batch));
}

TEST_F(SessionTurns, LargeCopiesWaitForNoTurn) {
  ASSERT_TRUE(is_given_back(give(GrantMode::Closed)));
  const auto copy = [&](std::uint64_t bytes) {
    const std::uint64_t to = world_->memory(bytes);
    Channel channel(*world_, channels_++);
    channel.put(ids::cuMemcpyHtoDAsync_v2, Payload::of(to, 0, bytes, stream_, 0)).publish();
    threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  };
  const auto copies = [&] { return world_->driver.calls("cuMemcpyHtoDAsync_v2"); };
  copy(1 << 20);
  EXPECT_TRUE(comes_true([&] { return copies() == 1; }));
  begin_anew();
  copy(4096);
  EXPECT_TRUE(somebody_waits());
  EXPECT_EQ(copies(), 1U);
}

TEST_F(SessionTurns, ThatCopiesNeedTurnsIsHeardLongBeforeTheyAreDone) {
  ASSERT_TRUE(is_given_back(give(GrantMode::Closed)));
  EXPECT_EQ(request().heard.load(), 0U);
  world_->driver.keep_working(true);
  const Grant suspected = give_for_copies(GrantMode::Closed);
  EXPECT_TRUE(comes_true([&] { return request().heard.load() == suspected.number; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_NE(request().given_back.load(), suspected.number) << "some are under way";
  world_->driver.keep_working(false);
  EXPECT_TRUE(is_given_back(suspected));
}

TEST_F(SessionTurns, WaitsAreCountedWithTheirTime) {
  world_->driver.keep_working(true);
  Channel channel(*world_, channels_++);
  channel.put(ids::cuCtxSynchronize, {}, ring::flag_wants_reply).publish();
  threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  ASSERT_TRUE(comes_true([&] { return request().under_way.load() == 1; }));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(request().waits.load(), 0U);
  world_->driver.keep_working(false);
  ASSERT_TRUE(comes_true([&] { return request().waits.load() == 1; }));
  EXPECT_TRUE(comes_true([&] { return request().under_way.load() == 0; }));
  EXPECT_GE(request().waited_ns.load(), 4'000'000U);
}

TEST_F(SessionTurns, TimeInCallsIsToldUnderAWatchedGrantAlone) {
  world_->driver.keep_working(true);
  Channel channel(*world_, channels_++);
  channel.put(ids::cuCtxSynchronize, {}, ring::flag_wants_reply).publish();
  threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  ASSERT_TRUE(comes_true([&] { return world_->session->long_waits.any_inside(); }));
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(request().busy_ns.load(), 0U);
  give(GrantMode::Open, true);
  EXPECT_TRUE(comes_true([&] { return request().busy_ns.load() > 10'000'000; }));
  world_->driver.keep_working(false);
  ASSERT_TRUE(comes_true([&] { return request().waits.load() == 1; }));
  EXPECT_TRUE(comes_true([&] {  // at once, but for the look that is under way
    const std::uint64_t busy = request().busy_ns.load();
    std::this_thread::sleep_for(20ms);
    return request().busy_ns.load() == busy;
  }));
}

// Two halves, of 8 at first, or fewer if the keeper was slow.
class SessionTurnsShort : public SessionTurns {
 protected:
  void fill_queue() {
    world_->driver.keep_working(true);
    give(GrantMode::Open, true, true);
    submit(more_than_a_batch);
    const auto submitted = [&] { return world_->driver.calls("cuMemsetD8Async"); };
    EXPECT_TRUE(comes_true([&] { return submitted() >= 2; }));
    std::uint64_t before = 0;
    for (; before != submitted(); std::this_thread::sleep_for(50ms)) before = submitted();
    EXPECT_LE(before, 16U);
  }
};

TEST_F(SessionTurnsShort, UnderAShallowGrantTheQueueIsShort) {
  fill_queue();
  EXPECT_TRUE(comes_true([&] { return request().busy_ns.load() > 10'000'000; })) << "while the keeper waits, too";
  world_->driver.keep_working(false);
  EXPECT_TRUE(was_submitted(more_than_a_batch));
}

TEST_F(SessionTurnsShort, AChannelThatWaitsForItsHalfIsOutsideOfTheGate) {
  fill_queue();
  const Grant closed = give(GrantMode::Closed);
  ASSERT_TRUE(somebody_waits());
  EXPECT_LE(world_->driver.calls("cuMemsetD8Async"), 16U);
  EXPECT_NE(request().given_back.load(), closed.number) << "its work is not done";
  world_->driver.keep_working(false);
  EXPECT_TRUE(is_given_back(closed));
  give(GrantMode::Open);
  EXPECT_TRUE(was_submitted(more_than_a_batch));
}

TEST_F(SessionTurnsOfImpatience, AKernelThatWaitsForTheNextOneIsServedUnderAShallowGrantToo) {
  world_->driver.keep_working(true);
  give(GrantMode::Open, true, true);
  submit(more_than_a_batch);
  EXPECT_TRUE(was_submitted(more_than_a_batch)) << "the channel waits for its work for ever";
}

}  // namespace
