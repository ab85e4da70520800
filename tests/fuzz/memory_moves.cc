#include "tests/fuzz/moving.h"

const bool fuzz::memory_moves = FUZZ_MEMORY_MOVES;
