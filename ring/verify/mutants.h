// wrong() returns whether a test currently tries a deliberate mistake. Code calls wrong() where a mistake could omit a
// fence, omit a second look or change an exact bound.
//
// In the product wrong() is a constant false and leaves no code in the program. The tests of tests/models/ and the
// fuzzers are built with IVGPU_MUTANTS, try one mistake after another, and must catch each of them (docs/models.md).
// Set tried_mutant only while one thread runs.
//
// ```cpp
// bool fits(unsigned bytes, unsigned room) {
//   return bytes <= room + (ring::wrong(ring::Mutant::full_by_one) ? 16 : 0);
// }
// ```
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
