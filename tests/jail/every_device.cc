// Creates a context on every device, and copies bytes on each device and between devices. For any device but the first,
// the driver makes its requests to the kernel modules only after a worker's jail has closed.
//
// usage: every_device LIBCUDA. Exit codes: 0, 1 a call failed, 2 usage.
#include <cstdio>
#include <vector>

#include "tests/named_driver.h"

namespace {

constexpr std::size_t bytes = 4 << 20;

bool good(CUresult result, const char* what, int device) {
  if (result != CUDA_SUCCESS) std::printf("device %d: %s: %d\n", device, what, static_cast<int>(result));
  return result == CUDA_SUCCESS;
}

bool use(int device, CUdeviceptr& memory) {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  std::vector<unsigned char> back(bytes);
  return good(CU(cuDevicePrimaryCtxRetain)(&context, device), "a context", device) &&
         good(CU(cuCtxSetCurrent)(context), "the context", device) &&
         good(CU(cuMemAlloc_v2)(&memory, bytes), "memory", device) &&
         good(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), "a stream", device) &&
         good(CU(cuMemsetD8_v2)(memory, 0x5a, bytes), "a fill", device) &&
         good(CU(cuMemcpyDtoH_v2)(back.data(), memory, bytes), "a copy", device) && back[bytes - 1] == 0x5a &&
         good(CU(cuStreamDestroy_v2)(stream), "the stream's end", device);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || open_library(argv[1]) == nullptr) return 2;
  int devices = 0;
  if (!good(CU(cuInit)(0), "cuInit", 0) || !good(CU(cuDeviceGetCount)(&devices), "the count", 0)) return 1;
  std::vector<CUdeviceptr> memory(static_cast<std::size_t>(devices));
  for (int device = 0; device < devices; ++device) {
    if (!use(device, memory[static_cast<std::size_t>(device)])) return 1;
  }
  for (int device = 1; device < devices; ++device) {
    const auto at = static_cast<std::size_t>(device);
    if (!good(CU(cuMemcpyDtoD_v2)(memory[at], memory[at - 1], bytes), "a copy between devices", device)) return 1;
  }
  std::printf("%d devices\n", devices);
  return 0;
}
