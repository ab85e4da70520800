// Cases for launches.
#include "tests/contract/suite.h"

namespace contract {
namespace {

CUresult go(CUfunction f, unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz, unsigned shared,
            void** params, void** extra) {
  return CU(cuLaunchKernel)(f, gx, gy, 1, bx, by, bz, shared, nullptr, params, extra);
}

GROUP(launch_sizes, InContext) {
  const CUmodule module = load_module();
  const CUfunction empty = function_of(module, "empty"), bounded = function_of(module, "bounded"),
                   exact = function_of(module, "exact");
  CU(cuFuncSetAttribute)(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10);
  show("launch no function", go(nullptr, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch grid 0", go(empty, 0, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch grid y 65536", go(empty, 1, 65536, 1, 1, 1, 0, nullptr, nullptr));
  show("launch grid x 2^31", go(empty, 1U << 31, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch block 0", go(empty, 1, 1, 0, 1, 1, 0, nullptr, nullptr));
  show("launch block 1025", go(empty, 1, 1, 1025, 1, 1, 0, nullptr, nullptr));
  show("launch block 64x32", go(empty, 1, 1, 64, 32, 1, 0, nullptr, nullptr));
  show("launch block z 65", go(empty, 1, 1, 1, 1, 65, 0, nullptr, nullptr));
  show("launch bounded 64", go(bounded, 1, 1, 64, 1, 1, 0, nullptr, nullptr));
  show("launch bounded 65", go(bounded, 1, 1, 65, 1, 1, 0, nullptr, nullptr));
  show("launch bounded 32x3", go(bounded, 1, 1, 32, 3, 1, 0, nullptr, nullptr));
  show("launch exact 32x2", go(exact, 1, 1, 32, 2, 1, 0, nullptr, nullptr));
  show("launch exact 64", go(exact, 1, 1, 64, 1, 1, 0, nullptr, nullptr));
  show("launch exact 32", go(exact, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
  show("launch shared 49152", go(bounded, 1, 1, 1, 1, 1, 49152, nullptr, nullptr));
  show("launch shared 49153", go(bounded, 1, 1, 1, 1, 1, 49153, nullptr, nullptr));
  show("launch shared 65536 allowed", go(empty, 1, 1, 1, 1, 1, 65536, nullptr, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(launch_parameters, InContext) {
  const CUmodule module = load_module();
  const CUfunction empty = function_of(module, "empty"), store = function_of(module, "store");
  CUdeviceptr out = 0;
  unsigned value = 7;
  CU(cuMemAlloc_v2)(&out, 4);
  void* parameters[] = {&out, &value};
  show("launch", go(store, 1, 1, 1, 1, 1, 0, parameters, nullptr));
  show("launch without parameters it has", go(store, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch without parameters it has not", go(empty, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  struct {
    CUdeviceptr out;
    unsigned value;
  } packed = {out, 9};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  show("launch extra", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  show("launch extra and parameters", go(store, 1, 1, 1, 1, 1, 0, parameters, extra));
  size = 8;
  show("launch extra too short", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  size = 16;
  show("launch extra padded", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  size = 64;
  show("launch extra too long", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  show("after those", CU(cuCtxSynchronize)());
  unsigned result = 0;
  CU(cuMemcpyDtoH_v2)(&result, out, 4);
  show("stored", result);
  CU(cuMemFree_v2)(out);
  show("cuModuleUnload", CU(cuModuleUnload)(module));
}

GROUP(launch_attributes, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  const auto cooperative = CU(cuLaunchCooperativeKernel);
  show("cooperative", cooperative(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
  show("cooperative, far too large", cooperative(empty, 1 << 20, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  CUlaunchAttribute attribute;
  std::memset(&attribute, 0, sizeof attribute);
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  show("launchEx", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  show("launchEx null", CU(cuLaunchKernelEx)(nullptr, empty, nullptr, nullptr));
  config.numAttrs = 1;
  show("launchEx attributes null", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  config.attrs = &attribute;
  show("launchEx attribute 0", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  attribute.id = odd<CUlaunchAttributeID>(99);
  show("launchEx attribute 99", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  show("launchEx cooperative", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

CUresult go_ex(const CUlaunchConfig& config, CUfunction f) {
  return CU(cuLaunchKernelEx)(&config, f, nullptr, nullptr);
}

GROUP(launch_ex_sizes, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  show("a grid of 0", go_ex(config, empty));
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  show("one block", go_ex(config, empty));
  show("no function", go_ex(config, nullptr));
  config.blockDimX = 1025;
  show("block 1025", go_ex(config, empty));
  config.blockDimX = 1;
  config.sharedMemBytes = 49153;
  show("shared 49153", go_ex(config, empty));
  config.sharedMemBytes = 0;
  config.hStream = CU_STREAM_PER_THREAD;
  show("the thread's stream", go_ex(config, empty));
  const auto cooperative = CU(cuLaunchCooperativeKernel);
  show("cooperative, no function", cooperative(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("cooperative, a grid of 0", cooperative(empty, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("cooperative, block 1025", cooperative(empty, 1, 1, 1, 1025, 1, 1, 0, nullptr, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(launch_extra, InContext) {
  const CUmodule module = load_module();
  const CUfunction store = function_of(module, "store"), empty = function_of(module, "empty");
  CUdeviceptr out = 0;
  CU(cuMemAlloc_v2)(&out, 4);
  struct {
    CUdeviceptr out;
    unsigned value;
  } packed = {out, 9};
  std::size_t size = 12;
  void* reversed[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_END};
  void* no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_END};
  void* no_pointer[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void* nothing[] = {CU_LAUNCH_PARAM_END};
  void* unknown[] = {reinterpret_cast<void*>(std::uintptr_t{9}), &size, CU_LAUNCH_PARAM_END};
  show("size first", go(store, 1, 1, 1, 1, 1, 0, nullptr, reversed));
  show("no size", go(store, 1, 1, 1, 1, 1, 0, nullptr, no_size));
  show("no pointer", go(store, 1, 1, 1, 1, 1, 0, nullptr, no_pointer));
  show("nothing, for a kernel without parameters", go(empty, 1, 1, 1, 1, 1, 0, nullptr, nothing));
  show("an unknown word", go(store, 1, 1, 1, 1, 1, 0, nullptr, unknown));
  show("a grid of 0 and no function", go(nullptr, 0, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("a grid of 0 and no parameters", go(store, 0, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("after those", CU(cuCtxSynchronize)());
  show("nothing", go(store, 1, 1, 1, 1, 1, 0, nullptr, nothing));
}

}  // namespace
}  // namespace contract
