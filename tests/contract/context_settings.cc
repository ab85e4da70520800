// Cases for the settings of a created context (flags, limits, configurations), and for calls that take a context
// handle.
#include "tests/contract/contexts.h"

namespace contract {
namespace {

unsigned flags_now() {
  unsigned flags = 999;
  CU(cuCtxGetFlags)(&flags);
  return flags;
}

void set_each_flag() {
  for (const unsigned flags : {0x1U, 0x2U, 0x3U, 0x4U, 0x8U, 0x10U, 0x20U, 0x80U, 0x90U, 0x100U, 0x0U}) {
    show("cuCtxSetFlags " + std::to_string(flags), CU(cuCtxSetFlags)(flags));
    show("flags after " + std::to_string(flags), flags_now());
  }
}

GROUP(flags_of_created, Initialized) {
  show("cuCtxSetFlags without context", CU(cuCtxSetFlags)(0));
  const CUcontext a = make_context(CU_CTX_SCHED_YIELD), b = make_context();
  set_each_flag();
  CU(cuCtxSetCurrent)(a);
  show("the other's flags", flags_now());
  CU(cuCtxSetCurrent)(b);
  show("made without sync: cuCtxSetFlags sync", CU(cuCtxSetFlags)(CU_CTX_SYNC_MEMOPS));
  CU(cuCtxDestroy_v2)(b);
}

GROUP(flags_of_created_more, Initialized) {
  make_context(0x84);
  show("flags", flags_now());
  for (const unsigned flags : {0x1U, 0x0U, 0x80U}) {
    show("cuCtxSetFlags " + std::to_string(flags), CU(cuCtxSetFlags)(flags));
    show("flags after " + std::to_string(flags), flags_now());
  }
}

GROUP(flags_of_primary, InContext) {
  unsigned flags = 0;
  int active = 0;
  set_each_flag();
  show("cuCtxSetFlags sync and spin", CU(cuCtxSetFlags)(0x81));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("the device's flags", flags);
  CU(cuDevicePrimaryCtxSetFlags_v2)(device, CU_CTX_SCHED_BLOCKING_SYNC);
  show("flags after cuDevicePrimaryCtxSetFlags", flags_now());
  CU(cuDevicePrimaryCtxReset_v2)(device);
  CUcontext context = nullptr;
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  show("flags after a reset", flags_now());
}

GROUP(limits_of_created, Initialized) {
  std::size_t first = 0, other = 0, heap = 0;
  const CUcontext a = make_context(), b = make_context();
  show("cuCtxSetLimit stack", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  show("cuCtxSetLimit heap", CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
  show("cuCtxGetLimit stack", CU(cuCtxGetLimit)(&first, CU_LIMIT_STACK_SIZE));
  show("it is", static_cast<long long>(first));
  CU(cuCtxSetCurrent)(a);
  CU(cuCtxGetLimit)(&other, CU_LIMIT_STACK_SIZE);
  CU(cuCtxGetLimit)(&heap, CU_LIMIT_MALLOC_HEAP_SIZE);
  show("the other's stack", static_cast<long long>(other));
  show("the other's heap", static_cast<long long>(heap));
  CUcontext primary = nullptr;
  CU(cuDevicePrimaryCtxRetain)(&primary, device);
  CU(cuCtxSetCurrent)(primary);
  CU(cuCtxGetLimit)(&other, CU_LIMIT_STACK_SIZE);
  show("the primary's stack", static_cast<long long>(other));
  CU(cuCtxDestroy_v2)(b);
  make_context();
  CU(cuCtxGetLimit)(&other, CU_LIMIT_STACK_SIZE);
  show("a later one's stack", static_cast<long long>(other));
}

GROUP(configurations, Initialized) {
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_L1;
  CUsharedconfig shared = odd<CUsharedconfig>(9);
  int least = 9, greatest = 9;
  show("cuCtxGetSharedMemConfig without context", CU(cuCtxGetSharedMemConfig)(&shared));
  show("cuCtxSetSharedMemConfig without context", CU(cuCtxSetSharedMemConfig)(shared));
  show("cuCtxResetPersistingL2Cache without context", CU(cuCtxResetPersistingL2Cache)());
  show("cuCtxGetStreamPriorityRange without context", CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
  const CUcontext a = make_context(), b = make_context();
  show("cuCtxSetCacheConfig", CU(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_SHARED));
  CU(cuCtxSetCurrent)(a);
  show("cuCtxGetCacheConfig", CU(cuCtxGetCacheConfig)(&cache));
  show("the other's", cache);
  show("cuCtxGetSharedMemConfig", CU(cuCtxGetSharedMemConfig)(&shared));
  show("it is", shared);
  show("cuCtxGetSharedMemConfig null", CU(cuCtxGetSharedMemConfig)(nullptr));
  for (const int config : {-1, 0, 1, 2, 3}) {
    show("cuCtxSetSharedMemConfig " + std::to_string(config), CU(cuCtxSetSharedMemConfig)(odd<CUsharedconfig>(config)));
    CU(cuCtxGetSharedMemConfig)(&shared);
    show("then it is, after " + std::to_string(config), shared);
  }
  show("cuCtxResetPersistingL2Cache", CU(cuCtxResetPersistingL2Cache)());
  show("cuCtxGetStreamPriorityRange", CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
  show("least", least);
  show("greatest", greatest);
  show("cuCtxGetStreamPriorityRange one", CU(cuCtxGetStreamPriorityRange)(&least, nullptr));
  CU(cuCtxDestroy_v2)(b);
}

// Calls that take a context handle while another context is current, and while no context is current.
GROUP(named_contexts, Initialized) {
  const CUcontext a = make_context(), b = make_context();
  CUdevice of = 9;
  unsigned long long id = 0;
  unsigned version = 0;
  CU(cuCtxSetCurrent)(b);
  show("cuCtxSynchronize_v2 of another", CU(cuCtxSynchronize_v2)(a));
  show("cuCtxGetDevice_v2 of another", CU(cuCtxGetDevice_v2)(&of, a));
  CU(cuCtxPopCurrent_v2)(nullptr);
  CU(cuCtxPopCurrent_v2)(nullptr);
  show_flag("none is current", current_context() == nullptr);
  show("cuCtxSynchronize_v2 with none current", CU(cuCtxSynchronize_v2)(a));
  show("cuCtxGetDevice_v2 with none current", CU(cuCtxGetDevice_v2)(&of, a));
  show("it is", of);
  show("cuCtxGetId with none current", CU(cuCtxGetId)(a, &id));
  show("cuCtxGetApiVersion with none current", CU(cuCtxGetApiVersion)(a, &version));
  show("cuCtxDestroy with none current", CU(cuCtxDestroy_v2)(b));
  show("cuCtxSynchronize_v2 null with none current", CU(cuCtxSynchronize_v2)(nullptr));
  show("cuCtxEnablePeerAccess with none current", CU(cuCtxEnablePeerAccess)(a, 0));
}

// Events that record all work of a context, and waits of all work of a context for an event.
GROUP(context_events, InContext) {
  const CUcontext primary = current_context();
  Objects of_primary;
  const CUcontext a = make_context();
  Objects in_a;
  show("cuCtxRecordEvent", CU(cuCtxRecordEvent)(a, in_a.event));
  show("cuEventSynchronize", CU(cuEventSynchronize)(in_a.event));
  show("cuCtxWaitEvent", CU(cuCtxWaitEvent)(a, in_a.event));
  show("cuCtxRecordEvent with timing", CU(cuCtxRecordEvent)(a, in_a.timed));
  show("cuCtxRecordEvent another's event", CU(cuCtxRecordEvent)(a, of_primary.event));
  show("cuCtxRecordEvent in another", CU(cuCtxRecordEvent)(primary, in_a.event));
  show("cuCtxRecordEvent of another, its event", CU(cuCtxRecordEvent)(primary, of_primary.event));
  show("cuCtxWaitEvent another's event", CU(cuCtxWaitEvent)(a, of_primary.event));
  show("cuCtxWaitEvent in another", CU(cuCtxWaitEvent)(primary, in_a.event));
  show("cuCtxRecordEvent no event", CU(cuCtxRecordEvent)(a, nullptr));
  show("cuCtxWaitEvent no event", CU(cuCtxWaitEvent)(a, nullptr));
  show("cuCtxRecordEvent no context", CU(cuCtxRecordEvent)(nullptr, in_a.event));
  show("cuCtxWaitEvent no context", CU(cuCtxWaitEvent)(nullptr, in_a.event));
  CU(cuCtxSetCurrent)(primary);
  show("cuCtxRecordEvent while another is current", CU(cuCtxRecordEvent)(a, in_a.event));
  CUevent fresh = nullptr;
  CU(cuEventCreate)(&fresh, 0);
  show("cuCtxWaitEvent not recorded", CU(cuCtxWaitEvent)(primary, fresh));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(context_events_with_none_current, InContext) {
  const CUcontext primary = current_context();
  Objects objects;
  CU(cuCtxSetCurrent)(nullptr);
  show("cuCtxRecordEvent", CU(cuCtxRecordEvent)(primary, objects.event));
  show("cuCtxWaitEvent", CU(cuCtxWaitEvent)(primary, objects.event));
  show("cuCtxRecordEvent no context", CU(cuCtxRecordEvent)(nullptr, objects.event));
  show("cuCtxWaitEvent no context", CU(cuCtxWaitEvent)(nullptr, objects.event));
}

}  // namespace
}  // namespace contract
