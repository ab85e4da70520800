// A kernel's parameters one by one, out of a packed block.
#pragma once

#include <cstddef>
#include <vector>

#include "host/driver/driver.h"
#include "ring/api/types.h"

namespace host {

// Points at each parameter in the block; a kernel without parameters has one null pointer, so that there is an array. False: the
// block is too short for the kernel, or the driver does not say where its parameters are. `kind`: of the handle that stands
// for the function.
inline bool point_at_each(const Driver& driver, CUfunction function, api::Handle kind, std::byte* packed,
                          std::size_t bytes, std::vector<void*>& each) {
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult told = kind == api::Handle::Kernel
                              ? driver.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), i, &offset, &size)
                              : driver.cuFuncGetParamInfo(function, i, &offset, &size);
    if (told == CUDA_ERROR_INVALID_VALUE) break;  // there is no such parameter
    if (told != CUDA_SUCCESS || size > bytes || offset > bytes - size) return false;
    each.push_back(packed + offset);
  }
  if (each.empty()) each.push_back(nullptr);
  return true;
}

}  // namespace host
