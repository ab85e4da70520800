// What an address is, as CUDA tells it.
#pragma once

#include <cstdint>

#include "guest/process/context.h"
#include "ring/api/cuda.h"

namespace guest {

// A pointer as CUDA sees it.
struct Place {
  enum class Kind : std::uint8_t { Unknown, Device, Pinned } kind = Kind::Unknown;
  std::uint64_t start = 0, bytes = 0, id = 0;
  Context* context = nullptr;  // of device memory; null: pinned memory, which all share
};

Place place_of(CUdeviceptr at);
// Where the GPU sees it.
CUdeviceptr device_pointer(const Place& place, CUdeviceptr at);

}  // namespace guest
