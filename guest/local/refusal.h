// Calls that the guest knows and refuses: the table's REFUSED lines. Each says once in the log why.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "ring/api/cuda.h"

namespace guest::local {

struct Refusal {
  std::string_view symbol;
  const char* why;
};

inline constexpr Refusal refusals[] = {
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define REFUSED(fn, since, why) {#fn, why},
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
};

// The symbol's line. A call that the table says is served cannot be refused: it does not compile.
consteval std::size_t refusal_of(std::string_view symbol) {
  std::size_t line = 0;
  while (refusals[line].symbol != symbol) ++line;
  return line;
}

// `answer`, which is what a GPU without the capability would give. Logs the reason at the first call of each line. Safe
// from any thread.
CUresult refuse(std::size_t line, CUresult answer = CUDA_ERROR_NOT_SUPPORTED);

}  // namespace guest::local
