// A worker's half of taking turns: channels that wait for a grant, and the keeper's answers. The test is the scheduler.
#include "host/session/turns.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "tests/unit/session_channel.h"

namespace {

using namespace session_test;
using namespace std::chrono_literals;
using ring::Grant;
using ring::GrantMode;
namespace ids = api::id_of;

bool comes_true(const std::function<bool()>& what, std::chrono::milliseconds within = 5000ms) {
  for (const auto end = std::chrono::steady_clock::now() + within; std::chrono::steady_clock::now() < end;) {
    if (what()) return true;
    std::this_thread::sleep_for(100us);
  }
  return what();
}

// A session with pages. Each submission has a channel of its own, served by a thread until its record is done.
class SessionTurns : public testing::Test {
 protected:
  explicit SessionTurns(std::chrono::milliseconds longest_drain = 60s) {
    host::ServeOptions options;
    options.windows = host::all_windows;
    options.turns = {
        .grants = &grants_, .requests = &requests_, .bell_fd = bell_, .devices = 1, .longest_drain = longest_drain};
    world_.emplace(options);
    world_->session->end_greeting(true);
    memory_ = world_->memory(64);
    stream_ = world_->stream();
    world_->session->turns.start();
  }
  ~SessionTurns() override {
    give(GrantMode::Open);
    world_->driver.open_gate();
    world_->driver.keep_working(false);
    for (std::thread& thread : threads_) thread.join();
    world_.reset();
    close(bell_);
  }

  Grant give(GrantMode mode, bool watched = false, bool shallow = false) {
    const Grant grant{mode, ++number_, watched, shallow};
    grants_.device[0].most_us.store(1000);
    grants_.device[0].word.store(grant.word());
    return grant;
  }
  ring::DeviceRequest& request() { return requests_.device[0]; }
  std::uint32_t queued(std::uint32_t channel) {
    auto& word = other_side::control(world_->session->slot, channel).queued;
    return other_side::shared(word).load(std::memory_order_relaxed);
  }
  bool is_given_back(Grant grant) {
    return comes_true([&] { return request().given_back.load() == grant.number; });
  }
  bool somebody_waits() {
    return comes_true([&] { return request().waiting.load() != 0; });
  }
  void submit() {
    Channel channel(*world_, channels_++);
    channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_)).publish();
    threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  }
  // Many submissions on one channel.
  void submit(unsigned times) {
    Channel channel(*world_, channels_++);
    for (unsigned i = 0; i < times; ++i) channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
    channel.publish();
    threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  }
  // In a turn that begins when the channel waits for it.
  void submit_in_turn(unsigned times) {
    give(GrantMode::Closed);
    submit(times);
    ASSERT_TRUE(somebody_waits());
    give(GrantMode::Turn);
  }
  bool was_submitted(std::uint64_t times = 1) {
    return comes_true([&] { return world_->driver.calls("cuMemsetD8Async") == times; });
  }
  // A turn that was given back is followed by another, as from a scheduler. So is one that the keeper takes away and cannot
  // give back, since its work does not end: a scheduler passes it on by time.
  bool was_submitted_in_turns(std::uint64_t times) {
    auto passed_on = std::chrono::steady_clock::now() + 100ms;
    return comes_true([&] {
      const bool over = request().given_back.load() == number_ || std::chrono::steady_clock::now() > passed_on;
      if (over && request().waiting.load() != 0) {
        give(GrantMode::Turn);
        passed_on = std::chrono::steady_clock::now() + 100ms;
      }
      return world_->driver.calls("cuMemsetD8Async") == times;
    });
  }
  // The record that ends a channel's service has broken the session.
  void begin_anew() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    world_->session->broken = false;
  }
  bool has_rung() const {
    std::uint64_t rings = 0;
    return read(bell_, &rings, sizeof rings) == sizeof rings;
  }

  alignas(ring::page) ring::GrantPage grants_{};
  alignas(ring::page) ring::RequestPage requests_{};
  const int bell_ = eventfd(0, EFD_NONBLOCK);
  std::optional<World> world_;
  std::vector<std::thread> threads_;
  std::uint32_t number_ = 0, channels_ = 0;
  std::uint64_t memory_ = 0, stream_ = 0;
};

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
    const std::uint64_t before = world_->driver.calls("cuMemcpyHtoDAsync_v2");
    Channel channel(*world_, channels_++);
    channel.put(ids::cuMemcpyHtoDAsync_v2, Payload::of(to, 0, bytes, stream_, 0)).publish();
    threads_.emplace_back([channel]() mutable { channel.serve_published(); });
    return comes_true([&] { return world_->driver.calls("cuMemcpyHtoDAsync_v2") > before; }, 200ms);
  };
  EXPECT_TRUE(copy(1 << 20));
  begin_anew();
  EXPECT_FALSE(copy(4096));
  EXPECT_NE(request().waiting.load(), 0U);
}

TEST_F(SessionTurns, WaitsAreCountedWithTheirTime) {
  world_->driver.keep_working(true);
  Channel channel(*world_, channels_++);
  channel.put(ids::cuCtxSynchronize, {}, ring::flag_wants_reply).publish();
  threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  ASSERT_TRUE(comes_true([&] { return world_->session->long_waits.any_inside(); }));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(request().waits.load(), 0U);
  EXPECT_EQ(request().under_way.load(), 1U);
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
  std::this_thread::sleep_for(10ms);
  const std::uint64_t busy = request().busy_ns.load();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(request().busy_ns.load(), busy);
}

// Two halves, of 8 at first, or fewer if the keeper was slow. The result: how many submissions are in them.
class SessionTurnsShort : public SessionTurns {
 protected:
  std::uint64_t fill_queue() {
    world_->driver.keep_working(true);
    give(GrantMode::Open, true, true);
    submit(more_than_a_batch);
    const auto submitted = [&] { return world_->driver.calls("cuMemsetD8Async"); };
    EXPECT_TRUE(comes_true([&] { return submitted() >= 2; }));
    std::uint64_t before = 0;
    for (; before != submitted(); std::this_thread::sleep_for(50ms)) before = submitted();
    EXPECT_LE(before, 16U);
    return before;
  }
};

TEST_F(SessionTurnsShort, UnderAShallowGrantTheQueueIsShort) {
  fill_queue();
  EXPECT_TRUE(comes_true([&] { return request().busy_ns.load() > 10'000'000; })) << "while the keeper waits, too";
  world_->driver.keep_working(false);
  EXPECT_TRUE(was_submitted(more_than_a_batch));
}

TEST_F(SessionTurnsShort, AChannelThatWaitsForItsHalfIsOutsideOfTheGate) {
  const std::uint64_t queued = fill_queue();
  const Grant closed = give(GrantMode::Closed);
  ASSERT_TRUE(somebody_waits());
  EXPECT_EQ(world_->driver.calls("cuMemsetD8Async"), queued);
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
