// Helpers of the probes about GPU sharing: kernels, and children that start together.
#pragma once

#include <cuda.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "tests/probes/probe.h"

namespace probe {

using Clock = std::chrono::steady_clock;
constexpr std::size_t mib = 1 << 20;

inline const char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry empty() { ret; }
.visible .entry spin(.param .u64 ns) {
  .reg .u64 %t<4>; .reg .pred %p;
  ld.param.u64 %t1, [ns];
  mov.u64 %t2, %globaltimer;
  add.u64 %t2, %t2, %t1;
again:
  mov.u64 %t3, %globaltimer;
  setp.lt.u64 %p, %t3, %t2;
  @%p bra again;
  ret;
}
)";

inline double us_since(Clock::time_point t) {
  return std::chrono::duration<double, std::micro>(Clock::now() - t).count();
}

struct Gpu {
  CUcontext context = nullptr;
  CUfunction empty = nullptr, spin = nullptr;

  Gpu() {
    CUdevice device = 0;
    CUmodule module = nullptr;
    MUST(CU(cuInit)(0));
    MUST(CU(cuDeviceGet)(&device, 0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
    MUST(CU(cuCtxSetCurrent)(context));
    MUST(CU(cuModuleLoadData)(&module, ptx));
    MUST(CU(cuModuleGetFunction)(&empty, module, "empty"));
    MUST(CU(cuModuleGetFunction)(&spin, module, "spin"));
  }
  void launch(CUstream stream) const { MUST(CU(cuLaunchKernel)(empty, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr)); }
  void busy(CUstream stream, std::uint64_t us) const {
    std::uint64_t ns = us * 1000;
    void* parameters[] = {&ns};
    MUST(CU(cuLaunchKernel)(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }
};

inline void row(const std::string& what, const std::string& answer) {
  std::printf("| %s | %s |\n", what.c_str(), answer.c_str());
  std::fflush(stdout);
}

// The memory that children and parent share.
struct Shared {
  std::atomic<int> ready{0}, go{0}, stop{0}, turn{0};
  std::atomic<double> result[16];
};

// Each child runs `work(index)` after all children are ready.
inline void processes(int count, Shared& shared, const std::function<void(int, const std::function<void()>&)>& work,
                      double seconds, const std::function<void()>& meanwhile = {}) {
  shared.ready = shared.go = shared.stop = shared.turn = 0;
  std::fflush(stdout);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    alarm(60);
    work(i, [&] {
      ++shared.ready;
      while (shared.go == 0) usleep(100);
    });
    std::fflush(stdout);
    _exit(0);
  }
  while (shared.ready < count) {
    usleep(1000);
    if (waitpid(-1, nullptr, WNOHANG) > 0) std::printf("a child ends before it is ready\n"), std::exit(1);
  }
  shared.go = 1;
  usleep(static_cast<useconds_t>(seconds * 1e6));
  if (meanwhile) meanwhile();
  shared.stop = 1;
  for (const pid_t child : children) waitpid(child, nullptr, 0);
}

inline Shared* share() {
  return new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
}

}  // namespace probe
