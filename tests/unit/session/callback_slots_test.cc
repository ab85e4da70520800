// The worker's side of the callback slots. A simulated guest answers, never answers, answers twice, or answers with an
// unknown number.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "host/untrusted/callbacks/callback_slots.h"
#include "host/untrusted/callbacks/host_calls.h"
#include "tests/deadline.h"
#include "tests/other_side.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
using namespace std::chrono_literals;
using Answered = std::optional<std::int32_t>;
constexpr auto host_function = ring::CallbackKind::HostFunction;

class CallbackSlots : public testing::Test {
 protected:
  void SetUp() override { callback_slots = std::make_unique<host::CallbackSlots>(*world.session, doorbell); }
  void TearDown() override {
    callback_slots->end();
    waiting.clear();
    close(doorbell);
  }

  // Returns the callback slot as the guest maps it.
  ring::CallbackSlot& callback_slot(std::uint32_t k) { return other_side::callback_slot(slot(), k); }
  ring::SlotView slot() { return world.session->slot; }
  std::uint64_t sequence(std::uint32_t k) { return other_side::shared(callback_slot(k).sequence).load(); }
  void say_done(std::uint32_t k, std::uint64_t number, std::int32_t result = 0) {
    other_side::shared(callback_slot(k).result).store(result);
    other_side::shared(callback_slot(k).done).store(number);
    callback_slots->wake_all();
  }
  bool is_filled(std::uint32_t k, std::uint64_t number) {
    return before_deadline([&] { return sequence(k) == number; });
  }

  // Starts a worker thread that calls the guest.
  std::shared_future<Answered> call(std::uint64_t token) {
    waiting.push_back(
        std::async(std::launch::async, [=, this] { return callback_slots->call(host_function, token); }).share());
    return waiting.back();
  }
  static bool waits(const std::shared_future<Answered>& f) { return f.wait_for(50ms) == std::future_status::timeout; }
  static Answered end_of(const std::shared_future<Answered>& f) {
    EXPECT_EQ(f.wait_for(test_deadline), std::future_status::ready) << "the wait does not end";
    return f.wait_for(0s) == std::future_status::ready ? f.get() : Answered{};
  }
  bool broken() { return world.session->protocol.broken.load(); }
  bool signalled() {
    pollfd fd{doorbell, POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }

  World world;
  const int doorbell = eventfd(0, EFD_CLOEXEC);
  std::unique_ptr<host::CallbackSlots> callback_slots;
  std::vector<std::shared_future<Answered>> waiting;
};

TEST_F(CallbackSlots, ACallGetsItsAnswer) {
  const auto first = call(77);
  ASSERT_TRUE(is_filled(0, 1));
  EXPECT_EQ(other_side::shared(callback_slot(0).token).load(), 77u);
  EXPECT_EQ(other_side::shared(callback_slot(0).kind).load(), 1u);
  EXPECT_TRUE(waits(first));
  say_done(0, 1, -5);
  EXPECT_EQ(end_of(first), -5);
  const auto second = call(78);
  ASSERT_TRUE(is_filled(0, 2));
  say_done(0, 2, 6);
  EXPECT_EQ(end_of(second), 6);
  EXPECT_FALSE(broken());
}

TEST_F(CallbackSlots, AnAnswerThatComesTwiceIsNoAnswerToTheNextCall) {
  const auto first = call(1);
  ASSERT_TRUE(is_filled(0, 1));
  say_done(0, 1, 10);
  EXPECT_EQ(end_of(first), 10);
  say_done(0, 1, 11);
  const auto second = call(2);
  ASSERT_TRUE(is_filled(0, 2));
  say_done(0, 1, 12);
  EXPECT_TRUE(waits(second));
  say_done(0, 2, 20);
  EXPECT_EQ(end_of(second), 20);
  EXPECT_FALSE(broken());
}

class WrongNumber : public CallbackSlots, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(WrongNumber, EndsTheSession) {
  const auto answer = call(1);
  ASSERT_TRUE(is_filled(0, 1));
  say_done(0, GetParam());
  EXPECT_EQ(end_of(answer), std::nullopt);
  EXPECT_TRUE(broken());
  EXPECT_TRUE(signalled()) << "the doorbell thread is to end the session";
}
INSTANTIATE_TEST_SUITE_P(CallbackSlots, WrongNumber,
                         testing::Values(std::uint64_t{2}, std::uint64_t{1} << 63, ~std::uint64_t{0}));

TEST_F(CallbackSlots, AnAnswerBeforeItsCallEndsTheSession) {
  say_done(0, 1);
  EXPECT_EQ(callback_slots->call(host_function, 1), std::nullopt);
  EXPECT_TRUE(broken());
  EXPECT_EQ(sequence(0), 0u);
}

TEST_F(CallbackSlots, AnAnswerThatIsTakenBackEndsTheSession) {
  const auto first = call(1);
  ASSERT_TRUE(is_filled(0, 1));
  say_done(0, 1);
  EXPECT_EQ(end_of(first), 0);
  say_done(0, 0);
  EXPECT_FALSE(callback_slots->post(host_function, 2));
  EXPECT_TRUE(broken());
  EXPECT_EQ(sequence(0), 1u);
}

TEST_F(CallbackSlots, AGuestThatNeverAnswersHoldsNoneButThoseThatWaitForIt) {
  for (std::uint64_t token = 1; token < ring::max_callback_slots; ++token) call(token);
  for (std::uint32_t k = 0; k + 1 < ring::max_callback_slots; ++k) ASSERT_TRUE(is_filled(k, 1));
  const auto last = call(100);
  ASSERT_TRUE(is_filled(ring::max_callback_slots - 1, 1));
  say_done(ring::max_callback_slots - 1, 1, 3);
  EXPECT_EQ(end_of(last), 3);
  EXPECT_TRUE(callback_slots->post(host_function, 101));
}

TEST_F(CallbackSlots, EveryWaitEndsWithTheSession) {
  for (std::uint64_t token = 1; token <= ring::max_callback_slots + 2; ++token)
    call(token);  // two calls find no free callback slot
  for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k) ASSERT_TRUE(is_filled(k, 1));
  EXPECT_TRUE(waits(waiting.front()));
  EXPECT_TRUE(waits(waiting.back()));
  callback_slots->end();
  for (const auto& each : waiting) EXPECT_EQ(end_of(each), std::nullopt);
  EXPECT_FALSE(callback_slots->post(host_function, 1));
  EXPECT_EQ(callback_slots->call(host_function, 1), std::nullopt);
  EXPECT_FALSE(broken());
}

TEST_F(CallbackSlots, WhoFindsNoCallbackSlotGetsTheNextThatIsGivenBack) {
  for (std::uint64_t token = 1; token <= ring::max_callback_slots; ++token) call(token);
  for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k) ASSERT_TRUE(is_filled(k, 1));
  const auto late = call(50);
  EXPECT_TRUE(waits(late));
  say_done(5, 1, 2);
  ASSERT_TRUE(is_filled(5, 2));
  EXPECT_EQ(other_side::shared(callback_slot(5).token).load(), 50u);
  say_done(5, 2, 9);
  EXPECT_EQ(end_of(late), 9);
}

TEST_F(CallbackSlots, WhatIsPostedIsNotWaitedForUntilNoCallbackSlotIsFree) {
  for (std::uint64_t token = 1; token <= ring::max_callback_slots; ++token)
    EXPECT_TRUE(callback_slots->post(host_function, token));
  say_done(3, 1);
  EXPECT_TRUE(callback_slots->post(host_function, 20));  // uses the callback slot of the answered call
  EXPECT_EQ(sequence(3), 2u);
  const auto late = call(21);
  EXPECT_TRUE(waits(late));
  for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k) EXPECT_EQ(sequence(k), k == 3 ? 2u : 1u);
  say_done(0, 1);
  ASSERT_TRUE(is_filled(0, 2));
  say_done(0, 2, 4);
  EXPECT_EQ(end_of(late), 4);
}

TEST_F(CallbackSlots, AGuestThatSleepsIsWoken) {
  auto asleep = other_side::shared(other_side::header(slot()).callbacks_asleep);
  asleep.store(1);
  EXPECT_TRUE(callback_slots->post(host_function, 1));
  EXPECT_EQ(asleep.load(), 0u);
}

// ---- calls that need callback slots ------------------------------------------------------------------------------

// Answers the next call as a guest does.
struct Answerer {
  explicit Answerer(const std::function<void()>& answer) : answered(std::async(std::launch::async, answer)) {}
  std::future<void> answered;
};

TEST_F(CallbackSlots, AHostFunctionIsCalledByItsToken) {
  const auto record = Payload::record(api::HostFunctionRecord{.stream = world.stream(), .token = 41});
  const Answerer guest([&] {
    EXPECT_TRUE(is_filled(0, 1));
    say_done(0, 1);
  });
  EXPECT_EQ(world.send(api::id_of::cuLaunchHostFunc, record).result, CUDA_SUCCESS);
  EXPECT_EQ(other_side::shared(callback_slot(0).token).load(), 41U);
  EXPECT_EQ(other_side::shared(callback_slot(0).kind).load(), std::uint32_t{IVGPU_CALLBACK_HOST_FUNCTION});
}

TEST_F(CallbackSlots, AStreamCallbackBringsItsStatus) {
  const auto record = Payload::record(api::HostFunctionRecord{.stream = world.stream(), .token = 42});
  const Answerer guest([&] {
    EXPECT_TRUE(is_filled(0, 1));
    say_done(0, 1);
  });
  EXPECT_EQ(world.send(api::id_of::cuStreamAddCallback, record).result, CUDA_SUCCESS);
  EXPECT_EQ(other_side::shared(callback_slot(0).kind).load(), std::uint32_t{IVGPU_CALLBACK_STREAM_CALLBACK});
  EXPECT_EQ(other_side::shared(callback_slot(0).status).load(), CUDA_SUCCESS);
}

TEST_F(CallbackSlots, ATokenThatTheDriverWillNotCallIsGivenBack) {
  world.session->callbacks.calls->forget(43);
  ASSERT_TRUE(is_filled(0, 1));
  EXPECT_EQ(other_side::shared(callback_slot(0).token).load(), 43U);
  EXPECT_EQ(other_side::shared(callback_slot(0).kind).load(), std::uint32_t{IVGPU_CALLBACK_FORGET});
}

// The driver may call the function at any later time.
TEST_F(CallbackSlots, ACallAfterTheSessionsEndReturnsAtOnce) {
  const auto calls = world.session->callbacks.calls;
  callback_slots.reset();
  host::HostCall::run(new host::HostCall{calls, 44});
  calls->forget(45);
  EXPECT_EQ(sequence(0), 0U);
  callback_slots = std::make_unique<host::CallbackSlots>(*world.session, doorbell);
}

TEST_F(CallbackSlots, AHostFunctionInNoStreamOfTheSessionsIsRefused) {
  const auto record = Payload::record(api::HostFunctionRecord{.stream = world.memory(64), .token = 46});
  EXPECT_NE(world.send(api::id_of::cuLaunchHostFunc, record).result, CUDA_SUCCESS);
  EXPECT_EQ(sequence(0), 0U);
}

}  // namespace
