// `ivgpu bench share`: the fairness of VMs, the choice of mixes by name, and the tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/unit/tools/text.h"
#include "tools/ivgpu/bench/share/mixes.h"
#include "tools/ivgpu/bench/share/share_table.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu::bench {
namespace {

// Rates of VMs of weight 1: one VM, or one VM per number.
std::vector<VmRates> each_of(const std::string& load, const std::vector<double>& rates, std::optional<double> alone) {
  std::vector<VmRates> vms;
  for (const double rate : rates) vms.push_back({load, 1, alone, {rate}});
  return vms;
}

TEST(Jain, IsOneWhereAllAreEqualAndOnePartWhereOneHasEverything) {
  EXPECT_DOUBLE_EQ(jain({3, 3, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(jain({0, 8, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain({0, 0}), 1);
  EXPECT_NEAR(jain({1, 2, 3}), 36.0 / 42, 1e-12);
}

TEST(Fairness, UnlikeLoadsAreComparedByWhatTheyDoAlone) {
  const auto fair = fairness_of({{"wait", 1, 1000, {250}}, {"long", 1, 8, {2}}, {"copy", 1, 40, {40}}});
  EXPECT_DOUBLE_EQ(*fair[0].of_alone, 0.25);
  EXPECT_DOUBLE_EQ(*fair[1].of_alone, 0.25);
  EXPECT_DOUBLE_EQ(*fair[2].of_alone, 1);
  EXPECT_DOUBLE_EQ(*fair[0].by_weight, 0.5);
  EXPECT_DOUBLE_EQ(*fair[2].by_weight, 2);
  EXPECT_NEAR(*fair[0].jain, 1.5 * 1.5 / (3 * (0.25 * 0.25 * 2 + 1)), 1e-12);
  EXPECT_EQ(fair[0].jain, fair[2].jain);
}

TEST(Fairness, ProgressByTheWeightsIsEven) {
  const auto fair = fairness_of({{"wait", 1, 700, {100}}, {"wait", 2, 700, {200}}, {"wait", 4, 700, {400}}});
  for (const Fairness& vm : fair) EXPECT_NEAR(*vm.by_weight, 1, 1e-12);
  EXPECT_NEAR(*fair[0].jain, 1, 1e-12);
  const auto equal = fairness_of({{"wait", 1, 700, {200}}, {"wait", 2, 700, {200}}, {"wait", 4, 700, {200}}});
  EXPECT_NEAR(*equal[0].by_weight, 7.0 / 3, 1e-12);
  EXPECT_NEAR(*equal[2].by_weight, 7.0 / 12, 1e-12);
  EXPECT_LT(*equal[0].jain, 0.8);
}

TEST(Fairness, RoundsThatOutweighEachOtherAreNotEven) {
  const auto fair = fairness_of({{"wait", 1, 100, {90, 10, 50}}, {"wait", 1, 100, {10, 90, 50}}});
  EXPECT_DOUBLE_EQ(*fair[0].of_alone, 0.5);
  EXPECT_NEAR(*fair[0].least_jain, 1 / (2 * (0.81 + 0.01)), 1e-12);
  EXPECT_NEAR(*fair[0].jain, (2 * *fair[0].least_jain + 1) / 3, 1e-12);
}

TEST(Fairness, WithoutWhatLoadsDoAloneOnlyEqualLoadsAreCompared) {
  const auto equal = fairness_of(each_of("wait", {3, 1}, std::nullopt));
  EXPECT_EQ(equal[0].of_alone, std::nullopt);
  EXPECT_DOUBLE_EQ(*equal[0].by_weight, 1.5);
  EXPECT_DOUBLE_EQ(*equal[0].jain, 0.8);
  const auto unlike = fairness_of({{"wait", 1, std::nullopt, {3}}, {"full", 1, 5, {1}}});
  EXPECT_EQ(unlike[0].jain, std::nullopt);
  EXPECT_EQ(unlike[1].by_weight, std::nullopt);
  EXPECT_DOUBLE_EQ(*unlike[1].of_alone, 0.2);
}

TEST(Fairness, NothingDoneIsNoNumberThatIsNone) {
  for (const std::optional<double> alone : {std::optional<double>(0), std::optional<double>(5)}) {
    const auto fair = fairness_of(each_of("wait", {0, 0}, alone));
    EXPECT_DOUBLE_EQ(*fair[0].jain, 1);
    EXPECT_DOUBLE_EQ(*fair[0].by_weight, 0);
  }
  EXPECT_EQ(fairness_of(each_of("wait", {1}, 0))[0].of_alone, std::nullopt);
  EXPECT_TRUE(fairness_of({}).empty());
}

TEST(Fairness, OfALoadIsTheMeanOfItsVms) {
  const auto fair = fairness_of(each_of("wait", {30, 10}, 100));
  const Fairness all = mean_of(fair);
  EXPECT_DOUBLE_EQ(*all.of_alone, 0.2);
  EXPECT_DOUBLE_EQ(*all.by_weight, 1);
  EXPECT_EQ(all.jain, fair[0].jain);
  EXPECT_EQ(mean_of(std::vector<Fairness>(2)).of_alone, std::nullopt);
}

std::vector<std::string> texts_of(const std::vector<Planned>& plan) {
  std::vector<std::string> texts;
  for (const auto& [mix, pairs] : plan) texts.push_back(std::string(mix->name) + " x" + std::to_string(pairs));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Mixes, EachLoadIsMeasuredAloneOnceAndBriefly) {
  EXPECT_EQ(texts_of(planned_mixes({"4 wait", "wait, full"}, 10, true)),
            (Texts{"wait x2", "4 wait x10", "full x2", "wait, full x10"}));
  EXPECT_EQ(texts_of(planned_mixes({"4 wait"}, 1, true)), (Texts{"wait x1", "4 wait x1"}));
  EXPECT_EQ(texts_of(planned_mixes({"4 wait"}, 10, false)), Texts{"4 wait x10"});
}

TEST(Mixes, ALoadThatIsNamedIsNoBriefOne) {
  for (const bool alone : {false, true})
    EXPECT_EQ(texts_of(planned_mixes({"4 wait", "wait"}, 10, alone)), (Texts{"wait x10", "4 wait x10"}));
}

TEST(Mixes, APlanNeedsTheVmsOfItsLargestMix) {
  EXPECT_EQ(most_vms_of(planned_mixes({"wait"}, 1, false)), 1);
  EXPECT_EQ(most_vms_of(planned_mixes({"2 wait, await", "wait, full"}, 1, true)), 3);
  EXPECT_EQ(most_vms_of(planned_mixes({}, 1, false)), 16);
}

TEST(Mixes, AllOfThemHaveEachLoadAlone) {
  const auto alone = planned_mixes({}, 3, true), together = planned_mixes({}, 3, false);
  EXPECT_EQ(std::ranges::count_if(alone, [](const Planned& one) { return is_alone(*one.mix); }), 13);
  EXPECT_TRUE(std::ranges::none_of(together, [](const Planned& one) { return is_alone(*one.mix); }));
  EXPECT_EQ(alone.size(), together.size() + 13);
}

TEST(Mixes, NoneHasMoreVmsThanThereAre) {
  const auto plan = planned_mixes({}, 1, true);
  for (const auto& [mix, pairs] : plan) {
    int vms = 0;
    for (const Part& part : mix->parts) vms += part.vms;
    EXPECT_LE(vms, most_vms_of(plan)) << mix->name;
  }
}

TEST(Mixes, ANameThatThereIsNotIsAnError) {
  EXPECT_NO_THROW(check_mixes({"wait", "3 full, weights 1 2 4"}));
  EXPECT_THROW(check_mixes({"wait", "9 wait"}), Error);
}

TEST(Mixes, WeightsAndTheLatencyClassAreOfTheVmsInOrder) {
  const Sharing weights = sharing_of(*planned_mixes({"3 long, weights 1 2 4"}, 1, false).front().mix);
  EXPECT_EQ(weights.policy, "shared");
  EXPECT_EQ(weights.weights, (std::map<std::string, int>{{"m1", 2}, {"m2", 4}}));
  const Sharing quick = sharing_of(*planned_mixes({"full, quick infer"}, 1, false).front().mix);
  EXPECT_EQ(quick.latency_vms, Texts{"m1"});
  EXPECT_TRUE(quick.weights.empty());
}

Shared some_part() {
  Shared one{.mix = "wait, full", .load = "wait", .vms = 1};
  one.native = {1800, 540, 549, 700, {0.02, 0.9, 0.75, 0.75}};
  one.slices = {900, 1000, 1100, 1300, {0.01, 0.25, 0.5, 0.5}};
  one.leases = {20000, 50, 12, 3000, {0.2, 0.97, 0.98, 0.96}};
  return one;
}

TEST(ShareTable, ARowHasProgressPartsAndJainsIndexByEachPolicy) {
  EXPECT_EQ(share_row(some_part()),
            "| wait, full | wait | 1800 | 549.0 | 700.0 | 0.0200 | 900.0 | 0.500 | 1100 | 1300 | 0.0100 | 0.250 | "
            "0.500 | 20000 | 11.11 | 12.00 | 3000 | 0.200 | 0.970 | 0.980 | 50.00 |\n");
  const std::string head = share_head(), row = share_row(some_part());
  EXPECT_EQ(std::count(head.begin(), head.end(), '|'), 2 * std::count(row.begin(), row.end(), '|'));
}

TEST(ShareTable, UnknownValuesAreDashesAndAWeightIsReported) {
  Shared one = some_part();
  one.weight = 4;
  one.leases.fair = {};
  const std::string row = share_row(one);
  EXPECT_TRUE(has(row, "| wait, weight 4 |")) << row;
  EXPECT_TRUE(has(row, "| 3000 | - | - | - | 50.00 |")) << row;
}

TEST(ShareTable, JsonHasTheSame) {
  Shared one = some_part();
  one.weight = 2;
  one.native.fair = {};
  const auto json = nlohmann::json::parse(share_json({one})).at(0);
  EXPECT_EQ(json.at("weight"), 2);
  EXPECT_TRUE(json.at("native").at("of_alone").is_null());
  EXPECT_EQ(json.at("leases").at("of_alone"), 0.2);
  EXPECT_EQ(json.at("leases").at("by_weight"), 0.97);
  EXPECT_EQ(json.at("leases").at("jain"), 0.98);
  EXPECT_EQ(json.at("leases").at("jain_least"), 0.96);
}

}  // namespace
}  // namespace ivgpu::bench
