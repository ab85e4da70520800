// What a worker learns in its turns: how many submissions are how much work, and which pauses are worth waiting for.
#include <gtest/gtest.h>

#include <chrono>

#include "host/session/turns.h"

namespace {

using namespace std::chrono_literals;

TEST(ShortQueue, LearnsHowManySubmissionsTakeTenMilliseconds) {
  host::ShortQueue queue;
  const auto until_full = [&] {
    int count = 0;
    for (; !queue.is_full(); ++count) {
      if (queue.should_ask()) queue.asked();
      queue.submitted();
    }
    return count;
  };
  EXPECT_EQ(until_full(), 0) << "nobody knows what was queued before";
  queue.asked();
  queue.done(100us, true);
  EXPECT_EQ(until_full(), 16);
  queue.done(80ms, true);
  queue.forget(), queue.asked(), queue.done(1ms, true);
  EXPECT_EQ(until_full(), 2) << "a kernel of ten milliseconds";
  for (int i = 0; i < 20; ++i) {
    queue.done(100us, true);
    until_full();
  }
  queue.forget(), queue.asked(), queue.done(100us, true);
  EXPECT_GE(until_full(), 1000) << "short ones";
}

TEST(Patience, OneThatDoesNotPayIsShort) {
  host::Patience patience;
  EXPECT_EQ(patience.now(), host::Patience::longest);
  for (int i = 0; i < 4; ++i) patience.stayed_away();
  EXPECT_EQ(patience.now(), host::Patience::shortest);
  patience.came_back();
  EXPECT_EQ(patience.now(), host::Patience::longest);
}

TEST(Batch, LearnsHowManySubmissionsAreAQuantum) {
  host::Batch batch;
  const auto until_full = [&] {
    int count = 0;
    for (; !batch.is_full(); ++count) batch.submitted();
    return count;
  };
  const int first = until_full();
  batch.finished(8ms, 1ms);  // each takes half a millisecond, say
  const int second = until_full();
  EXPECT_LE(second, first / 8 + 1);
  for (int i = 0; i < 60; ++i) {
    batch.finished(10us, 1ms);
    until_full();
  }
  batch.finished(10us, 1ms);
  EXPECT_GE(until_full(), 1000) << "short kernels are waited for again and again";
  batch.ended(10us, 1ms);
  EXPECT_FALSE(batch.is_full());
  batch.submitted();
  batch.finished(10us, 1ms);
  for (int i = 0; i < 4; ++i) batch.submitted();
  batch.finished(4ms, 1ms);
  EXPECT_EQ(until_full(), 1) << "few submissions tell as much as many";
}

TEST(Batch, AWaitTellsOfLongWorkAndNotOfShort) {
  host::Batch batch;
  batch.submitted();
  batch.waited(3ms, 1ms);
  EXPECT_TRUE(batch.is_full()) << "it may have been for an older one";
  for (int i = 0; i < 50; ++i) batch.waited(1us, 1ms);
  EXPECT_TRUE(batch.is_full());
}

TEST(Batch, ATurnThatEndsMeanwhileTells) {
  host::Batch batch;
  for (int i = 0; i < 4; ++i) batch.submitted();
  batch.ended(4ms, 1ms);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(batch.is_full());
    batch.submitted();
    EXPECT_TRUE(batch.is_full());
    batch.ended(100us, 1ms);
  }
}

TEST(Batch, AnEventAfterEachFewLongKernelsMakesItNoLarger) {
  host::Batch batch;
  batch.submitted();
  batch.finished(1700us, 1ms);
  for (int i = 0; i < 50; ++i) {
    const bool is_event = i % 4 == 3;
    batch.submitted();
    ASSERT_TRUE(batch.is_full()) << "two long kernels may be under way at the end of the turn " << i;
    batch.finished(is_event ? 1us : 1700us, 1ms);
  }
}

}  // namespace
