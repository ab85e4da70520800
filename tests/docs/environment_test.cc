// docs/commands.md must list exactly the environment variables that the code reads, and a man page must describe each
// of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "tests/docs/markdown.h"

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;
const fs::path root = IVGPU_SOURCE_DIR;

Names all_matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

// The variables that are read by getenv() or by the wrapper in `ivgpu bench`, or named by a constant NAME_variable.
Names read_in(const std::string& source) {
  return all_matches(source, R"re((?:(?:getenv|environment)\(|_variable = )"([A-Z_0-9]+)"[);])re");
}

// A prefilter, since matching a regular expression with every line would take ten seconds.
bool may_read(const std::string& line) {
  for (const char* word : {"getenv(", "environment(", "_variable = "})
    if (line.find(word) != line.npos) return true;
  return false;
}

Names read_by_code() {
  Names names;
  for (const char* folder : {"guest", "host", "ring", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".cc" || entry.path().extension() == ".h")
        for (const std::string& line : docs_test::lines_of(docs_test::read(entry.path())))
          if (may_read(line)) names.merge(read_in(line));
  return names;
}

// The first column of the table below the heading "Environment".
Names in_page(const std::string& page) {
  Names names;
  bool inside = false;
  for (const std::string& line : docs_test::lines_of(page)) {
    if (line.starts_with("## ")) inside = line == "## Environment";
    if (inside && line.starts_with("| `")) names.merge(all_matches(line.substr(0, line.find(" |")), "`([A-Z_0-9]+)`"));
  }
  return names;
}

Names in_manual() {
  Names names;
  for (const auto& entry : fs::directory_iterator(root / "docs/man"))
    for (const std::string& line : docs_test::lines_of(docs_test::read(entry.path())))
      if (line.starts_with(".It Ev ")) names.merge(all_matches(line, "([A-Z_0-9]{3,})"));
  return names;
}

std::string lacking(const Names& wanted, const Names& there) {
  std::string gone;
  for (const std::string& name : wanted)
    if (!there.count(name)) gone += (gone.empty() ? "" : " ") + name;
  return gone;
}

TEST(Environment, EveryVariableThatTheCodeReadsIsInThePage) {
  const Names page = in_page(docs_test::read(root / "docs/commands.md")), code = read_by_code();
  EXPECT_GE(code.size(), 15u);
  EXPECT_EQ(lacking(code, page), "");
  EXPECT_EQ(lacking(page, code), "") << "nothing reads it";
}

TEST(Environment, EveryVariableHasItsPlaceInAManPage) { EXPECT_EQ(lacking(read_by_code(), in_manual()), ""); }

TEST(Environment, AVariableThatIsMissingIsFound) {
  const Names code =
      read_in("std::getenv(\"IVGPU_A\"); environment(\"CUDA_B\"); setenv(\"IVGPU_C\", 1); a_variable = \"CUDA_G\";");
  const Names page =
      in_page("| `IVGPU_D` | x |\n## Environment\n| `IVGPU_A`, `IVGPU_E` | `IVGPU_F` |\n## Next\n| `CUDA_B` |");
  EXPECT_EQ(code, (Names{"CUDA_B", "CUDA_G", "IVGPU_A"}));
  EXPECT_EQ(lacking(code, page), "CUDA_B CUDA_G");
  EXPECT_EQ(lacking(page, code), "IVGPU_E");
}

}  // namespace
