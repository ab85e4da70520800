// The indexes of docs/design/ and docs/measurements/ must list every page of their folder, and the design index also
// the page's title.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <regex>
#include <set>

#include "tests/docs/markdown.h"

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
const fs::path docs = IVGPU_SOURCE_DIR "/docs";

// The pages of a folder without a link in its index, README.md.
Strings unlisted(const fs::path& folder) {
  const Strings targets = docs_test::link_targets(docs_test::parse(docs_test::read(folder / "README.md")).prose);
  const std::set<std::string> linked(targets.begin(), targets.end());
  Strings all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".md") && name != "README.md" && !linked.contains(name)) all.push_back(name);
  }
  return all;
}

// The rows of a design index whose title differs from the page's "# NNN: title".
Strings mistitled(const fs::path& folder) {
  static const std::regex row(R"(\| \[(\d{3})\]\(([^)]+)\) \| (.+?) \| .+ \|)");
  Strings all;
  for (const std::string& line : docs_test::lines_of(docs_test::read(folder / "README.md"))) {
    std::smatch cell;
    if (!std::regex_match(line, cell, row)) continue;
    const Strings headings = docs_test::parse(docs_test::read(folder / cell[2].str())).headings;
    if (headings.empty() || headings[0] != cell[1].str() + ": " + cell[3].str()) all.push_back(cell[2]);
  }
  return all;
}

TEST(Index, ListsEveryPage) {
  EXPECT_EQ(unlisted(docs / "design"), Strings{});
  EXPECT_EQ(unlisted(docs / "measurements"), Strings{});
}

TEST(Index, GivesEachDesignPageItsTitle) { EXPECT_EQ(mistitled(docs / "design"), Strings{}); }

TEST(Index, FindsAPageThatIsUnlistedOrMistitled) {
  std::string name = (fs::temp_directory_path() / "ivgpu-index-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path folder = name;
  std::ofstream(folder / "README.md") << "| [001](001-a.md) | A | decides |\n| [002](002-b.md) | C | decides |\n";
  std::ofstream(folder / "001-a.md") << "# 001: A\n";
  std::ofstream(folder / "002-b.md") << "# 002: B\n";
  std::ofstream(folder / "003-c.md") << "# 003: C\n";
  EXPECT_EQ(unlisted(folder), Strings{"003-c.md"});
  EXPECT_EQ(mistitled(folder), Strings{"002-b.md"});
  fs::remove_all(folder);
}

}  // namespace
