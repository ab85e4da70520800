// The table of docs/models.md must equal ring/verify/mutants.def, line by line, and the product must contain no mutant.
#include <gtest/gtest.h>

#include "ring/verify/mutants.h"
#include "tests/docs/markdown.h"

namespace {

#ifndef IVGPU_MUTANTS  // the fuzzers' build with mutants is not the product
#define MUTANT(name, ...) static_assert(!ring::wrong(ring::Mutant::name), "a mutant is in a build that may be shipped");
#define DOUBLE_FETCH MUTANT
#define RACE MUTANT
#include "ring/verify/double_fetches.def"
#include "ring/verify/mutants.def"
#include "ring/verify/races.def"
#undef RACE
#undef DOUBLE_FETCH
#undef MUTANT
#endif

TEST(ModelsPage, HasTheMutantsAndNoOthers) {
  const std::vector<std::string> wanted = {
#define MUTANT(name, what, model, explorer, stress) \
  "| `" #name "` | " what " | " #model " | " #explorer " | " #stress " |",
#include "ring/verify/mutants.def"
#undef MUTANT
  };
  std::vector<std::string> rows;
  for (const std::string& line : docs_test::lines_of(docs_test::read(IVGPU_SOURCE_DIR "/docs/models.md")))
    if (line.starts_with("| `") && line.find('_') != std::string::npos && line.find('/') == std::string::npos)
      rows.push_back(line);
  EXPECT_EQ(rows, wanted);
}

}  // namespace
