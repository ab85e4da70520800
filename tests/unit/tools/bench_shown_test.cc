// How `ivgpu bench` shows a run: tables, and the picture.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/tools/bench_report.h"
#include "tests/unit/tools/text.h"
#include "tools/ivgpu/bench/plot.h"
#include "tools/ivgpu/bench/svg.h"
#include "tools/ivgpu/bench/table.h"

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

TEST(Table, AFigureHasBothSidesAndTheirRatio) {
  const std::string text = figures_text(some_report(), Style::Markdown);
  EXPECT_TRUE(has(text, "| launch_synchronize | 10.00 | 12.00 | 12.00 | 12.00 | 30.00 | 30.00 | 1.20 | 2.50 | us |"))
      << text;
  EXPECT_TRUE(has(text, "| idle_host_processor | - | - | - | 0.000 | 0.000 | 0.000 | - | - | % |")) << text;
  EXPECT_TRUE(has(text, "| pinned_h2d 1 MiB | 1049 | 1049 | 1049 | 524.3 | 524.3 | 524.3 | 0.50 | 0.50 | GB/s |"))
      << text;
}

TEST(Table, EachSessionsShareIsShown) {
  const std::string text = figures_text(some_report(), Style::Markdown);
  EXPECT_TRUE(has(text, "| launch_synchronize x2 | 20.00 to 22.00 | 24.00 | 21.00 to 23.00 | 29.00 |")) << text;
}

TEST(Table, WhatWasLeftOutIsSaid) {
  EXPECT_TRUE(
      has(figures_text(some_report(), Style::Plain), "\nLeft out: pinned_h2d, ivgpu: no pinned memory of 256 MiB.\n"));
}

TEST(Table, TheSettingIsSaid) {
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

TEST(LogAxis, EqualFactorsAreEqualDistances) {
  const LogAxis axis(1, 100, 0, 200);
  EXPECT_DOUBLE_EQ(axis.place(1), 0);
  EXPECT_DOUBLE_EQ(axis.place(10), 100);
  EXPECT_DOUBLE_EQ(axis.place(100), 200);
  EXPECT_DOUBLE_EQ(axis.place(1e9), 200);
  EXPECT_DOUBLE_EQ(axis.place(0), 0);
}

TEST(LogAxis, TicksArePowersOfTenOrFiner) {
  EXPECT_EQ(LogAxis(0.5, 2000, 0, 1).ticks(), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(LogAxis(1.5, 30, 0, 1).ticks(), (std::vector<double>{2, 5, 10, 20}));
  EXPECT_EQ(LogAxis(12.5, 44.7, 0, 1).ticks(), (std::vector<double>{15, 20, 25, 30, 35, 40}));
  EXPECT_EQ(LogAxis(7.9, 8.4, 0, 1).ticks().size(), 6U);  // 7.9 to 8.4
}

TEST(Svg, TextsAreEscaped) {
  EXPECT_EQ(escaped_for_xml("a<b & \"c\"\n"), "a&lt;b &amp; &quot;c&quot; ");
  Svg svg(10, 10);
  svg.words({1, 1}, "<script>", 10);
  EXPECT_FALSE(has(svg.text(), "<script>"));
}

// Every element that opens also closes, and no number is none: what a viewer would refuse.
TEST(Plot, IsWellFormed) {
  const std::string text = as_picture(some_report());
  EXPECT_EQ(std::count(text.begin(), text.end(), '<'), std::count(text.begin(), text.end(), '>'));
  EXPECT_TRUE(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
  EXPECT_FALSE(has(text, "=\"nan") || has(text, "=\"-nan") || has(text, "inf")) << text;
}

TEST(Plot, HasAPanelForWhatWasMeasuredAndNoOther) {
  Report report = some_report();
  std::string text = as_picture(report);
  for (const char* part :
       {"Some GPU", "Latencies", "how often which time", "Copies to the device", "GB/s", "bytes of one copy",
        "pinned, native", "pinned, ivgpu", "processes at once", "ivgpu, p99", "1 MiB"})
    EXPECT_TRUE(has(text, part)) << part;
  EXPECT_FALSE(has(text, "Copies from the device"));
  std::erase_if(report.figures, [](const Figure& f) { return f.group != "copy"; });
  text = as_picture(report);
  EXPECT_TRUE(has(text, "Copies to the device"));
  EXPECT_FALSE(has(text, "Latencies") || has(text, "processes at once"));
}

TEST(Plot, ACopyOfTheGroupMemoryIsNoPointOfACurveAndATimeOfItIsALatency) {
  Report report{some_setting(), {}, {}};
  report.figure({.group = "memory", .name = "pinned_h2d", .unit = Unit::GigabytesPerSecond, .bytes = 4096}).native =
      summary_of({1}, true);
  EXPECT_FALSE(has(as_picture(report), "Copies to the device"));
  report.figure({.group = "memory", .name = "texture_kernel", .unit = Unit::Milliseconds}).native =
      summary_of({5}, false);
  const std::string text = as_picture(report);
  EXPECT_TRUE(has(text, "Latencies") && has(text, "texture_kernel")) << text;
}

TEST(Plot, AMedianIsSeenOnItsBar) {
  const std::string text = as_picture(some_report()), rim = "r=\"6.0\" fill=\"#ffffff\"/>\n<circle";
  EXPECT_TRUE(has(text, rim)) << text;
}

TEST(Plot, OfNothingIsAnEmptyPicture) {
  const std::string text = as_picture({some_setting(), {}, {}});
  EXPECT_TRUE(has(text, "Some GPU"));
  EXPECT_FALSE(has(text, "polyline"));
}

}  // namespace
}  // namespace ivgpu::bench
