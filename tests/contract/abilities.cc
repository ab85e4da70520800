// Cases for the devices' support of atomics and of memory that other devices write; core dumps; the profiler; queries
// of CUDA 3.
#include <unistd.h>

#include "tests/contract/suite.h"

namespace contract {
namespace {

constexpr unsigned operations = CU_ATOMIC_OPERATION_MAX;

GROUP(atomics_with_the_host, Initialized) {
  const auto ask = CU(cuDeviceGetHostAtomicCapabilities);
  CUatomicOperation all[operations];
  unsigned able[operations];
  for (unsigned i = 0; i < operations; ++i) all[i] = odd<CUatomicOperation>(static_cast<int>(i)), able[i] = ~0U;
  show("all", ask(able, all, operations, device));
  bool known = true;
  for (const unsigned bits : able) known = known && (bits >> 7) == 0;
  show_flag("known bits alone", known);
  show("one", ask(able, all, 1, device));
  show("none", ask(able, all, 0, device));
  show("device 99", ask(able, all, 1, 99));
  show("device -1", ask(able, all, 1, -1));
  all[1] = odd<CUatomicOperation>(99);
  show("operation 99", ask(able, all, 2, device));
  all[1] = odd<CUatomicOperation>(-1);
  show("operation -1", ask(able, all, 2, device));
  show("null", ask(nullptr, all, 1, device));
  show("no operations", ask(able, nullptr, 1, device));
}

GROUP(atomics_between_devices, Initialized) {
  const auto ask = CU(cuDeviceGetP2PAtomicCapabilities);
  CUatomicOperation add = CU_ATOMIC_OPERATION_INTEGER_ADD, bad = odd<CUatomicOperation>(99);
  unsigned able = 0;
  show("of a device with itself", ask(&able, &add, 1, device, device));
  show("with device 99", ask(&able, &add, 1, device, 99));
  show("of device -1", ask(&able, &add, 1, -1, device));
  show("operation 99", ask(&able, &bad, 1, device, device));
  show("none", ask(&able, &add, 0, device, device));
  show("null", ask(nullptr, &add, 1, device, device));
  show("no operations", ask(&able, nullptr, 1, device, device));
}

GROUP(flushes_of_others_writes, InContext) {
  const auto flush = CU(cuFlushGPUDirectRDMAWrites);
  constexpr auto here = CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX;
  show("to the owner", flush(here, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
  show("to all devices", flush(here, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
  show("scope 0", flush(here, odd<CUflushGPUDirectRDMAWritesScope>(0)));
  show("scope 99", flush(here, odd<CUflushGPUDirectRDMAWritesScope>(99)));
  show("target 9", flush(odd<CUflushGPUDirectRDMAWritesTarget>(9), CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
}

GROUP(handles_of_ranges_refused, InContext) {
  const auto ask = CU(cuMemGetHandleForAddressRange);
  CUdeviceptr a = 0;
  int handle = -1;
  CU(cuMemAlloc_v2)(&a, 1 << 21);
  show("type 9", ask(&handle, a, 1 << 21, odd<CUmemRangeHandleType>(9), 0));
  show("flags 8", ask(&handle, a, 1 << 21, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 8));
  show("nowhere", ask(&handle, 0, 1 << 21, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  show("no bytes", ask(&handle, a, 0, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  show("100 bytes", ask(&handle, a, 100, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  show("null", ask(nullptr, a, 1 << 21, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

GROUP(properties_of_cuda_3, Initialized) {
  CUdevprop properties;
  int threads = 0, constant = 0, warp = 0;
  std::memset(&properties, 0, sizeof properties);
  CU(cuDeviceGetAttribute)(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
  CU(cuDeviceGetAttribute)(&constant, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device);
  CU(cuDeviceGetAttribute)(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
  show("properties", CU(cuDeviceGetProperties)(&properties, device));
  show_flag("threads as the attribute", properties.maxThreadsPerBlock == threads);
  show_flag("constant memory as the attribute", properties.totalConstantMemory == constant);
  show_flag("warp as the attribute", properties.SIMDWidth == warp);
  show("grid x", properties.maxGridSize[0]);
  show("block z", properties.maxThreadsDim[2]);
  show("device 99", CU(cuDeviceGetProperties)(&properties, 99));
  show("device -1", CU(cuDeviceGetProperties)(&properties, -1));
  show("null", CU(cuDeviceGetProperties)(nullptr, device));
}

GROUP(banks_of_a_function, InContext) {
  const CUfunction f = function_of(load_module(), "empty");
  for (const int config : {0, 1, 2, 3, -1})
    show("config " + std::to_string(config), CU(cuFuncSetSharedMemConfig)(f, odd<CUsharedconfig>(config)));
  show("no function", CU(cuFuncSetSharedMemConfig)(nullptr, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
}

GROUP(profiler_settings, InContext) {
  show("cuProfilerInitialize", CU(cuProfilerInitialize)("a", "b", CU_OUT_CSV));
  show("cuProfilerInitialize null", CU(cuProfilerInitialize)(nullptr, nullptr, CU_OUT_CSV));
  show("cuProfilerStart", CU(cuProfilerStart)());
  show("cuProfilerStart again", CU(cuProfilerStart)());
  show("cuProfilerStop", CU(cuProfilerStop)());
}

// Queries a setting with a buffer of 2048 bytes.
void show_setting(const std::string& what, int which, std::size_t room) {
  char value[2048];
  std::size_t size = 77;
  std::memset(value, 0, sizeof value);
  show(what + ", size alone", CU(cuCoredumpGetAttributeGlobal)(odd<CUcoredumpSettings>(which), nullptr, &size));
  show(what + ", its size", static_cast<long long>(size));
  size = room;
  show(what, CU(cuCoredumpGetAttributeGlobal)(odd<CUcoredumpSettings>(which), value, &size));
}

GROUP(coredumps, Loaded) {
  for (const int which : {1, 2, 3, 4, 7}) show_setting("setting " + std::to_string(which), which, 4);
  for (const int which : {5, 6}) show_setting("setting " + std::to_string(which), which, 1024);
  for (const int which : {-1, 0, 8, 99}) show_setting("setting " + std::to_string(which), which, 4);
  bool flag = true;
  int flags = -1;
  std::size_t size = sizeof flag;
  CU(cuCoredumpGetAttributeGlobal)(CU_COREDUMP_ENABLE_ON_EXCEPTION, &flag, &size);
  show_flag("enabled", flag);
  size = sizeof flag;
  CU(cuCoredumpGetAttributeGlobal)(CU_COREDUMP_TRIGGER_HOST, &flag, &size);
  show_flag("the host's, too", flag);
  size = sizeof flags;
  CU(cuCoredumpGetAttributeGlobal)(CU_COREDUMP_GENERATION_FLAGS, &flags, &size);
  show("flags", flags);
  size = 0;
  show("no room", CU(cuCoredumpGetAttributeGlobal)(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
  show("no size", CU(cuCoredumpGetAttributeGlobal)(CU_COREDUMP_GENERATION_FLAGS, &flags, nullptr));
}

GROUP(coredumps_set, Loaded) {
  bool off = false, on = true;
  int flags = CU_COREDUMP_SKIP_ABORT;
  char name[] = "core.%p";
  std::size_t one = 1, four = 4, length = sizeof name, none = 0;
  const auto set = CU(cuCoredumpSetAttributeGlobal);
  show("disabled", set(CU_COREDUMP_ENABLE_ON_EXCEPTION, &off, &one));
  show("not of the host", set(CU_COREDUMP_TRIGGER_HOST, &off, &one));
  bool now = true;
  CU(cuCoredumpGetAttributeGlobal)(CU_COREDUMP_TRIGGER_HOST, &now, &one);
  show_flag("of the host", now);
  show("lightweight", set(CU_COREDUMP_LIGHTWEIGHT, &on, &one));
  show("flags", set(CU_COREDUMP_GENERATION_FLAGS, &flags, &four));
  show("file", set(CU_COREDUMP_FILE, name, &length));
  char back[1024] = "";
  std::size_t room = sizeof back;
  CU(cuCoredumpGetAttributeGlobal)(CU_COREDUMP_FILE, back, &room);
  show_flag("the file's name", std::strcmp(back, name) == 0);
  show_flag("the file's name with the process's number", "core." + std::to_string(getpid()) == back);
  show("no bytes", set(CU_COREDUMP_GENERATION_FLAGS, &flags, &none));
  show("setting 99", set(odd<CUcoredumpSettings>(99), &flags, &four));
  show("no value", set(CU_COREDUMP_GENERATION_FLAGS, nullptr, &four));
  show("no size", set(CU_COREDUMP_GENERATION_FLAGS, &flags, nullptr));
}

GROUP(coredumps_of_a_context, InContext) {
  bool flag = true;
  std::size_t one = 1;
  show("get", CU(cuCoredumpGetAttribute)(CU_COREDUMP_ENABLE_ON_EXCEPTION, &flag, &one));
  show_flag("enabled", flag);
  flag = false;
  show("set", CU(cuCoredumpSetAttribute)(CU_COREDUMP_LIGHTWEIGHT, &flag, &one));
  show("setting 99", CU(cuCoredumpGetAttribute)(odd<CUcoredumpSettings>(99), &flag, &one));
  show("set 99", CU(cuCoredumpSetAttribute)(odd<CUcoredumpSettings>(99), &flag, &one));
  show("set the user's trigger", CU(cuCoredumpSetAttribute)(CU_COREDUMP_ENABLE_USER_TRIGGER, &flag, &one));
}

GROUP(coredumps_of_no_context, Initialized) {
  bool flag = true;
  std::size_t one = 1;
  show("get", CU(cuCoredumpGetAttribute)(CU_COREDUMP_ENABLE_ON_EXCEPTION, &flag, &one));
  show("set", CU(cuCoredumpSetAttribute)(CU_COREDUMP_LIGHTWEIGHT, &flag, &one));
}

// This group must be the last, since a failure after it may write a core dump.
GROUP(coredumps_wanted, Loaded) {
  bool on = true;
  std::size_t one = 1;
  show_guarded("set", [&] { return CU(cuCoredumpSetAttributeGlobal)(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one); });
}

GROUP(launches_of_cuda_3, InContext) {
  const CUmodule module = load_module();
  const CUfunction store = function_of(module, "store"), empty = function_of(module, "empty");
  CUdeviceptr out = 0;
  unsigned result = 0, value = 23;
  CU(cuMemAlloc_v2)(&out, 4);
  show("block", CU(cuFuncSetBlockShape)(store, 1, 1, 1));
  show("block of 0", CU(cuFuncSetBlockShape)(store, 0, 1, 1));
  show("block of -1", CU(cuFuncSetBlockShape)(store, -1, 1, 1));
  show("block of 1025", CU(cuFuncSetBlockShape)(store, 1025, 1, 1));
  show("block of 64 by 64", CU(cuFuncSetBlockShape)(store, 64, 64, 1));
  CU(cuFuncSetBlockShape)(store, 1, 1, 1);
  show("shared", CU(cuFuncSetSharedSize)(store, 16));
  show("parameter", CU(cuParamSetv)(store, 0, &out, sizeof out));
  show("number", CU(cuParamSeti)(store, 8, value));
  show("parameters' size", CU(cuParamSetSize)(store, 12));
  show("launch", CU(cuLaunch)(store));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  CU(cuMemcpyDtoH_v2)(&result, out, 4);
  show("stored", result);
  show("a float", CU(cuParamSetf)(store, 8, 1.5F));
  show("grid", CU(cuLaunchGrid)(store, 2, 2));
  CU(cuMemcpyDtoH_v2)(&result, out, 4);
  show("stored", static_cast<long long>(result));
  show("grid of 0", CU(cuLaunchGrid)(store, 0, 1));
  show("grid of -1", CU(cuLaunchGrid)(store, -1, 1));
  show("in a stream", CU(cuLaunchGridAsync)(store, 1, 1, nullptr));
  show("without parameters", CU(cuLaunch)(empty));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(launches_of_cuda_3_beyond_the_parameters, InContext) {
  const CUfunction store = function_of(load_module(), "store");
  show_guarded("parameter at -1", [&] { return CU(cuParamSeti)(store, -1, 0); });
  show_guarded("parameter far behind", [&] { return CU(cuParamSeti)(store, 1 << 20, 0); });
  show_guarded("size of a MiB", [&] { return CU(cuParamSetSize)(store, 1 << 20); });
}

GROUP(launches_of_cuda_3_of_nothing, InContext) {
  unsigned value = 1;
  show_guarded("block", [] { return CU(cuFuncSetBlockShape)(nullptr, 1, 1, 1); });
  show_guarded("shared", [] { return CU(cuFuncSetSharedSize)(nullptr, 1); });
  show_guarded("size", [] { return CU(cuParamSetSize)(nullptr, 1); });
  show_guarded("number", [] { return CU(cuParamSeti)(nullptr, 0, 1); });
  show_guarded("float", [] { return CU(cuParamSetf)(nullptr, 0, 1); });
  show_guarded("parameter", [&] { return CU(cuParamSetv)(nullptr, 0, &value, 4); });
  show_guarded("launch", [] { return CU(cuLaunch)(nullptr); });
  show_guarded("grid", [] { return CU(cuLaunchGrid)(nullptr, 1, 1); });
  show_guarded("in a stream", [] { return CU(cuLaunchGridAsync)(nullptr, 1, 1, nullptr); });
}

}  // namespace
}  // namespace contract
