// Cases for the two served forms of CUDA 3, which return sizes of 32 bits, in each kind of context, and for the
// destroying calls of CUDA 3. cuMemGetInfo works only in a context of the old cuCtxCreate.
#include "tests/contract/suite.h"

namespace contract {
namespace {

// Creates a context by the first version of cuCtxCreate, which gives the context API version 3010.
CUcontext old_context() {
  CUcontext made = nullptr;
  show("cuCtxCreate", CU(cuCtxCreate)(&made, 0, device));
  return made;
}

unsigned all_that_fits(std::size_t size) { return size > 0xffffffff ? 0xffffffff : static_cast<unsigned>(size); }

void ask_sizes() {
  unsigned bytes = 0, total = 0;
  std::size_t all = 0;
  CU(cuDeviceTotalMem_v2)(&all, device);
  show("cuDeviceTotalMem", CU(cuDeviceTotalMem)(&bytes, device));
  show_flag("all that 32 bits hold", bytes == all_that_fits(all));
  show("cuDeviceTotalMem null", CU(cuDeviceTotalMem)(nullptr, device));
  show("cuDeviceTotalMem of device 99", CU(cuDeviceTotalMem)(&bytes, 99));
  bytes = 0;
  show("cuMemGetInfo", CU(cuMemGetInfo)(&bytes, &total));
  show_flag("its total is all that 32 bits hold", total == all_that_fits(all));
  show("cuMemGetInfo, only free", CU(cuMemGetInfo)(&bytes, nullptr));
  show("cuMemGetInfo of nothing", CU(cuMemGetInfo)(nullptr, nullptr));
}

GROUP(narrow_without_context, Initialized) { ask_sizes(); }
GROUP(narrow_in_a_primary_context, InContext) { ask_sizes(); }

GROUP(narrow_in_a_newer_context, Initialized) {
  CUcontext made = nullptr;
  show("cuCtxCreate_v2", CU(cuCtxCreate_v2)(&made, 0, device));
  ask_sizes();
}

GROUP(narrow_sizes, Initialized) {
  old_context();
  ask_sizes();
}

// The newer versions of the calls, in a context of the old cuCtxCreate.
GROUP(newer_in_an_old_context, Initialized) {
  old_context();
  CUdeviceptr a = 0;
  std::size_t free = 0, total = 0;
  unsigned word = 7;
  show("cuMemGetInfo_v2", CU(cuMemGetInfo_v2)(&free, &total));
  show("cuMemAlloc_v2", CU(cuMemAlloc_v2)(&a, 4096));
  show("cuMemcpyHtoD_v2", CU(cuMemcpyHtoD_v2)(a, &word, 4));
  show("cuMemsetD32_v2", CU(cuMemsetD32_v2)(a, 5, 1));
  show("cuMemcpyDtoH_v2", CU(cuMemcpyDtoH_v2)(&word, a, 4));
  show("the word", word);
  show("cuMemFree_v2", CU(cuMemFree_v2)(a));
}

// Calls in a context that has been destroyed and is still current. A driver may not survive the next change of that
// context, so each kind of context has a process of its own.
void ask_a_destroyed_context(CUcontext made) {
  unsigned a = 0, total = 0;
  CU(cuCtxDestroy_v2)(made);
  CU(cuCtxSetCurrent)(made);
  show("cuMemGetInfo", CU(cuMemGetInfo)(&a, &total));
}

GROUP(narrow_of_a_destroyed_context_of_cuda_3, Initialized) {
  CUcontext made = nullptr;
  show("cuCtxCreate", CU(cuCtxCreate)(&made, 0, device));
  ask_a_destroyed_context(made);
}

GROUP(narrow_of_a_destroyed_context, Initialized) {
  CUcontext made = nullptr;
  show("cuCtxCreate_v2", CU(cuCtxCreate_v2)(&made, 0, device));
  ask_a_destroyed_context(made);
}

void ask_destroys(const std::string& where) {
  CUstream s = nullptr;
  CUevent e = nullptr;
  CU(cuStreamCreate)(&s, 0);
  CU(cuEventCreate)(&e, 0);
  CU(cuEventRecord)(e, s);
  show(where + ": cuStreamDestroy", CU(cuStreamDestroy)(s));
  show(where + ": cuEventDestroy", CU(cuEventDestroy)(e));
  show(where + ": cuStreamDestroy null", CU(cuStreamDestroy)(nullptr));
  show(where + ": cuEventDestroy null", CU(cuEventDestroy)(nullptr));
}

GROUP(destroying_in_forms_of_cuda_2, InContext) {
  CUcontext made = nullptr;
  ask_destroys("primary");
  CU(cuCtxCreate_v2)(&made, 0, device);
  ask_destroys("newer");
  CU(cuCtxCreate)(&made, 0, device);
  ask_destroys("old");
  CUstream s = nullptr;
  CUevent e = nullptr;
  CU(cuStreamCreate)(&s, 0);
  CU(cuEventCreate)(&e, 0);
  CU(cuCtxPopCurrent_v2)(&made);
  CU(cuCtxPopCurrent_v2)(&made);
  CU(cuCtxPopCurrent_v2)(&made);
  show_flag("none is current", current_context() == nullptr);
  show("without context: cuStreamDestroy", CU(cuStreamDestroy)(s));
  show("without context: cuEventDestroy", CU(cuEventDestroy)(e));
}

GROUP(narrow_proc_address, Loaded) {
  const auto ask = [](const char* name, int version, cuuint64_t flags, const char* form) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    const std::string what = std::string(name) + " of " + std::to_string(version) + (flags == 0 ? "" : ", per thread");
    show(what, CU(cuGetProcAddress_v2)(name, &found, version, flags, &status));
    show(what + ", status", status);
    show_flag(what + ": " + form, found != nullptr && found == symbol(form));
  };
  constexpr cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  ask("cuMemAlloc", 3010, 0, "cuMemAlloc");
  ask("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
  ask("cuDeviceTotalMem", 3010, 0, "cuDeviceTotalMem");
  ask("cuMemcpyHtoD", 7000, per_thread, "cuMemcpyHtoD_v2_ptds");
  ask("cuStreamDestroy", 3020, 0, "cuStreamDestroy");
  ask("cuStreamDestroy", 4000, 0, "cuStreamDestroy_v2");
  ask("cuEventDestroy", 3020, 0, "cuEventDestroy");
  ask("cuEventDestroy", 4000, 0, "cuEventDestroy_v2");
}

}  // namespace
}  // namespace contract
