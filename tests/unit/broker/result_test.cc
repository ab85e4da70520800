// Result<T>: a value or an error.
#include "host/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/error_of.h"

namespace {

using host::Error;
using host::Result;

Result<std::string> half_of(const std::string& text) {
  if (text.size() % 2 != 0) return Error{"'" + text + "' has no half"};
  return text.substr(0, text.size() / 2);
}

Result<void> check(const std::string& text) {
  const auto half = half_of(text);
  if (!half) return half.error();
  if (half->empty()) return Error{"the half is empty"};
  return {};
}

TEST(Result, HoldsTheValue) {
  const auto half = half_of("abcd");
  ASSERT_TRUE(half);
  EXPECT_EQ(*half, "ab");
  EXPECT_EQ(half.value(), "ab");
  EXPECT_EQ(half->size(), 2U);
}

TEST(Result, HoldsTheError) {
  const auto half = half_of("abc");
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().message, "'abc' has no half");
}

TEST(Result, PassesAnErrorOnToAnotherType) {
  EXPECT_EQ(error_of(check("abc")), "'abc' has no half");
  EXPECT_EQ(error_of(check("")), "the half is empty");
  EXPECT_EQ(error_of(check("abcd")), "");
}

TEST(Result, LetsItsValueBeChanged) {
  Result<std::vector<int>> numbers = std::vector<int>{1};
  numbers->push_back(2);
  (*numbers)[0] = 3;
  EXPECT_EQ(numbers.value(), (std::vector<int>{3, 2}));
}

TEST(Result, GivesItsValueAway) {
  const auto make = [](int number) -> Result<std::unique_ptr<int>> {
    auto made = std::make_unique<int>(number);
    return made;
  };
  auto held = make(5);
  const std::unique_ptr<int> taken = *std::move(held);
  EXPECT_EQ(*taken, 5);
  EXPECT_EQ(*make(6).value(), 6);
}

// A null pointer and an empty text are values.
TEST(Result, TellsAnEmptyValueFromAnError) {
  EXPECT_TRUE(Result<std::string>(""));
  EXPECT_TRUE(Result<const int*>(nullptr));
  EXPECT_FALSE(Result<std::string>(Error{""}));
  EXPECT_FALSE(Result<void>(Error{""}));
}

TEST(ResultDeathTest, AbortsOnTheValueOfAFailedCall) {
  const Result<std::string> failed = Error{"no"};
  EXPECT_DEATH((void)failed.value(), "a failed call has no value: no");
  EXPECT_DEATH((void)*failed, "a failed call has no value: no");
  EXPECT_DEATH((void)failed->size(), "a failed call has no value: no");
  EXPECT_DEATH(Result<void>(Error{"no"}).value(), "a failed call has no value: no");
}

TEST(ResultDeathTest, AbortsOnTheErrorOfASuccessfulCall) {
  EXPECT_DEATH((void)half_of("ab").error(), "a successful call has no error");
  EXPECT_DEATH((void)Result<void>().error(), "a successful call has no error");
}

}  // namespace
