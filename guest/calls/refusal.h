// Calls that the guest knows and refuses: the table's REFUSED lines. Each says once in the log why.
#pragma once

#include <cstddef>
#include <string_view>

#include "ring/api/cuda.h"
#include "ring/api/entry_points.h"

namespace guest::calls {

// The symbol's line among api::entry_points. A call that the table says is served cannot be refused: it does not compile.
consteval std::size_t refusal_of(std::string_view symbol) {
  std::size_t line = 0;
  while (api::entry_points[line].line != api::Line::Refused || api::entry_points[line].name != symbol) ++line;
  return line;
}

// `answer`, which is what a GPU without the capability would give. Logs the reason at the first call of each line. Safe
// from any thread.
CUresult refuse(std::size_t line, CUresult answer = CUDA_ERROR_NOT_SUPPORTED);

}  // namespace guest::calls
