// Cases for calls while a host function runs. Calls within a host function are excluded, since many of them hang
// NVIDIA's driver.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

// A running host function does not restrict the calls of other threads.
GROUP(calls_beside_a_host_function, InContext) {
  GraphWork work;
  Gate gate;
  CUcontext context = nullptr;
  CUdeviceptr made = 0;
  CUstream more = nullptr;
  CUfunction function = nullptr;
  CU(cuFuncLoad)(work.store);
  CU(cuCtxSynchronize)();
  CU(cuLaunchHostFunc)(work.stream, Gate::hold, &gate);
  show_flag("it is called", gate.is_entered());
  show("cuCtxGetCurrent", CU(cuCtxGetCurrent)(&context));
  show("cuStreamQuery", CU(cuStreamQuery)(work.other));
  show("cuMemAlloc", CU(cuMemAlloc_v2)(&made, 64));
  show("cuStreamCreate", CU(cuStreamCreate)(&more, CU_STREAM_NON_BLOCKING));
  show("cuLaunchKernel", work.launch_store(work.other, 4));
  show("cuStreamSynchronize", CU(cuStreamSynchronize)(work.other));
  show("the word", word_at(work.a));
  show("cuModuleGetFunction", CU(cuModuleGetFunction)(&function, work.module, "stop"));
  show("cuLaunchHostFunc behind it", CU(cuLaunchHostFunc)(
                                         work.stream, [](void*) {}, nullptr));
  gate.open = true;
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
}

}  // namespace
}  // namespace contract
