// Cases for objects that end with a created context, and for calls with their handles. A driver may use a destroyed
// handle as a pointer, so each case runs in a process of its own.
#include "tests/contract/contexts.h"

namespace contract {
namespace {

// A process with a current context and its objects, and with the objects of a destroyed context.
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

// Uses the objects of a destroyed context while no context is current, as a program does that destroys its objects in
// the wrong order.
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
