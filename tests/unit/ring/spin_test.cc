// The polling time follows recent waits, within bounds.
#include <gtest/gtest.h>

#include "ring/queue/spin.h"

namespace ring {
namespace {

constexpr std::uint64_t bound = 3200;

TEST(AdaptiveSpin, StartsWithTheWholeBound) { EXPECT_EQ(AdaptiveSpin().share(bound), bound); }

TEST(AdaptiveSpin, NoBoundNoPolling) {
  AdaptiveSpin spin;
  EXPECT_EQ(spin.share(0), 0u);
  spin.ended_asleep(10, 0);
  spin.ended_polling();
  EXPECT_EQ(spin.share(0), 0u);
}

TEST(AdaptiveSpin, LongWaitsHalveItDownToAFloor) {
  AdaptiveSpin spin;
  for (const std::uint64_t left : {1600u, 800u, 400u, 200u, 100u, 100u, 100u}) {
    spin.ended_asleep(2 * bound, bound);
    EXPECT_EQ(spin.share(bound), left);
  }
}

TEST(AdaptiveSpin, WaitsThatPollingWouldHaveCoveredDoubleIt) {
  AdaptiveSpin spin;
  for (int i = 0; i < 5; ++i) spin.ended_asleep(1'000'000, bound);
  spin.ended_asleep(2 * bound - 1, bound);
  EXPECT_EQ(spin.share(bound), 200u);
  spin.ended_polling();
  EXPECT_EQ(spin.share(bound), 400u);
  for (int i = 0; i < 9; ++i) spin.ended_polling();
  EXPECT_EQ(spin.share(bound), bound);
}

TEST(AdaptiveSpin, PollsTwiceTheBoundForWaitsOfThatLengthWhereConfigured) {
  AdaptiveSpin spin{AdaptiveSpin::Most::TwiceTheBound};
  EXPECT_EQ(spin.share(bound), bound);
  spin.ended_polling();
  EXPECT_EQ(spin.share(bound), bound) << "short waits need no more";
  spin.ended_asleep(bound + bound / 2, bound);
  EXPECT_EQ(spin.share(bound), 2 * bound);
  spin.ended_polling();
  EXPECT_EQ(spin.share(bound), 2 * bound);
  spin.ended_asleep(2 * bound - 1, bound);
  EXPECT_EQ(spin.share(bound), 2 * bound) << "and never more";
  spin.ended_asleep(2 * bound, bound);
  EXPECT_EQ(spin.share(bound), bound);
  AdaptiveSpin other;
  other.ended_asleep(bound + bound / 2, bound);
  EXPECT_EQ(other.share(bound), bound);
}

// A single unusual wait changes little; the next usual wait undoes it.
TEST(AdaptiveSpin, AnOutlierIsUndoneByTheNextWait) {
  AdaptiveSpin spin;
  spin.ended_asleep(1'000'000, bound);
  spin.ended_polling();
  EXPECT_EQ(spin.share(bound), bound);
}

}  // namespace
}  // namespace ring
