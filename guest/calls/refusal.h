// Calls that the guest knows and refuses: the table's REFUSED lines. The first call of a line logs the line's reason.
#pragma once

#include <cstddef>
#include <string_view>

#include "ring/api/cuda.h"
#include "ring/api/entry_points.h"

namespace guest::calls {

// Returns the index of the symbol's line in api::entry_points. The evaluation fails to compile for a call that the
// table lists as served.
consteval std::size_t refusal_of(std::string_view symbol) {
  std::size_t line = 0;
  while (api::entry_points[line].line != api::Line::Refused || api::entry_points[line].name != symbol) ++line;
  return line;
}

// Returns `answer`, the result of a GPU without the capability. The first call for a line logs the reason. Safe from
// any thread.
CUresult refuse(std::size_t line, CUresult answer = CUDA_ERROR_NOT_SUPPORTED);

}  // namespace guest::calls
