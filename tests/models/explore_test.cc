// Every scenario must pass with the product's code. It must fail with each of its mutants (ring/verify/mutants.def),
// with each ordering weakened to relaxed, and with each fence removed. The explorer sees each ordering that the code
// requests, so no list of orderings is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ring/verify/mutants.h"
#include "tests/models/scenarios.h"

namespace explore {

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all = parking_scenarios();
  for (const auto& more : {ring_scenarios(), order_scenarios(), callback_slot_scenarios(), slot_scenarios(),
                           address_scenarios(), channel_mutex_scenarios()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

namespace {

// A scenario's verdict on the product's code, computed once for all tests of this program.
const Verdict& shipped(std::size_t scenario) {
  static std::map<std::size_t, Verdict> known;
  if (const auto found = known.find(scenario); found != known.end()) return found->second;
  ring::tried_mutant = ring::Mutant::none;
  return known[scenario] = scenarios()[scenario].run({});
}

class Shipped : public testing::TestWithParam<std::size_t> {};

TEST_P(Shipped, HasNoMistake) {
  const Scenario scenario = scenarios()[GetParam()];
  const Verdict& verdict = shipped(GetParam());
  EXPECT_EQ(verdict.error, "") << verdict.trace;
  EXPECT_TRUE(verdict.complete) << verdict.executions << " executions were not enough";
  std::printf("%s, %s: %llu executions\n", scenario.name, scenario.world,
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
#include "ring/verify/mutants.def"
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

// Each site that requests an ordering, with the scenarios that reach it, the fastest first.
std::map<std::string, std::vector<std::size_t>> scenarios_by_site() {
  const std::vector<Scenario> all = scenarios();
  std::map<std::string, std::vector<std::size_t>> found;
  for (std::size_t k = 0; k < all.size(); ++k)
    for (const std::string& site : shipped(k).sites)
      if (!site.starts_with("explore")) found[site].push_back(k);
  for (auto& [site, those] : found)
    std::sort(those.begin(), those.end(),
              [](std::size_t a, std::size_t b) { return shipped(a).executions < shipped(b).executions; });
  return found;
}

TEST(Orderings, EachIsNeeded) {
  const std::vector<Scenario> all = scenarios();
  const auto sites = scenarios_by_site();
  ASSERT_FALSE(sites.empty());
  for (const auto& [site, those] : sites) {
    const auto fails = [&, weak = site](std::size_t k) { return !all[k].run({.weaken = weak}).error.empty(); };
    EXPECT_TRUE(std::any_of(those.begin(), those.end(), fails))
        << site << ": weakened to relaxed, and no scenario fails";
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

INSTANTIATE_TEST_SUITE_P(Explorer, Shipped, testing::Range(std::size_t{0}, scenarios().size()), [](const auto& info) {
  const Scenario scenario = scenarios()[info.param];
  return in_camel_case(scenario.name) + in_camel_case(scenario.world);
});
INSTANTIATE_TEST_SUITE_P(Explorer, Wrong, testing::ValuesIn(explored()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace explore
