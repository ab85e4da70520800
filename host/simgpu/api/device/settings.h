// Settings of the simulated devices, read from the environment.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simgpu {

struct UsageFile;

struct Settings {
  std::size_t memory = std::size_t{4} << 30;  // bytes per device: IVGPU_SIM_MEMORY, a number with suffix K, M or G
  // device memory in bytes that a context occupies: IVGPU_SIM_CONTEXT_MEMORY
  std::size_t context_memory = 0;
  std::uint64_t chunks_below = 0;  // IVGPU_SIM_CHUNKS_BELOW, an address (memory/chunks.h); 0: unused
  UsageFile* usage = nullptr;      // IVGPU_SIM_USAGE (usage_file.h); null if the variable is not set
  bool launch_blocking = false;    // CUDA_LAUNCH_BLOCKING=1: a launch waits for its kernel
  // IVGPU_SIM_HMM=1: the device reports that kernels can access all memory of the process
  bool pageable = false;
  std::vector<std::uint32_t> visible;  // the devices of IVGPU_SIM_DEVICES that CUDA_VISIBLE_DEVICES selects
};

// If a variable has an invalid value, prints a line on stderr and returns the error for cuInit.
CUresult read_settings(Settings& out);

// The UUID of a device, as in "GPU-69766770-752d-7369-6d00-000000000001".
CUuuid device_uuid(int index);

}  // namespace simgpu
