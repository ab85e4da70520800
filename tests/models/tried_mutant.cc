// Enables the mistake that IVGPU_MUTANT names (ring/verify/mutants.def) at the program's start.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ring/verify/mutants.h"

namespace {

struct Names {
  std::string_view name;
  ring::Mutant mutant;
};

constexpr Names names[] = {
#define MUTANT(name, ...) {#name, ring::Mutant::name},
#include "ring/verify/mutants.def"
#undef MUTANT
#define DOUBLE_FETCH(name, ...) {#name, ring::Mutant::name},
#include "ring/verify/double_fetches.def"
#undef DOUBLE_FETCH
#define RACE(name, ...) {#name, ring::Mutant::name},
#include "ring/verify/races.def"
#undef RACE
};

[[maybe_unused]] const bool chosen = [] {
  const char* wanted = std::getenv("IVGPU_MUTANT");
  if (wanted == nullptr) return false;
  for (const Names& n : names)
    if (n.name == wanted) return ring::tried_mutant = n.mutant, true;
  std::fprintf(stderr, "IVGPU_MUTANT=%s is no mutant of ring/verify/mutants.def\n", wanted);
  std::_Exit(0);  // no mistake is enabled, so the test must not count a mistake as caught
}();

}  // namespace
