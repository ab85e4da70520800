// docs/adding-a-call.md shows how a call was added. The added lines of its diffs must be in the tree, in order, and the
// removed lines must not be.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/docs/markdown.h"

namespace {

using docs_test::trimmed;

const std::string root = IVGPU_SOURCE_DIR;

struct Diff {
  std::string file;
  std::vector<std::string> added, removed;
};

Diff diff_of(const docs_test::Block& block) {
  Diff diff;
  for (const std::string& line : block.lines) {
    if (line.starts_with("+++ "))
      diff.file = line.substr(4);
    else if (line.starts_with('+'))
      diff.added.push_back(trimmed(line.substr(1)));
    else if (line.starts_with('-'))
      diff.removed.push_back(trimmed(line.substr(1)));
  }
  return diff;
}

// The first added line that is missing or out of order; "" if there is none.
std::string misplaced(const Diff& diff, const std::vector<std::string>& source) {
  auto from = source.begin();
  for (const std::string& wanted : diff.added) {
    from = std::find_if(from, source.end(), [&](const std::string& line) { return trimmed(line) == wanted; });
    if (from == source.end()) return wanted;
  }
  for (const std::string& gone : diff.removed)
    if (std::any_of(source.begin(), source.end(), [&](const std::string& line) { return trimmed(line) == gone; }))
      return gone;
  return "";
}

TEST(AddingACall, ItsLinesStandInTheTree) {
  std::size_t lines = 0, files = 0;
  for (const auto& block : docs_test::parse(docs_test::read(root + "/docs/adding-a-call.md")).blocks) {
    if (block.kind != "diff") continue;
    const Diff diff = diff_of(block);
    EXPECT_EQ(misplaced(diff, docs_test::lines_of(docs_test::read(root + "/" + diff.file))), "") << diff.file;
    lines += diff.added.size(), ++files;
  }
  EXPECT_GE(files, 8u);
  EXPECT_GE(lines, 40u);
}

TEST(AddingACall, ALineThatIsNotThereIsFound) {
  const Diff diff = diff_of({"diff", "", {"+++ f", "+one", " ...", "+two", "-three"}});
  EXPECT_EQ(misplaced(diff, {"one", "x", "  two"}), "");
  EXPECT_EQ(misplaced(diff, {"two", "one"}), "two");
  EXPECT_EQ(misplaced(diff, {"one", "two", "three"}), "three");
}

}  // namespace
