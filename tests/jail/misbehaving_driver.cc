// A libcuda for a worker under test: the simulated GPU, with one call replaced. cuMemsetD32 with the number below makes
// the attempt that the given memory names, and writes the result to this memory.
#include <fcntl.h>

#include <array>
#include <cstring>

#include "ring/api/cuda.h"
#include "tests/jail/attempts.h"
#include "tests/jail/wish.h"

namespace {

// NVIDIA's driver opens this device as well, and a worker's jail checks whether the driver did.
[[maybe_unused]] const int device_file = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult cuMemsetD32_v2(CUdeviceptr at, unsigned value,
                                                                          std::size_t count) {
  if (value != misbehave::wish || count * 4 != misbehave::wish_bytes) return CUDA_ERROR_NOT_SUPPORTED;
  std::array<char, misbehave::wish_bytes> text{};
  if (const CUresult r = cuMemcpyDtoH_v2(text.data(), at, text.size()); r != CUDA_SUCCESS) return r;
  text.back() = '\0';
  const std::string answer = misbehave::attempt(text.data());
  text.fill('\0');
  answer.copy(text.data(), text.size() - 1);
  return cuMemcpyHtoD_v2(at, text.data(), text.size());
}
