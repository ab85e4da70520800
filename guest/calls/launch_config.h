// A launch's configuration, as cuLaunchKernelEx and questions about occupancy are given it.
#pragma once

#include "guest/log.h"
#include "ring/api/cuda.h"
#include "ring/api/launch_attributes.h"

namespace guest {

// The contents of a configuration that cross the boundary.
inline CUresult check_config(const char* call, const CUlaunchConfig* c) {
  if (c == nullptr || (c->numAttrs != 0 && c->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (c->numAttrs > api::max_launch_attributes) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < c->numAttrs; ++i)
    if (c->attrs[i].id < 0 || c->attrs[i].id >= CU_LAUNCH_ATTRIBUTE_MAX) {
      return CUDA_ERROR_INVALID_VALUE;
    } else if (!api::crosses_boundary(c->attrs[i].id)) {
      log(Level::Warn, "%s: launch attribute %d is not served yet", call, c->attrs[i].id);
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  return CUDA_SUCCESS;
}

}  // namespace guest
