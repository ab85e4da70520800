// Cases for several contexts at the same time: objects of one context are used while another is current, and libraries
// are used in both.
#include "tests/contract/contexts.h"

namespace contract {
namespace {

GROUP(memory_of_another, Initialized) {
  const Two two;
  const CUdeviceptr a = two.in_a->memory, b = two.in_b->memory;
  CUcontext of = nullptr;
  CUdeviceptr start = 0, device_pointer = 0;
  std::size_t size = 0;
  unsigned type = 0, flags = 0;
  show("cuMemsetD8", CU(cuMemsetD8_v2)(a, 1, 16));
  show("cuMemcpyDtoH", CU(cuMemcpyDtoH_v2)(&type, a, 4));
  show("cuMemcpyDtoD to it", CU(cuMemcpyDtoD_v2)(a, b, 16));
  show("cuMemcpyDtoD from it", CU(cuMemcpyDtoD_v2)(b, a, 16));
  show("cuMemcpy", CU(cuMemcpy)(a, b, 16));
  show("cuMemcpyDtoDAsync", CU(cuMemcpyDtoDAsync_v2)(b, a, 16, two.in_b->stream));
  show("cuMemcpyPeer", CU(cuMemcpyPeer)(b, two.b, a, two.a, 16));
  show("cuMemcpyPeer, contexts exchanged", CU(cuMemcpyPeer)(b, two.a, a, two.b, 16));
  show("launch that stores to it", launch(two.in_b->store, nullptr, a, 3));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("the word", word_at(a));
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &size, a));
  show("cuPointerGetAttribute context", CU(cuPointerGetAttribute)(&of, CU_POINTER_ATTRIBUTE_CONTEXT, a));
  show_flag("it is the other", of == two.a);
  show("cuPointerGetAttribute context of the pinned",
       CU(cuPointerGetAttribute)(&of, CU_POINTER_ATTRIBUTE_CONTEXT, address_of(two.in_a->pinned)));
  show_flag("it is the other too", of == two.a);
  show("cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer_v2)(&device_pointer, two.in_a->pinned, 0));
  show("cuMemHostGetFlags", CU(cuMemHostGetFlags)(&flags, two.in_a->pinned));
  show("launch that stores to the pinned", launch(two.in_b->store, nullptr, device_pointer, 4));
  show("cuCtxSynchronize again", CU(cuCtxSynchronize)());
  show("the pinned word", word_of(two.in_a->pinned));
  show("write 32", CU(cuStreamWriteValue32_v2)(nullptr, a, 5, 0));
  show("read a global", CU(cuMemcpyDtoH_v2)(&type, two.in_a->global, 4));
  show("it holds", type);
  show("cuMemFreeHost", CU(cuMemFreeHost)(two.in_a->pinned));
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("cuMemFree again", CU(cuMemFree_v2)(a));
  CU(cuCtxSetCurrent)(nullptr);
  CU(cuCtxSetCurrent)(nullptr);
  show_flag("none is current", current_context() == nullptr);
  show("cuMemFree with none current", CU(cuMemFree_v2)(b));
  show("cuMemFreeHost with none current", CU(cuMemFreeHost)(two.in_b->pinned));
}

GROUP(stream_of_another, Initialized) {
  const Two two;
  const CUstream s = two.in_a->stream;
  CUcontext of = nullptr;
  CUgreenCtx green = nullptr;
  CUdevice number = 9;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  CUstreamCaptureStatus status{};
  show("cuStreamQuery", CU(cuStreamQuery)(s));
  show("cuStreamSynchronize", CU(cuStreamSynchronize)(s));
  show("cuStreamGetFlags", CU(cuStreamGetFlags)(s, &flags));
  show("cuStreamGetPriority", CU(cuStreamGetPriority)(s, &priority));
  show("cuStreamGetId", CU(cuStreamGetId)(s, &id));
  show("cuStreamGetDevice", CU(cuStreamGetDevice)(s, &number));
  show("cuStreamGetCtx", CU(cuStreamGetCtx)(s, &of));
  show_flag("it is the other", of == two.a);
  of = nullptr;
  show("cuStreamGetCtx_v2", CU(cuStreamGetCtx_v2)(s, &of, &green));
  show_flag("it is the other", of == two.a);
  CU(cuStreamGetCtx)(nullptr, &of);
  show_flag("the NULL stream's is the current", of == two.b);
  CU(cuStreamGetCtx)(CU_STREAM_PER_THREAD, &of);
  show_flag("the thread's stream's is the current", of == two.b);
  show("cuStreamIsCapturing", CU(cuStreamIsCapturing)(s, &status));
  show("launch of mine", launch(two.in_b->empty, s));
  show("launch of the stream's", launch(two.in_a->empty, s));
  show("launch of the other's on mine", launch(two.in_a->empty, two.in_b->stream));
  show("launch of the other's on NULL", launch(two.in_a->empty, nullptr));
  show("launch of the other's on the thread's", launch(two.in_a->empty, CU_STREAM_PER_THREAD));
  show("fill", CU(cuMemsetD8Async)(two.in_b->memory, 0, 16, s));
  show("fill of the stream's memory", CU(cuMemsetD8Async)(two.in_a->memory, 0, 16, s));
  show("copy to the device", CU(cuMemcpyHtoDAsync_v2)(two.in_b->memory, two.in_b->pinned, 16, s));
  show("copy to the host", CU(cuMemcpyDtoHAsync_v2)(two.in_b->pinned, two.in_b->memory, 16, s));
  show("copy on the device", CU(cuMemcpyDtoDAsync_v2)(two.in_b->memory, two.in_a->memory, 16, s));
  show("write 32", CU(cuStreamWriteValue32_v2)(s, two.in_b->memory, 5, 0));
  show("host function", CU(cuLaunchHostFunc)(
                            s, [](void*) {}, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuStreamDestroy", CU(cuStreamDestroy_v2)(s));
  CU(cuCtxSetCurrent)(two.a);
  show("cuCtxSynchronize of the other", CU(cuCtxSynchronize)());
}

GROUP(event_of_another, Initialized) {
  const Two two;
  float ms = -1;
  const CUevent e = two.in_a->event;
  show("cuEventQuery", CU(cuEventQuery)(e));
  show("cuEventSynchronize", CU(cuEventSynchronize)(e));
  show("cuEventRecord on mine", CU(cuEventRecord)(e, two.in_b->stream));
  show("cuEventRecord on NULL", CU(cuEventRecord)(e, nullptr));
  show("cuEventRecord on its", CU(cuEventRecord)(e, two.in_a->stream));
  show("cuEventRecord of mine on its", CU(cuEventRecord)(two.in_b->event, two.in_a->stream));
  show("cuStreamWaitEvent of mine", CU(cuStreamWaitEvent)(two.in_b->stream, e, 0));
  show("cuStreamWaitEvent of NULL", CU(cuStreamWaitEvent)(nullptr, e, 0));
  show("cuStreamWaitEvent of its", CU(cuStreamWaitEvent)(two.in_a->stream, e, 0));
  show("cuStreamWaitEvent of its, mine", CU(cuStreamWaitEvent)(two.in_a->stream, two.in_b->event, 0));
  show("cuEventElapsedTime of both its", CU(cuEventElapsedTime_v2)(&ms, two.in_a->timed, two.in_a->timed));
  show("cuEventElapsedTime across", CU(cuEventElapsedTime_v2)(&ms, two.in_a->timed, two.in_b->timed));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuEventDestroy", CU(cuEventDestroy_v2)(e));
  CU(cuCtxSetCurrent)(nullptr);
  CU(cuCtxSetCurrent)(nullptr);
  show("cuEventQuery with none current", CU(cuEventQuery)(two.in_b->event));
  show("cuEventSynchronize with none current", CU(cuEventSynchronize)(two.in_b->event));
  show("cuEventRecord with none current", CU(cuEventRecord)(two.in_b->event, two.in_b->stream));
  show("cuEventElapsedTime with none current", CU(cuEventElapsedTime_v2)(&ms, two.in_b->timed, two.in_b->timed));
  show("cuStreamWaitEvent with none current", CU(cuStreamWaitEvent)(two.in_b->stream, two.in_b->event, 0));
  CU(cuStreamSynchronize)(two.in_b->stream);
  show("cuStreamQuery with none current", CU(cuStreamQuery)(two.in_b->stream));
  show("cuStreamSynchronize with none current", CU(cuStreamSynchronize)(two.in_b->stream));
  show("launch with none current", launch(two.in_b->empty, two.in_b->stream));
  show("fill with none current", CU(cuMemsetD8Async)(two.in_b->memory, 0, 16, two.in_b->stream));
  show("cuEventDestroy with none current", CU(cuEventDestroy_v2)(two.in_b->event));
  show("cuStreamDestroy with none current", CU(cuStreamDestroy_v2)(two.in_b->stream));
}

GROUP(module_of_another, Initialized) {
  const Two two;
  CUmodule of = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  const char* name = nullptr;
  int value = 0;
  show("cuFuncGetModule", CU(cuFuncGetModule)(&of, two.in_a->store));
  show_flag("it is that", of == two.in_a->module);
  show("cuFuncGetName", CU(cuFuncGetName)(&name, two.in_a->store));
  show("cuFuncGetAttribute", CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, two.in_a->store));
  show("cuFuncSetCacheConfig", CU(cuFuncSetCacheConfig)(two.in_a->store, CU_FUNC_CACHE_PREFER_L1));
  show("occupancy", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&value, two.in_a->store, 32, 0));
  show("cuModuleGetFunction", CU(cuModuleGetFunction)(&function, two.in_a->module, "store"));
  show_flag("the same", function == two.in_a->store);
  show("cuModuleGetFunction unknown", CU(cuModuleGetFunction)(&function, two.in_a->module, "nothing"));
  show("cuModuleGetGlobal", CU(cuModuleGetGlobal_v2)(&address, nullptr, two.in_a->module, "answer"));
  show_flag("the same address", address == two.in_a->global);
  show("cuModuleUnload", CU(cuModuleUnload)(two.in_a->module));
  CU(cuCtxSetCurrent)(nullptr);
  CU(cuCtxSetCurrent)(nullptr);
  show("cuModuleGetFunction with none current", CU(cuModuleGetFunction)(&function, two.in_b->module, "store"));
  show("cuFuncGetAttribute with none current",
       CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, two.in_b->store));
  show("cuModuleUnload with none current", CU(cuModuleUnload)(two.in_b->module));
}

// A library belongs to no context, but the objects derived from the library do.
GROUP(library_in_two, Initialized) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction in_a = nullptr, in_b = nullptr;
  CUmodule module_a = nullptr, module_b = nullptr;
  CUdeviceptr global_a = 0, global_b = 0;
  int value = 0;
  CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CU(cuLibraryGetKernel)(&kernel, library, "store");
  const CUcontext a = make_context();
  show("cuKernelGetFunction", CU(cuKernelGetFunction)(&in_a, kernel));
  show("cuLibraryGetModule", CU(cuLibraryGetModule)(&module_a, library));
  show("cuLibraryGetGlobal", CU(cuLibraryGetGlobal)(&global_a, nullptr, library, "answer"));
  const CUcontext b = make_context();
  show("cuKernelGetFunction in the other", CU(cuKernelGetFunction)(&in_b, kernel));
  show("cuLibraryGetModule in the other", CU(cuLibraryGetModule)(&module_b, library));
  show("cuLibraryGetGlobal in the other", CU(cuLibraryGetGlobal)(&global_b, nullptr, library, "answer"));
  show_flag("functions differ", in_a != in_b);
  show_flag("modules differ", module_a != module_b);
  show_flag("globals differ", global_a != global_b);
  CU(cuMemsetD32_v2)(global_a, 5, 1);
  show("the other", word_at(global_b));  // a copy in this context does not wait for a fill in another context
  show("launch of the kernel", launch(reinterpret_cast<CUfunction>(kernel), nullptr, global_b, 6));
  show("launch of the other's function", launch(in_a, nullptr, global_a, 6));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("the other now", word_at(global_b));
  show("cuKernelGetAttribute",
       CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device));
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
  show("the kernel still runs", launch(reinterpret_cast<CUfunction>(kernel), nullptr, global_b, 8));
  show("cuCtxSynchronize then", CU(cuCtxSynchronize)());
  show("the other then", word_at(global_b));
  CU(cuCtxDestroy_v2)(b);
  show("cuKernelGetFunction without context", CU(cuKernelGetFunction)(&in_a, kernel));
  make_context();
  show("cuKernelGetFunction in a third", CU(cuKernelGetFunction)(&in_a, kernel));
  CU(cuLibraryGetGlobal)(&global_a, nullptr, library, "answer");
  show("its global is fresh", word_at(global_a));
  show("cuLibraryUnload", CU(cuLibraryUnload)(library));
  show("cuCtxSynchronize at the end", CU(cuCtxSynchronize)());
}

GROUP(library_loaded_in_one, Initialized) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const CUcontext a = make_context();
  CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
  show("cuLibraryGetKernel", CU(cuLibraryGetKernel)(&kernel, library, "empty"));
  make_context();
  show("launch in another", launch(reinterpret_cast<CUfunction>(kernel), nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuLibraryUnload", CU(cuLibraryUnload)(library));
}

}  // namespace
}  // namespace contract
