// A kernel's parameters in a record: one packed block, as the driver accepts it through CU_LAUNCH_PARAM_BUFFER_POINTER.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "guest/marshal/custom.h"
#include "guest/objects/objects.h"

namespace guest {

// Reads `extra`, which names the caller's packed parameters: CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE in any order,
// then END.
inline CUresult parse_extra(void** extra, Part& block) {
  const std::size_t* size = nullptr;
  for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      block.at = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = static_cast<const std::size_t*>(extra[i + 1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (block.at == nullptr || size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  block.bytes = *size;
  return CUDA_SUCCESS;
}

// Packs the parameters of a node. The program gives the parameters by pointers or by `extra`. Returns the errors of a
// launch.
inline CUresult pack_parameters(const FunctionInfo& f, void** params, void** extra, std::vector<std::byte>& packed) {
  if (extra != nullptr && params != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (extra != nullptr && extra[0] != CU_LAUNCH_PARAM_END) {
    Part block{};
    if (const CUresult r = parse_extra(extra, block); r != CUDA_SUCCESS) return r;
    if (block.bytes > f.param_bytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    const auto* const from = static_cast<const std::byte*>(block.at);
    packed.assign(from, from + block.bytes);
    return CUDA_SUCCESS;
  }
  if (params == nullptr && !f.params.empty()) return CUDA_ERROR_INVALID_VALUE;
  packed.assign(f.param_bytes, std::byte{});
  for (std::size_t i = 0; i < f.params.size(); ++i)
    std::memcpy(packed.data() + f.params[i].offset, params[i], f.params[i].size);
  return CUDA_SUCCESS;
}

}  // namespace guest
