// Which calls of a thread read the clock (guest/session/slot/liveness.h).
#include <gtest/gtest.h>

#include "guest/session/slot/liveness.h"

namespace {

using guest::ClockPace;

std::uint32_t skipped_by(ClockPace& pace) {
  std::uint32_t skipped = 0;
  while (pace.skips()) ++skipped;
  return skipped;
}

TEST(ClockPace, SkipsNothingWhileTheClockMovesBetweenCalls) {
  ClockPace pace;
  for (std::uint64_t tick = 100; tick < 200; tick += 4) {
    EXPECT_FALSE(pace.skips());
    pace.read(tick);
  }
}

TEST(ClockPace, SkipsReadingsWhileTheClockStandsStill) {
  ClockPace pace;
  pace.read(100);
  pace.read(100);
  EXPECT_EQ(skipped_by(pace), ClockPace::skipped);
  pace.read(100);
  EXPECT_EQ(skipped_by(pace), ClockPace::skipped);
  pace.read(104);
  EXPECT_EQ(skipped_by(pace), 0u);
}

TEST(ClockPace, ReadsAgainAfterTheClockHasGoneBack) {
  ClockPace pace;
  pace.read(100);
  pace.read(100);
  skipped_by(pace);
  pace.read(99);
  EXPECT_EQ(skipped_by(pace), 0u);
}

}  // namespace
