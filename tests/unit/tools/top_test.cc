// The view that `ivgpu top` computes from two documents: rates, an order, lines that fit, and text without control
// characters.
#include <gtest/gtest.h>

#include <string>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/top/rows.h"
#include "tools/ivgpu/top/text.h"

namespace ivgpu::top {
namespace {

std::string counters(long calls, long to_device, long memory) {
  return R"("counters":{"calls":)" + std::to_string(calls) + R"(,"submitted":1,"to_device_bytes":)" +
         std::to_string(to_device) + R"(,"from_device_bytes":0,"device_memory_bytes":)" + std::to_string(memory) + "}";
}

std::string session(int slot, int worker, const std::string& program, const std::string& rest) {
  return R"({"slot":)" + std::to_string(slot) + R"(,"state":"claimed","claimed_s":2.5,"worker":)" +
         std::to_string(worker) + R"(,"owner":{"process":70,"peer":65,"program":")" + program + R"("},)" + rest + "}";
}

std::string vm(const std::string& name, const std::string& rest, const std::string& slots) {
  return R"({"name":")" + name + R"(",)" + rest + R"(,"slots":[)" + slots + "]}";
}

std::string document(const std::string& vms) {
  return R"({"format":1,"version":"0.1.0","up_s":12.25,"vms":[)" + vms + "]}";
}

const std::string before = document(vm("a", counters(10, 0, 0), session(0, 8, "p", counters(5, 0, 0))));

TEST(TopRows, CountersAreRatesAndWhatIsHeldIsNone) {
  const View view =
      view_of(document(vm("a", counters(110, 2048, 4096), session(0, 8, "p", counters(55, 2048, 4096)))), before, 2);
  ASSERT_EQ(view.vms.size(), 1U);
  EXPECT_EQ(view.vms[0].values, (std::vector<double>{50, 0, 1024, 0, 4096, not_known}));
  ASSERT_EQ(view.vms[0].sessions.size(), 1U);
  EXPECT_EQ(view.vms[0].sessions[0].values, (std::vector<double>{25, 0, 1024, 0, 4096, not_known}));
  EXPECT_EQ(view.vms[0].sessions[0].claimed_s, 2.5);
  EXPECT_EQ(view.up_s, 12.25);
}

TEST(TopRows, ANewWorkersCountersBeginAtNothing) {
  const View view = view_of(document(vm("a", counters(10, 0, 0), session(0, 9, "q", counters(4, 0, 0)))), before, 0.5);
  EXPECT_EQ(view.vms[0].sessions[0].values[0], 8) << "4 calls in half a second, not one less than before";
  EXPECT_EQ(view.vms[0].values[0], 0);
}

TEST(TopRows, ACounterThatGoesDownGrowsByNothing) {
  const View view = view_of(document(vm("a", counters(3, 0, 0), session(0, 8, "p", counters(1, 0, 0)))), before, 1);
  EXPECT_EQ(view.vms[0].values[0], 0);
  EXPECT_EQ(view.vms[0].sessions[0].values[0], 0);
}

TEST(TopRows, SlotsWithoutAProgramAndVmsThatAreNew) {
  const std::string ready = R"({"slot":1,"state":"ready","worker":5,)" + counters(0, 0, 0) + "}";
  const View view =
      view_of(document(vm("a", counters(10, 0, 0), ready) + "," + vm("b", counters(6, 0, 0), "")), before, 2);
  ASSERT_EQ(view.vms.size(), 2U);
  EXPECT_TRUE(view.vms[0].sessions.empty());
  EXPECT_EQ(view.vms[1].values[0], 3);
  EXPECT_TRUE(view_of(document(""), document(""), 1).vms.empty());
}

TEST(TopRows, TheTimeOnGpusIsAShare) {
  const auto vms = [](const std::string& a, const std::string& b, const std::string& c) {
    return document(vm("a", a, "") + "," + vm("b", b, "") + "," + vm("c", c, ""));
  };
  const auto time = [](const std::string& had) {
    return R"("gpu_time":{"had_s":)" + had + R"(,"waited_s":0,"leases":0,"preempted":0,"weight":1})";
  };
  View view = view_of(vms(time("2.75"), time("7.5"), time("null")), vms(time("2.0"), time("null"), time("null")), 2);
  EXPECT_EQ(view.vms[0].values.back(), .375);
  EXPECT_EQ(view.vms[1].values.back(), 3.75) << "it has begun";
  EXPECT_EQ(view.vms[2].values.back(), not_known);
  const std::string row = as_lines(view, "name").at(2);
  EXPECT_TRUE(row.ends_with(" 38 %") || row.ends_with(" 37 %")) << row;
  EXPECT_TRUE(as_lines(view, "name").at(4).ends_with(" -"));
  const json told = json::parse(as_json(view)).at("vms");
  EXPECT_EQ(told.at(0).at("gpu_time_s_per_s"), .375);
  EXPECT_TRUE(told.at(2).at("gpu_time_s_per_s").is_null());
  sort(view, "gpu-time");
  EXPECT_EQ(view.vms[0].name, "b");
}

TEST(TopRows, TheLargestComeFirst) {
  const std::string slots = session(0, 8, "p", counters(1, 9, 0)) + "," + session(1, 9, "q", counters(2, 8, 0));
  View view =
      view_of(document(vm("a", counters(1, 9, 0), slots) + "," + vm("b", counters(2, 8, 0), "")), document(""), 1);
  EXPECT_EQ(view.vms[0].name, "a");
  sort(view, "calls");
  EXPECT_EQ(view.vms[0].name, "b");
  EXPECT_EQ(view.vms[1].sessions[0].program, "q");
  sort(view, "to-gpu");
  EXPECT_EQ(view.vms[0].name, "a");
  EXPECT_EQ(view.vms[0].sessions[0].program, "p");
  EXPECT_EQ(sort_names(),
            (std::vector<std::string>{"name", "calls", "submitted", "to-gpu", "from-gpu", "gpu-memory", "gpu-time"}));
}

std::string refusal_of(const std::string& now) {
  try {
    view_of(now, before, 1);
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code, exit_code::missing);
    return refused.what();
  }
  return "";
}

TEST(TopRows, WhatIsNoDocumentIsRefused) {
  for (const char* other : {"", "[]", "{", R"({"format":2})"})
    EXPECT_EQ(refusal_of(other), "the broker is of another version: this is not the status that this ivgpu knows");
  const std::string lacking = "the broker's status is not complete: ";
  for (const std::string& bad :
       {document("7"), document(R"({"name":7,"slots":[]})"), document(R"({"name":"a"})"),
        document(vm("a", R"("counters":{"calls":1.5})", "")), document(vm("a", R"("counters":{"calls":"1"})", "")),
        document(vm("a", counters(1, 1, 1), R"({"slot":0,"state":"claimed","owner":7})")),
        document(vm("a", counters(1, 1, 1), R"({"slot":0,"state":"claimed","owner":{"process":1e300}})"))})
    EXPECT_EQ(refusal_of(bad).substr(0, lacking.size()), lacking) << bad;
}

TEST(TopText, NobodysTextMovesTheCursor) {
  View view = view_of(document(vm("a", counters(1, 1, 1), session(0, 8, R"(\u001b[2J\n\u009b)", counters(1, 1, 1)))),
                      before, 1);
  std::string all;
  for (const std::string& line : as_lines(view, "name")) all += line;
  for (const char c : all + as_json(view)) EXPECT_TRUE(c >= ' ' && c < 0x7f) << static_cast<int>(c);
  EXPECT_NE(all.find(R"(70 \x1b[2J\x0a\xc2\x9b)"), std::string::npos) << all;
}

TEST(TopText, LinesAreCutToTheScreen) {
  const std::vector<std::string> lines = {"heading", "titles", "one", "two"};
  EXPECT_EQ(cut(lines, 4, 80), lines);
  EXPECT_EQ(cut(lines, 3, 80), (std::vector<std::string>{"heading", "titles", "... 2 lines more"}));
  EXPECT_EQ(cut(lines, 1, 8), (std::vector<std::string>{"... 4 li"}));
  EXPECT_EQ(cut(lines, 5, 3), (std::vector<std::string>{"hea", "tit", "one", "two"}));
  EXPECT_EQ(cut(lines, 0, 0).size(), 4U) << "a terminal without a size";
}

}  // namespace
}  // namespace ivgpu::top
