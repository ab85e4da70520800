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

TEST(TurnPatience, OneThatDoesNotPayIsShort) {
  ring::TurnPatience patience;
  EXPECT_EQ(patience.now(10us), ring::TurnPatience::longest);
  for (int i = 0; i < 3; ++i) patience.stayed_away();
  EXPECT_EQ(patience.now(10us), ring::TurnPatience::longest);
  for (int i = 0; i < 9; ++i) patience.stayed_away();
  EXPECT_EQ(patience.now(10us), 10us);
  patience.came_back();
  EXPECT_EQ(patience.now(10us), ring::TurnPatience::longest);
}

constexpr std::uint32_t product = 1, event = 2, small = 3;

// How many of a kind a batch takes until it is full.
int until_full(host::Batch& batch, std::uint32_t kind) {
  int count = 0;
  for (; !batch.is_full(1ms); ++count) batch.submitted(kind, 1ms);
  return count;
}

TEST(Batch, LearnsHowManySubmissionsAreAQuantum) {
  host::Batch batch;
  const int first = until_full(batch, small);
  batch.finished(8ms, 1ms);  // each takes half a millisecond, say
  EXPECT_LE(until_full(batch, small), first / 8 + 1);
  for (int i = 0; i < 60; ++i) {
    batch.finished(10us, 1ms);
    until_full(batch, small);
  }
  batch.finished(10us, 1ms);
  EXPECT_GE(until_full(batch, small), 1000) << "short kernels are waited for again and again";
  batch.finished(10us, 1ms);
  for (int i = 0; i < 4; ++i) batch.submitted(small, 1ms);
  batch.finished(4ms, 1ms);
  EXPECT_EQ(until_full(batch, small), 1) << "few submissions tell as much as many";
}

TEST(Batch, OneThatWasSoonOverTellsLittle) {
  host::Batch batch;
  batch.submitted(product, 1ms);
  batch.finished(1700us, 1ms);
  for (int i = 0; i < 3; ++i) {
    batch.submitted(product, 1ms);
    EXPECT_TRUE(batch.is_full(1ms)) << "the program had made a pause";
    batch.finished(0us, 1ms);
  }
}

TEST(Batch, AWaitTellsOfLongWorkAndNotOfShort) {
  host::Batch batch;
  batch.submitted(small, 1ms);
  batch.waited(3ms, 1ms);
  EXPECT_TRUE(batch.is_full(1ms)) << "it may have been for an older one";
  for (int i = 0; i < 50; ++i) batch.waited(1us, 1ms);
  EXPECT_TRUE(batch.is_full(1ms));
}

TEST(Batch, ATurnThatEndsMeanwhileTells) {
  host::Batch batch;
  for (int i = 0; i < 4; ++i) batch.submitted(product, 1ms);
  batch.ended(4ms, 1ms);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(batch.is_full(1ms));
    batch.submitted(product, 1ms);
    EXPECT_TRUE(batch.is_full(1ms));
    batch.ended(100us, 1ms);
  }
}

// As PyTorch makes them: an event after each few products.
TEST(Batch, WhatTakesNoTimeIsWaitedForWithWhatDoes) {
  host::Batch batch;
  const auto finish = [&](int products) { batch.finished(10us + products * 1700us, 1ms); };
  int waits = 0, most = 0, under_way = 0;
  for (int i = 0; i < 400; ++i) {
    const bool is_event = i % 4 == 3;
    if (batch.is_full(1ms)) finish(std::exchange(under_way, 0)), ++waits;
    batch.submitted(is_event ? event : product, 1ms);
    under_way += !is_event;
    if (i > 20) most = std::max(most, under_way);
  }
  EXPECT_EQ(most, 1) << "two long kernels may be under way at the end of a turn";
  EXPECT_NEAR(waits, 300, 20) << "the GPU idles after each event";
}

}  // namespace
