// Wraps the libcuda beside this library, or the system's. Two entry points stamp the driver's entry and return. Only
// for tests/bench/parts.cc: the library writes to the address in a guest's parameter, so it must not serve other
// programs.
//
// A worker finds all other entry points in the linked library, which dlsym() also searches.
#include <dlfcn.h>

#include <cstdlib>

#include "ring/api/cuda.h"
#include "tests/bench/stamps.h"

namespace {

thread_local parts::Stamps* stamps = nullptr;  // the stamps of the last launch

template <class F>
F real(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* entry = library != nullptr ? dlsym(library, name) : nullptr;
  if (entry == nullptr) std::abort();
  return reinterpret_cast<F>(entry);
}

// A worker passes packed parameters, and CU_LAUNCH_PARAM_BUFFER_POINTER comes first.
parts::Stamps* stamps_of(void** extra) {
  if (extra == nullptr || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER) return nullptr;
  return *static_cast<parts::Stamps* const*>(extra[1]);
}

}  // namespace

extern "C" {

// Looked up at load time, since the worker's jail may forbid the lookup later.
static const auto real_launch = real<decltype(&::cuLaunchKernel)>("cuLaunchKernel");
static const auto real_wait = real<decltype(&::cuStreamSynchronize)>("cuStreamSynchronize");

__attribute__((visibility("default"))) CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                                               unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                                               CUstream stream, void** params, void** extra) {
  stamps = stamps_of(extra);
  const std::uint64_t entered = parts::now();
  const CUresult result = real_launch(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  if (stamps != nullptr) stamps->launch_entered = entered, stamps->launch_left = parts::now();
  return result;
}

__attribute__((visibility("default"))) CUresult cuStreamSynchronize(CUstream stream) {
  const std::uint64_t entered = parts::now();
  const CUresult result = real_wait(stream);
  if (stamps != nullptr) stamps->wait_entered = entered, stamps->wait_left = parts::now();
  return result;
}

}  // extern "C"
