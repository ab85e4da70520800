// Parking on a real futex: two threads wake each other alternately. A lost wake-up makes a thread sleep until its
// time-out. The time-out is so long that a single lost wake-up fails the test.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <thread>

#include "ring/queue/parking.h"
#include "tests/deadline.h"
#include "tests/shared_word.h"

namespace {

using ring::Asleep;

// The words are in separate cache lines, as in the region. In one line, the processor would keep the order by itself.
struct Side {
  alignas(64) std::atomic<std::uint64_t> published{0};
  alignas(64) SharedWord<std::uint32_t> asleep;
};

void wake(SharedWord<std::uint32_t>& word) {
  syscall(SYS_futex, word.address(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Sleeps until `peer` has published `wanted`. Returns false if the peer did not wake this thread before the deadline.
bool wait_for(Side& self, const Side& peer, std::uint64_t wanted) {
  const auto there = [&] { return peer.published.load(std::memory_order_acquire) >= wanted; };
  while (!there()) {
    ring::Parking parking(self.asleep);
    if (!parking.may_sleep(there)) return true;
    const timespec patience{.tv_sec = test_deadline.count(), .tv_nsec = 0};
    const long r = syscall(SYS_futex, self.asleep.address(), FUTEX_WAIT, 1, &patience, nullptr, 0);
    const bool late = r != 0 && errno == ETIMEDOUT;
    parking.woke();
    if (late) return false;
  }
  return true;
}

void publish(Side& self, Side& peer, std::uint64_t value) {
  self.published.store(value, std::memory_order_release);
  if (ring::Parking(peer.asleep).must_wake() != ring::Asleep::No) wake(peer.asleep);
}

TEST(Parking, NoWakeUpIsLostIn100000Rounds) {
  constexpr std::uint64_t rounds = 100'000;
  Side a, b;
  bool b_was_woken = true;
  std::thread other([&] {
    for (std::uint64_t i = 1; i <= rounds && b_was_woken; ++i) {
      b_was_woken = wait_for(b, a, i);
      publish(b, a, i);
    }
  });
  bool a_was_woken = true;
  for (std::uint64_t i = 1; i <= rounds && a_was_woken; ++i) {
    publish(a, b, i);
    a_was_woken = wait_for(a, b, i);
  }
  other.join();
  EXPECT_TRUE(a_was_woken);
  EXPECT_TRUE(b_was_woken);
}

// Publisher and sleeper run independently, so the sleeper's announcement happens at any point of the publication.
TEST(Parking, NoWakeUpIsLostWithoutAlternation) {
  constexpr std::uint64_t count = 200'000;
  Side producer, consumer;
  std::thread publisher([&] {
    for (std::uint64_t i = 1; i <= count; ++i) {
      publish(producer, consumer, i);
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  bool woken = true;
  for (std::uint64_t seen = 0; seen < count && woken;) {
    woken = wait_for(consumer, producer, seen + 1);
    seen = producer.published.load(std::memory_order_acquire);
  }
  publisher.join();
  EXPECT_TRUE(woken);
}

// The core of the protocol without the futex: sleeper and waker act at the same instant, many times. The sleeper must
// see the work, or the waker must see the sleeper. Without a fence both can fail if two processors are free. This test
// finds a missing fence sooner or later; a model finds it at once.
TEST(Parking, SleeperOrWakerSeesTheOther) {
  constexpr unsigned rounds = 150'000;
  Side side;
  alignas(64) std::atomic<unsigned> sleepers_turn{0};
  alignas(64) std::atomic<unsigned> wakers_turn{0};
  std::atomic<bool> slept{false};
  std::atomic<unsigned> lost{0};
  const auto meet = [](std::atomic<unsigned>& mine, const std::atomic<unsigned>& other, unsigned round) {
    mine.store(round, std::memory_order_release);
    for (unsigned spins = 0; other.load(std::memory_order_acquire) < round; ++spins)
      if (spins > 2'000) std::this_thread::yield();
  };
  std::thread sleeper([&] {
    for (unsigned round = 1; round <= 2 * rounds; round += 2) {
      meet(sleepers_turn, wakers_turn, round);
      for (unsigned i = round % 31; i > 0; --i) asm volatile("");
      slept.store(
          ring::Parking(side.asleep).may_sleep([&] { return side.published.load(std::memory_order_relaxed) == round; }),
          std::memory_order_relaxed);
      meet(sleepers_turn, wakers_turn, round + 1);
    }
  });
  for (unsigned round = 1; round <= 2 * rounds; round += 2) {
    side.asleep.store(0, std::memory_order_relaxed);
    meet(wakers_turn, sleepers_turn, round);
    for (unsigned i = round % 37; i > 0; --i) asm volatile("");
    side.published.store(round, std::memory_order_relaxed);
    const bool woke = ring::Parking(side.asleep).must_wake() != ring::Asleep::No;
    meet(wakers_turn, sleepers_turn, round + 1);
    if (slept.load(std::memory_order_relaxed) && !woke) ++lost;
  }
  sleeper.join();
  EXPECT_EQ(lost, 0u);
}

TEST(Parking, WorkThatIsThereForbidsSleep) {
  SharedWord<std::uint32_t> word;
  ring::Parking parking(word);
  EXPECT_FALSE(parking.may_sleep([] { return true; }));
  EXPECT_EQ(word.load(), 0u);
  EXPECT_TRUE(parking.may_sleep([] { return false; }));
  EXPECT_EQ(word.load(), std::uint32_t{IVGPU_ASLEEP_BY_FUTEX});
}

TEST(Parking, ASleepIsEndedOnce) {
  SharedWord<std::uint32_t> word;
  ring::Parking parking(word);
  for (const Asleep how : {Asleep::ByFutex, Asleep::ByDoorbell}) {
    EXPECT_EQ(parking.must_wake(), Asleep::No);
    ASSERT_TRUE(parking.may_sleep([] { return false; }, how));
    EXPECT_EQ(parking.must_wake([] { return false; }), Asleep::No);
    EXPECT_EQ(word.load(), static_cast<std::uint32_t>(how));
    EXPECT_EQ(parking.must_wake(), how);
    EXPECT_EQ(parking.must_wake(), Asleep::No);
  }
}

// A hostile peer writes any value to the word. The waker's result stays one of the valid values, and only the word
// changes.
TEST(Parking, AScribbledWordIsANeedlessWakeUpByFutex) {
  for (const std::uint32_t scribble : {3u, 0x80000000u, 0x80000002u, ~0u}) {
    SharedWord<std::uint32_t> word{scribble};
    EXPECT_EQ(ring::Parking(word).must_wake(), Asleep::ByFutex);
    EXPECT_EQ(word.load(), 0u);
  }
}

}  // namespace
