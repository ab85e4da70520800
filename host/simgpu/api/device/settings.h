// The settings of the simulated devices in the environment.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simgpu {

struct UsageFile;

struct Settings {
  std::size_t memory = std::size_t{4} << 30;  // of each device: IVGPU_SIM_MEMORY, bytes or with K, M, G
  std::size_t context_memory = 0;             // that a context takes of it: IVGPU_SIM_CONTEXT_MEMORY, the same
  std::uint64_t chunks_below = 0;             // IVGPU_SIM_CHUNKS_BELOW, an address (memory/chunks.h); 0: not so
  UsageFile* usage = nullptr;                 // IVGPU_SIM_USAGE (usage_file.h); null: it names none
  bool launch_blocking = false;               // CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel is done
  bool pageable = false;                      // IVGPU_SIM_HMM=1: reports that kernels reach all of the process's memory
  std::vector<std::uint32_t> visible;  // which of the IVGPU_SIM_DEVICES devices are there, after CUDA_VISIBLE_DEVICES
};

// On a bad value: one line on stderr, and cuInit's result.
CUresult read_settings(Settings& out);

// "GPU-69766770-752d-7369-6d00-000000000001", byte for byte, of the device with this index.
CUuuid device_uuid(int index);

}  // namespace simgpu
