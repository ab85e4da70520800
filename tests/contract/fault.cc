// Cases for a context after a fault: calls that still work, and calls that report the fault. All other calls fail.
#include "tests/contract/suite.h"

namespace contract {
namespace {

// A context that ended by a kernel's store to address 16, and objects that were created before the fault.
struct Failed {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUdeviceptr a = 0, out = 16;
  CUstream stream = nullptr;
  CUevent event = nullptr, recorded = nullptr, kept = nullptr;
  CUcontext context = nullptr;
  CUdevice of = 0;
  std::size_t size = 0;
  unsigned value = 7, type = 0, flags = 0;
  int active = 0;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUlibrary library_before = nullptr, library_after = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUstream old_stream = nullptr;
  CUmemoryPool pool = nullptr;
  void* pinned = nullptr;
  int number = 0;
  float ms = 0;
  unsigned long long id = 0;
  void* parameters[2] = {&out, &value};

  Failed() {
    CU(cuMemAlloc_v2)(&a, 16);
    CU(cuMemHostAlloc)(&pinned, 16, 0);
    CU(cuEventCreate)(&recorded, 0);
    CU(cuEventCreate)(&kept, 0);
    CU(cuEventRecord)(kept, nullptr);
    CU(cuStreamCreate)(&old_stream, 0);
    CU(cuModuleLoadData)(&module, ptx);
    CU(cuModuleGetFunction)(&store, module, "store");
    CU(cuLibraryLoadData)(&library_before, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }

  void launch_and_wait() {
    show("launch that will fail", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    show("cuCtxSynchronize", CU(cuCtxSynchronize)());
    show("failed: cuCtxSynchronize", CU(cuCtxSynchronize)());
    show("failed: cuStreamSynchronize", CU(cuStreamSynchronize)(nullptr));
    show("failed: cuStreamQuery", CU(cuStreamQuery)(nullptr));
  }

  void memory_and_events() {
    show("failed: cuStreamCreate", CU(cuStreamCreate)(&stream, 0));
    show("failed: cuEventCreate", CU(cuEventCreate)(&event, 0));
    show("failed: cuEventQuery", CU(cuEventQuery)(recorded));
    show("failed: cuEventRecord", CU(cuEventRecord)(recorded, nullptr));
    show("failed: cuEventDestroy", CU(cuEventDestroy_v2)(recorded));
    show("failed: cuMemAlloc", CU(cuMemAlloc_v2)(&out, 16));
    show("failed: cuMemGetInfo", CU(cuMemGetInfo_v2)(&size, &size));
    show("failed: cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&out, &size, a));
    show("failed: cuPointerGetAttribute", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    show("failed: cuMemcpyDtoH", CU(cuMemcpyDtoH_v2)(&value, a, 4));
    show("failed: cuMemsetD8", CU(cuMemsetD8_v2)(a, 0, 16));
  }

  void code() {
    show("failed: launch of a grid of 0", CU(cuLaunchKernel)(store, 0, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    show("failed: cuModuleGetFunction", CU(cuModuleGetFunction)(&store, module, "empty"));
    show("failed: cuModuleGetFunction unknown", CU(cuModuleGetFunction)(&store, module, "nothing"));
    show("failed: cuModuleLoadData", CU(cuModuleLoadData)(&module, ptx));
    show("failed: cuMemAlloc 0", CU(cuMemAlloc_v2)(&out, 0));
    show("failed: cuMemFree null", CU(cuMemFree_v2)(0));
    show("failed: cuMemFree", CU(cuMemFree_v2)(a));
    show("failed: cuLibraryGetKernel", CU(cuLibraryGetKernel)(&kernel, library_before, "store"));
    show("failed: cuLibraryGetKernel unknown", CU(cuLibraryGetKernel)(&kernel, library_before, "nothing"));
    show("failed: cuKernelGetFunction", CU(cuKernelGetFunction)(&function, kernel));
    show("failed: cuLibraryLoadData",
         CU(cuLibraryLoadData)(&library_after, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  }

  void streams() {
    show("failed: cuEventElapsedTime", CU(cuEventElapsedTime_v2)(&ms, kept, kept));
    show("failed: cuStreamGetFlags", CU(cuStreamGetFlags)(old_stream, &flags));
    show("failed: cuStreamGetId", CU(cuStreamGetId)(old_stream, &id));
    show("failed: cuStreamWaitEvent", CU(cuStreamWaitEvent)(old_stream, kept, 0));
    show("failed: cuStreamIsCapturing", CU(cuStreamIsCapturing)(old_stream, &capture));
    show("failed: cuStreamDestroy", CU(cuStreamDestroy_v2)(old_stream));
    show("failed: cuStreamDestroy null", CU(cuStreamDestroy_v2)(nullptr));
    show("failed: cuLaunchHostFunc", CU(cuLaunchHostFunc)(
                                         nullptr, [](void*) {}, nullptr));
  }

  void pinned_and_pools() {
    show("failed: cuMemHostAlloc", CU(cuMemHostAlloc)(&pinned, 16, 0));
    show("failed: cuMemHostGetFlags", CU(cuMemHostGetFlags)(&flags, pinned));
    show("failed: cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer_v2)(&out, pinned, 0));
    show("failed: cuMemFreeHost", CU(cuMemFreeHost)(pinned));
    show("failed: cuMemAllocAsync", CU(cuMemAllocAsync)(&out, 16, nullptr));
    show("failed: default pool", CU(cuDeviceGetDefaultMemPool)(&pool, device));
    show("failed: cuFuncGetAttribute", CU(cuFuncGetAttribute)(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, store));
    show("failed: occupancy", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&number, store, 32, 0));
    show("failed: cuDeviceGetAttribute", CU(cuDeviceGetAttribute)(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  }

  void contexts() {
    show("failed: cuCtxGetApiVersion", CU(cuCtxGetApiVersion)(nullptr, &flags));
    show("failed: cuCtxGetId", CU(cuCtxGetId)(nullptr, &id));
    show("failed: cuCtxGetStreamPriorityRange", CU(cuCtxGetStreamPriorityRange)(&number, nullptr));
    show("failed: cuLibraryUnload", CU(cuLibraryUnload)(library_before));
    show("failed: cuModuleUnload", CU(cuModuleUnload)(module));
    show("failed: cuCtxGetCurrent", CU(cuCtxGetCurrent)(&context));
    show("failed: cuCtxGetDevice", CU(cuCtxGetDevice)(&of));
    show("failed: cuCtxGetFlags", CU(cuCtxGetFlags)(&flags));
    show("failed: cuCtxGetLimit", CU(cuCtxGetLimit)(&size, CU_LIMIT_STACK_SIZE));
    show("failed: cuCtxSetCurrent", CU(cuCtxSetCurrent)(context));
    show("failed: cuDevicePrimaryCtxGetState", CU(cuDevicePrimaryCtxGetState)(device, &flags, &active));
    show("failed: active", active);
    show("failed: cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&context, device));
    show("failed: cuCtxCreate", CU(cuCtxCreate_v4)(&context, nullptr, 0, device));
    show("failed: cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
    show("failed: cuDevicePrimaryCtxRetain after reset", CU(cuDevicePrimaryCtxRetain)(&context, device));
    show("failed: cuMemAlloc after reset", CU(cuMemAlloc_v2)(&out, 16));
  }
};

GROUP(after_a_fault, InContext) {
  Failed failed;
  failed.launch_and_wait();
  failed.memory_and_events();
  failed.code();
  failed.streams();
  failed.pinned_and_pools();
  failed.contexts();
}

// Shows the errors after a kernel's `trap` and after a misaligned store.
GROUP(after_a_trap, InContext) {
  CUmodule module = nullptr;
  CUfunction stop = nullptr;
  CU(cuModuleLoadData)(&module, ptx);
  CU(cuModuleGetFunction)(&stop, module, "stop");
  show("launch of a trap", CU(cuLaunchKernel)(stop, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  show("trapped", CU(cuCtxSynchronize)());
  show("trapped: cuCtxSynchronize again", CU(cuCtxSynchronize)());
}

GROUP(after_a_misaligned_store, InContext) {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUdeviceptr out = 0;
  unsigned value = 1;
  void* parameters[] = {&out, &value};
  CU(cuMemAlloc_v2)(&out, 16);
  ++out;
  CU(cuModuleLoadData)(&module, ptx);
  CU(cuModuleGetFunction)(&store, module, "store");
  show("launch of a misaligned store", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("misaligned", CU(cuCtxSynchronize)());
}

}  // namespace
}  // namespace contract
