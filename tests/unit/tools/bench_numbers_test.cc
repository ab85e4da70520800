// The statistics of `ivgpu bench`: percentiles, bins, histograms; and which lines it accepts as samples.
#include <gtest/gtest.h>

#include <numeric>

#include "tools/ivgpu/bench/measure/groups.h"
#include "tools/ivgpu/bench/measure/setting.h"
#include "tools/ivgpu/bench/report/histogram.h"
#include "tools/ivgpu/bench/report/statistics.h"

namespace ivgpu::bench {
namespace {

std::vector<double> one_to(int last) {
  std::vector<double> numbers(static_cast<std::size_t>(last));
  // The largest number comes first, which shows whether the code sorts.
  std::iota(numbers.rbegin(), numbers.rend(), 1.0);
  return numbers;
}

TEST(Statistics, PercentilesAreSamplesOfTheNearestRank) {
  const Summary s = summary_of(one_to(1000), false);
  EXPECT_EQ(s.count, 1000U);
  EXPECT_EQ(s.best, 1);
  EXPECT_EQ(s.p50, 500);
  EXPECT_EQ(s.p90, 900);
  EXPECT_EQ(s.p99, 990);
  EXPECT_EQ(s.worst, 1000);
}

TEST(Statistics, OfARateTheTailIsAtTheLowEnd) {
  const Summary s = summary_of(one_to(100), true);
  EXPECT_EQ(s.best, 100);
  EXPECT_EQ(s.p50, 51);
  EXPECT_EQ(s.p99, 2);
  EXPECT_EQ(s.worst, 1);
}

TEST(Statistics, OneSampleIsEveryPercentile) {
  const Summary s = summary_of({7}, false);
  for (const double value : {s.best, s.p50, s.p90, s.p99, s.worst}) EXPECT_EQ(value, 7);
}

TEST(Statistics, BinsAreEqualStepsOfTheLogarithm) {
  const Bins bins{1, 16, 4};
  EXPECT_DOUBLE_EQ(bins.edge(1), 2);
  EXPECT_DOUBLE_EQ(bins.edge(4), 16);
  EXPECT_EQ(bins.of(1), 0U);
  EXPECT_EQ(bins.of(2.5), 1U);
  EXPECT_EQ(bins.of(15), 3U);
}

TEST(Statistics, WhatLiesOutsideTheBinsCountsForTheirEnds) {
  const Bins bins{1, 16, 4};
  EXPECT_EQ(bins.of(0), 0U);
  EXPECT_EQ(bins.of(1e9), 3U);
  EXPECT_EQ(histogram({0, 1, 3, 16, 400}, bins), (std::vector<std::size_t>{2, 1, 0, 2}));
}

TEST(Statistics, BinsReachFromTheBestToThe99thPercentileOfAll) {
  const Summary a = summary_of(one_to(100), false), b = summary_of({40, 300}, false);
  const Bins bins = bins_for({&a, &b}, 10);
  EXPECT_EQ(bins.low, 1);
  EXPECT_EQ(bins.high, 300);
}

TEST(Statistics, BinsOfSamplesThatAreAllTheSame) {
  for (const double value : {0.0, 5.0}) {
    const Summary same = summary_of(std::vector<double>(20, value), false);
    const Bins bins = bins_for({&same}, 8);
    EXPECT_GT(bins.low, 0);
    EXPECT_GT(bins.high, bins.low);
    EXPECT_EQ(histogram(same.samples, bins).front(), 20U);
  }
}

TEST(Histogram, ShowsBothSidesOverOneAxis) {
  Metric figure{.group = "latency", .name = "launch_synchronize"};
  figure.native = summary_of(std::vector<double>(20, 10.0), false);
  figure.ivgpu = summary_of(std::vector<double>(20, 100.0), false);
  const std::string text = histogram_text(figure, Letters::Plain);
  EXPECT_NE(text.find("launch_synchronize\n  native  @"), std::string::npos) << text;
  EXPECT_NE(text.find("@\n          10.00"), std::string::npos) << text;
  EXPECT_NE(text.find("100.0 us\n"), std::string::npos) << text;
  EXPECT_NE(histogram_text(figure, Letters::Unicode).find("█"), std::string::npos);
}

TEST(Histogram, PlainLettersAreAscii) {
  Metric figure{.group = "latency", .name = "x"};
  figure.ivgpu = summary_of(one_to(500), false);
  for (const char c : histogram_text(figure, Letters::Plain)) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(Histogram, OfAHandfulOfSamplesThereIsNone) {
  Metric figure{.group = "latency", .name = "x"};
  figure.native = summary_of({1, 2, 3}, false);
  EXPECT_EQ(histogram_text(figure, Letters::Plain), "");
}

TEST(Reported, SamplesAndWhatWasLeftOut) {
  const auto samples = parse_reported("samples pinned_h2d 4096 1.5 2 3e2");
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->name, "pinned_h2d");
  EXPECT_EQ(samples->bytes, 4096U);
  EXPECT_EQ(samples->samples, (std::vector<double>{1.5, 2, 300}));
  const auto left_out = parse_reported("left-out pinned_h2d 0 no pinned memory of 256 MiB");
  ASSERT_TRUE(left_out);
  EXPECT_EQ(left_out->reason, "no pinned memory of 256 MiB");
}

TEST(Reported, OutputOfNoMeasuringProgram) {
  for (const char* line : {"", "samples", "samples x", "samples x 0", "samples x 0 1 two", "samples x 0 -1",
                           "samples x 0 nan", "samples x -", "hello x 0"})
    EXPECT_FALSE(parse_reported(line)) << line;
}

std::string status_with(const std::vector<std::string>& states) {
  std::string slots;
  for (const std::string& state : states) slots += (slots.empty() ? "" : ",") + ("{\"state\":\"" + state + "\"}");
  return "{\"vms\":[{\"slots\":[" + slots + "]}]}";
}

TEST(Runner, ABrokerIsSettledWithAWorkerReadyAndNoneOnItsWay) {
  EXPECT_TRUE(is_settled(status_with({"claimed", "ready", "empty"})));
  EXPECT_TRUE(is_settled(status_with({"claimed", "claimed"})));
  EXPECT_FALSE(is_settled(status_with({"claimed", "empty"})));
  for (const char* state : {"starting", "released", "dead"})
    EXPECT_FALSE(is_settled(status_with({"ready", state}))) << state;
}

TEST(Kernels, TheWorkerOfAProgramIsThatOfItsSlot) {
  const std::string status =
      R"({"vms": [{"slots": [{"state": "ready", "worker": 30}, {"state": "claimed", "worker": 31, "owner": {"process": 7}},
      {"state": "claimed", "worker": 32, "owner": {"process": 8}}, {"state": "claimed", "owner": {"process": 9}}]}]})";
  EXPECT_EQ(worker_of(status, 8), 32);
  EXPECT_EQ(worker_of(status, 7), 31);
  EXPECT_EQ(worker_of(status, 9), std::nullopt);  // its worker has ended
  EXPECT_EQ(worker_of(status, 30), std::nullopt);
}

TEST(Setting, TheProcessorByItsName) {
  EXPECT_EQ(processor_of("processor : 0\nmodel name\t: Some CPU @ 2 GHz\nflags : fpu\n"), "Some CPU @ 2 GHz");
  EXPECT_EQ(processor_of("Processor : nothing known\n"), "an unknown processor");
}

}  // namespace
}  // namespace ivgpu::bench
