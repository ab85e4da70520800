// ivgpu-check's judgement of the time that a cache line of BAR2 takes. It blames the mapping only if nothing else
// explains the time.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ring/layout/layout.h"
#include "tools/check/cache.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace check {
namespace {

bool says(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

TEST(CheckCache, AFastMappingIsGoodEverywhere) {
  for (const bool emulated : {false, true}) {
    const Finding f = judge_cache({.bar_ns = 3, .own_ns = 2}, emulated, true);
    EXPECT_EQ(f.state, State::Ok);
    EXPECT_TRUE(says(f.what, "write-back: 3.0 ns")) << f.what;
  }
}

TEST(CheckCache, AnEmulatedProcessorReportsNothingAboutTheMapping) {
  const Finding f = judge_cache({.bar_ns = 300, .own_ns = 20}, true, true);
  EXPECT_EQ(f.state, State::Ok);
  EXPECT_TRUE(says(f.what, "TCG")) << f.what;
  EXPECT_FALSE(says(f.what + f.remedy, "AMD")) << f.what;
}

TEST(CheckCache, ABusyMachineIsReported) {
  const Finding f = judge_cache({.bar_ns = 120, .own_ns = 90}, false, true);
  EXPECT_EQ(f.state, State::Warning);
  EXPECT_TRUE(says(f.what, "too busy")) << f.what;
  EXPECT_FALSE(says(f.what + f.remedy, "AMD")) << f.remedy;
}

TEST(CheckCache, OnlyAnAmdProcessorIsBlamedAsOne) {
  const Finding amd = judge_cache({.bar_ns = 300, .own_ns = 2}, false, true);
  EXPECT_EQ(amd.state, State::Warning);
  EXPECT_TRUE(says(amd.what, "seems to be mapped uncached")) << amd.what;
  EXPECT_TRUE(says(amd.remedy, "on AMD hosts")) << amd.remedy;
  const Finding other = judge_cache({.bar_ns = 300, .own_ns = 2}, false, false);
  EXPECT_EQ(other.state, State::Warning);
  EXPECT_FALSE(says(other.remedy, "AMD")) << other.remedy;
}

// A clock that advances with each pass of 64 loads. The passes are slow in the first round of both measurements, and
// fast afterwards.
int readings = 0;
std::uint64_t now = 0;
std::uint64_t busy_then_quiet() {
  // BAR2 and ordinary memory; the clock is read before and after each pass.
  constexpr int readings_of_a_round = 2 * 2 * 8;
  now += readings++ < readings_of_a_round ? 64 * 400 : 64 * 3;
  return now;
}

TEST(CheckCache, WhatSeemsSlowIsMeasuredAgain) {
  alignas(ring::page) static const std::byte page[ring::page] = {};
  readings = 0, now = 0;
  EXPECT_DOUBLE_EQ(measure_cache(page, busy_then_quiet, 1).bar_ns, 400);
  readings = 0;
  const CacheTimes times = measure_cache(page, busy_then_quiet);
  EXPECT_DOUBLE_EQ(times.bar_ns, 3);
  EXPECT_DOUBLE_EQ(times.own_ns, 3);
}

TEST(CheckCache, KnowsTcgByTheNameOfTheProcessor) {
  const ivgpu::TempDir root;
  std::filesystem::create_directory(root.path() / "proc");
  const Machine machine(root.path().string());
  EXPECT_FALSE(is_emulated(machine));  // the machine has no CPU information
  std::ofstream(root.path() / "proc/cpuinfo") << "vendor_id : AuthenticAMD\nmodel name : AMD EPYC\n";
  EXPECT_FALSE(is_emulated(machine));
  std::ofstream(root.path() / "proc/cpuinfo") << "vendor_id : AuthenticAMD\nmodel name : QEMU TCG CPU version 2.5+\n";
  EXPECT_TRUE(is_emulated(machine));
}

}  // namespace
}  // namespace check
