// The pace of worker starts (host/broker/worker/start_pace.h).
#include "host/broker/worker/start_pace.h"

#include <gtest/gtest.h>

namespace host::broker {
namespace {

class StartPaceTest : public testing::Test {
 protected:
  // Runs the loop's due callbacks.
  void run_loop() {
    loop_.after(Clock::duration::zero(), [this] { loop_.stop(); });
    loop_.run();
  }

  // A slow machine may allow more than the burst.
  int starts_until_refused() {
    int starts = 0;
    while (pace_.may_start()) ++starts;
    return starts;
  }

  EventLoop loop_;
  int attempts_ = 0;
  StartPace pace_{loop_, 1, 2, [this] { ++attempts_; }};
};

TEST_F(StartPaceTest, ArrangesTheNextAttemptWhenTheBurstIsUsedUp) {
  EXPECT_GE(starts_until_refused(), 2);
  EXPECT_TRUE(pace_.is_waiting());
}

TEST_F(StartPaceTest, RefusesStartsDuringThePauseAfterAFailure) {
  for (int i = 0; i < 8; ++i) EXPECT_GT(pace_.failed(), Span::zero());  // half a minute
  EXPECT_FALSE(pace_.may_start());
  pace_.stop();
  pace_.succeeded();
  EXPECT_TRUE(pace_.may_start());
}

TEST_F(StartPaceTest, MakesOneAttemptWhenAskedTwice) {
  pace_.try_soon();
  pace_.try_soon();
  EXPECT_EQ(attempts_, 0);
  run_loop();
  EXPECT_EQ(attempts_, 1);
  EXPECT_FALSE(pace_.is_waiting());
}

TEST_F(StartPaceTest, MakesNoAttemptAfterStop) {
  pace_.try_soon();
  pace_.stop();
  run_loop();
  EXPECT_EQ(attempts_, 0);
}

TEST_F(StartPaceTest, GivesTheWholeBurstAfterANewLimit) {
  starts_until_refused();
  pace_.stop();
  pace_.limit(1, 3);
  EXPECT_GE(starts_until_refused(), 3);
}

TEST_F(StartPaceTest, ReportsTheFirstResultOnce) {
  int warm = 0;
  pace_.when_warm([&] { ++warm; });
  pace_.report_warm();
  pace_.report_warm();
  EXPECT_EQ(warm, 1);
}

}  // namespace
}  // namespace host::broker
