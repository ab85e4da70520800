// docs/compatibility.md claims nothing without saying when it was seen and where that is shown. (That the places are
// there is links_test.cc's.)
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/docs/markdown.h"

namespace {

// What is wrong with a table's line; empty: nothing.
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
  for (const std::string& line : docs_test::lines_of(docs_test::read(IVGPU_SOURCE_DIR "/docs/compatibility.md")))
    if (line.starts_with("| ") && !line.starts_with("| what |")) all.push_back(line);
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

}  // namespace
