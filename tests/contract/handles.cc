// Handles that are none: destroyed ones, and such as no call ever gave.
//
// The real driver takes a handle as a pointer, and a program that passes a wrong one may end; so does the simulated
// GPU, on purpose. So these cases have no golden answers. Our guest library knows which handles are alive, and answers
// CUDA_ERROR_INVALID_HANDLE (for contexts CUDA_ERROR_INVALID_CONTEXT): asked of it alone.
#include "tests/contract/handles.h"

#include "tests/contract/suite.h"

namespace contract {
namespace {

template <class Handle>
Handle made_up() {
  return reinterpret_cast<Handle>(std::uintptr_t{0x123450});
}

void with_stream(const std::string& kind, CUstream s) {
  CUstreamCaptureStatus status{};
  CUdeviceptr a = 0;
  CUcontext context = nullptr;
  CUdevice of = 0;
  CUevent event = nullptr;
  char host[16];
  unsigned long long id = 0;
  unsigned flags = 0;
  int priority = 0;
  CU(cuMemAlloc_v2)(&a, 16);
  CU(cuEventCreate)(&event, 0);
  const CUfunction empty = function_of(load_module(), "empty");
  show(kind + " stream, cuStreamQuery", CU(cuStreamQuery)(s));
  show(kind + " stream, cuStreamSynchronize", CU(cuStreamSynchronize)(s));
  show(kind + " stream, cuStreamDestroy", CU(cuStreamDestroy_v2)(s));
  show(kind + " stream, cuStreamGetFlags", CU(cuStreamGetFlags)(s, &flags));
  show(kind + " stream, cuStreamGetPriority", CU(cuStreamGetPriority)(s, &priority));
  show(kind + " stream, cuStreamGetId", CU(cuStreamGetId)(s, &id));
  show(kind + " stream, cuStreamGetDevice", CU(cuStreamGetDevice)(s, &of));
  show(kind + " stream, cuStreamGetCtx", CU(cuStreamGetCtx)(s, &context));
  show(kind + " stream, cuStreamGetCtx_v2", CU(cuStreamGetCtx_v2)(s, &context, nullptr));
  show(kind + " stream, cuStreamIsCapturing", CU(cuStreamIsCapturing)(s, &status));
  show(kind + " stream, cuStreamWaitEvent", CU(cuStreamWaitEvent)(s, event, 0));
  show(kind + " stream, cuEventRecord", CU(cuEventRecord)(event, s));
  show(kind + " stream, cuEventRecordWithFlags", CU(cuEventRecordWithFlags)(event, s, 0));
  show(kind + " stream, cuMemcpyHtoDAsync", CU(cuMemcpyHtoDAsync_v2)(a, host, 16, s));
  show(kind + " stream, cuMemcpyDtoHAsync", CU(cuMemcpyDtoHAsync_v2)(host, a, 16, s));
  show(kind + " stream, cuMemcpyDtoDAsync", CU(cuMemcpyDtoDAsync_v2)(a, a, 16, s));
  show(kind + " stream, cuMemsetD8Async", CU(cuMemsetD8Async)(a, 0, 16, s));
  show(kind + " stream, cuMemsetD16Async", CU(cuMemsetD16Async)(a, 0, 8, s));
  show(kind + " stream, cuMemsetD32Async", CU(cuMemsetD32Async)(a, 0, 4, s));
  show(kind + " stream, cuStreamWriteValue32", CU(cuStreamWriteValue32_v2)(s, a, 0, 0));
  show(kind + " stream, cuStreamWaitValue64", CU(cuStreamWaitValue64_v2)(s, a, 0, 0));
  show(kind + " stream, cuLaunchKernel", CU(cuLaunchKernel)(empty, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
  show(kind + " stream, cuLaunchCooperativeKernel",
       CU(cuLaunchCooperativeKernel)(empty, 1, 1, 1, 1, 1, 1, 0, s, nullptr));
}

void with_event(const std::string& kind, CUevent e) {
  float ms = 0;
  show(kind + " event, cuEventQuery", CU(cuEventQuery)(e));
  show(kind + " event, cuEventSynchronize", CU(cuEventSynchronize)(e));
  show(kind + " event, cuEventRecord", CU(cuEventRecord)(e, nullptr));
  show(kind + " event, cuEventRecordWithFlags", CU(cuEventRecordWithFlags)(e, nullptr, 0));
  show(kind + " event, cuEventElapsedTime", CU(cuEventElapsedTime)(&ms, e, e));
  show(kind + " event, cuEventElapsedTime_v2", CU(cuEventElapsedTime_v2)(&ms, e, e));
  show(kind + " event, cuEventDestroy", CU(cuEventDestroy_v2)(e));
  show(kind + " event, cuStreamWaitEvent", CU(cuStreamWaitEvent)(nullptr, e, 0));
}

void with_module(const std::string& kind, CUmodule m) {
  CUfunction f = nullptr;
  CUdeviceptr a = 0;
  std::size_t size = 0;
  unsigned count = 0;
  show(kind + " module, cuModuleGetFunction", CU(cuModuleGetFunction)(&f, m, "empty"));
  show(kind + " module, cuModuleGetFunctionCount", CU(cuModuleGetFunctionCount)(&count, m));
  show(kind + " module, cuModuleGetGlobal", CU(cuModuleGetGlobal_v2)(&a, &size, m, "answer"));
  show(kind + " module, cuModuleUnload", CU(cuModuleUnload)(m));
}

void with_function(const std::string& kind, CUfunction f) {
  int value = 0, block = 0;
  std::size_t size = 0;
  CUmodule m = nullptr;
  const char* name = nullptr;
  CUfunctionLoadingState state{};
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  show(kind + " function, cuLaunchKernel", CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  show(kind + " function, cuLaunchKernelEx", CU(cuLaunchKernelEx)(&config, f, nullptr, nullptr));
  show(kind + " function, cuFuncGetAttribute", CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
  show(kind + " function, cuFuncSetAttribute",
       CU(cuFuncSetAttribute)(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0));
  show(kind + " function, cuFuncSetCacheConfig", CU(cuFuncSetCacheConfig)(f, CU_FUNC_CACHE_PREFER_L1));
  show(kind + " function, cuFuncGetModule", CU(cuFuncGetModule)(&m, f));
  show(kind + " function, cuFuncGetName", CU(cuFuncGetName)(&name, f));
  show(kind + " function, cuFuncGetParamInfo", CU(cuFuncGetParamInfo)(f, 0, &size, &size));
  show(kind + " function, cuFuncLoad", CU(cuFuncLoad)(f));
  show(kind + " function, cuFuncIsLoaded", CU(cuFuncIsLoaded)(&state, f));
  show(kind + " function, occupancy", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&value, f, 32, 0));
  show(kind + " function, occupancy with flags",
       CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(&value, f, 32, 0, 0));
  show(kind + " function, best block", CU(cuOccupancyMaxPotentialBlockSize)(&value, &block, f, nullptr, 0, 0));
  show(kind + " function, shared memory", CU(cuOccupancyAvailableDynamicSMemPerBlock)(&size, f, 1, 32));
}

void with_library(const std::string& kind, CUlibrary l, CUkernel k) {
  CUkernel found = nullptr;
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  CUlibrary of = nullptr;
  CUdeviceptr a = 0;
  std::size_t size = 0;
  unsigned count = 0;
  int value = 0;
  const char* name = nullptr;
  constexpr auto shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  show(kind + " library, cuLibraryGetKernel", CU(cuLibraryGetKernel)(&found, l, "empty"));
  show(kind + " library, cuLibraryGetKernelCount", CU(cuLibraryGetKernelCount)(&count, l));
  show(kind + " library, cuLibraryGetModule", CU(cuLibraryGetModule)(&m, l));
  show(kind + " library, cuLibraryGetGlobal", CU(cuLibraryGetGlobal)(&a, &size, l, "answer"));
  show(kind + " library, cuLibraryUnload", CU(cuLibraryUnload)(l));
  show(kind + " kernel, cuKernelGetFunction", CU(cuKernelGetFunction)(&f, k));
  show(kind + " kernel, cuKernelGetLibrary", CU(cuKernelGetLibrary)(&of, k));
  show(kind + " kernel, cuKernelGetName", CU(cuKernelGetName)(&name, k));
  show(kind + " kernel, cuKernelGetParamInfo", CU(cuKernelGetParamInfo)(k, 0, &size, &size));
  show(kind + " kernel, cuKernelGetAttribute", CU(cuKernelGetAttribute)(&value, shared, k, device));
  show(kind + " kernel, cuKernelSetAttribute", CU(cuKernelSetAttribute)(shared, 0, k, device));
  show(kind + " kernel, cuKernelSetCacheConfig", CU(cuKernelSetCacheConfig)(k, CU_FUNC_CACHE_PREFER_L1, device));
}

void with_context(const std::string& kind, CUcontext c) {
  CUdevice of = 0;
  unsigned version = 0;
  unsigned long long id = 0;
  show(kind + " context, cuCtxSetCurrent", CU(cuCtxSetCurrent)(c));
  show(kind + " context, cuCtxPushCurrent", CU(cuCtxPushCurrent_v2)(c));
  show(kind + " context, cuCtxGetDevice_v2", CU(cuCtxGetDevice_v2)(&of, c));
  show(kind + " context, cuCtxGetId", CU(cuCtxGetId)(c, &id));
  show(kind + " context, cuCtxGetApiVersion", CU(cuCtxGetApiVersion)(c, &version));
  show(kind + " context, cuCtxSynchronize_v2", CU(cuCtxSynchronize_v2)(c));
}

void destroyed() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CU(cuStreamCreate)(&stream, 0);
  CU(cuStreamDestroy_v2)(stream);
  CU(cuEventCreate)(&event, 0);
  CU(cuEventDestroy_v2)(event);
  const CUmodule module = load_module();
  const CUfunction function = function_of(module, "empty");
  CU(cuModuleUnload)(module);
  CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CU(cuLibraryGetKernel)(&kernel, library, "empty");
  CU(cuLibraryUnload)(library);
  with_stream("destroyed", stream);
  with_event("destroyed", event);
  with_module("destroyed", module);
  with_function("destroyed", function);
  with_library("destroyed", library, kernel);
}

void of_another_kind() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CU(cuStreamCreate)(&stream, 0);
  CU(cuEventCreate)(&event, 0);
  with_event("another kind's", reinterpret_cast<CUevent>(stream));
  with_stream("another kind's", reinterpret_cast<CUstream>(event));
  with_module("another kind's", reinterpret_cast<CUmodule>(stream));
  with_function("another kind's", reinterpret_cast<CUfunction>(event));
  with_library("another kind's", reinterpret_cast<CUlibrary>(stream), reinterpret_cast<CUkernel>(event));
  with_context("another kind's", reinterpret_cast<CUcontext>(stream));
}

void never_issued() {
  with_stream("never issued", made_up<CUstream>());
  with_event("never issued", made_up<CUevent>());
  with_module("never issued", made_up<CUmodule>());
  with_function("never issued", made_up<CUfunction>());
  with_library("never issued", made_up<CUlibrary>(), made_up<CUkernel>());
  with_context("never issued", made_up<CUcontext>());
}

}  // namespace

const Group wrong_handles{"wrong_handles", Start::InContext, [] {
                            destroyed();
                            of_another_kind();
                            never_issued();
                          }};

}  // namespace contract
