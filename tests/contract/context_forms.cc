// Cases for the context calls of CUDA 2, whose names have no version suffix.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(context_forms_of_cuda_2, Initialized) {
  CUcontext made = nullptr, popped = nullptr;
  unsigned version = 0;
  show("cuCtxCreate null", CU(cuCtxCreate)(nullptr, 0, device));
  show("cuCtxCreate", CU(cuCtxCreate)(&made, 0, device));
  show_flag("it is current", current_context() == made);
  CU(cuCtxGetApiVersion)(made, &version);
  show("API version", version);
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent)(&popped));
  show_flag("it is that one", popped == made);
  show("cuCtxPopCurrent of none", CU(cuCtxPopCurrent)(&popped));
  show("cuCtxPushCurrent", CU(cuCtxPushCurrent)(made));
  show("cuCtxPushCurrent null", CU(cuCtxPushCurrent)(nullptr));
  show("cuCtxDestroy", CU(cuCtxDestroy)(made));
  show("cuCtxDestroy null", CU(cuCtxDestroy)(nullptr));
  show_flag("then none", current_context() == nullptr);
}

}  // namespace
}  // namespace contract
