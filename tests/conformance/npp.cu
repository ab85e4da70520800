// NPP: adding a constant to an image, mirroring, filtering, enlarging and summing.
#include <npp.h>

#include "tests/conformance/library.h"

namespace {

constexpr int width = 320, height = 200;
constexpr NppiSize size{width, height};

NppStreamContext context(cudaStream_t stream) {
  cudaDeviceProp properties{};
  NppStreamContext made{};
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  made.hStream = stream;
  made.nCudaDeviceId = 0;
  made.nMultiProcessorCount = properties.multiProcessorCount;
  made.nMaxThreadsPerMultiProcessor = properties.maxThreadsPerMultiProcessor;
  made.nMaxThreadsPerBlock = properties.maxThreadsPerBlock;
  made.nSharedMemPerBlock = properties.sharedMemPerBlock;
  made.nCudaDevAttrComputeCapabilityMajor = properties.major;
  made.nCudaDevAttrComputeCapabilityMinor = properties.minor;
  return made;
}

Npp8u pixel(int x, int y) {
  return static_cast<Npp8u>(check::small_number(static_cast<size_t>(y) * width + static_cast<size_t>(x), 1) * 16);
}

template <class Right>
void show(const char* what, const Npp8u* data, Right right) {
  const auto got = check::host_copy(data, size_t{width} * height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      CHECK_THAT(got[static_cast<size_t>(y) * width + static_cast<size_t>(x)] == right(x, y), "%s: %d, %d is wrong.",
                 what, x, y);
  std::printf("%s: %016llx\n", what, static_cast<unsigned long long>(check::checksum(got)));
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  const NppStreamContext at = context(stream);
  std::vector<Npp8u> image(size_t{width} * height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image[static_cast<size_t>(y) * width + static_cast<size_t>(x)] = pixel(x, y);
  Npp8u *in = check::device_copy(image), *out = check::device_buffer<Npp8u>(image.size() * 4);

  CHECK_LIBRARY(nppiAddC_8u_C1RSfs_Ctx(in, width, 40, out, width, size, 0, at));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  show("added", out, [](int x, int y) { return pixel(x, y) > 215 ? 255 : pixel(x, y) + 40; });

  CHECK_LIBRARY(nppiMirror_8u_C1R_Ctx(in, width, out, width, size, NPP_VERTICAL_AXIS, at));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  show("mirrored", out, [](int x, int y) { return pixel(width - 1 - x, y); });

  CHECK_CUDA(cudaMemset(out, 0, image.size()));
  CHECK_LIBRARY(
      nppiFilterBox_8u_C1R_Ctx(in + width + 1, width, out, width, {width - 2, height - 2}, {3, 3}, {1, 1}, at));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  library::exact("filtered", check::host_copy(out, image.size()));

  CHECK_LIBRARY(nppiResize_8u_C1R_Ctx(in, width, size, {0, 0, width, height}, out, 2 * width, {2 * width, 2 * height},
                                      {0, 0, 2 * width, 2 * height}, NPPI_INTER_LINEAR, at));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  library::exact("larger", check::host_copy(out, image.size() * 4));

  // More memory than the sum of so few pixels needs.
  Npp8u* space = check::device_buffer<Npp8u>(size_t{16} << 20);
  Npp64f* sum = check::device_buffer<Npp64f>(1);
  CHECK_LIBRARY(nppiSum_8u_C1R_Ctx(in, width, size, space, sum, at));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  double right = 0;
  for (Npp8u value : image) right += value;
  CHECK_THAT(check::host_copy(sum, 1)[0] == right, "The sum is %g and not %g.", check::host_copy(sum, 1)[0], right);
  std::printf("sum %.0f\n", right);
}
