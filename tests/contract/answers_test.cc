// Tests of the comparison: each deviation must be reported.
#include <gtest/gtest.h>

#include "tests/contract/answers.h"

namespace contract {
namespace {

const std::vector<Line> golden{{"a", "CUDA_SUCCESS"}, {"b", "CUDA_ERROR_INVALID_VALUE"}};

std::vector<std::string> complaints(const std::vector<Line>& answers, const std::vector<Expectation>& expected = {}) {
  return compare("g", answers, golden, expected);
}

TEST(Answers, EqualOnesPass) { EXPECT_TRUE(complaints(golden).empty()); }

TEST(Answers, ADifferenceIsReported) { EXPECT_EQ(complaints({{"a", "1"}, golden[1]}).size(), 1u); }

TEST(Answers, AnExpectedDifferencePasses) {
  EXPECT_TRUE(complaints({{"a", "1"}, golden[1]}, {{"g: a", "loopback", "1", "because"}}).empty());
}

TEST(Answers, AnotherDifferenceThanTheExpectedIsReported) {
  EXPECT_EQ(complaints({{"a", "2"}, golden[1]}, {{"g: a", "loopback", "1", "because"}}).size(), 1u);
}

TEST(Answers, AnExpectationThatNoLongerDiffersMustLeave) {
  EXPECT_EQ(complaints(golden, {{"g: a", "loopback", "1", "because"}}).size(), 1u);
}

TEST(Answers, AnExpectationOfNoCaseMustLeave) {
  EXPECT_EQ(complaints(golden, {{"g: c", "loopback", "1", "because"}}).size(), 1u);
  EXPECT_TRUE(complaints(golden, {{"another: c", "loopback", "1", "because"}}).empty());
}

TEST(Answers, CaseAndGoldenAnswerNeedEachOther) {
  EXPECT_EQ(complaints({golden[0]}).size(), 1u);
  EXPECT_EQ(complaints({golden[0], golden[1], {"c", "1"}}).size(), 1u);
}

TEST(Answers, WhereTheRealDriverCrashesAnyAnswerPasses) {
  EXPECT_TRUE(compare("g", {{"a", "1"}}, {{"a", crashes}}, {}).empty());
  EXPECT_EQ(compare("g", {{"a", "1"}}, {{"a", crashes}}, {{"g: a", "loopback", "1", "because"}}).size(), 1u);
}

TEST(Answers, TextAndBack) {
  const Answers answers{{"g", golden}, {"h", {{"x: y", "3"}}}};
  const Answers again = parse_answers("## a comment\n" + to_text(answers));
  EXPECT_EQ(to_text(again), to_text(answers));
  EXPECT_EQ(again.at("h")[0].name, "x: y");
}

TEST(Answers, SkipsAGroupThatIsExpectedToBeSkipped) {
  std::vector<std::string> told;
  const std::vector<Expectation> all = parse_expectations("g: * | loopback | - | because\n", told);
  ASSERT_NE(unasked("g", all), nullptr);
  EXPECT_EQ(unasked("g", all)->reason, "because");
  EXPECT_EQ(unasked("h", all), nullptr);
  EXPECT_TRUE(told.empty());
}

TEST(Answers, OnlyAGroupThatIsNotAskedHasNoAnswer) {
  std::vector<std::string> told;
  EXPECT_TRUE(parse_expectations("g: * | loopback | 1 | because\ng: a | loopback | - | because\n", told).empty());
  EXPECT_EQ(told.size(), 2u);
}

TEST(Answers, AnExpectationWithoutReasonIsNone) {
  std::vector<std::string> told;
  EXPECT_EQ(parse_expectations("## x\ng: a | loopback | 1 | because\ng: b | loopback | 1 |\n", told).size(), 1u);
  EXPECT_EQ(told.size(), 1u);
}

}  // namespace
}  // namespace contract
