// The number of a stream, as cuStreamGetId gives it, for libraries that ask by the driver's private table: cuBLASLt asks so while
// the stream is captured, when the driver refuses cuStreamGetId.
#pragma once

#include <cstdint>

#include "ring/api/cuda.h"

namespace guest {

CUresult stream_number(CUstream stream, std::uint64_t* number);

}  // namespace guest
