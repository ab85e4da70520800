// The driver behind a worker: a libcuda.so.1, loaded by path. The struct has a typed function for each call of the
// table. The library may be NVIDIA's or the simulated GPU's; no other code of the worker depends on which.
//
// A function is null if the library does not have it. Callers check each function that CUDA 12 does not guarantee. The
// library is loaded once and never unloaded, even after the struct's end. The struct is read-only after load(), and any
// thread may use it. The functions return the driver's results.
//
// ```cpp
// host::Result<CUdevice> first_device(const std::string& path) {
//   const auto driver = host::Driver::load(path);
//   if (!driver) return driver.error();
//   const host::Driver& loaded = **driver;
//   CUdevice device = 0;
//   if (loaded.cuInit(0) != CUDA_SUCCESS || loaded.cuDeviceGet(&device, 0) != CUDA_SUCCESS)
//     return host::Error{path + " finds no GPU"};
//   return device;
// }
// ```
#pragma once

#include <memory>
#include <string>

#include "host/base/result.h"
#include "ring/api/cuda.h"

namespace host {

struct Driver {
#define CALL(id, fn, ...) decltype(&::fn) fn = nullptr;
#define CUSTOM(id, fn, ...) decltype(&::fn) fn = nullptr;
#define LOCAL(fn, ...) decltype(&::fn) fn = nullptr;
#define VARIANT(fn, ...) decltype(&::fn) fn = nullptr;
#define ABSENT(...)
#include "ring/api/driver.def"

  // Loads the library. The error is one sentence.
  static Result<std::unique_ptr<Driver>> load(const std::string& path);
};

// Makes threads that wait for an event sleep, even if the event was created for spinning. Without
// CU_EVENT_BLOCKING_SYNC, these threads would spin even in a context whose threads sleep. A guest cannot see the flag.
// Must be called once, before other threads use the driver.
void make_events_sleep(Driver& driver);

}  // namespace host
