// Textures of each kind of memory: arrays, layers, levels, linear memory and rows with a pitch. Kernels sample at
// texels, between texels and beyond the edge. Coordinates are multiples of a quarter texel and texels are small
// integers, so that interpolated values are exact.
#include <cmath>

#include "textures.h"

namespace {

constexpr int width = 32, height = 16, layers = 3;

__global__ void read_2d(cudaTextureObject_t texture, float* out, float x_offset, float y_offset) {
  const int x = threadIdx.x, y = threadIdx.y;
  out[y * width + x] = tex2D<float>(texture, x + x_offset, y + y_offset);
}

__global__ void read_layers(cudaTextureObject_t texture, float* out) {
  const int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;
  out[(layer * height + y) * width + x] = tex2DLayered<float>(texture, x + 0.5f, y + 0.5f, layer);
}

__global__ void read_level(cudaTextureObject_t texture, float* out, int level_width, int level_height, float level) {
  const int x = threadIdx.x, y = threadIdx.y;
  out[y * level_width + x] = tex2DLod<float>(texture, (x + 0.5f) / level_width, (y + 0.5f) / level_height, level);
}

__global__ void read_linear(cudaTextureObject_t texture, uchar4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<uchar4>(texture, n - 1 - i);
}

std::vector<float> texels(size_t count, unsigned salt) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(check::small_number(i, salt));
  return out;
}

cudaTextureDesc sampling(cudaTextureFilterMode filter, cudaTextureAddressMode address) {
  cudaTextureDesc d{};
  d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = address;
  d.filterMode = filter;
  d.readMode = cudaReadModeElementType;
  return d;
}

float at(const std::vector<float>& all, int x, int y, bool border) {
  if (border && (x < 0 || y < 0 || x >= width || y >= height)) return 0;
  x = std::min(std::max(x, 0), width - 1), y = std::min(std::max(y, 0), height - 1);
  return all[y * width + x];
}

float sample(const std::vector<float>& all, float x, float y, bool linear, bool border) {
  if (!linear) return at(all, static_cast<int>(std::floor(x)), static_cast<int>(std::floor(y)), border);
  x -= 0.5f, y -= 0.5f;
  const int i = static_cast<int>(std::floor(x)), j = static_cast<int>(std::floor(y));
  const float a = x - i, b = y - j;
  return (1 - a) * (1 - b) * at(all, i, j, border) + a * (1 - b) * at(all, i + 1, j, border) +
         (1 - a) * b * at(all, i, j + 1, border) + a * b * at(all, i + 1, j + 1, border);
}

void expect_samples(const char* what, cudaTextureObject_t texture, const std::vector<float>& all, bool linear,
                    bool border) {
  float* device = check::device_buffer<float>(all.size());
  uint64_t sum = 0;
  for (const float offset : {0.5f, 0.75f, -3.25f, 6.0f}) {
    read_2d<<<1, dim3(width, height)>>>(texture, device, offset, offset / 2);
    CHECK_CUDA(cudaGetLastError());
    const std::vector<float> found = check::host_copy(device, all.size());
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const float expected = sample(all, x + offset, y + offset / 2, linear, border);
        CHECK_THAT(found[y * width + x] == expected, "%s: at %d, %d with %g there is %g, not %g.", what, x, y, offset,
                   found[y * width + x], expected);
      }
    sum ^= check::checksum(found);
  }
  std::printf("textures: %s: ok, %016llx\n", what, static_cast<unsigned long long>(sum));
  CHECK_CUDA(cudaFree(device));
}

void arrays() {
  const std::vector<float> all = texels(width * height, 1);
  const auto format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  CHECK_CUDA(cudaMallocArray(&array, &format, width, height));
  constexpr size_t row = width * sizeof(float);
  CHECK_CUDA(cudaMemcpy2DToArray(array, 0, 0, all.data(), row, row, height, cudaMemcpyHostToDevice));
  for (const bool linear : {false, true})
    for (const bool border : {false, true}) {
      const auto filter = linear ? cudaFilterModeLinear : cudaFilterModePoint;
      const auto d = sampling(filter, border ? cudaAddressModeBorder : cudaAddressModeClamp);
      const cudaTextureObject_t texture = check::texture_of(array, d);
      char what[64];
      std::snprintf(what, sizeof what, "array, %s, %s", linear ? "linear" : "point", border ? "border" : "clamp");
      expect_samples(what, texture, all, linear, border);
      CHECK_CUDA(cudaDestroyTextureObject(texture));
    }
  std::vector<float> back(all.size());
  CHECK_CUDA(cudaMemcpy2DFromArray(back.data(), row, array, 0, 0, row, height, cudaMemcpyDeviceToHost));
  CHECK_THAT(back == all, "The array does not come back as it was written.");
  CHECK_CUDA(cudaFreeArray(array));
}

void rows() {
  const std::vector<float> all = texels(width * height, 2);
  float* device = nullptr;
  size_t pitch = 0;
  CHECK_CUDA(cudaMallocPitch(&device, &pitch, width * sizeof(float), height));
  CHECK_CUDA(cudaMemcpy2D(device, pitch, all.data(), width * sizeof(float), width * sizeof(float), height,
                          cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = device;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = width, resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  const auto d = sampling(cudaFilterModeLinear, cudaAddressModeClamp);
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &d, nullptr));
  expect_samples("rows, linear, clamp", texture, all, true, false);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFree(device));
}

void layered() {
  const std::vector<float> all = texels(width * height * layers, 3);
  const auto format = cudaCreateChannelDesc<float>();
  const cudaExtent extent = make_cudaExtent(width, height, layers);
  cudaArray_t array = nullptr;
  CHECK_CUDA(cudaMalloc3DArray(&array, &format, extent, cudaArrayLayered));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<float*>(all.data()), width * sizeof(float), width, height);
  copy.dstArray = array, copy.extent = extent, copy.kind = cudaMemcpyHostToDevice;
  CHECK_CUDA(cudaMemcpy3D(&copy));
  const cudaTextureObject_t texture = check::texture_of(array, sampling(cudaFilterModePoint, cudaAddressModeClamp));
  float* device = check::device_buffer<float>(all.size());
  read_layers<<<layers, dim3(width, height)>>>(texture, device);
  CHECK_CUDA(cudaGetLastError());
  CHECK_THAT(check::host_copy(device, all.size()) == all, "The layers differ.");
  std::printf("textures: layers: ok, %016llx\n", static_cast<unsigned long long>(check::checksum(all)));
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(device));
}

void levels() {
  const auto format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t array = nullptr;
  CHECK_CUDA(cudaMallocMipmappedArray(&array, &format, make_cudaExtent(width, height, 0), 4));
  std::vector<std::vector<float>> all;
  for (unsigned level = 0; level < 4; ++level) {
    const size_t w = width >> level, h = height >> level;
    all.push_back(texels(w * h, 10 + level));
    cudaArray_t one = nullptr;
    CHECK_CUDA(cudaGetMipmappedArrayLevel(&one, array, level));
    const size_t row = w * sizeof(float);
    CHECK_CUDA(cudaMemcpy2DToArray(one, 0, 0, all.back().data(), row, row, h, cudaMemcpyHostToDevice));
  }
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = array;
  cudaTextureDesc d = sampling(cudaFilterModePoint, cudaAddressModeClamp);
  d.normalizedCoords = 1;
  d.maxMipmapLevelClamp = 3;
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &d, nullptr));
  float* device = check::device_buffer<float>(width * height);
  for (int level = 0; level < 4; ++level) {
    const int w = width >> level, h = height >> level;
    read_level<<<1, dim3(w, h)>>>(texture, device, w, h, static_cast<float>(level));
    CHECK_CUDA(cudaGetLastError());
    CHECK_THAT(check::host_copy(device, w * h) == all[level], "Level %d differs.", level);
  }
  std::printf("textures: levels: ok\n");
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeMipmappedArray(array));
  CHECK_CUDA(cudaFree(device));
}

void linear_memory(int n) {
  std::vector<uchar4> all(n);
  for (int i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(check::small_number(i, 4) * 16 + i % 16);
    all[i] = make_uchar4(byte, byte / 2, 255 - byte, i % 256);
  }
  uchar4* from = check::device_copy(all);
  uchar4* to = check::device_buffer<uchar4>(n);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = from;
  resource.res.linear.desc = cudaCreateChannelDesc<uchar4>();
  resource.res.linear.sizeInBytes = n * sizeof(uchar4);
  const auto d = sampling(cudaFilterModePoint, cudaAddressModeClamp);
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &d, nullptr));
  read_linear<<<(n + 127) / 128, 128>>>(texture, to, n);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<uchar4> found = check::host_copy(to, n);
  for (int i = 0; i < n; ++i)
    CHECK_THAT(std::memcmp(&found[i], &all[n - 1 - i], sizeof(uchar4)) == 0, "Element %d of linear memory differs.", i);
  std::printf("textures: linear memory of %d texels: ok\n", n);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFree(from));
  CHECK_CUDA(cudaFree(to));
}

}  // namespace

int main(int argc, char** argv) {
  long elements = 5000;
  check::parse(argc, argv, "textures", "reads textures of each kind of memory",
               {{"--n", "texels of linear memory", &elements, 1, 1 << 24}});
  arrays();
  rows();
  layered();
  levels();
  linear_memory(static_cast<int>(elements));
  return 0;
}
