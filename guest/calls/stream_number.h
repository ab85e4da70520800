// The number of a stream, as cuStreamGetId returns it, for libraries that use the driver's private table. cuBLASLt asks
// for the number while the stream is captured, when the driver refuses cuStreamGetId.
#pragma once

#include <cstdint>

#include "ring/api/cuda.h"

namespace guest {

CUresult stream_number(CUstream stream, std::uint64_t* number);

}  // namespace guest
