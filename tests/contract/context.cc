// Cases for primary contexts, for the stack of current contexts, for limits, and for created contexts.
#include "tests/contract/suite.h"

#include <thread>

namespace contract {
namespace {

GROUP(no_context, Initialized) {
  CUdevice of = 0;
  CUcontext context = reinterpret_cast<CUcontext>(1);
  CUdeviceptr address = 0;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  std::size_t size = 0;
  show("cuCtxGetCurrent without one", CU(cuCtxGetCurrent)(&context));
  show("cuCtxGetCurrent without one, answer", context == nullptr ? 0 : 1);
  show("cuCtxGetDevice without context", CU(cuCtxGetDevice)(&of));
  show("cuCtxPopCurrent without context", CU(cuCtxPopCurrent_v2)(&context));
  show("cuCtxSetCurrent null", CU(cuCtxSetCurrent)(nullptr));
  show("cuCtxPushCurrent null", CU(cuCtxPushCurrent_v2)(nullptr));
  show("cuCtxDestroy null", CU(cuCtxDestroy_v2)(nullptr));
  show("cuCtxSynchronize without context", CU(cuCtxSynchronize)());
  show("cuMemAlloc without context", CU(cuMemAlloc_v2)(&address, 16));
  show("cuMemAlloc null without context", CU(cuMemAlloc_v2)(nullptr, 16));
  show("cuMemFree null without context", CU(cuMemFree_v2)(0));
  show("cuMemGetInfo without context", CU(cuMemGetInfo_v2)(&size, &size));
  show("cuModuleLoadData without context", CU(cuModuleLoadData)(&module, ptx));
  show("cuStreamCreate without context", CU(cuStreamCreate)(&stream, 0));
  show("cuStreamSynchronize null without context", CU(cuStreamSynchronize)(nullptr));
  show("cuEventCreate without context", CU(cuEventCreate)(&event, 0));
  show("cuEventRecord null without context", CU(cuEventRecord)(nullptr, nullptr));
  show("cuLaunchKernel null without context",
       CU(cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  unsigned flags = 9;
  int active = 9;
  show("cuDevicePrimaryCtxGetState", CU(cuDevicePrimaryCtxGetState)(device, &flags, &active));
  show("primary context active", active);
  show("cuDevicePrimaryCtxGetState device 99", CU(cuDevicePrimaryCtxGetState)(99, &flags, &active));
  show("cuDevicePrimaryCtxGetState null", CU(cuDevicePrimaryCtxGetState)(device, nullptr, &active));
  show("cuDevicePrimaryCtxRelease not retained", CU(cuDevicePrimaryCtxRelease_v2)(device));
  show("cuDevicePrimaryCtxReset not retained", CU(cuDevicePrimaryCtxReset_v2)(device));
  show("cuDevicePrimaryCtxSetFlags nonsense", CU(cuDevicePrimaryCtxSetFlags_v2)(device, 0x7000));
  show("cuDevicePrimaryCtxSetFlags two schedules", CU(cuDevicePrimaryCtxSetFlags_v2)(device, 3));
  show("cuDevicePrimaryCtxRetain null", CU(cuDevicePrimaryCtxRetain)(nullptr, device));
  show("cuDevicePrimaryCtxRetain device 99", CU(cuDevicePrimaryCtxRetain)(&context, 99));
}

GROUP(primary_context, Initialized) {
  CUcontext first = nullptr, second = nullptr, current = nullptr;
  unsigned flags = 9;
  int active = 9;
  show("cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&first, device));
  show("cuDevicePrimaryCtxRetain again", CU(cuDevicePrimaryCtxRetain)(&second, device));
  show("the same handle", first == second ? 1 : 0);
  show("cuCtxGetCurrent after retain", CU(cuCtxGetCurrent)(&current));
  show("current after retain", current == nullptr ? 0 : 1);
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease_v2)(device));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active after one release of two", active);
  show("cuDevicePrimaryCtxSetFlags while active", CU(cuDevicePrimaryCtxSetFlags_v2)(device, CU_CTX_SCHED_YIELD));
  show("cuCtxSetCurrent", CU(cuCtxSetCurrent)(first));
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active after reset", active);
  CUdevice of = 0;
  CUdeviceptr address = 0;
  show("cuMemAlloc after reset", CU(cuMemAlloc_v2)(&address, 16));
  show("cuCtxSynchronize after reset", CU(cuCtxSynchronize)());
  show("cuCtxGetDevice after reset", CU(cuCtxGetDevice)(&of));
  show("cuDevicePrimaryCtxRetain after reset", CU(cuDevicePrimaryCtxRetain)(&second, device));
  show("the same handle after reset", first == second ? 1 : 0);
  show("cuMemAlloc after reset and retain", CU(cuMemAlloc_v2)(&address, 16));
  show("cuMemFree", CU(cuMemFree_v2)(address));
}

GROUP(context_limits, InContext) {
  const CUcontext first = current_context();
  unsigned version = 0;
  std::size_t limit = 0;
  show("cuCtxDestroy of a primary context", CU(cuCtxDestroy_v2)(first));
  show("cuCtxGetApiVersion", CU(cuCtxGetApiVersion)(first, &version));
  show("API version", version);
  show("cuCtxGetFlags null", CU(cuCtxGetFlags)(nullptr));
  show("cuCtxGetLimit stack", CU(cuCtxGetLimit)(&limit, CU_LIMIT_STACK_SIZE));
  show("cuCtxGetLimit 3", CU(cuCtxGetLimit)(&limit, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
  show("cuCtxGetLimit 99", CU(cuCtxGetLimit)(&limit, odd<CUlimit>(99)));
  show("cuCtxGetLimit null", CU(cuCtxGetLimit)(nullptr, CU_LIMIT_STACK_SIZE));
  show("cuCtxSetLimit stack", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048));
  show("cuCtxSetLimit stack, far too large", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, std::size_t{1} << 40));
  show("cuCtxSetLimit 99", CU(cuCtxSetLimit)(odd<CUlimit>(99), 1));
  show("cuCtxSetLimit L2 granularity 500", CU(cuCtxSetLimit)(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 500));
  show("cuCtxSetCacheConfig 99", CU(cuCtxSetCacheConfig)(odd<CUfunc_cache>(99)));
  show("cuCtxGetStreamPriorityRange null", CU(cuCtxGetStreamPriorityRange)(nullptr, nullptr));
}

GROUP(other_contexts, InContext) {
  CUcontext primary = nullptr, made = nullptr, current = nullptr;
  CU(cuCtxGetCurrent)(&primary);
  show("cuCtxCreate flags nonsense", CU(cuCtxCreate_v4)(&made, nullptr, 0x7000, device));
  show("cuCtxCreate device 99", CU(cuCtxCreate_v4)(&made, nullptr, 0, 99));
  show("cuCtxCreate null", CU(cuCtxCreate_v4)(nullptr, nullptr, 0, device));
  show("cuCtxCreate", CU(cuCtxCreate_v4)(&made, nullptr, 0, device));
  CU(cuCtxGetCurrent)(&current);
  show("it is current", current == made ? 1 : 0);
  CUresult elsewhere[2];
  std::thread([&] {
    elsewhere[0] = CU(cuCtxSetCurrent)(made);
    std::thread([&] {
      CU(cuCtxSetCurrent)(made);
      CU(cuCtxDestroy_v2)(made);
    }).join();
    elsewhere[1] = CU(cuCtxSynchronize)();
  }).join();
  show("cuCtxSetCurrent on another thread", elsewhere[0]);
  show("cuCtxSynchronize after a third thread destroyed it", elsewhere[1]);
  CU(cuCtxPopCurrent_v2)(nullptr);
  CU(cuCtxGetCurrent)(&current);
  show("the primary context again", current == primary ? 1 : 0);
  show("cuCtxPushCurrent", CU(cuCtxPushCurrent_v2)(primary));
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&current));
  show("cuCtxPopCurrent null", (CU(cuCtxPushCurrent_v2)(primary), CU(cuCtxPopCurrent_v2)(nullptr)));
  unsigned long long id = 0;
  show("cuCtxGetId null context", CU(cuCtxGetId)(nullptr, &id));
  show("cuCtxEnablePeerAccess itself", CU(cuCtxEnablePeerAccess)(primary, 0));
  show("cuCtxDisablePeerAccess itself", CU(cuCtxDisablePeerAccess)(primary));
}

GROUP(primary_context_flags, Initialized) {
  unsigned flags = 9;
  int active = 9;
  CUcontext context = nullptr;
  show("cuDevicePrimaryCtxSetFlags yield", CU(cuDevicePrimaryCtxSetFlags)(device, CU_CTX_SCHED_YIELD));
  show("cuDevicePrimaryCtxSetFlags_v2 device 99", CU(cuDevicePrimaryCtxSetFlags_v2)(99, 0));
  show("cuDevicePrimaryCtxSetFlags_v2 blocking", CU(cuDevicePrimaryCtxSetFlags_v2)(device, CU_CTX_SCHED_BLOCKING_SYNC));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("flags", flags);
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("flags when active", flags);
  show("cuCtxGetFlags", CU(cuCtxGetFlags)(&flags));
  show("its flags", flags);
  show("cuDevicePrimaryCtxSetFlags when active", CU(cuDevicePrimaryCtxSetFlags_v2)(device, CU_CTX_SCHED_SPIN));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("flags then", flags);
  show("cuCtxGetFlags then", CU(cuCtxGetFlags)(&flags));
  show("its flags", flags);
  show("cuDevicePrimaryCtxGetState both null", CU(cuDevicePrimaryCtxGetState)(device, nullptr, nullptr));
  show("cuDevicePrimaryCtxGetState no active", CU(cuDevicePrimaryCtxGetState)(device, &flags, nullptr));
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease)(device));
  show("cuDevicePrimaryCtxRelease again", CU(cuDevicePrimaryCtxRelease)(device));
  show("cuDevicePrimaryCtxRelease_v2 device 99", CU(cuDevicePrimaryCtxRelease_v2)(99));
  show("cuDevicePrimaryCtxReset device 99", CU(cuDevicePrimaryCtxReset_v2)(99));
  show("cuDevicePrimaryCtxRetain null, device 99", CU(cuDevicePrimaryCtxRetain)(nullptr, 99));
}

// The last user releases the primary context while this thread still has it as its current context.
GROUP(released_context, InContext) {
  CUdeviceptr a = 0, b = 0;
  CUdevice of = 9;
  CUcontext again = nullptr;
  const CUcontext context = current_context();
  CUstream stream = nullptr;
  CU(cuMemAlloc_v2)(&a, 16);
  CU(cuStreamCreate)(&stream, 0);
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease_v2)(device));
  show_flag("it is still current", current_context() == context);
  show("cuCtxGetDevice", CU(cuCtxGetDevice)(&of));
  show("cuMemAlloc", CU(cuMemAlloc_v2)(&b, 16));
  show("cuCtxSetCurrent", CU(cuCtxSetCurrent)(context));
  show("cuCtxPushCurrent", CU(cuCtxPushCurrent_v2)(context));
  show("cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&again, device));
  show_flag("the same handle", again == context);
  show("cuMemFree of memory from before", CU(cuMemFree_v2)(a));
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease_v2)(device));
  show("cuDevicePrimaryCtxRelease of none", CU(cuDevicePrimaryCtxRelease_v2)(device));
  CU(cuDevicePrimaryCtxRetain)(&again, device);
  show("cuMemAlloc", CU(cuMemAlloc_v2)(&b, 16));
  show("cuMemFree", CU(cuMemFree_v2)(b));
}

// Calls each version of cuCtxCreate with invalid arguments and then with valid ones.
GROUP(create_context_forms, Initialized) {
  CUcontext made = nullptr;
  show("cuCtxCreate_v2 null", CU(cuCtxCreate_v2)(nullptr, 0, device));
  show("cuCtxCreate_v2 flags nonsense", CU(cuCtxCreate_v2)(&made, 0x7000, device));
  show("cuCtxCreate_v2 two schedules", CU(cuCtxCreate_v2)(&made, 3, device));
  show("cuCtxCreate_v2 device 99", CU(cuCtxCreate_v2)(&made, 0, 99));
  show("cuCtxCreate_v3 null", CU(cuCtxCreate_v3)(nullptr, nullptr, 0, 0, device));
  show("cuCtxCreate_v3 device 99", CU(cuCtxCreate_v3)(&made, nullptr, 0, 0, 99));
  show("cuCtxCreate_v4 two schedules", CU(cuCtxCreate_v4)(&made, nullptr, 3, device));
  show("cuCtxCreate_v2", CU(cuCtxCreate_v2)(&made, 0, device));
  show("cuCtxDestroy of it", CU(cuCtxDestroy_v2)(made));
  show("cuCtxCreate_v3", CU(cuCtxCreate_v3)(&made, nullptr, 0, 0, device));
  show("cuCtxDestroy of it", CU(cuCtxDestroy_v2)(made));
}

GROUP(context_stack, InContext) {
  const CUcontext context = current_context();
  CUcontext popped = nullptr;
  show("cuCtxPushCurrent", CU(cuCtxPushCurrent_v2)(context));
  show("cuCtxSetCurrent null", CU(cuCtxSetCurrent)(nullptr));
  show_flag("then the one below is current", current_context() == context);
  show("cuCtxSetCurrent null again", CU(cuCtxSetCurrent)(nullptr));
  show_flag("then none", current_context() == nullptr);
  show("cuCtxSetCurrent null, when none is", CU(cuCtxSetCurrent)(nullptr));
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show("cuCtxSetCurrent", CU(cuCtxSetCurrent)(context));
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show_flag("it is that one", popped == context);
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show("cuCtxGetCurrent null", CU(cuCtxGetCurrent)(nullptr));
}

GROUP(context_questions, InContext) {
  const CUcontext context = current_context();
  CUdevice of = 9;
  unsigned number = 0;
  unsigned long long id = 0, same = 1;
  int least = 9, greatest = 9;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_L1;
  show("cuCtxGetDevice", CU(cuCtxGetDevice)(&of));
  show("it is", of);
  show("cuCtxGetDevice null", CU(cuCtxGetDevice)(nullptr));
  show("cuCtxGetDevice_v2", CU(cuCtxGetDevice_v2)(&of, context));
  show("cuCtxGetDevice_v2 null context", CU(cuCtxGetDevice_v2)(&of, nullptr));
  show("cuCtxGetDevice_v2 null", CU(cuCtxGetDevice_v2)(nullptr, context));
  show("cuCtxGetId", CU(cuCtxGetId)(context, &id));
  show("cuCtxGetId null context", CU(cuCtxGetId)(nullptr, &same));
  show_flag("they are one", id == same);
  show("cuCtxGetId null", CU(cuCtxGetId)(context, nullptr));
  show("cuCtxGetApiVersion null context", CU(cuCtxGetApiVersion)(nullptr, &number));
  show("it is", number);
  show("cuCtxGetApiVersion null", CU(cuCtxGetApiVersion)(context, nullptr));
  show("cuCtxGetStreamPriorityRange", CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
  show_flag("greater is smaller", greatest <= least);
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuCtxSynchronize_v2", CU(cuCtxSynchronize_v2)(context));
  show("cuCtxSynchronize_v2 null", CU(cuCtxSynchronize_v2)(nullptr));
  show("cuCtxGetCacheConfig", CU(cuCtxGetCacheConfig)(&cache));
  show("it is", cache);
  show("cuCtxGetCacheConfig null", CU(cuCtxGetCacheConfig)(nullptr));
  show("cuCtxSetCacheConfig", CU(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_SHARED));
  show("cuCtxGetCacheConfig after that", CU(cuCtxGetCacheConfig)(&cache));
  show("it is", cache);
  show("cuCtxSetCacheConfig -1", CU(cuCtxSetCacheConfig)(odd<CUfunc_cache>(-1)));
}

// Shows for each limit whether it can be read, and whether it can be set to its current value.
GROUP(limits, InContext) {
  for (int i = 0; i < CU_LIMIT_MAX; ++i) {
    const auto limit = odd<CUlimit>(i);
    std::size_t value = 0;
    show("cuCtxGetLimit " + std::to_string(i), CU(cuCtxGetLimit)(&value, limit));
    show("cuCtxSetLimit " + std::to_string(i) + " to the same", CU(cuCtxSetLimit)(limit, value));
  }
  show("cuCtxSetLimit -1", CU(cuCtxSetLimit)(odd<CUlimit>(-1), 0));
  show("cuCtxSetLimit printf buffer", CU(cuCtxSetLimit)(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20));
  show("cuCtxSetLimit heap", CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
}

GROUP(limits_after_a_launch, InContext) {
  CU(cuLaunchKernel)(function_of(load_module(), "empty"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  CU(cuCtxSynchronize)();
  show("stack", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  show("printf buffer", CU(cuCtxSetLimit)(CU_LIMIT_PRINTF_FIFO_SIZE, 4 << 20));
  show("heap", CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
}

}  // namespace
}  // namespace contract
