// A session that takes turns and has streams that wait for values in memory: what its keeper waits for, and what it tells the
// scheduler. The test is the scheduler.
#include "host/session/value_waits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/unit/session_in_turns.h"

namespace {

using namespace session_test;

class SessionValueWaits : public SessionTurns {
 protected:
  ~SessionValueWaits() override { world_->driver.keep_values_back(false); }

  // A turn in which a stream is made to wait for a value, which is missing.
  Grant begin_turn_with_wait() {
    world_->driver.keep_values_back(true);
    give(GrantMode::Closed);
    await_value();
    EXPECT_TRUE(somebody_waits());
    const Grant turn = give(GrantMode::Turn);
    EXPECT_TRUE(comes_true([&] { return world_->driver.calls("cuStreamWaitValue32_v2") == values_; }));
    begin_anew();
    return turn;
  }
  void await_value() {
    ++values_;
    post(ids::cuStreamWaitValue32_v2, Payload::of(stream_, memory_, 1, 0));
  }
  bool is_held_up(Grant grant, std::chrono::milliseconds within = test_deadline) {
    return comes_true([&] { return request().held_up.load() == grant.number; }, within);
  }
  bool has_given_back(Grant grant) { return request().given_back.load() == grant.number; }

  std::uint64_t values_ = 0;
};

TEST_F(SessionValueWaits, TheTurnOfASessionThatOnlyWaitsIsToldToBeHeldUp) {
  const Grant turn = begin_turn_with_wait();
  EXPECT_TRUE(is_held_up(turn));
  EXPECT_FALSE(has_given_back(turn));
  const Grant closed = give(GrantMode::Closed);
  EXPECT_TRUE(is_held_up(closed)) << "the keeper waits for a value that nobody writes";
  EXPECT_FALSE(has_given_back(closed)) << "its work is not done";
  world_->driver.keep_values_back(false);
  EXPECT_TRUE(is_given_back(closed));
  EXPECT_EQ(request().held_up.load(), 0U);
}

TEST_F(SessionValueWaits, AWaitThatIsOverHoldsNobodyUp) {
  const Grant turn = begin_turn_with_wait();
  ASSERT_TRUE(is_held_up(turn));
  world_->driver.keep_values_back(false);
  EXPECT_TRUE(is_given_back(turn)) << "the session is quiet";
}

TEST_F(SessionValueWaits, WorkBeforeTheWaitIsWaitedFor) {
  world_->driver.keep_working(true);
  begin_turn_with_wait();
  const Grant closed = give(GrantMode::Closed);
  EXPECT_FALSE(is_held_up(closed, 50ms)) << "it works";
  world_->driver.keep_working(false);
  EXPECT_TRUE(is_held_up(closed));
}

// It may wait for the same value, which nobody can tell.
TEST_F(SessionValueWaits, OtherWorkIsWaitedForNoLongerThanAQuantum) {
  begin_turn_with_wait();
  world_->driver.keep_working(true);
  EXPECT_TRUE(is_held_up(give(GrantMode::Closed)));
  give(GrantMode::Turn);
  const Grant closed = give(GrantMode::Closed, false, false, 600s);
  EXPECT_FALSE(is_held_up(closed, 50ms)) << "the quantum is not over";
  world_->driver.keep_working(false);
  EXPECT_TRUE(is_held_up(closed)) << "nothing else is left";
}

TEST_F(SessionValueWaits, AProgramThatGoesOnDoesSoInTheSameTurn) {
  const Grant turn = begin_turn_with_wait();
  ASSERT_TRUE(is_held_up(turn));
  submit();
  EXPECT_TRUE(was_submitted());
  EXPECT_FALSE(has_given_back(turn));
}

TEST_F(SessionValueWaits, ACallThatStandsInTheGateHoldsNobodyUp) {
  begin_turn_with_wait();
  world_->driver.close_gate();
  submit();  // as a copy behind the wait
  ASSERT_TRUE(comes_true([&] { return world_->driver.somebody_waits(); }));
  const Grant closed = give(GrantMode::Closed);
  EXPECT_TRUE(is_held_up(closed));
  world_->driver.open_gate();
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(has_given_back(closed));
  world_->driver.keep_values_back(false);
  EXPECT_TRUE(is_given_back(closed));
}

TEST_F(SessionValueWaits, AGuestThatWaitsInACallForTheStreamHoldsNobodyUp) {
  const Grant turn = begin_turn_with_wait();
  post(ids::cuCtxSynchronize, {});
  ASSERT_TRUE(comes_true([&] { return world_->session->long_waits.any_inside(); }));
  EXPECT_TRUE(is_held_up(turn));
  world_->driver.keep_values_back(false);
  EXPECT_TRUE(is_given_back(turn));
}

TEST_F(SessionValueWaits, ABatchBesideAStreamThatStandsIsNotWaitedForByTime) {
  begin_turn_with_wait();
  constexpr unsigned batches = 10;
  submit(16 * batches);
  EXPECT_TRUE(comes_true([&] { return world_->driver.calls("cuMemsetD8Async") == 16 * batches; }))
      << "the channel waits for the value, as if for ever";
}

TEST_F(SessionValueWaits, WhoWaitsForAValueIsNotTakenToUseTheGpu) {
  world_->driver.keep_values_back(true);
  give(GrantMode::Open, true);
  await_value();
  ASSERT_TRUE(comes_true([&] { return world_->driver.calls("cuStreamWaitValue32_v2") == 1; }));
  begin_anew();
  post(ids::cuCtxSynchronize, {});
  ASSERT_TRUE(comes_true([&] { return world_->session->long_waits.any_inside(); }));
  EXPECT_TRUE(comes_true([&] {  // once the keeper has seen it
    const std::uint64_t before = request().busy_ns.load();
    std::this_thread::sleep_for(50ms);
    return request().busy_ns.load() - before <= 10'000'000U;
  }));
  world_->driver.keep_values_back(false);
}

TEST_F(SessionValueWaits, AContextThatEndsTakesItsWaitsAlong) {
  constexpr unsigned other = ring::first_created_context;
  const std::uint16_t flags = ring::context_flags(other);
  const Payload creation = Payload::record(
      api::CreateContextRecord{.number = other, .device = 0, .flags = 0, .affinities = 0, .sm_count = 0, .pad = 0});
  ASSERT_EQ(world_->send(ids::cuCtxCreate_v4, creation).result, CUDA_SUCCESS);
  world_->driver.keep_values_back(true);
  give(GrantMode::Open);
  post(ids::cuStreamWaitValue32_v2, Payload::of(0, memory_, 1, 0), ring::flag_wants_reply | flags);
  ASSERT_TRUE(comes_true([&] { return world_->driver.calls("cuStreamWaitValue32_v2") == 1; }));
  begin_anew();
  EXPECT_TRUE(world_->session->value_waits.any());
  ASSERT_EQ(world_->session->destroy_context(other), CUDA_SUCCESS);
  EXPECT_FALSE(world_->session->value_waits.any());
}

// As many as a driver queues have events of their own.
TEST_F(SessionValueWaits, MoreWaitsThanADriverQueuesAreServedAllTheSame) {
  world_->driver.keep_values_back(true);
  give(GrantMode::Open);
  constexpr unsigned many = 1100;
  Channel channel(*world_, channels_++);
  for (unsigned i = 0; i < many; ++i) channel.put(ids::cuStreamWaitValue32_v2, Payload::of(stream_, memory_, 1, 0), 0);
  channel.publish();
  threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  EXPECT_TRUE(comes_true([&] { return world_->driver.calls("cuStreamWaitValue32_v2") == many; }));
  EXPECT_LE(world_->driver.calls("cuEventCreate"), 2048U);
  world_->driver.keep_values_back(false);
}

TEST_F(SessionValueWaits, AStreamThatTheSessionDoesNotHaveIsRefusedAsBefore) {
  EXPECT_NE(world_->send(ids::cuStreamWaitValue32_v2, Payload::of(stream_ + 1, memory_, 1, 0)).result, CUDA_SUCCESS);
  EXPECT_FALSE(world_->session->value_waits.any());
  EXPECT_EQ(world_->driver.calls("cuEventRecord"), 0U);
}

// The wait's own, in a stream whose queue is full.
TEST_F(SessionValueWaits, ARecordThatWaitsForRoomKeepsNobodyFromGoingOn) {
  const std::uint64_t other = world_->stream();
  give(GrantMode::Open);
  world_->driver.close_gate();
  await_value();
  ASSERT_TRUE(comes_true([&] { return world_->driver.somebody_waits(); }));
  EXPECT_TRUE(world_->session->value_waits.any()) << "it is not known that a wait is coming";
  post(ids::cuStreamDestroy_v2, Payload::of(other));
  EXPECT_TRUE(comes_true([&] { return world_->driver.calls("cuStreamDestroy_v2") == 1; }));
  EXPECT_EQ(world_->session->value_waits.look(0), host::ValueWaits::Found::Before);
  world_->driver.open_gate();
  EXPECT_TRUE(comes_true([&] { return world_->driver.calls("cuStreamWaitValue32_v2") == 1; }));
}

// Threads that make streams and end them while the keeper asks about all streams.
TEST_F(SessionValueWaits, AStreamThatEndsIsNotAskedAbout) {
  begin_turn_with_wait();
  give(GrantMode::Closed);
  Channel channel(*world_, channels_++);
  constexpr int times = 300;
  for (int i = 0; i < times; ++i) {
    const std::uint64_t stream = world_->next(Handle::Stream);
    channel.put(ids::cuStreamCreate, Payload::of(stream, 1), 0).put(ids::cuStreamDestroy_v2, Payload::of(stream), 0);
  }
  channel.publish();
  threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  EXPECT_TRUE(comes_true([&] {
    give(GrantMode::Closed);
    return world_->driver.calls("cuStreamDestroy_v2") == times;
  }));
}

TEST(ValueWaits, OfASessionThatNobodySchedulesNothingIsNoted) {
  World world;
  const std::uint64_t memory = world.memory(64), stream = world.stream();
  EXPECT_EQ(world.send(ids::cuStreamWaitValue32_v2, Payload::of(stream, memory, 1, 0)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.driver.calls("cuEventRecord"), 0U);
  EXPECT_FALSE(world.session->value_waits.any());
}

}  // namespace
