// Makes a worker allocate managed memory without a request, as a worker that its guest controls could. The library is
// preloaded into the worker (LD_PRELOAD) and starts a thread beside the driver's first thread. For managed_on_gpu.
//
// IVGPU_TAKES_MANAGED: MiB to allocate, 3 s after the driver's start; without a number, the library does nothing.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "ring/api/cuda.h"

namespace {

template <class F>
F of_driver(const char* name) {
  return reinterpret_cast<F>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
}

void* take(void*) {
  sleep(3);
  const char* mib = std::getenv("IVGPU_TAKES_MANAGED");
  const std::size_t bytes = (mib != nullptr ? std::strtoull(mib, nullptr, 10) : 0) << 20;
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  if (bytes == 0 || of_driver<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0) != 0 ||
      of_driver<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context) != 0 ||
      of_driver<decltype(&cuMemAllocManaged)>("cuMemAllocManaged")(&at, bytes, CU_MEM_ATTACH_GLOBAL) != 0)
    return nullptr;
  of_driver<decltype(&cuMemsetD8_v2)>("cuMemsetD8_v2")(at, 1, bytes);
  of_driver<decltype(&cuCtxSynchronize)>("cuCtxSynchronize")();
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*start)(void*), void* argument) {
  static const auto original = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  static std::atomic<bool> begun{false};
  pthread_t own;
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr && !begun.exchange(true))
    original(&own, nullptr, take, nullptr);
  return original(thread, attributes, start, argument);
}
