// Loads the driver like any program: libcuda.so.1, by name or path, with the measured entry points. A failure prints
// one line on standard output and ends the program.
#pragma once

#include <cuda.h>

namespace measure {

#define IVGPU_MEASURED_CALLS(X)    \
  X(cuInit)                        \
  X(cuDriverGetVersion)            \
  X(cuDeviceGet)                   \
  X(cuDeviceGetName)               \
  X(cuDeviceGetAttribute)          \
  X(cuDevicePrimaryCtxRetain)      \
  X(cuCtxSetCurrent)               \
  X(cuCtxGetCurrent)               \
  X(cuCtxGetCacheConfig)           \
  X(cuCtxSynchronize)              \
  X(cuModuleLoadData)              \
  X(cuModuleUnload)                \
  X(cuModuleGetFunction)           \
  X(cuLaunchKernel)                \
  X(cuStreamCreate)                \
  X(cuStreamDestroy)               \
  X(cuStreamSynchronize)           \
  X(cuStreamWaitEvent)             \
  X(cuStreamWaitValue32)           \
  X(cuStreamQuery)                 \
  X(cuEventCreate)                 \
  X(cuEventDestroy)                \
  X(cuEventRecord)                 \
  X(cuEventQuery)                  \
  X(cuEventSynchronize)            \
  X(cuEventElapsedTime)            \
  X(cuMemAlloc)                    \
  X(cuMemFree)                     \
  X(cuMemHostAlloc)                \
  X(cuMemFreeHost)                 \
  X(cuMemHostGetDevicePointer)     \
  X(cuMemHostRegister)             \
  X(cuMemHostUnregister)           \
  X(cuMemAllocManaged)             \
  X(cuMemsetD8)                    \
  X(cuMemcpyHtoD)                  \
  X(cuMemcpyDtoH)                  \
  X(cuMemcpy2D)                    \
  X(cuArrayCreate)                 \
  X(cuArrayDestroy)                \
  X(cuTexObjectCreate)             \
  X(cuTexObjectDestroy)            \
  X(cuMemGetAllocationGranularity) \
  X(cuMemAddressReserve)           \
  X(cuMemAddressFree)              \
  X(cuMemCreate)                   \
  X(cuMemRelease)                  \
  X(cuMemMap)                      \
  X(cuMemUnmap)                    \
  X(cuMemSetAccess)                \
  X(cuDeviceGetDefaultMemPool)     \
  X(cuMemPoolSetAttribute)         \
  X(cuMemAllocAsync)               \
  X(cuMemFreeAsync)                \
  X(cuGetErrorName)

// cuda.h renames these members: cuMemAlloc becomes cuMemAlloc_v2.
struct Driver {
#define X(name) decltype(&::name) name = nullptr;
  IVGPU_MEASURED_CALLS(X)
#undef X
};
extern Driver driver;

void open_driver(const char* library);

[[noreturn]] void fail(const char* what, const char* why);
void check(CUresult result, const char* what);
#define CHECK(call) ::measure::check(::measure::driver.call, #call)

// The primary context of the first device, current in this thread, with two kernels.
struct Device {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUfunction nothing = nullptr;  // takes eight parameters and does nothing
  CUfunction store = nullptr;    // store(at, value)
};
Device open_device();

}  // namespace measure
