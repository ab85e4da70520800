// The JIT options that cross to the worker. Guest and worker both check, independently. All functions are pure.
//
// ```cpp
// #include <span>
// CUresult check(std::span<const CUjit_option> options) {
//   for (const CUjit_option option : options)
//     if (!api::crosses_boundary(option)) return CUDA_ERROR_NOT_SUPPORTED;
//   return options.size() <= api::max_jit_options ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
// }
// ```
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/api/cuda.h"

namespace api {

inline constexpr std::uint32_t max_jit_options = 32;
inline constexpr std::size_t max_jit_log = 16 << 10;  // bytes of one log; a reply has space for both logs

// True for an option whose value is a number, or a log buffer that guest and worker each replace by a buffer of their
// own.
constexpr bool crosses_boundary(CUjit_option option) {
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_LTO:
    case CU_JIT_FTZ:
    case CU_JIT_PREC_DIV:
    case CU_JIT_PREC_SQRT:
    case CU_JIT_FMA:
    case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
    case CU_JIT_SPLIT_COMPILE: return true;
    default: return false;
  }
}

constexpr bool is_log_buffer(CUjit_option option) {
  return option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER;
}
constexpr bool is_log_size(CUjit_option option) {
  return option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
}

// True for an option of a whole link, such as its report and its target. The driver does not accept these options for a
// single input.
constexpr bool is_of_whole_link(CUjit_option option) {
  return is_log_buffer(option) || is_log_size(option) || option == CU_JIT_WALL_TIME || option == CU_JIT_TARGET ||
         option == CU_JIT_TARGET_FROM_CUCONTEXT;
}

}  // namespace api
