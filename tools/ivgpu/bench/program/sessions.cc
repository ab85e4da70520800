// Measures whole processes: their first result, several processes at once, and an idle process.
#include <cstdint>

#include "tools/ivgpu/bench/program/parts.h"
#include "tools/ivgpu/bench/program/timing.h"

namespace measure {
namespace {

double timed_launch(const Device& device) {
  const auto start = Clock::now();
  launch(device.nothing);
  CHECK(cuStreamSynchronize(nullptr));
  return microseconds_since(start);
}

}  // namespace

void start(const char* library) {
  const auto begun = Clock::now();
  open_driver(library);
  const Device device = open_device();
  CUdeviceptr at = 0;
  std::uint32_t value = 42, result = 0;
  CHECK(cuMemAlloc(&at, sizeof value));
  void* parameters[] = {&at, &value};
  CHECK(cuLaunchKernel(device.store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK(cuMemcpyDtoH(&result, at, sizeof result));
  const double took = microseconds_since(begun);
  if (result != value) fail("the first result", "it is wrong");
  report_samples("first_result", 0, {took / 1000});
}

void session(double seconds) {
  const Device device = open_device();
  timed_launch(device);
  report_ready();
  if (!must_go()) return;
  const double half = seconds / 2 * 1e6;
  std::vector<double> samples;
  const auto begun = Clock::now();
  do samples.push_back(timed_launch(device));
  while (microseconds_since(begun) < half);
  std::int64_t kernels = 0;
  const auto middle = Clock::now();
  do {
    for (int i = 0; i < 20; ++i) launch(device.nothing);
    CHECK(cuStreamSynchronize(nullptr));
    kernels += 20;
  } while (microseconds_since(middle) < half);
  const double rate = static_cast<double>(kernels) / microseconds_since(middle) * 1e3;
  report_samples("launch_synchronize", 0, samples);
  report_samples("kernels", 0, {rate});
}

void idle() {
  const Device device = open_device();
  for (int i = 0; i < 100; ++i) timed_launch(device);
  report_ready();
  while (must_go()) report_samples("call_after_idle", 0, {timed_launch(device)});
}

}  // namespace measure
