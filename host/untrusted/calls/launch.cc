// Launches. CUSTOM because a kernel's parameters are a property of the kernel: they come packed, as the driver takes
// them through CU_LAUNCH_PARAM_BUFFER_POINTER, so no layout is needed here.
#include <array>
#include <cstring>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/unmarshal.h"
#include "ring/api/launch_attributes.h"
#include "ring/api/records.h"

namespace host::calls {
namespace {

struct Launch {
  CUresult refused = CUDA_SUCCESS;
  api::LaunchRecord record{};
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  std::array<CUlaunchAttribute, api::max_launch_attributes> attributes{};
  std::byte* params = nullptr;

  // Points into this.
  CUlaunchConfig config() {
    CUlaunchConfig c{};
    c.gridDimX = record.grid[0], c.gridDimY = record.grid[1], c.gridDimZ = record.grid[2];
    c.blockDimX = record.block[0], c.blockDimY = record.block[1], c.blockDimZ = record.block[2];
    c.sharedMemBytes = record.shared;
    c.hStream = stream;
    c.attrs = attributes.data();
    c.numAttrs = record.attributes;
    return c;
  }
};

Launch read_launch(Request& r) {
  Launch l;
  l.record = r.in.read<api::LaunchRecord>();
  if (l.record.attributes > api::max_launch_attributes) return l.refused = r.broken(), l;
  const std::byte* attributes = r.in.take(l.record.attributes * sizeof(CUlaunchAttribute));
  l.params = const_cast<std::byte*>(r.in.take(l.record.param_bytes));
  if (!r.complete()) return l.refused = r.broken(), l;
  std::memcpy(l.attributes.data(), attributes, l.record.attributes * sizeof(CUlaunchAttribute));
  for (std::uint32_t i = 0; i < l.record.attributes; ++i)
    if (!api::crosses_boundary(l.attributes[i].id)) return l.refused = r.broken(), l;
  l.function = static_cast<CUfunction>(r.session.objects.find(l.record.function, api::Handle::Function));
  if (l.function == nullptr) return l.refused = CUDA_ERROR_INVALID_HANDLE, l;
  l.stream = reinterpret_cast<CUstream>(l.record.stream);
  if (!api::special_stream(l.record.stream)) {
    l.stream = static_cast<CUstream>(r.session.objects.find(l.record.stream, api::Handle::Stream));
    if (l.stream == nullptr) return l.refused = CUDA_ERROR_INVALID_HANDLE, l;
  }
  return l;
}

}  // namespace

CUresult cuLaunchKernel(Request& r) {
  Launch l = read_launch(r);
  if (l.refused != CUDA_SUCCESS) return l.refused;
  std::size_t bytes = l.record.param_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, l.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  const auto& [gx, gy, gz] = l.record.grid;
  const auto& [bx, by, bz] = l.record.block;
  return per_thread_or<api::id_of::cuLaunchKernel>(r, r.session.driver.cuLaunchKernel)(
      l.function, gx, gy, gz, bx, by, bz, l.record.shared, l.stream, nullptr, extra);
}

CUresult cuLaunchKernelEx(Request& r) {
  Launch l = read_launch(r);
  if (l.refused != CUDA_SUCCESS) return l.refused;
  std::size_t bytes = l.record.param_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, l.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  const CUlaunchConfig config = l.config();
  return per_thread_or<api::id_of::cuLaunchKernelEx>(r, r.session.driver.cuLaunchKernelEx)(&config, l.function, nullptr,
                                                                                           extra);
}

CUresult cuOccupancyMaxActiveClusters(Request& r) {
  Launch l = read_launch(r);
  if (l.record.param_bytes != 0) return r.broken();
  if (l.refused != CUDA_SUCCESS) return l.refused;
  const CUlaunchConfig config = l.config();
  int clusters = 0;
  const CUresult result = r.session.driver.cuOccupancyMaxActiveClusters(&clusters, l.function, &config);
  r.out.slot(static_cast<std::uint64_t>(clusters));
  return result;
}

}  // namespace host::calls
