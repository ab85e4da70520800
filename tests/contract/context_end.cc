// The end of a context that a program made: what is current then, what dies with it, how handles of the dead answer.
#include "tests/contract/contexts.h"

#include <optional>
#include <thread>

namespace contract {
namespace {

// What the calls give while a destroyed context is still the thread's current one.
void show_calls_in(const std::string& state, CUcontext dead) {
  CUdevice of = 9;
  unsigned number = 9;
  unsigned long long id = 0;
  std::size_t size = 0;
  CUdeviceptr a = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunc_cache cache{};
  CUcontext context = nullptr;
  void* host = nullptr;
  int least = 0;
  const auto ask = [&](const std::string& what, const std::function<CUresult()>& call) {
    show_guarded(state + what, call);
  };
  ask("cuCtxGetCurrent", [&] { return CU(cuCtxGetCurrent)(&context); });
  show_flag(state + "it is the dead one", context == dead);
  ask("cuCtxGetDevice", [&] { return CU(cuCtxGetDevice)(&of); });
  ask("cuCtxGetFlags", [&] { return CU(cuCtxGetFlags)(&number); });
  ask("cuCtxSetFlags", [&] { return CU(cuCtxSetFlags)(0); });
  ask("cuCtxGetId null", [&] { return CU(cuCtxGetId)(nullptr, &id); });
  ask("cuCtxGetApiVersion null", [&] { return CU(cuCtxGetApiVersion)(nullptr, &number); });
  ask("cuCtxGetLimit", [&] { return CU(cuCtxGetLimit)(&size, CU_LIMIT_STACK_SIZE); });
  ask("cuCtxGetCacheConfig", [&] { return CU(cuCtxGetCacheConfig)(&cache); });
  ask("cuCtxGetStreamPriorityRange", [&] { return CU(cuCtxGetStreamPriorityRange)(&least, &least); });
  ask("cuCtxResetPersistingL2Cache", [&] { return CU(cuCtxResetPersistingL2Cache)(); });
  ask("cuCtxAttach", [&] { return CU(cuCtxAttach)(&context, 0); });
  ask("cuMemAlloc", [&] { return CU(cuMemAlloc_v2)(&a, 16); });
  ask("cuMemHostAlloc", [&] { return CU(cuMemHostAlloc)(&host, 16, 0); });
  ask("cuMemGetInfo", [&] { return CU(cuMemGetInfo_v2)(&size, &size); });
  ask("cuMemFree null", [&] { return CU(cuMemFree_v2)(0); });
  ask("cuStreamCreate", [&] { return CU(cuStreamCreate)(&stream, 0); });
  ask("cuEventCreate", [&] { return CU(cuEventCreate)(&event, 0); });
  ask("cuModuleLoadData", [&] { return CU(cuModuleLoadData)(&module, ptx); });
  ask("cuLibraryLoadData",
      [&] { return CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0); });
  ask("cuStreamSynchronize null", [&] { return CU(cuStreamSynchronize)(nullptr); });
  ask("cuStreamQuery per thread", [&] { return CU(cuStreamQuery)(CU_STREAM_PER_THREAD); });
  ask("cuCtxSynchronize", [&] { return CU(cuCtxSynchronize)(); });
}

void show_names_of_the_dead(const std::string& state, CUcontext dead) {
  CUdevice of = 9;
  unsigned version = 9;
  unsigned long long id = 0;
  const auto ask = [&](const std::string& what, const std::function<CUresult()>& call) {
    show_guarded(state + what, call);
  };
  ask("cuCtxSynchronize_v2", [&] { return CU(cuCtxSynchronize_v2)(dead); });
  ask("cuCtxGetDevice_v2", [&] { return CU(cuCtxGetDevice_v2)(&of, dead); });
  ask("cuCtxGetId", [&] { return CU(cuCtxGetId)(dead, &id); });
  ask("cuCtxGetApiVersion", [&] { return CU(cuCtxGetApiVersion)(dead, &version); });
  ask("cuCtxSetCurrent", [&] { return CU(cuCtxSetCurrent)(dead); });
  ask("cuCtxPushCurrent", [&] { return CU(cuCtxPushCurrent_v2)(dead); });
  ask("cuCtxRecordEvent", [&] { return CU(cuCtxRecordEvent)(dead, nullptr); });
  ask("cuCtxWaitEvent", [&] { return CU(cuCtxWaitEvent)(dead, nullptr); });
  ask("cuCtxEnablePeerAccess", [&] { return CU(cuCtxEnablePeerAccess)(dead, 0); });
  ask("cuCtxDetach", [&] { return CU(cuCtxDetach)(dead); });
  ask("cuCtxDestroy", [&] { return CU(cuCtxDestroy_v2)(dead); });
}

GROUP(destroy_the_current, InContext) {
  const CUcontext primary = current_context();
  const CUcontext a = make_context();
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
  show_flag("the one below is current", current_context() == primary);
  show("cuCtxSynchronize in it", CU(cuCtxSynchronize)());
  CU(cuCtxSetCurrent)(nullptr);
  const CUcontext b = make_context();
  show("cuCtxDestroy with none below", CU(cuCtxDestroy_v2)(b));
  show_flag("none is current", current_context() == nullptr);
  show_names_of_the_dead("destroyed: ", b);
}

GROUP(destroy_another, InContext) {
  const CUcontext primary = current_context();
  CUcontext popped = nullptr;
  const CUcontext a = make_context();
  CU(cuCtxPopCurrent_v2)(nullptr);
  show("cuCtxDestroy of one that is nowhere current", CU(cuCtxDestroy_v2)(a));
  show_flag("the primary is current", current_context() == primary);
  const CUcontext b = make_context();
  CU(cuCtxPopCurrent_v2)(&popped);
  std::thread([&] {
    CU(cuCtxDestroy_v2)(b);
    show_flag("in a thread without context: none is current", current_context() == nullptr);
  }).join();
  show_names_of_the_dead("destroyed by another thread: ", b);
}

GROUP(destroy_below, InContext) {
  const CUcontext a = make_context(), b = make_context();
  CUcontext popped = nullptr;
  show("cuCtxDestroy of the one below", CU(cuCtxDestroy_v2)(a));
  show_flag("the upper is current", current_context() == b);
  show("cuCtxSynchronize in it", CU(cuCtxSynchronize)());
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show_flag("that was the upper", popped == b);
  show_calls_in("dead below: ", a);
  show_guarded("cuCtxPopCurrent of the dead", [&] { return CU(cuCtxPopCurrent_v2)(&popped); });
  show_flag("that was it", popped == a);
}

GROUP(destroy_one_pushed_twice, InContext) {
  const CUcontext primary = current_context();
  const CUcontext a = make_context();
  CU(cuCtxPushCurrent_v2)(a);
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(a));
  show_flag("the primary is current", current_context() == primary);
  show_flag("the dead one is current", current_context() == a);
  show_guarded("cuCtxSynchronize", [] { return CU(cuCtxSynchronize)(); });
  show_guarded("cuCtxPopCurrent", [] { return CU(cuCtxPopCurrent_v2)(nullptr); });
  show_flag("then the primary is", current_context() == primary);
}

GROUP(destroyed_elsewhere, InContext) {
  CUcontext popped = nullptr;
  const CUcontext primary = current_context(), a = make_context();
  Objects objects;
  std::thread([&] { show("cuCtxDestroy elsewhere", CU(cuCtxDestroy_v2)(a)); }).join();
  show_calls_in("destroyed elsewhere: ", a);
  show_guarded("cuCtxPushCurrent of another", [&] { return CU(cuCtxPushCurrent_v2)(primary); });
  show_guarded("cuCtxSynchronize in that", [] { return CU(cuCtxSynchronize)(); });
  show_guarded("cuMemFree of the dead one's memory", [&] { return CU(cuMemFree_v2)(objects.memory); });
  show_guarded("cuCtxPopCurrent", [&] { return CU(cuCtxPopCurrent_v2)(&popped); });
  show_guarded("cuCtxPopCurrent of the dead", [&] { return CU(cuCtxPopCurrent_v2)(&popped); });
  show_flag("it was that", popped == a);
  show_flag("then the primary is current", current_context() == primary);
}

GROUP(destroyed_elsewhere_then_set, Initialized) {
  const CUcontext a = make_context();
  std::thread([&] { CU(cuCtxDestroy_v2)(a); }).join();
  show_guarded("cuCtxSetCurrent of another", [&] {
    CUcontext primary = nullptr;
    CU(cuDevicePrimaryCtxRetain)(&primary, device);
    return CU(cuCtxSetCurrent)(primary);
  });
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  const CUcontext b = make_context();
  std::thread([&] { CU(cuCtxDestroy_v2)(b); }).join();
  show_guarded("cuCtxCreate on top of a dead one", [&] {
    CUcontext c = nullptr;
    return CU(cuCtxCreate_v2)(&c, 0, device);
  });
  show_guarded("cuCtxSynchronize in it", [] { return CU(cuCtxSynchronize)(); });
}

// The destroyed context was another thread's current one, which then makes it so once more, or a new one has its place.
GROUP(destroyed_then_made_again, Initialized) {
  const CUcontext a = make_context();
  CUcontext b = nullptr;
  std::thread([&] {
    CU(cuCtxDestroy_v2)(a);
    b = make_context();
    CU(cuCtxPopCurrent_v2)(nullptr);
  }).join();
  show_flag("the handle is used again at once", a == b);
  show_guarded("cuCtxSynchronize", [] { return CU(cuCtxSynchronize)(); });
  show_flag("the current one is the dead one", current_context() == a);
  const CUcontext c = make_context();
  CU(cuCtxDestroy_v2)(c);
  const CUcontext d = make_context();
  show_flag("that of one that was nowhere else current is used again", c == d);
}

GROUP(destroy_nonsense, Loaded) {
  alignas(64) static char zeros[4096];
  show_alone("cuCtxDestroy of zeros",
             [] { return CU(cuInit)(0), CU(cuCtxDestroy_v2)(reinterpret_cast<CUcontext>(zeros)); });
  show_alone("cuCtxDestroy of 1", [] { return CU(cuInit)(0), CU(cuCtxDestroy_v2)(reinterpret_cast<CUcontext>(1)); });
  show_alone("cuCtxSetCurrent of zeros",
             [] { return CU(cuInit)(0), CU(cuCtxSetCurrent)(reinterpret_cast<CUcontext>(zeros)); });
  show_alone("cuCtxDestroy of a stream", [] {
    CU(cuInit)(0);
    make_context();
    Objects objects;
    return CU(cuCtxDestroy_v2)(reinterpret_cast<CUcontext>(objects.stream));
  });
}

// ---- what dies ------------------------------------------------------------------------------------------------------

// A process with a context that lives and is current, its objects, and those of one that has been destroyed.
struct Ended {
  Ended() {
    CU(cuInit)(0);
    make_context();
    live.emplace();
    const CUcontext a = make_context();
    dead.emplace();
    CU(cuCtxDestroy_v2)(a);
  }
  std::optional<Objects> live, dead;
};

void ask_dead(const std::string& what, const std::function<CUresult(const Objects& dead, const Objects& live)>& call) {
  show_alone(what, [&] {
    const Ended ended;
    return call(*ended.dead, *ended.live);
  });
}

GROUP(dead_memory, Loaded) {
  ask_dead("cuMemFree", [](const Objects& dead, const Objects&) { return CU(cuMemFree_v2)(dead.memory); });
  ask_dead("cuMemcpyDtoH", [](const Objects& dead, const Objects&) {
    unsigned value = 0;
    return CU(cuMemcpyDtoH_v2)(&value, dead.memory, 4);
  });
  ask_dead("cuMemsetD8", [](const Objects& dead, const Objects&) { return CU(cuMemsetD8_v2)(dead.memory, 0, 16); });
  ask_dead("cuPointerGetAttribute", [](const Objects& dead, const Objects&) {
    unsigned type = 0;
    return CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, dead.memory);
  });
  ask_dead("cuMemGetAddressRange of a global", [](const Objects& dead, const Objects&) {
    CUdeviceptr start = 0;
    std::size_t size = 0;
    return CU(cuMemGetAddressRange_v2)(&start, &size, dead.global);
  });
}

GROUP(dead_pinned_memory, Loaded) {
  ask_dead("cuMemFreeHost", [](const Objects& dead, const Objects&) { return CU(cuMemFreeHost)(dead.pinned); });
  ask_dead("cuMemHostGetFlags", [](const Objects& dead, const Objects&) {
    unsigned flags = 0;
    return CU(cuMemHostGetFlags)(&flags, dead.pinned);
  });
  ask_dead("cuMemHostGetDevicePointer", [](const Objects& dead, const Objects&) {
    CUdeviceptr a = 0;
    return CU(cuMemHostGetDevicePointer_v2)(&a, dead.pinned, 0);
  });
  ask_dead("reading it", [](const Objects& dead, const Objects&) {
    return *static_cast<volatile int*>(dead.pinned) == 0 ? CUDA_SUCCESS : CUDA_SUCCESS;
  });
  ask_dead("cuPointerGetAttribute", [](const Objects& dead, const Objects&) {
    unsigned type = 0;
    return CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(dead.pinned));
  });
}

GROUP(dead_stream, Loaded) {
  ask_dead("cuStreamQuery", [](const Objects& dead, const Objects&) { return CU(cuStreamQuery)(dead.stream); });
  ask_dead("cuStreamSynchronize",
           [](const Objects& dead, const Objects&) { return CU(cuStreamSynchronize)(dead.stream); });
  ask_dead("cuStreamDestroy", [](const Objects& dead, const Objects&) { return CU(cuStreamDestroy_v2)(dead.stream); });
  ask_dead("cuStreamGetFlags", [](const Objects& dead, const Objects&) {
    unsigned flags = 0;
    return CU(cuStreamGetFlags)(dead.stream, &flags);
  });
  ask_dead("cuStreamGetCtx", [](const Objects& dead, const Objects&) {
    CUcontext context = nullptr;
    return CU(cuStreamGetCtx)(dead.stream, &context);
  });
}

GROUP(work_on_dead_stream, Loaded) {
  ask_dead("cuStreamWaitEvent",
           [](const Objects& dead, const Objects& live) { return CU(cuStreamWaitEvent)(dead.stream, live.event, 0); });
  ask_dead("cuEventRecord",
           [](const Objects& dead, const Objects& live) { return CU(cuEventRecord)(live.event, dead.stream); });
  ask_dead("cuLaunchKernel", [](const Objects& dead, const Objects& live) { return launch(live.empty, dead.stream); });
  ask_dead("cuMemsetD8Async", [](const Objects& dead, const Objects& live) {
    return CU(cuMemsetD8Async)(live.memory, 0, 16, dead.stream);
  });
  ask_dead("cuMemcpyHtoDAsync", [](const Objects& dead, const Objects& live) {
    return CU(cuMemcpyHtoDAsync_v2)(live.memory, live.pinned, 16, dead.stream);
  });
}

GROUP(dead_event, Loaded) {
  ask_dead("cuEventQuery", [](const Objects& dead, const Objects&) { return CU(cuEventQuery)(dead.event); });
  ask_dead("cuEventSynchronize",
           [](const Objects& dead, const Objects&) { return CU(cuEventSynchronize)(dead.event); });
  ask_dead("cuEventRecord", [](const Objects& dead, const Objects&) { return CU(cuEventRecord)(dead.event, nullptr); });
  ask_dead("cuEventDestroy", [](const Objects& dead, const Objects&) { return CU(cuEventDestroy_v2)(dead.event); });
  ask_dead("cuStreamWaitEvent",
           [](const Objects& dead, const Objects&) { return CU(cuStreamWaitEvent)(nullptr, dead.event, 0); });
  ask_dead("cuEventElapsedTime", [](const Objects& dead, const Objects& live) {
    float ms = 0;
    return CU(cuEventElapsedTime_v2)(&ms, dead.timed, live.timed);
  });
}

GROUP(dead_module, Loaded) {
  ask_dead("cuModuleGetFunction", [](const Objects& dead, const Objects&) {
    CUfunction function = nullptr;
    return CU(cuModuleGetFunction)(&function, dead.module, "store");
  });
  ask_dead("cuModuleGetGlobal", [](const Objects& dead, const Objects&) {
    CUdeviceptr a = 0;
    return CU(cuModuleGetGlobal_v2)(&a, nullptr, dead.module, "answer");
  });
  ask_dead("cuModuleUnload", [](const Objects& dead, const Objects&) { return CU(cuModuleUnload)(dead.module); });
}

GROUP(dead_function, Loaded) {
  ask_dead("cuLaunchKernel", [](const Objects& dead, const Objects&) { return launch(dead.empty, nullptr); });
  ask_dead("cuFuncGetAttribute", [](const Objects& dead, const Objects&) {
    int value = 0;
    return CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, dead.empty);
  });
  ask_dead("cuFuncGetModule", [](const Objects& dead, const Objects&) {
    CUmodule module = nullptr;
    return CU(cuFuncGetModule)(&module, dead.empty);
  });
  ask_dead("cuFuncGetName", [](const Objects& dead, const Objects&) {
    const char* name = nullptr;
    return CU(cuFuncGetName)(&name, dead.empty);
  });
  ask_dead("cuFuncSetCacheConfig", [](const Objects& dead, const Objects&) {
    return CU(cuFuncSetCacheConfig)(dead.empty, CU_FUNC_CACHE_PREFER_L1);
  });
}

// The same with no context current, as at the end of a program that destroys in the wrong order.
GROUP(dead_objects_without_context, Loaded) {
  const auto ask = [](const std::string& what, const std::function<CUresult(const Objects& dead)>& call) {
    ask_dead(what, [&](const Objects& dead, const Objects&) {
      CU(cuCtxSetCurrent)(nullptr);
      return call(dead);
    });
  };
  ask("cuStreamDestroy", [](const Objects& dead) { return CU(cuStreamDestroy_v2)(dead.stream); });
  ask("cuEventDestroy", [](const Objects& dead) { return CU(cuEventDestroy_v2)(dead.event); });
  ask("cuModuleUnload", [](const Objects& dead) { return CU(cuModuleUnload)(dead.module); });
  ask("cuMemFree", [](const Objects& dead) { return CU(cuMemFree_v2)(dead.memory); });
  ask("cuMemFreeHost", [](const Objects& dead) { return CU(cuMemFreeHost)(dead.pinned); });
}

}  // namespace
}  // namespace contract
