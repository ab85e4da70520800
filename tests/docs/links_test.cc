// The pages' targets must exist: relative links of every Markdown file with their anchors, and every named path of the
// tree.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "tests/docs/markdown.h"

namespace {

namespace fs = std::filesystem;
using docs_test::Page;

bool is_generated(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with("build") || (name.starts_with('.') && name != ".ci");
}

std::vector<fs::path> pages_below(const fs::path& root) {
  std::vector<fs::path> pages;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
    if (at->is_directory() && is_generated(at->path()))
      at.disable_recursion_pending();
    else if (at->path().extension() == ".md")
      pages.push_back(at->path());
  }
  return pages;
}

bool has_anchor(const fs::path& page, const std::string& anchor) {
  const auto headings = docs_test::parse(docs_test::read(page)).headings;
  return std::any_of(headings.begin(), headings.end(),
                     [&](const auto& heading) { return docs_test::anchor_of(heading) == anchor; });
}

bool leads_somewhere(const fs::path& page, const std::string& target) {
  if (target.find("://") != std::string::npos || target.starts_with("mailto:")) return true;
  const auto hash = target.find('#');
  const fs::path file = hash == 0 ? page : page.parent_path() / target.substr(0, hash);
  if (!fs::exists(file)) return false;
  return hash == std::string::npos || has_anchor(file, target.substr(hash + 1));
}

// Returns "page: target" for each dead link.
std::vector<std::string> dead_links(const fs::path& root) {
  std::vector<std::string> dead;
  for (const fs::path& page : pages_below(root))
    for (const std::string& target : docs_test::link_targets(docs_test::parse(docs_test::read(page)).prose))
      if (!leads_somewhere(page, target)) dead.push_back(fs::relative(page, root).string() + ": " + target);
  return dead;
}

// A code span is a path of the tree if its first component is a top-level folder.
bool is_path(const fs::path& root, const std::string& span) {
  const auto slash = span.find('/');
  return slash != std::string::npos && slash != 0 && span.find_first_of(" *<>()=$") == std::string::npos &&
         !is_generated(span.substr(0, slash)) && fs::is_directory(root / span.substr(0, slash));
}

std::vector<std::string> paths_in(const fs::path& root, const std::string& text) {
  std::vector<std::string> paths;
  for (const std::string& span : docs_test::code_spans(docs_test::parse(text).prose))
    if (is_path(root, span)) paths.push_back(span);
  return paths;
}

std::vector<std::string> missing_paths(const fs::path& root, const std::string& text) {
  std::vector<std::string> missing = paths_in(root, text);
  std::erase_if(missing, [&](const std::string& path) { return fs::exists(root / path); });
  return missing;
}

const fs::path root = IVGPU_SOURCE_DIR;
using Strings = std::vector<std::string>;

TEST(Docs, EveryRelativeLinkLeadsSomewhere) {
  EXPECT_GE(pages_below(root).size(), 8u);
  EXPECT_EQ(dead_links(root), Strings{});
}

TEST(Docs, EveryPathThatAPageNamesIsThere) {
  for (const fs::path& page : pages_below(root)) {
    const std::string text = docs_test::read(page);
    EXPECT_EQ(missing_paths(root, text), Strings{}) << page;
    EXPECT_FALSE(text.empty()) << page;
  }
  EXPECT_GT(paths_in(root, docs_test::read(root / "docs/architecture.md")).size(), 30u);
}

// Tests these checks on a small tree.
class Tree : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ivgpu-docs-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  void TearDown() override { fs::remove_all(path); }
  void put(const std::string& file, const std::string& text) {
    fs::create_directories((path / file).parent_path());
    std::ofstream(path / file) << text;
  }
  fs::path path;
};

TEST_F(Tree, DeadLinksAreFound) {
  put("a.md",
      "# A page\n[there](docs/b.md) [gone](docs/c.md) [web](https://example.org/x) [in](docs/b.md#one--two)\n"
      "```\n[not a link](nowhere)\n```\n[part](docs/b.md#three) [own](#a-page)\n");
  put("docs/b.md", "## One, & two\n[up](../a.md) [wrong](a.md)\n");
  put("build-x/skipped.md", "[gone](gone.md)\n");
  Strings dead = dead_links(path);
  std::sort(dead.begin(), dead.end());
  EXPECT_EQ(dead, (Strings{"a.md: docs/b.md#three", "a.md: docs/c.md", "docs/b.md: a.md"}));
}

TEST_F(Tree, MissingPathsAreFound) {
  put("ring/layout/layout.h", "");
  EXPECT_EQ(missing_paths(path, "`ring/layout/layout.h` `ring/gone.h` `ring/` `std/vector` `ring/*.def` `a / b`\n"),
            (Strings{"ring/gone.h"}));
}

}  // namespace
