// The processor time of channels whose threads spin in the driver.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "tests/deadline.h"
#include "tests/unit/session/channel.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

constexpr long longest_pause_ms = 50;

// The pauses of a channel's thread. The nanosleep() below counts them.
struct Pauses {
  std::atomic<long> longest_ms{0};
};
thread_local Pauses* pauses_of_this_thread = nullptr;

// Threads that each put one fill into their own channel. The fake driver blocks these threads until the test releases
// them.
class Held {
 public:
  Held(World& world, std::uint32_t channels)
      : world_(world), memory_(world.memory(64)), stream_(world.stream()), pauses_(all_pauses_.data(), channels) {
    world.session->protocol.end_greeting(true);
    world.driver.close_gate(true);
    for (std::uint32_t c = 0; c < channels; ++c) {
      Channel channel(world, c);
      channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_)).publish();
      threads_.emplace_back([channel, pauses = &pauses_[c]]() mutable {
        pauses_of_this_thread = pauses;
        channel.serve_published();
      });
      pthread_getcpuclockid(threads_.back().native_handle(), &clocks_.emplace_back());
    }
  }
  ~Held() {
    world_.driver.open_gate();
    for (std::thread& t : threads_) t.join();
  }
  // Counts the threads without a pause. paused_for_longest() counts the threads with the longest pause.
  std::ptrdiff_t unpaused() const {
    return std::ranges::count_if(pauses_, [](const Pauses& p) { return p.longest_ms == 0; });
  }
  std::ptrdiff_t paused_for_longest() const {
    return std::ranges::count_if(pauses_, [](const Pauses& p) { return p.longest_ms == longest_pause_ms; });
  }
  // Returns the least processor time that any thread has used, in milliseconds.
  long processor_time() const {
    long least = std::numeric_limits<long>::max();
    for (const clockid_t clock : clocks_) {
      timespec time{};
      clock_gettime(clock, &time);
      least = std::min(least, time.tv_sec * 1000 + time.tv_nsec / 1'000'000);
    }
    return least;
  }

 private:
  World& world_;
  const std::uint64_t memory_, stream_;
  std::array<Pauses, ring::max_channels> all_pauses_;
  const std::span<Pauses> pauses_;
  std::vector<std::thread> threads_;
  std::vector<clockid_t> clocks_;
};

host::ServeOptions spinning_for(std::uint32_t ms) {
  host::ServeOptions options;
  options.wait_spin_ms = ms;
  return options;
}

TEST(LongWaits, OneGoesOnAndTheOthersPause) {
  World world(spinning_for(20));
  const Held held(world, 4);
  EXPECT_TRUE(before_deadline([&] { return held.paused_for_longest() == 3; }));
  EXPECT_TRUE(before_deadline(
      [&, before = world.session->long_waits.pauses()] { return world.session->long_waits.pauses() >= before + 9; }));
  EXPECT_EQ(held.paused_for_longest(), 3) << "a pause is longer, so its thread notices the end late";
  EXPECT_EQ(held.unpaused(), 1) << "nothing holds up the one that goes on";
}

TEST(LongWaits, WithoutABoundEverybodySpins) {
  World world(spinning_for(0));
  const Held held(world, 3);
  EXPECT_TRUE(before_deadline([&] { return held.processor_time() >= 100; }))
      << "each is busy for longer than the bound of the others";
  EXPECT_EQ(held.unpaused(), 3);
  EXPECT_EQ(world.session->long_waits.pauses(), 0u);
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

// A worker's pages for GPU time. The test acts as the scheduler.
struct Pages {
  std::unique_ptr<ring::OrdersPage> orders = std::make_unique<ring::OrdersPage>();
  std::unique_ptr<ring::UsePage> use = std::make_unique<ring::UsePage>();

  host::ServeOptions options() const {
    host::ServeOptions options = spinning_for(0);
    options.gpu_use = {.orders = orders.get(), .use = use.get(), .devices = 1};
    return options;
  }
  void turn(bool off) {
    orders->device[0].off = off;
    if (!off) syscall(SYS_futex, &orders->device[0].off, FUTEX_WAKE, 100, nullptr, nullptr, 0);
  }
};

TEST(LongWaits, WhileItsChannelsAreOffNobodySpins) {
  Pages pages;
  World world(pages.options());
  const host::LongWaits& waits = world.session->long_waits;
  const Held held(world, 3);
  EXPECT_TRUE(before_deadline([&] { return held.processor_time() >= 20; }));
  EXPECT_EQ(waits.sleeps(), 0U) << "they are on";
  pages.turn(true);
  EXPECT_TRUE(before_deadline([&] { return waits.sleeps() >= 9; })) << "each sleeps, and again after 50 ms";
  pages.turn(false);
  const long used = held.processor_time();
  EXPECT_TRUE(before_deadline([&] { return held.processor_time() >= used + 20; })) << "they are awake";
}

TEST(LongWaits, ACompilerGoesOnWhileItsChannelsAreOff) {
  Pages pages;
  host::LongWaits waits(0, {.orders = pages.orders.get(), .use = pages.use.get(), .devices = 1});
  host::WaitWatch watch(waits, 0);
  const auto compute_for = [](long ms) {
    const auto used = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
    };
    for (const long until = used() + ms; used() < until;) {
    }
  };
  pages.turn(true);
  watch.begin(true);
  compute_for(40);
  watch.end();
  EXPECT_EQ(waits.sleeps(), 0U);
  watch.begin(false);
  EXPECT_TRUE(before_deadline([&] { return compute_for(5), waits.sleeps() > 0; })) << "the timer does not fire";
  watch.end();
}

TEST(LongWaits, AVmWithAGpuThatIsOnDoesNotSleep) {
  Pages pages;
  host::LongWaits waits(0, {.orders = pages.orders.get(), .use = pages.use.get(), .devices = 2});
  pages.turn(true);
  EXPECT_FALSE(waits.is_off());
  pages.orders->device[1].off = 1;
  EXPECT_TRUE(waits.is_off());
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

// Replaces libc's nanosleep().
extern "C" int nanosleep(const timespec* time, timespec* left) {
  if (pauses_of_this_thread != nullptr) {
    const long ms = time->tv_sec * 1000 + time->tv_nsec / 1'000'000;
    if (ms > pauses_of_this_thread->longest_ms) pauses_of_this_thread->longest_ms = ms;
  }
  const int error = clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}
