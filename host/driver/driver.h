// The driver behind a worker: a libcuda.so.1, loaded by path, as a struct of typed functions that the table names. It
// may be NVIDIA's or the simulated GPU's; no other code of the worker depends on which.
//
// A function that the library lacks is null. Callers check each function that CUDA 12 does not guarantee. The
// library is loaded once and never unloaded, even after the struct's end. The struct is read-only after load(), and any
// thread may use it. Functions return what the driver returns.
//
// ```cpp
// CUresult first_device(const std::string& path, CUdevice& device, std::string& error) {
//   const std::unique_ptr<host::Driver> driver = host::Driver::load(path, error);
//   if (driver == nullptr) return CUDA_ERROR_NOT_FOUND;  // `error` is one sentence for the log
//   const CUresult started = driver->cuInit(0);
//   return started == CUDA_SUCCESS ? driver->cuDeviceGet(&device, 0) : started;
// }
// ```
#pragma once

#include <memory>
#include <string>

#include "ring/api/cuda.h"

namespace host {

struct Driver {
#define CALL(id, fn, ...) decltype(&::fn) fn = nullptr;
#define CUSTOM(id, fn, ...) decltype(&::fn) fn = nullptr;
#define LOCAL(fn, ...) decltype(&::fn) fn = nullptr;
#define VARIANT(fn, ...) decltype(&::fn) fn = nullptr;
#define ABSENT(...)
#include "ring/api/driver.def"

  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<Driver> load(const std::string& path, std::string& error);
};

// Makes threads that wait for an event sleep, even if the event was created to spin: without CU_EVENT_BLOCKING_SYNC
// they would spin even in a context that sleeps. A guest cannot see the flag. Call it once, before other threads use
// the driver.
void make_events_sleep(Driver& driver);

}  // namespace host
