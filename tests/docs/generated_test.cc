// docs/calls.md must have every entry point that the CUDA headers declare, and the examples in docs/configuration.md
// must be valid configurations.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "host/broker/config/config.h"
#include "tests/docs/markdown.h"

namespace {

const std::string root = IVGPU_SOURCE_DIR;

// The first group of each match in `text`.
std::set<std::string> names_in(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

std::set<std::string> missing(const std::set<std::string>& wanted, const std::set<std::string>& there) {
  std::set<std::string> gone;
  std::set_difference(wanted.begin(), wanted.end(), there.begin(), there.end(), std::inserter(gone, gone.end()));
  return gone;
}

const std::string line = R"(\| `(cu\w+)` \| \d+\.\d+ \| (?:Local|Posted|Waited|as|32-bit form of|refused))";

TEST(CallsPage, HasEveryEntryPointOfTheHeaders) {
  const auto listed = names_in(docs_test::read(root + "/docs/calls.md"), line);
  for (const char* header : {"cuda.h", "cudaProfiler.h"}) {
    const std::string text = docs_test::read(std::string(IVGPU_CUDA_INCLUDE) + "/" + header);
    const auto declared = names_in(text, R"(CUresult CUDAAPI\s+(cu\w+)\s*\()");
    EXPECT_GE(declared.size(), 3u) << header;
    EXPECT_EQ(missing(declared, listed), std::set<std::string>{}) << header;
  }
}

// The headers' macros rename calls to forms that may have no prototype in this compilation.
TEST(CallsPage, HasEveryFormThatAProgramIsCompiledTo) {
  const auto listed = names_in(docs_test::read(root + "/docs/calls.md"), line);
  const std::string text = docs_test::read(std::string(IVGPU_CUDA_INCLUDE) + "/cuda.h");
  const auto plain = names_in(text, R"(#define cu\w+\s+(cu\w+_v\d+)\n)");
  const auto threads_own = names_in(text, R"(#define cu\w+\s+__CUDA_API_PTSZ\((cu\w+)\))");
  EXPECT_GT(plain.size() + threads_own.size(), 40u);
  EXPECT_EQ(missing(plain, listed), std::set<std::string>{});
  EXPECT_EQ(missing(threads_own, listed), std::set<std::string>{});
}

TEST(CallsPage, AMissingEntryPointIsFound) {
  const auto listed = names_in("| `cuInit` | 2.0 | Local |\n| `cuGone` | 2.0 | forgotten |\n", line);
  EXPECT_EQ(missing(names_in("CUresult CUDAAPI cuInit(unsigned);\nCUresult CUDAAPI cuGone(void);",
                             R"(CUresult CUDAAPI\s+(cu\w+)\s*\()"),
                    listed),
            std::set<std::string>{"cuGone"});
}

TEST(ConfigurationPage, ShowsGoodExamples) {
  const auto page = docs_test::parse(docs_test::read(root + "/docs/configuration.md"));
  std::size_t examples = 0;
  for (const auto& block : page.blocks) {
    if (block.kind != "toml") continue;  // other blocks are lines of systemd's unit
    ++examples;
    std::string text;
    for (const std::string& example : block.lines) text += example + "\n";
    const auto config = host::broker::parse_config(text, "example", 8);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->vms.size(), 2u);
  }
  EXPECT_EQ(examples, 3u);
}

}  // namespace
