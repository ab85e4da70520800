// Measures copies to the device and back, for several sizes of pinned and pageable memory.
#include <cstdlib>
#include <cstring>
#include <string>

#include "tools/ivgpu/bench/program/parts.h"
#include "tools/ivgpu/bench/program/timing.h"

namespace measure {
namespace {

struct Effort {
  std::size_t largest;
  int least, most;  // minimum and maximum number of samples for a size
  double enough;    // microseconds after which no further sample is taken
};

struct Memory {
  const char* kind;
  void* host;
  CUdeviceptr device;
};

void one_size(const Memory& memory, bool to_device, std::size_t bytes, const Effort& effort) {
  const std::string name = std::string(memory.kind) + (to_device ? "_h2d" : "_d2h");
  report_begin(name.c_str(), bytes);
  std::vector<double> samples;
  const auto begun = Clock::now();
  constexpr int warm_up = 2;
  for (int i = -warm_up; i < effort.most; ++i) {
    const auto start = Clock::now();
    if (to_device)
      CHECK(cuMemcpyHtoD(memory.device, memory.host, bytes));
    else
      CHECK(cuMemcpyDtoH(memory.host, memory.device, bytes));
    if (i >= 0) samples.push_back(microseconds_since(start));
    if (i >= effort.least && microseconds_since(begun) > effort.enough) break;
  }
  report_samples(name.c_str(), bytes, samples);
}

void all_sizes(const Memory& memory, const Effort& effort) {
  std::memset(memory.host, 1, effort.largest);
  CHECK(cuMemsetD8(memory.device, 2, effort.largest));
  for (std::size_t bytes = 4096; bytes <= effort.largest; bytes *= 4) {
    one_size(memory, true, bytes, effort);
    one_size(memory, false, bytes, effort);
  }
}

void leave_out(const char* kind, const Effort& effort) {
  const std::string reason = "no pinned memory of " + std::to_string(effort.largest >> 20) + " MiB";
  for (const char* way : {"_h2d", "_d2h"}) report_left_out((kind + std::string(way)).c_str(), 0, reason.c_str());
}

}  // namespace

void copy(bool quick) {
  const Effort effort = quick ? Effort{1 << 20, 2, 5, 5e3} : Effort{256 << 20, 5, 400, 120e3};
  open_device();
  report_ready();
  if (!must_go()) return;
  CUdeviceptr device = 0;
  CHECK(cuMemAlloc(&device, effort.largest));
  void* pinned = nullptr;
  if (driver.cuMemHostAlloc(&pinned, effort.largest, 0) == CUDA_SUCCESS) {
    all_sizes({"pinned", pinned, device}, effort);
    CHECK(cuMemFreeHost(pinned));
  } else {
    leave_out("pinned", effort);
  }
  void* const pageable = std::malloc(effort.largest);
  if (pageable == nullptr) fail("memory", "not enough");
  all_sizes({"pageable", pageable, device}, effort);
  std::free(pageable);
  CHECK(cuMemFree(device));
}

}  // namespace measure
