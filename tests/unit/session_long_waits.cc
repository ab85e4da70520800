// Channels whose threads spin in the driver: what they take of the processors.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/unit/session_channel.h"

namespace {

using namespace session_test;
using std::chrono::milliseconds;
namespace ids = api::id_of;

// Threads that each put one record into a channel of their own, a fill that the fake driver holds at its gate.
class Held {
 public:
  Held(World& world, std::uint32_t channels) : world_(world), memory_(world.memory(64)), stream_(world.stream()) {
    world.session->end_greeting(true);
    world.driver.close_gate(true);
    for (std::uint32_t c = 0; c < channels; ++c) {
      Channel channel(world, c);
      channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_)).publish();
      threads_.emplace_back([channel]() mutable { channel.serve_published(); });
      pthread_getcpuclockid(threads_.back().native_handle(), &clocks_.emplace_back());
    }
  }
  ~Held() {
    world_.driver.open_gate();
    for (std::thread& t : threads_) t.join();
  }
  // Of each thread, in milliseconds, during `wall`; sorted.
  std::vector<double> processor_time(milliseconds wall) const {
    const std::vector<double> before = now();
    std::this_thread::sleep_for(wall);
    std::vector<double> used = now();
    for (std::size_t i = 0; i < used.size(); ++i) used[i] -= before[i];
    std::sort(used.begin(), used.end());
    return used;
  }

 private:
  std::vector<double> now() const {
    std::vector<double> all;
    for (const clockid_t clock : clocks_) {
      timespec time{};
      clock_gettime(clock, &time);
      all.push_back(static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6);
    }
    return all;
  }
  World& world_;
  const std::uint64_t memory_, stream_;
  std::vector<std::thread> threads_;
  std::vector<clockid_t> clocks_;
};

host::ServeOptions spinning_for(std::uint32_t ms) {
  host::ServeOptions options;
  options.wait_spin_ms = ms;
  return options;
}

constexpr milliseconds until_pauses_are_long{600}, watched{1000};

TEST(LongWaits, OneGoesOnAndTheOthersPause) {
  World world(spinning_for(20));
  const Held held(world, 4);
  std::this_thread::sleep_for(until_pauses_are_long);
  const std::vector<double> used = held.processor_time(watched);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(used[i], 250) << "milliseconds in a second";
  EXPECT_GE(used[3], 2 * used[2]) << "nothing holds up the one that goes on";
  EXPECT_GE(world.session->long_waits.pauses(), 3u) << "a pause has at most 50 ms, but a busy machine makes them fewer";
}

TEST(LongWaits, WithoutABoundEverybodySpins) {
  World world(spinning_for(0));
  const Held held(world, 3);
  std::this_thread::sleep_for(until_pauses_are_long);
  EXPECT_GE(held.processor_time(watched).front(), 50) << "each is busy for longer than the bound of the others";
  EXPECT_EQ(world.session->long_waits.pauses(), 0u);
}

TEST(LongWaits, WhoPausesNoticesTheEndSoon) {
  World world(spinning_for(20));
  std::chrono::steady_clock::time_point opened;
  {
    const Held held(world, 4);
    std::this_thread::sleep_for(until_pauses_are_long);
    opened = std::chrono::steady_clock::now();
  }
  EXPECT_LE(std::chrono::steady_clock::now() - opened, milliseconds(500)) << "a pause has 50 ms";
}

TEST(LongWaits, AnotherGoesOnWhenTheFirstHasReturned) {
  host::LongWaits waits(20);
  host::WaitWatch first(waits, 0), second(waits, 1);
  first.begin(false), second.begin(false);
  EXPECT_TRUE(waits.may_go_on(0));
  EXPECT_TRUE(waits.may_go_on(0)) << "asked again in the same call";
  EXPECT_FALSE(waits.may_go_on(1));
  first.end();
  EXPECT_TRUE(waits.may_go_on(1));
  first.begin(false);
  EXPECT_FALSE(waits.may_go_on(0)) << "its next call has no older right";
  second.end(), second.begin(false);
  EXPECT_TRUE(waits.may_go_on(0));
}

TEST(LongWaits, EventsSleepWhereWorkersDo) {
  static unsigned asked = 0;
  host::Driver driver;
  driver.cuEventCreate = [](CUevent*, unsigned flags) { return asked = flags, CUDA_SUCCESS; };
  host::make_events_sleep(driver);
  CUevent event = nullptr;
  EXPECT_EQ(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(asked, unsigned{CU_EVENT_DISABLE_TIMING} | CU_EVENT_BLOCKING_SYNC);
}

}  // namespace
