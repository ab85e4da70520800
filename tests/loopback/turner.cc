// A program that gives the GPU work for ever, and tells its test how far it is (turner.h).
//
// usage: loopback_turner LIBCUDA FILE KIND, which is `nothing`: a kernel that does nothing, then a wait, again and again;
// `spin`: before these a kernel that spins until the test releases it; or `long`: kernels of 3 ms, and a wait after each. Exit codes: 1 a call has failed, 2 usage.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "ring/api/cuda.h"
#include "tests/loopback/turner.h"
#include "tests/named_driver.h"

namespace {

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) std::printf("%s: %d\n", what, result), std::exit(1);
}

constexpr const char* text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry three_ms() {
  .reg .u64 %t<3>; .reg .pred %p;
  mov.u64 %t1, %globaltimer;
  add.u64 %t1, %t1, 3000000;
again:
  mov.u64 %t2, %globaltimer;
  setp.lt.u64 %p, %t2, %t1;
  @%p bra again;
  ret;
}
.visible .entry spin(.param .u64 until) {
  .reg .u64 %a; .reg .u32 %v; .reg .pred %p;
  ld.param.u64 %a, [until];
again:
  ld.volatile.global.u32 %v, [%a];
  setp.eq.u32 %p, %v, 0;
  @%p bra again;
  ret;
})";

CUfunction function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  check(CU(cuModuleGetFunction)(&found, module, name), name);
  return found;
}

void launch(CUfunction kernel, void** parameters) {
  static const auto call = CU(cuLaunchKernel);
  check(call(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
}
void wait() {
  static const auto call = CU(cuCtxSynchronize);
  check(call(), "cuCtxSynchronize");
}

void note(turner::Progress& progress) {
  const std::int64_t now = turner::now_ns(), before = progress.last.exchange(now);
  if (before != 0 && now - before > progress.longest_gap) progress.longest_gap = now - before;
  ++progress.done;
}

void spin(CUmodule module, turner::Progress& progress) {
  void* host = nullptr;
  check(CU(cuMemHostAlloc)(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
  std::memset(host, 0, 4096);
  CUdeviceptr at = 0;
  check(CU(cuMemHostGetDevicePointer_v2)(&at, host, 0), "cuMemHostGetDevicePointer");
  void* parameters[] = {&at};
  launch(function(module, "spin"), parameters);
  std::thread releases([&] {
    while (progress.release == 0) usleep(200);
    std::atomic_ref(*static_cast<std::uint32_t*>(host)).store(1);
  });
  wait();
  releases.join();
  note(progress);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  library = dlopen(argv[1], RTLD_NOW);
  turner::Progress* const progress = turner::map(argv[2]);
  const std::string kind = argv[3];
  if (library == nullptr || progress == nullptr) return 2;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  check(CU(cuInit)(0), "cuInit");
  check(CU(cuDevicePrimaryCtxRetain)(&context, 0), "cuDevicePrimaryCtxRetain");
  check(CU(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
  check(CU(cuModuleLoadData)(&module, text), "cuModuleLoadData");
  if (kind == "spin") spin(module, *progress);
  const CUfunction kernel = function(module, kind == "long" ? "three_ms" : "nothing");
  for (;;) {
    launch(kernel, nullptr);
    wait();
    note(*progress);
  }
}
