// Missing arguments that the driver reports before any other error.
//
// Most calls first check whether CUDA is initialised and whether a context is current and healthy. The calls in this
// file check some arguments earlier, so that a null pointer (or an address of 0) gives the same error in every state.
// Source: the real driver, tests/contract/golden/, groups nothing_*. All functions are pure.
//
// ```cpp
// struct GetName { static constexpr std::string_view name = "cuFuncGetName"; };
// CUresult early_answer(const char** name, CUfunction function) {
//   const auto is_initialised = [] { return true; };
//   return cuabi::missing_argument<GetName>(is_initialised, name, function);  // CUDA_SUCCESS: none is missing
// }
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "ring/api/cuda.h"

namespace cuabi {

struct Missing {
  std::string_view call;
  std::size_t parameter;
  CUresult code;
  bool once_initialised = false;  // the call checks first whether cuInit was called
};

// The checks of each call. The lines of a call are adjacent, in the order of the checks.
inline constexpr Missing missing_arguments[] = {
    {"cuDeviceGetAttribute", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuDevicePrimaryCtxGetState", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuDevicePrimaryCtxGetState", 2, CUDA_ERROR_INVALID_VALUE},
    {"cuDeviceGetHostAtomicCapabilities", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuCtxGetDevice", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuCtxGetDevice_v2", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuCtxGetFlags", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuCtxGetId", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuCtxDestroy_v2", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuCtxGetDevResource", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuCtxFromGreenCtx", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuGreenCtxGetDevResource", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuGreenCtxGetId", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuGreenCtxRecordEvent", 0, CUDA_ERROR_INVALID_CONTEXT},
    {"cuGreenCtxWaitEvent", 0, CUDA_ERROR_INVALID_CONTEXT},
    {"cuGreenCtxStreamCreate", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuDevResourceGenerateDesc", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuArrayGetPlane", 1, CUDA_ERROR_INVALID_HANDLE},
    {"cuMipmappedArrayGetLevel", 1, CUDA_ERROR_INVALID_HANDLE},
    {"cuGraphConditionalHandleCreate", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuModuleUnload", 0, CUDA_ERROR_INVALID_HANDLE, true},
    {"cuModuleGetFunction", 1, CUDA_ERROR_INVALID_HANDLE, true},
    {"cuModuleGetFunctionCount", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuModuleGetGlobal_v2", 2, CUDA_ERROR_INVALID_HANDLE, true},
    {"cuModuleEnumerateFunctions", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuLinkAddData_v2", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuLinkAddFile_v2", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuLinkComplete", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuLinkDestroy", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuLibraryLoadData", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryLoadData", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryLoadFromFile", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryUnload", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuLibraryGetKernel", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryGetKernelCount", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryEnumerateKernels", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryGetModule", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryGetGlobal", 3, CUDA_ERROR_INVALID_VALUE},
    {"cuLibraryGetManaged", 3, CUDA_ERROR_INVALID_VALUE},
    {"cuKernelGetFunction", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuKernelGetLibrary", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuKernelGetAttribute", 2, CUDA_ERROR_INVALID_HANDLE},
    {"cuKernelSetAttribute", 2, CUDA_ERROR_INVALID_HANDLE},
    {"cuKernelSetCacheConfig", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuKernelGetName", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuKernelGetName", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuKernelGetParamInfo", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuKernelGetParamInfo", 2, CUDA_ERROR_INVALID_VALUE},
    {"cuMemHostGetFlags", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemAllocManaged", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemAdvise_v2", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemPrefetchAsync_v2", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemPrefetchBatchAsync", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemDiscardBatchAsync", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemDiscardAndPrefetchBatchAsync", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemcpyBatchAsync", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemcpyBatchAsync_v2", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMemcpy3DBatchAsync", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuMemcpy3DBatchAsync_v2", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuMemGetHandleForAddressRange", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuArrayGetDescriptor_v2", 1, CUDA_ERROR_INVALID_HANDLE},
    {"cuArray3DGetDescriptor_v2", 1, CUDA_ERROR_INVALID_HANDLE},
    {"cuArrayGetMemoryRequirements", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuArrayGetSparseProperties", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMipmappedArrayGetMemoryRequirements", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuMipmappedArrayGetSparseProperties", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamCreate", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamCreateWithPriority", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetPriority", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetDevice", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetFlags", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetId", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetCtx", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetCtx_v2", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamIsCapturing", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetCaptureInfo", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetCaptureInfo_v2", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamGetCaptureInfo_v3", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuStreamDestroy_v2", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuEventQuery", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuEventSynchronize", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuEventDestroy_v2", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuEventElapsedTime", 0, CUDA_ERROR_INVALID_HANDLE},  // unlike the other calls, which return INVALID_VALUE
    {"cuEventElapsedTime_v2", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuFuncGetAttribute", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuFuncSetAttribute", 0, CUDA_ERROR_INVALID_HANDLE, true},
    {"cuFuncSetCacheConfig", 0, CUDA_ERROR_INVALID_HANDLE, true},
    {"cuFuncSetSharedMemConfig", 0, CUDA_ERROR_INVALID_HANDLE, true},
    {"cuFuncGetModule", 0, CUDA_ERROR_INVALID_VALUE, true},
    {"cuFuncGetModule", 1, CUDA_ERROR_INVALID_VALUE, true},
    {"cuFuncGetName", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuFuncGetName", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuFuncGetParamInfo", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuFuncGetParamInfo", 2, CUDA_ERROR_INVALID_VALUE},
    {"cuFuncIsLoaded", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuFuncLoad", 0, CUDA_ERROR_INVALID_HANDLE},
    {"cuLaunchKernelEx", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuOccupancyMaxActiveClusters", 0, CUDA_ERROR_INVALID_VALUE},
    {"cuOccupancyMaxActiveClusters", 1, CUDA_ERROR_INVALID_VALUE},
    {"cuOccupancyMaxActiveClusters", 2, CUDA_ERROR_INVALID_VALUE},
    {"cuOccupancyMaxPotentialClusterSize", 0, CUDA_ERROR_INVALID_VALUE},
};

// Returns the first line and the number of lines for a symbol, or for the symbol without _ptsz.
constexpr std::pair<std::size_t, std::size_t> missing_lines(std::string_view symbol) {
  if (symbol.ends_with("_ptsz")) symbol.remove_suffix(5);
  std::size_t first = 0, count = 0;
  for (std::size_t i = 0; i < std::size(missing_arguments); ++i)
    if (missing_arguments[i].call == symbol) first = count++ == 0 ? i : first;
  return {first, count};
}

// Returns a call's error for a missing argument, or CUDA_SUCCESS if no argument is missing. Symbol::name is the call's
// symbol; `ready` returns whether cuInit has been called.
template <class Symbol, class Ready, class... P>
CUresult missing_argument(Ready ready, P... p) {
  constexpr auto lines = missing_lines(Symbol::name);
  const std::tuple<P...> parameters(p...);
  CUresult result = CUDA_SUCCESS;
  const auto look = [&]<std::size_t i>() {
    constexpr Missing line = missing_arguments[lines.first + i];
    constexpr std::tuple_element_t<line.parameter, std::tuple<P...>> nothing{};
    if (result != CUDA_SUCCESS || std::get<line.parameter>(parameters) != nothing) return;
    if (!line.once_initialised || ready()) result = line.code;
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) { (look.template operator()<i>(), ...); }
  (std::make_index_sequence<lines.second>{});
  return result;
}

}  // namespace cuabi
