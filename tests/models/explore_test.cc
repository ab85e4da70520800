// Every scenario finds nothing in the code as shipped, the mistake in each mutant of ring/mutants.def, and a mistake
// wherever an ordering of the shipping code is weakened to relaxed or a fence is left out: that one needs no list,
// since the explorer sees each place where the code asks for an ordering.
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "ring/mutants.h"
#include "tests/models/scenarios.h"

namespace explore {

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all = parking_scenarios();
  for (const auto& more : {ring_scenarios(), order_scenarios()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

namespace {

class Shipped : public testing::TestWithParam<Scenario> {};

TEST_P(Shipped, HasNoMistake) {
  ring::tried_mutant = ring::Mutant::none;
  const Verdict verdict = GetParam().run({});
  EXPECT_EQ(verdict.error, "") << verdict.trace;
  EXPECT_TRUE(verdict.complete) << verdict.executions << " executions were not enough";
  RecordProperty("executions", static_cast<int>(verdict.executions));
  std::printf("%s, %s: %llu executions\n", GetParam().name, GetParam().world,
              static_cast<unsigned long long>(verdict.executions));
}

struct Mutant {
  const char* name;
  ring::Mutant mutant;
  std::string_view scenario;
};
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

constexpr Mutant mutants[] = {
#define MUTANT(name, what, model, explorer, stress) {#name, ring::Mutant::name, #explorer},
#include "ring/mutants.def"
#undef MUTANT
};

std::vector<Mutant> explored() {
  std::vector<Mutant> those;
  for (const Mutant& m : mutants)
    if (m.scenario != "none") those.push_back(m);
  return those;
}

class Wrong : public testing::TestWithParam<Mutant> {};

TEST_P(Wrong, IsFound) {
  ring::tried_mutant = GetParam().mutant;
  std::string found;
  for (const Scenario& scenario : scenarios())
    if (found.empty() && GetParam().scenario == scenario.name) found = scenario.run({}).error;
  ring::tried_mutant = ring::Mutant::none;
  EXPECT_NE(found, "");
}

TEST(Orderings, EachIsNeeded) {
  std::set<std::string> sites, needless;
  for (const Scenario& scenario : scenarios())
    for (const std::string& site : scenario.run({}).sites)
      if (!site.starts_with("explore")) sites.insert(site);
  ASSERT_FALSE(sites.empty());
  for (const std::string& site : sites) {
    bool found = false;
    for (const Scenario& scenario : scenarios()) found = found || !scenario.run({.weaken = site}).error.empty();
    EXPECT_TRUE(found) << site << ": weakened to relaxed, and no scenario fails";
  }
}

std::string in_camel_case(std::string_view words) {
  std::string name;
  bool start = true;
  for (const char c : words) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    start = !std::isalnum(static_cast<unsigned char>(c));
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Explorer, Shipped, testing::ValuesIn(scenarios()), [](const auto& info) {
  return in_camel_case(info.param.name) + in_camel_case(info.param.world);
});
INSTANTIATE_TEST_SUITE_P(Explorer, Wrong, testing::ValuesIn(explored()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace explore
