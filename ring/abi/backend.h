// The questions that the tables in ring/abi/ ask the library they are linked into.
//
// The library fills one Backend, whose lifetime is the process's, and installs it before a program can get at a table
// (at its first exported call at the latest).
//
// Every function may be called from any thread, before cuInit and after a fork. While `ready` returns anything but
// CUDA_SUCCESS, nothing else is called. None of them may call back into ring/abi/.
//
// The namespace is cuabi because C++'s own <cxxabi.h> owns the name abi.
//
// ```cpp
// CUresult ready() { return CUDA_SUCCESS; }
// void install_tables() {
//   static cuabi::Backend own{};  // every function is set before install(), which keeps the address
//   own.ready = ready;
//   cuabi::install(&own);
// }
// ```
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace cuabi {

struct DeviceIdentity {
  CUuuid uuid;  // as from cuDeviceGetUuid: the runtime hashes both and compares
  std::int32_t pci_domain, pci_bus, pci_device;
};

struct Backend {
  // CUDA_SUCCESS, or NOT_INITIALIZED (before cuInit, in a forked child), or DEINITIALIZED.
  CUresult (*ready)();
  // The answer of cuDriverGetVersion.
  int (*driver_version)();
  int (*device_count)();
  CUresult (*device_identity)(int ordinal, DeviceIdentity* out);
  // The handle that cuDevicePrimaryCtxRetain will return, neither retained nor made active.
  CUresult (*primary_context)(CUcontext* out, CUdevice device);
  // The calling thread's current context; NULL when there is none.
  CUcontext (*current_context)();
  // True if this is a context that can hold storage (a destroyed one cannot).
  bool (*context_exists)(CUcontext context);
  // As cuCtxGetId and cuStreamGetId. NULL names the current context, and 0, 1 and 2 the special streams.
  CUresult (*context_id)(CUcontext context, std::uint64_t* id);
  CUresult (*stream_id)(CUcontext context, CUstream stream, std::uint64_t* id);
  // As cuModuleLoadData.
  CUresult (*load_module)(CUmodule* out, const void* image);
  // Writes up to `room` functions of the module and returns how many it has.
  std::size_t (*module_functions)(CUmodule module, CUfunction* out, std::size_t room);
  // One line, without its newline, for a person who debugs a program: "export table 2131 slot 7 was called, which ...".
  void (*log)(const char* line);
};

// Not before the library is able to answer; once. `backend` is kept, not copied.
void install(const Backend* backend);

// The installed one, or null.
const Backend* backend();

}  // namespace cuabi
