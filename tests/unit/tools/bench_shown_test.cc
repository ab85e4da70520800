// Tests of the tables of `ivgpu bench`.
#include <gtest/gtest.h>

#include "tests/unit/tools/bench_report.h"
#include "tests/unit/tools/text.h"
#include "tools/ivgpu/bench/report/table.h"

namespace ivgpu::bench {
namespace {

TEST(Table, PlainColumnsAreAligned) {
  EXPECT_EQ(as_table({"figure", "p50"}, {{"a", "1.5"}, {"longer one", "10.25"}}, Style::Plain),
            "figure        p50\n"
            "a             1.5\n"
            "longer one  10.25\n");
}

TEST(Table, Markdown) {
  EXPECT_EQ(as_table({"figure", "p50"}, {{"a", "1.5"}}, Style::Markdown), "| figure | p50 |\n|---|---|\n| a | 1.5 |\n");
}

TEST(Table, AMetricHasBothSidesAndTheirRatio) {
  const std::string text = metrics_text(some_report(), Style::Markdown);
  EXPECT_TRUE(has(text, "| launch_synchronize | 10.00 | 12.00 | 12.00 | 12.00 | 30.00 | 30.00 | 1.20 | 2.50 | us |"))
      << text;
  EXPECT_TRUE(has(text, "| idle_host_processor | - | - | - | 0.000 | 0.000 | 0.000 | - | - | % |")) << text;
  EXPECT_TRUE(has(text, "| pinned_h2d 1 MiB | 1049 | 1049 | 1049 | 524.3 | 524.3 | 524.3 | 0.50 | 0.50 | GB/s |"))
      << text;
}

TEST(Table, EachSessionsShareIsShown) {
  const std::string text = metrics_text(some_report(), Style::Markdown);
  EXPECT_TRUE(has(text, "| launch_synchronize x2 | 20.00 to 22.00 | 24.00 | 21.00 to 23.00 | 29.00 |")) << text;
}

TEST(Table, ReportsOmissions) {
  EXPECT_TRUE(
      has(metrics_text(some_report(), Style::Plain), "\nLeft out: pinned_h2d, ivgpu: no pinned memory of 256 MiB.\n"));
}

TEST(Table, TheSettingIsReported) {
  Setting setting = some_setting();
  const std::string text = setting_text(setting, Style::Plain);
  for (const char* part : {"Some CPU <fast> & cheap, 16 processors, Linux 6.1.0, a virtual machine",
                           "Some GPU, driver 580.1, CUDA 13.0", "time slices", "IVGPU_OFF -, spin_us 50"})
    EXPECT_TRUE(has(text, part)) << text;
  EXPECT_FALSE(has(text, "say nothing about a GPU"));
  setting.simulated = true;
  EXPECT_TRUE(has(setting_text(setting, Style::Plain), "these figures say nothing about a GPU"));
}

TEST(Table, NumbersHaveTheDigitsThatCount) {
  EXPECT_EQ(number_text(0.01234), "0.0123");
  EXPECT_EQ(number_text(0.3584), "0.358");
  EXPECT_EQ(number_text(9.7944), "9.794");
  EXPECT_EQ(number_text(90.294), "90.29");
  EXPECT_EQ(number_text(317.36), "317.4");
  EXPECT_EQ(number_text(12345.6), "12346");
  EXPECT_EQ(number_text(0), "0.000");
}

TEST(Table, Sizes) {
  EXPECT_EQ(size_text(4096), "4 KiB");
  EXPECT_EQ(size_text(256 << 20), "256 MiB");
  EXPECT_EQ(size_text(std::uint64_t{8} << 30), "8 GiB");
  EXPECT_EQ(size_text(1000), "1000 B");
}

}  // namespace
}  // namespace ivgpu::bench
