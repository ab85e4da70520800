// Each claim of docs/compatibility.md must have a date and evidence. (links_test.cc checks that the linked evidence
// exists.)
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/docs/markdown.h"

namespace {

constexpr const char* conformance = "## Conformance";

// The error in a table's line; "" if none.
std::string complaint(const std::string& line) {
  static const std::regex cells(R"(\| ([^|]+) \| ([^|]+) \| ([^|]*)\|)");
  static const std::regex seen(R"((?:seen|fails) 20\d\d-[01]\d-[0-3]\d(, [A-Z][A-Z0-9]+)?)");
  static const std::regex place(R"(.*(\]\(|`[a-z]+/).*)");
  std::smatch cell;
  if (!std::regex_match(line, cell, cells)) return "is no line of three cells";
  const std::string state = cell[2], shown = cell[3];
  if (state == "not tried") return "";
  if (!std::regex_match(state, seen)) return "has neither been seen nor failed on a day, nor is it not tried";
  return std::regex_match(shown, place) ? "" : "names no place that shows it";
}

std::vector<std::string> rows() {
  std::vector<std::string> all;
  for (const std::string& line : docs_test::lines_of(docs_test::read(IVGPU_SOURCE_DIR "/docs/compatibility.md"))) {
    if (line == conformance) break;
    if (line.starts_with("| ") && !line.starts_with("| what |")) all.push_back(line);
  }
  return all;
}

// The lines of the section with the output of tools/conformance.
std::vector<std::string> conformance_lines() {
  std::vector<std::string> all;
  bool inside = false;
  for (const std::string& line : docs_test::lines_of(docs_test::read(IVGPU_SOURCE_DIR "/docs/compatibility.md"))) {
    if (inside) all.push_back(line);
    inside = inside || line == conformance;
  }
  return all;
}

// A program and its result in the table.
using Programs = std::vector<std::pair<std::string, std::string>>;
Programs table_of(const std::vector<std::string>& lines) {
  static const std::regex cells(
      R"(\| `([a-z0-9_]+)` \|[^|]+\|[^|]+\| ([a-z ]+)(: [^|]*)?\|[^|]+\| (exact|rounded) \|)");
  Programs all;
  std::smatch cell;
  for (const std::string& line : lines)
    if (std::regex_match(line, cell, cells)) all.emplace_back(cell[1], docs_test::trimmed(cell[2]));
  return all;
}

std::vector<std::string> listed_programs() {
  std::vector<std::string> all;
  for (const std::string& line : docs_test::lines_of(docs_test::read(IVGPU_SOURCE_DIR "/tests/conformance/list.txt")))
    if (!line.empty() && line[0] != '#') all.push_back(line.substr(0, line.find_first_of(" |")));
  return all;
}

TEST(Compatibility, EveryClaimHasADayAndAPlace) {
  EXPECT_GT(rows().size(), 20u);
  for (const std::string& row : rows()) EXPECT_EQ(complaint(row), "") << row;
}

TEST(Compatibility, AClaimWithoutIsFound) {
  EXPECT_EQ(complaint("| QEMU 9 | not tried | |"), "");
  EXPECT_EQ(complaint("| QEMU 9 | seen 2026-11-22 | `tests/vm/programs.sh` |"), "");
  EXPECT_EQ(complaint("| QEMU 9 | fails 2026-11-22, H200 | `tests/vm/programs.sh` |"), "");
  EXPECT_NE(complaint("| QEMU 9 | seen 2026-11-22 | |"), "");
  EXPECT_NE(complaint("| QEMU 9 | fails | `tests/vm/programs.sh` |"), "");
  EXPECT_NE(complaint("| QEMU 9 | seen 2026-11-22 | it works |"), "");
  EXPECT_NE(complaint("| QEMU 9 | seen | `tests/vm/programs.sh` |"), "");
  EXPECT_NE(complaint("| QEMU 9 | works | `tests/vm/programs.sh` |"), "");
  EXPECT_NE(complaint("| QEMU 9 | not tried |"), "");
}

TEST(Compatibility, EachProgramOfTheConformanceListStandsInTheTable) {
  std::vector<std::string> names;
  for (const auto& [name, result] : table_of(conformance_lines())) names.push_back(name);
  EXPECT_EQ(names, listed_programs());
}

TEST(Compatibility, WhatConformanceFoundHasADay) {
  static const std::regex day(R"(.*\b20\d\d-[01]\d-[0-3]\d, .+)");
  bool dated = false, ran = false;
  for (const std::string& line : conformance_lines()) dated = dated || std::regex_match(line, day);
  for (const auto& [name, result] : table_of(conformance_lines())) ran = ran || result != "not run yet";
  EXPECT_EQ(dated, ran);
}

TEST(Compatibility, ARowOfTheConformanceTableIsRead) {
  const Programs found =
      table_of({"| program | native | loopback | result | ratio | compared |", "|---|---|---|---|---|---|",
                "| `cublas` | 1.20 s | 1.90 s | same | 1.58 | exact |",
                "| `cufft` | 1.20 s | exit 1 | fails: no plan | - | rounded |", "| `cufft` | cuLinkCreate |"});
  EXPECT_EQ(found, (Programs{{"cublas", "same"}, {"cufft", "fails"}}));
}

}  // namespace
