// Compares docs/design/021 with the call table: exactly the calls that the page lists as refused during a capture must
// be marked so in the table.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "ring/api/entry_points.h"
#include "tests/docs/markdown.h"

namespace {

using api::InCapture;

// The name in programs' sources, which the page uses: cuMemAlloc for cuMemAlloc_v2.
std::string written(std::string_view name) {
  const std::size_t version = name.rfind("_v");
  return std::string(name.substr(0, version));
}

// The calls in the page's rows that begin with this word.
std::set<std::string> on_the_page(const std::string& word) {
  static const std::regex call("`(cu\\w+)`");
  std::set<std::string> names;
  for (const std::string& line :
       docs_test::lines_of(docs_test::read(IVGPU_SOURCE_DIR "/docs/design/021-prohibited-in-capture.md")))
    if (line.starts_with("| `" + word + "` |"))
      for (std::sregex_iterator at(line.begin(), line.end(), call), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

void expect_words(const std::string& word, InCapture in_capture) {
  const std::set<std::string> page = on_the_page(word);
  EXPECT_GE(page.size(), 3u);
  for (const api::EntryPoint& e : api::entry_points) {
    if (!e.crosses() && e.line != api::Line::Local) continue;
    EXPECT_EQ(e.manner.in_capture == in_capture, page.contains(written(e.name))) << e.name << " and " << word;
  }
}

TEST(CapturePage, UnsafeCallsHaveTheWord) { expect_words("unsafe", InCapture::Unsafe); }
TEST(CapturePage, CallsOfTheWholeContextHaveTheWord) { expect_words("whole_context", InCapture::WholeContext); }

}  // namespace
