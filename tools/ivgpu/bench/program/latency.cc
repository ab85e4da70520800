// Measures the latency of single calls.
#include <cstdint>

#include "tools/ivgpu/bench/program/parts.h"
#include "tools/ivgpu/bench/program/timing.h"

namespace measure {
namespace {

void launches(const Device& device, int n, bool quick) {
  const auto wait = [] { CHECK(cuStreamSynchronize(nullptr)); };
  const auto several = [&](int count) {
    for (int i = 0; i < count; ++i) launch(device.nothing);
    wait();
  };
  // Sixteen records fill neither a channel's ring nor the driver's queue.
  time_each({.name = "launch_issue", .samples = n, .burst = 16}, [&] { launch(device.nothing); });
  time_each({.name = "kernels_back_to_back", .samples = quick ? 3 : 20, .parts = 1000}, [&] { several(1000); });
  time_each({.name = "launch_synchronize", .samples = n}, [&] { several(1); });
  time_each({.name = "20_launches_synchronize", .samples = n / 4}, [&] { several(20); });
  time_each({.name = "idle_synchronize", .samples = n, .repeat = 16}, wait);
}

void questions(const Device& device, int n) {
  CUevent event = nullptr;
  CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  time_each({.name = "event_record", .samples = n, .burst = 16}, [&] { CHECK(cuEventRecord(event, nullptr)); });
  time_each({.name = "event_query", .samples = n, .repeat = 16}, [&] { CHECK(cuEventQuery(event)); });
  time_each({.name = "stream_query", .samples = n, .repeat = 16}, [] { CHECK(cuStreamQuery(nullptr)); });
  int value = 0;
  time_each({.name = "device_attribute", .samples = n, .repeat = 64},
            [&] { CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device.device)); });
  CUcontext context = nullptr;
  time_each({.name = "current_context", .samples = n, .repeat = 64}, [&] { CHECK(cuCtxGetCurrent(&context)); });
  // ivgpu always sends cuCtxGetCacheConfig and waits for the reply. A driver only reads a field for this call.
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  time_each({.name = "empty_call", .samples = n}, [&] { CHECK(cuCtxGetCacheConfig(&cache)); });
}

void small_memory(int n) {
  CUdeviceptr at = 0;
  std::uint32_t value = 1;
  CHECK(cuMemAlloc(&at, sizeof value));
  time_each({.name = "copy_4_bytes_h2d", .samples = n}, [&] { CHECK(cuMemcpyHtoD(at, &value, sizeof value)); });
  time_each({.name = "copy_4_bytes_d2h", .samples = n}, [&] { CHECK(cuMemcpyDtoH(&value, at, sizeof value)); });
  CHECK(cuMemFree(at));
  time_each({.name = "malloc_free_1MiB", .samples = n / 10}, [] {
    CUdeviceptr block = 0;
    CHECK(cuMemAlloc(&block, 1 << 20));
    CHECK(cuMemFree(block));
  });
}

}  // namespace

void latency(bool quick) {
  const Device device = open_device();
  report_ready();
  if (!must_go()) return;
  const int n = quick ? 40 : 2000;
  launches(device, n, quick);
  questions(device, n);
  small_memory(n);
}

}  // namespace measure
