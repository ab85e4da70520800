// Several contexts at once: objects of one while another is current, libraries in both, work, faults, many.
#include "tests/contract/contexts.h"

#include <optional>
#include <thread>
#include <vector>

namespace contract {
namespace {

// Stores 1 to `out` after some tens of milliseconds.
constexpr char slow_ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry slow(.param .u64 out, .param .u32 value)
{
  .reg .pred %p<2>;
  .reg .u32 %r<4>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r2, 0;
  mov.u32 %r3, 1;
loop:
  mad.lo.u32 %r3, %r3, 1664525, 1013904223;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 8000000;
  @%p1 bra loop;
  st.global.u32 [%rd2+4], %r3;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

// Two contexts with objects; b is current.
struct Two {
  Two() {
    a = make_context();
    in_a.emplace();
    b = make_context();
    in_b.emplace();
  }
  CUcontext a = nullptr, b = nullptr;
  std::optional<Objects> in_a, in_b;
};

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
  show("the pinned word", *static_cast<volatile int*>(two.in_a->pinned));
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

// A library belongs to no context; what is derived from it does.
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
  show("the one", word_at(global_a));
  show("the other", word_at(global_b));
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

// ---- the primary context beside created ones -------------------------------------------------------------------------

GROUP(reset_beside_created, InContext) {
  const CUcontext primary = current_context();
  const Objects of_primary;
  const CUcontext a = make_context();
  const Objects in_a;
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show_flag("the created one is current", current_context() == a);
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("its memory", word_at(in_a.memory));
  show("launch", launch(in_a.store, in_a.stream, in_a.memory, 9));
  show("cuStreamSynchronize", CU(cuStreamSynchronize)(in_a.stream));
  show("its memory then", word_at(in_a.memory));
  show("cuMemFree of the primary's memory", CU(cuMemFree_v2)(of_primary.memory));
  CU(cuCtxPopCurrent_v2)(nullptr);
  show_flag("the primary below", current_context() == primary);
  show("cuCtxSynchronize in it", CU(cuCtxSynchronize)());
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
}

GROUP(release_beside_created, InContext) {
  const CUcontext a = make_context();
  const Objects in_a;
  unsigned flags = 0;
  int active = 9;
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease_v2)(device));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active", active);
  show("launch", launch(in_a.store, in_a.stream, in_a.memory, 9));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("its memory", word_at(in_a.memory));
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
  show("cuCtxSynchronize in the released", CU(cuCtxSynchronize)());
}

GROUP(created_is_no_primary, Initialized) {
  unsigned flags = 9;
  int active = 9;
  CUcontext primary = nullptr;
  const CUcontext a = make_context();
  show("cuDevicePrimaryCtxGetState", CU(cuDevicePrimaryCtxGetState)(device, &flags, &active));
  show("active", active);
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease_v2)(device));
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&primary, device));
  show_flag("another", primary != a);
  show_flag("the created one is current", current_context() == a);
}

// ---- threads, work, faults, many -------------------------------------------------------------------------------------

GROUP(contexts_of_two_threads, Initialized) {
  const CUcontext a = make_context();
  const Objects in_a;
  CUcontext b = nullptr;
  std::thread([&] {
    show_flag("a new thread has none", current_context() == nullptr);
    b = make_context();
    const Objects in_b;
    show("launch there", launch(in_b.store, nullptr, in_b.memory, 3));
    show("cuCtxSynchronize there", CU(cuCtxSynchronize)());
    show("memory there", word_at(in_b.memory));
  }).join();
  show_flag("the first thread has its own", current_context() == a);
  show("launch", launch(in_a.store, nullptr, in_a.memory, 4));
  show("memory", word_at(in_a.memory));
  show("cuCtxDestroy of the ended thread's", CU(cuCtxDestroy_v2)(b));
}

// One thread's default streams in two contexts.
GROUP(default_streams_of_two, Initialized) {
  const Two two;
  unsigned long long of_b = 0, of_a = 0, legacy_b = 0, legacy_a = 0;
  CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &of_b);
  CU(cuStreamGetId)(CU_STREAM_LEGACY, &legacy_b);
  show("launch on the thread's", launch(two.in_b->store, CU_STREAM_PER_THREAD, two.in_b->memory, 3));
  show("cuMemsetD8Async_ptsz", CU(cuMemsetD8Async_ptsz)(two.in_b->memory, 0, 16, nullptr));
  show("cuStreamSynchronize_ptsz", CU(cuStreamSynchronize_ptsz)(nullptr));
  CU(cuCtxSetCurrent)(two.a);
  CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &of_a);
  CU(cuStreamGetId)(CU_STREAM_LEGACY, &legacy_a);
  show_flag("each context has its own of the thread", of_a != of_b);
  show_flag("each context has its own legacy", legacy_a != legacy_b);
  show("launch on the thread's in the other", launch(two.in_a->store, CU_STREAM_PER_THREAD, two.in_a->memory, 3));
  show("cuStreamSynchronize_ptsz in the other", CU(cuStreamSynchronize_ptsz)(nullptr));
  show("the word", word_at(two.in_a->memory));
}

GROUP(destroy_waits_for_work, InContext) {
  const Objects of_primary;  // its pinned memory outlives the context that works on it
  CUmodule module = nullptr;
  const CUcontext a = make_context();
  CUstream stream = nullptr;
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  CU(cuModuleLoadData)(&module, slow_ptx);
  volatile int* word = static_cast<int*>(of_primary.pinned);
  *word = 0;
  show("launch", launch(function_of(module, "slow"), stream, address_of(of_primary.pinned), 5));
  show("cuStreamQuery", CU(cuStreamQuery)(stream));
  show("cuCtxSynchronize_v2 of the primary", CU(cuCtxSynchronize_v2)([] {
         CUcontext primary = nullptr;
         CU(cuDevicePrimaryCtxRetain)(&primary, device);
         return primary;
       }()));
  show("still at work", CU(cuStreamQuery)(stream));
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
  show("the work is done", *word);
}

GROUP(synchronize_is_of_one, Initialized) {
  const Two two;
  CUmodule module = nullptr;
  CU(cuModuleLoadData)(&module, slow_ptx);
  volatile int* word = static_cast<int*>(two.in_b->pinned);
  *word = 0;
  show("launch", launch(function_of(module, "slow"), two.in_b->stream, address_of(two.in_b->pinned), 5));
  show("cuCtxSynchronize_v2 of the other", CU(cuCtxSynchronize_v2)(two.a));
  show("does not wait", CU(cuStreamQuery)(two.in_b->stream));
  show("cuCtxRecordEvent", CU(cuCtxRecordEvent)(two.b, two.in_b->event));
  show("it is not reached", CU(cuEventQuery)(two.in_b->event));
  CU(cuCtxSetCurrent)(two.a);
  show("cuCtxSynchronize_v2 of it", CU(cuCtxSynchronize_v2)(two.b));
  show("waits", *word);
  show("it is reached", CU(cuEventQuery)(two.in_b->event));
}

void show_after_a_fault(const std::string& who, const Objects& objects) {
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  unsigned value = 0;
  CU(cuCtxSetCurrent)(objects.context);
  show(who + ": cuMemAlloc", CU(cuMemAlloc_v2)(&memory, 16));
  show(who + ": cuStreamCreate", CU(cuStreamCreate)(&stream, 0));
  show(who + ": launch", launch(objects.store, nullptr, objects.memory, 3));
  show(who + ": cuMemcpyDtoH", CU(cuMemcpyDtoH_v2)(&value, objects.memory, 4));
  show(who + ": cuStreamQuery", CU(cuStreamQuery)(objects.stream));
  show(who + ": cuEventQuery", CU(cuEventQuery)(objects.event));
  show(who + ": cuCtxSynchronize", CU(cuCtxSynchronize)());
  show(who + ": cuMemFree", CU(cuMemFree_v2)(objects.memory));
}

void show_end_of_a_fault(const Two& two) {
  CUcontext made = nullptr, primary = nullptr;
  show("cuCtxCreate", CU(cuCtxCreate_v2)(&made, 0, device));
  show("cuCtxDestroy of the failed", CU(cuCtxDestroy_v2)(two.a));
  show("cuCtxDestroy of the other", CU(cuCtxDestroy_v2)(two.b));
  show_flag("none is current", current_context() == nullptr);
  show("cuCtxCreate after both", CU(cuCtxCreate_v2)(&made, 0, device));
  show("cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&primary, device));
  show("cuCtxSetCurrent of it", CU(cuCtxSetCurrent)(primary));
  show("cuCtxSynchronize in it", CU(cuCtxSynchronize)());
}

GROUP(trap_in_one_of_two, Initialized) {
  const Two two;
  CU(cuCtxSetCurrent)(two.a);
  show("launch of a trap", launch(function_of(two.in_a->module, "stop"), nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show_after_a_fault("the other", *two.in_b);
  show_after_a_fault("the failed", *two.in_a);
  show_end_of_a_fault(two);
}

GROUP(bad_address_in_one_of_two, Initialized) {
  const Two two;
  CU(cuCtxSetCurrent)(two.a);
  show("launch of a bad store", launch(two.in_a->store, nullptr, 16));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show_after_a_fault("the other", *two.in_b);
  show_after_a_fault("the failed", *two.in_a);
  show_end_of_a_fault(two);
}

// The failed context is destroyed before anybody asks anything else.
GROUP(fault_then_destroy, Initialized) {
  const Two two;
  CU(cuCtxSetCurrent)(two.a);
  show("launch of a trap", launch(function_of(two.in_a->module, "stop"), nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(two.a));
  show_after_a_fault("the other", *two.in_b);
  show("cuCtxDestroy of the other", CU(cuCtxDestroy_v2)(two.b));
  CUcontext made = nullptr;
  show("cuCtxCreate", CU(cuCtxCreate_v2)(&made, 0, device));
  show("cuCtxSynchronize in it", CU(cuCtxSynchronize)());
}

GROUP(fault_in_the_primary, InContext) {
  const Objects of_primary;
  make_context();
  const Objects in_a;
  CU(cuCtxSetCurrent)(of_primary.context);
  show("launch of a trap", launch(function_of(of_primary.module, "stop"), nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show_after_a_fault("the created", in_a);
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show_after_a_fault("the created, after the reset", in_a);
  show("cuCtxDestroy of the created", CU(cuCtxDestroy_v2)(in_a.context));
}

GROUP(many_contexts, Initialized) {
  std::vector<CUcontext> made;
  for (int i = 0; i < 20; ++i)
    if (const CUcontext context = make_context(); context != nullptr) made.push_back(context);
  show_flag("twenty were made", made.size() == 20);
  show("cuCtxSynchronize in the last", CU(cuCtxSynchronize)());
  int destroyed = 0;
  for (const CUcontext context : made) destroyed += CU(cuCtxDestroy_v2)(context) == CUDA_SUCCESS ? 1 : 0;
  show_flag("in the order they were made, each was destroyed", destroyed == 20);
  show_flag("none is current", current_context() == nullptr);
  CUcontext popped = nullptr;
  show_guarded("cuCtxPopCurrent", [&] { return CU(cuCtxPopCurrent_v2)(&popped); });
}

}  // namespace
}  // namespace contract
