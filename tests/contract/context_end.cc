// Cases for the end of a created context: the current context afterwards, and the results of calls in threads where it
// was current.
#include "tests/contract/contexts.h"

#include <thread>

namespace contract {
namespace {

// Shows the results of calls while a destroyed context is still current in the thread.
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

// A destroyed context is current in another thread, which makes it current again; and a new context may get the same
// address.
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

}  // namespace
}  // namespace contract
