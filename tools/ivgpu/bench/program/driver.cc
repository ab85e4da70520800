#include "tools/ivgpu/bench/program/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tools/ivgpu/bench/program/kernels.h"

namespace measure {

Driver driver;

void fail(const char* what, const char* why) {
  std::printf("error %s: %s\n", what, why);
  std::fflush(stdout);
  std::exit(1);
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an error without a name";
  fail(what, name);
}

// One macro, so that the symbol has the name that cuda.h substitutes, such as cuMemAlloc_v2.
#define LOAD(symbol)                                                                 \
  driver.symbol = reinterpret_cast<decltype(driver.symbol)>(dlsym(handle, #symbol)); \
  if (driver.symbol == nullptr) fail(library, "it has no " #symbol);

void open_driver(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW);
  if (handle == nullptr) fail("the driver cannot be opened", dlerror());
#define X(name) LOAD(name)
  IVGPU_MEASURED_CALLS(X)
#undef X
}
#undef LOAD

Device open_device() {
  Device opened;
  CUmodule module = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&opened.device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&opened.context, opened.device));
  CHECK(cuCtxSetCurrent(opened.context));
  CHECK(cuModuleLoadData(&module, kernels));
  CHECK(cuModuleGetFunction(&opened.nothing, module, "nothing"));
  CHECK(cuModuleGetFunction(&opened.store, module, "store"));
  return opened;
}

}  // namespace measure
