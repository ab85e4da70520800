// Calls that the guest knows and refuses: the table's REFUSED lines. Each logs its reason once.
#pragma once

#include <cstddef>
#include <string_view>

#include "ring/api/cuda.h"
#include "ring/api/entry_points.h"

namespace guest::calls {

// The index of the symbol's line in api::entry_points. Refusing a call that the table lists as served does not compile.
consteval std::size_t refusal_of(std::string_view symbol) {
  std::size_t line = 0;
  while (api::entry_points[line].line != api::Line::Refused || api::entry_points[line].name != symbol) ++line;
  return line;
}

// Returns `answer`, the result of a GPU without the capability. Logs the reason at the first call of each line. Safe
// from any thread.
CUresult refuse(std::size_t line, CUresult answer = CUDA_ERROR_NOT_SUPPORTED);

}  // namespace guest::calls
