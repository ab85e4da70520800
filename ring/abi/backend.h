// The functions that the tables in ring/abi/ call in the library that links these tables.
//
// The library fills one Backend, never destroys it, and installs it before a program can get a table (in its first
// exported call at the latest).
//
// Any thread may call these functions, before cuInit and after a fork. While `ready` returns an error, the tables call
// no other function. No function may call back into ring/abi/.
//
// The namespace is cuabi because <cxxabi.h> of C++ already owns the name abi.
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
  // The UUID that cuDeviceGetUuid returns: the runtime hashes this UUID and its own, and compares the results.
  CUuuid uuid;
  std::int32_t pci_domain, pci_bus, pci_device;
};

struct Backend {
  // Returns CUDA_SUCCESS, NOT_INITIALIZED (before cuInit, in a forked child) or DEINITIALIZED.
  CUresult (*ready)();
  // Returns the number that cuDriverGetVersion reports.
  int (*driver_version)();
  int (*device_count)();
  CUresult (*device_identity)(int ordinal, DeviceIdentity* out);
  // Returns the handle that cuDevicePrimaryCtxRetain will return, but neither retains nor activates the context.
  CUresult (*primary_context)(CUcontext* out, CUdevice device);
  // Returns the calling thread's current context, or NULL.
  CUcontext (*current_context)();
  // Returns whether the context can have storage. A destroyed context cannot.
  bool (*context_exists)(CUcontext context);
  // Work like cuCtxGetId and cuStreamGetId. A NULL context means the current context; the streams 0, 1 and 2 are the
  // special streams.
  CUresult (*context_id)(CUcontext context, std::uint64_t* id);
  CUresult (*stream_id)(CUcontext context, CUstream stream, std::uint64_t* id);
  // Works like cuModuleLoadData.
  CUresult (*load_module)(CUmodule* out, const void* image);
  // Writes up to `room` functions of the module and returns their total number.
  std::size_t (*module_functions)(CUmodule module, CUfunction* out, std::size_t room);
  // Logs one line, without its newline, for a person who debugs a program: "export table 2131 slot 7 was called, which
  // ...".
  void (*log)(const char* line);
};

// Must be called once, when the library can answer. Keeps the pointer, and copies nothing.
void install(const Backend* backend);

// Returns the installed backend, or null.
const Backend* backend();

}  // namespace cuabi
