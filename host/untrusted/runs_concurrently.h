// Finds submissions that do not delay the GPU work of other processes.
#pragma once

#include <cstring>
#include <span>

#include "ring/api/call.h"
#include "ring/api/records.h"
#include "ring/wire/record.h"

namespace host {

// Returns true for a copy between host and device that is large enough for a copy engine, which runs concurrently with
// other processes' kernels. Measured for 16 MiB on an H200: 312 us, both alone and beside kernels of 0.5 ms. Copies of
// a few bytes delay others as kernels do; the threshold in between is unknown.
inline bool runs_concurrently(std::uint16_t call, std::span<const std::byte> payload) {
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
