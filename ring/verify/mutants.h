// Asked where a fence, a second look or an exact bound stands: is this the mistake that is being tried? As shipped the
// answer is a constant false and leaves nothing in the program. The tests of tests/models/ and the fuzzers are
// built with IVGPU_MUTANTS, try one mistake after the other, and must catch each (docs/models.md).
#pragma once

namespace ring {

enum class Mutant {
  none,
#define MUTANT(name, ...) name,
#include "ring/verify/mutants.def"
#undef MUTANT
#define DOUBLE_FETCH(name, ...) name,
#include "ring/verify/double_fetches.def"
#undef DOUBLE_FETCH
#define RACE(name, ...) name,
#include "ring/verify/races.def"
#undef RACE
};

#ifdef IVGPU_MUTANTS
inline Mutant tried_mutant = Mutant::none;
inline bool wrong(Mutant mutant) { return mutant == tried_mutant; }
#else
constexpr bool wrong(Mutant) { return false; }
#endif

}  // namespace ring
