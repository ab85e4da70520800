// Tests the simulated GPU's schedule: each work item runs exactly once, after its dependencies, and no item is left
// over.
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "host/simgpu/api/stream/schedule.h"
#include "tests/deadline.h"

namespace simgpu {
namespace {

// The schedule is never freed, because its threads wait forever.
Schedule& make_schedule(std::size_t room) { return *new Schedule(room); }

class ScheduleOf : public testing::TestWithParam<std::size_t> {};

// Several threads submit chains, like streams. The counters are not atomic, so only the schedule orders the accesses.
TEST_P(ScheduleOf, ChainsAreInOrderAndComplete) {
  Schedule& schedule = make_schedule(GetParam());
  constexpr int length = 300;
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      int counts[3] = {};
      Ticket last[3];
      for (int i = 0; i < length; ++i)
        for (int stream = 0; stream < 3; ++stream) {
          const auto count = [&wrong, &at = counts[stream], i] { wrong += at++ != i; };
          last[stream] = schedule.submit(count, {last[stream]}, Schedule::Who::Pool);
        }
      for (int stream = 0; stream < 3; ++stream) {
        schedule.wait(last[stream]);
        wrong += counts[stream] != length;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// The test submits one item at a time, so that the pool's thread falls asleep when the next item arrives.
TEST_P(ScheduleOf, NoWakeUpIsLost) {
  Schedule& schedule = make_schedule(GetParam());
  int ran = 0;
  for (int i = 0; i < 5000; ++i) schedule.wait(schedule.submit([&] { ++ran; }, {}, Schedule::Who::Pool));
  EXPECT_EQ(ran, 5000);
}

// The items wait for each other, so each item needs a thread of its own.
TEST_P(ScheduleOf, ThePoolGrowsWhileEveryThreadIsBusy) {
  Schedule& schedule = make_schedule(GetParam());
  for (int round = 0; round < 3; ++round) {
    std::latch all(24);
    std::vector<Ticket> pieces;
    for (int i = 0; i < 24; ++i)
      pieces.push_back(schedule.submit([&] { all.arrive_and_wait(); }, {}, Schedule::Who::Pool));
    for (const Ticket& piece : pieces) schedule.wait(piece);
  }
}

// One item blocks many others, which become ready at once: more than the smallest queue can hold.
TEST_P(ScheduleOf, ManyBecomeReadyAtOnce) {
  Schedule& schedule = make_schedule(GetParam());
  std::latch go(1);
  std::atomic<int> ran{0};
  const Ticket first = schedule.submit([&] { go.wait(); }, {}, Schedule::Who::Pool);
  std::vector<Ticket> pieces;
  for (int i = 0; i < 60; ++i) pieces.push_back(schedule.submit([&] { ++ran; }, {first}, Schedule::Who::Pool));
  EXPECT_EQ(ran, 0);
  go.count_down();
  for (const Ticket& piece : pieces) schedule.wait(piece);
  EXPECT_EQ(ran, 60);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Threads without work must sleep and use no processor time.
TEST_P(ScheduleOf, AnIdlePoolSleeps) {
  Schedule& schedule = make_schedule(GetParam());
  std::latch all(4);
  std::vector<Ticket> pieces;
  for (int i = 0; i < 4; ++i)
    pieces.push_back(schedule.submit([&] { all.arrive_and_wait(); }, {}, Schedule::Who::Pool));
  for (const Ticket& piece : pieces) schedule.wait(piece);
  EXPECT_TRUE(before_deadline([] {
    const double before = processor_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return processor_seconds() - before < 0.005;
  }));
}

INSTANTIATE_TEST_SUITE_P(Room, ScheduleOf, testing::Values(std::size_t{1}, std::size_t{1024}));

}  // namespace
}  // namespace simgpu
