// By which samples of a GPU's use a client is found that works without a turn (host/turns/suspicion.h).
#include "host/turns/suspicion.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace {

using namespace std::chrono_literals;
using host::turns::Suspicion;
using host::turns::Time;

using Verdict = Suspicion::Verdict;

// What a sample makes of a client that has had no turn since `until`, and made no copies since.
Verdict named(Suspicion& s, const Suspicion::Sample& sample, Time until) { return s.named(sample, {until, until}); }
bool caught(Suspicion& s, const Suspicion::Sample& sample, Time until) {
  return named(s, sample, until) == Verdict::Caught;
}

// Of 200 ms.
Suspicion::Sample until(Time end, unsigned percent = 99) { return {end - 200ms, end, percent}; }

TEST(Suspicion, TwoSamplesEnd) {
  Suspicion s;
  EXPECT_FALSE(caught(s, until(1300ms, 50), 1s));
  EXPECT_TRUE(caught(s, until(1500ms, 60), 1s));
  EXPECT_EQ(s.before().percent, 50U);
  EXPECT_EQ(s.newest().percent, 60U);
}

TEST(Suspicion, ASampleBeforeTheCopiesHaveEndedIsNotTheSecond) {
  Suspicion s;
  EXPECT_EQ(s.named(until(1300ms), {1s, {}}), Verdict::Suspected);
  EXPECT_EQ(s.named(until(1500ms), {1s, {}}), Verdict::Nothing) << "it has not answered";
  EXPECT_EQ(s.named(until(1700ms), {1s, 1450ms}), Verdict::Nothing) << "the sample may have some of them";
  EXPECT_EQ(s.named(until(1900ms), {1s, 1450ms}), Verdict::Caught);
}

TEST(Suspicion, OneSampleThatIsToldTwiceIsOne) {
  Suspicion s;
  EXPECT_FALSE(caught(s, until(1500ms), 1s));
  EXPECT_FALSE(caught(s, until(1500ms), 1s));
  EXPECT_FALSE(caught(s, until(1600ms), 1s)) << "nor are two that overlap";
  EXPECT_TRUE(caught(s, until(1800ms), 1s));
}

TEST(Suspicion, ASampleThatBeganByRightOrSoonAfterIsNone) {
  Suspicion s;
  for (const Time by_right : {1600ms, 1400ms, 1301ms, 1201ms}) {
    EXPECT_FALSE(caught(s, until(1500ms), by_right));
    EXPECT_FALSE(caught(s, until(1500ms), by_right));
  }
  EXPECT_FALSE(caught(s, until(1500ms), 1200ms)) << "the first that counts";
  EXPECT_TRUE(caught(s, until(1700ms), 1200ms));
}

TEST(Suspicion, ATurnBetweenTwoSamplesBeginsAnew) {
  Suspicion s;
  for (Time t = 2s; t < 20s; t += 500ms) EXPECT_FALSE(caught(s, until(t), t - 400ms));
}

TEST(Suspicion, ALittleWorkIsNone) {
  Suspicion s;
  for (Time t = 2s; t < 4s; t += 200ms) EXPECT_FALSE(caught(s, until(t, Suspicion::least_percent - 1), 1s));
}

TEST(Suspicion, TwoThatLieFarApartAreAnError) {
  Suspicion s;
  for (Time t = 2s; t < 60s; t += 3s) EXPECT_FALSE(caught(s, until(t), 1s));
  EXPECT_TRUE(caught(s, until(61s), 1s));
}

TEST(Suspicion, SamplesThatMakeNoSenseEndNobody) {
  Suspicion s;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(caught(s, {5s, 4s, 99}, 1s)) << "it ends before it begins";
}

// ---- more than is said -----------------------------------------------------------------------------------------------

// Samples of 200 ms, one after the other.
bool overuses(std::initializer_list<unsigned> percents, double charged) {
  host::turns::Overuse overuse;
  Time at = 100s;
  bool found = false;
  for (const unsigned percent : percents) {
    found |= overuse.named({at, at + 200ms, percent}, charged);
    EXPECT_FALSE(overuse.named({at, at + 200ms, percent}, charged)) << "the same sample counts once";
    at += 200ms;
  }
  return found;
}

TEST(Overuse, IsMuchMoreThanIsSaidOverTwoSeconds) {
  EXPECT_TRUE(overuses({60, 60, 60, 60, 60, 60, 60, 60, 60, 60}, 0.1));
  EXPECT_TRUE(overuses({99, 99, 99, 99, 99, 99}, 0.1)) << "found before the two seconds are over";
  EXPECT_FALSE(overuses({60, 60, 60, 60, 60, 60, 60, 60, 60, 60}, 0.3));
}

TEST(Overuse, SamplesThatNameItForAnotherAreNone) {
  EXPECT_FALSE(overuses({99, 0, 0, 99, 0, 0, 0, 99, 0, 99, 0, 0, 99, 0, 0, 0}, 0.1));
}

TEST(Overuse, ASampleLongerThanTwoSecondsCountsForTwo) {
  host::turns::Overuse overuse;
  EXPECT_FALSE(overuse.named({100s, 110s, 49}, 0.1)) << "0.98 s of two";
  EXPECT_TRUE(overuse.named({110s, 120s, 51}, 0.1)) << "1.02 s of two";
}

}  // namespace
