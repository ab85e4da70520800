// Cases for created contexts that exist together with the primary context or with contexts of other threads, that end
// while work is running, or that have failed.
#include "tests/contract/contexts.h"

#include <thread>
#include <vector>

namespace contract {
namespace {

// The kernel stores 1 to `out` after some tens of milliseconds.
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

// ---- threads, work, faults ----------------------------------------------------------------------------------------

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

// The default streams of one thread in two contexts.
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
  // created in the primary context, so that its pinned memory outlives the context that uses it
  const Objects of_primary;
  CUmodule module = nullptr;
  const CUcontext a = make_context();
  CUstream stream = nullptr;
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  CU(cuModuleLoadData)(&module, slow_ptx);
  show("launch", launch(function_of(module, "slow"), stream, address_of(of_primary.pinned), 5));
  show("cuStreamQuery", CU(cuStreamQuery)(stream));
  show("cuCtxSynchronize_v2 of the primary", CU(cuCtxSynchronize_v2)([] {
         CUcontext primary = nullptr;
         CU(cuDevicePrimaryCtxRetain)(&primary, device);
         return primary;
       }()));
  show("still at work", CU(cuStreamQuery)(stream));
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
  show("the work is done", word_of(of_primary.pinned));
}

GROUP(synchronize_is_of_one, Initialized) {
  const Two two;
  CUmodule module = nullptr;
  CU(cuModuleLoadData)(&module, slow_ptx);
  show("launch", launch(function_of(module, "slow"), two.in_b->stream, address_of(two.in_b->pinned), 5));
  show("cuCtxSynchronize_v2 of the other", CU(cuCtxSynchronize_v2)(two.a));
  show("does not wait", CU(cuStreamQuery)(two.in_b->stream));
  show("cuCtxRecordEvent", CU(cuCtxRecordEvent)(two.b, two.in_b->event));
  show("it is not reached", CU(cuEventQuery)(two.in_b->event));
  CU(cuCtxSetCurrent)(two.a);
  show("cuCtxSynchronize_v2 of it", CU(cuCtxSynchronize_v2)(two.b));
  show("waits", word_of(two.in_b->pinned));
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

// Destroys the failed context before making any other call.
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
