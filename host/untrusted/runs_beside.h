// Which of the calls that give the GPU work does not keep other processes from theirs.
#pragma once

#include <cstring>
#include <span>

#include "ring/api/call.h"
#include "ring/api/records.h"
#include "ring/wire/record.h"

namespace host {

// Whether a record is a copy between host and device so large that a copy engine makes it, beside the kernels of other
// processes. Of 16 MiB this was measured: 312 us alone and beside kernels of 0.5 ms (H200). Copies of a few bytes behave as
// kernels do; where between the two that begins is not known.
inline bool runs_beside(std::uint16_t call, std::span<const std::byte> payload) {
  constexpr std::uint64_t large = 1 << 20;
  switch (call) {
    case api::id_of::cuMemcpyHtoD_v2:
    case api::id_of::cuMemcpyDtoH_v2:
    case api::id_of::cuMemcpyHtoDAsync_v2:
    case api::id_of::cuMemcpyDtoHAsync_v2: break;
    default: return false;
  }
  api::CopyRecord copy;
  if (payload.size() < sizeof copy) return false;
  std::memcpy(&copy, payload.data(), sizeof copy);
  return copy.bytes >= large;
}

}  // namespace host
