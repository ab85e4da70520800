// Surfaces: kernels write arrays of one, two and three dimensions and layered arrays, and read them as surfaces and as
// textures. Copies read the results back, also through other arrays.
#include "textures.h"

namespace {

constexpr int width = 32, height = 8, depth = 4;

__host__ __device__ unsigned value_at(int x, int y, int z) { return (z * 64 + y) * 64 + x + 1; }

__global__ void write_2d(cudaSurfaceObject_t surface) {
  const int x = threadIdx.x, y = threadIdx.y;
  surf2Dwrite(value_at(x, y, 0), surface, x * sizeof(unsigned), y);
}

__global__ void add_2d(cudaSurfaceObject_t surface, unsigned add) {
  const int x = threadIdx.x, y = threadIdx.y;
  const auto old = surf2Dread<unsigned>(surface, x * sizeof(unsigned), y);
  surf2Dwrite(old + add, surface, x * sizeof(unsigned), y);
}

__global__ void write_3d(cudaSurfaceObject_t surface) {
  const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
  surf3Dwrite(value_at(x, y, z), surface, x * sizeof(unsigned), y, z);
}

__global__ void write_layers(cudaSurfaceObject_t surface) {
  const int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;
  surf2DLayeredwrite(value_at(x, y, layer), surface, x * sizeof(unsigned), y, layer);
}

__global__ void read_texture(cudaTextureObject_t texture, unsigned* out) {
  const int x = threadIdx.x, y = threadIdx.y;
  out[y * width + x] = tex2D<unsigned>(texture, x + 0.5f, y + 0.5f);
}

cudaArray_t array_of(int slices, unsigned flags) {
  const auto format = cudaCreateChannelDesc<unsigned>();
  cudaArray_t array = nullptr;
  CHECK_CUDA(
      cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, slices), flags | cudaArraySurfaceLoadStore));
  return array;
}

std::vector<unsigned> content_of(cudaArray_t array, int slices) {
  std::vector<unsigned> out(width * height * slices);
  cudaMemcpy3DParms copy{};
  copy.srcArray = array;
  copy.dstPtr = make_cudaPitchedPtr(out.data(), width * sizeof(unsigned), width, height);
  copy.extent = make_cudaExtent(width, height, slices), copy.kind = cudaMemcpyDeviceToHost;
  CHECK_CUDA(cudaMemcpy3D(&copy));
  return out;
}

void expect_values(const char* what, const std::vector<unsigned>& found, unsigned add) {
  for (size_t i = 0; i < found.size(); ++i) {
    const int x = i % width, y = i / width % height, z = i / width / height;
    CHECK_THAT(found[i] == value_at(x, y, z) + add, "%s: at %d, %d, %d there is %u, not %u.", what, x, y, z, found[i],
               value_at(x, y, z) + add);
  }
  std::printf("surfaces: %s: ok, %016llx\n", what, static_cast<unsigned long long>(check::checksum(found)));
}

void flat(unsigned rounds) {
  const cudaArray_t array = array_of(0, 0);
  const cudaSurfaceObject_t surface = check::surface_of(array);
  const dim3 block(width, height);
  write_2d<<<1, block>>>(surface);
  for (unsigned i = 0; i < rounds; ++i) add_2d<<<1, block>>>(surface, i);
  CHECK_CUDA(cudaGetLastError());
  expect_values("two dimensions", content_of(array, 1), rounds * (rounds - 1) / 2);

  cudaTextureDesc sampling{};
  sampling.readMode = cudaReadModeElementType;
  const cudaResourceDesc resource = check::resource_of(array);
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
  unsigned* device = check::device_buffer<unsigned>(width * height);
  read_texture<<<1, block>>>(texture, device);
  CHECK_CUDA(cudaGetLastError());
  expect_values("as a texture", check::host_copy(device, width * height), rounds * (rounds - 1) / 2);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaDestroySurfaceObject(surface));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(device));
}

void solid() {
  const cudaArray_t array = array_of(depth, 0), layers = array_of(depth, cudaArrayLayered);
  const cudaSurfaceObject_t surface = check::surface_of(array), layered = check::surface_of(layers);
  write_3d<<<depth, dim3(width, height)>>>(surface);
  CHECK_CUDA(cudaGetLastError());
  expect_values("three dimensions", content_of(array, depth), 0);
  cudaMemcpy3DParms copy{};
  copy.srcArray = array, copy.dstArray = layers;
  copy.extent = make_cudaExtent(width, height, depth), copy.kind = cudaMemcpyDeviceToDevice;
  CHECK_CUDA(cudaMemcpy3D(&copy));
  expect_values("copied to layers", content_of(layers, depth), 0);
  CHECK_CUDA(cudaDestroySurfaceObject(surface));
  CHECK_CUDA(cudaFreeArray(array));
  write_layers<<<depth, dim3(width, height)>>>(layered);
  CHECK_CUDA(cudaGetLastError());
  expect_values("layers", content_of(layers, depth), 0);
  CHECK_CUDA(cudaDestroySurfaceObject(layered));
  CHECK_CUDA(cudaFreeArray(layers));
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 10;
  check::parse(argc, argv, "surfaces", "writes arrays by kernels",
               {{"--rounds", "additions to an array", &rounds, 1, 1000}});
  flat(static_cast<unsigned>(rounds));
  solid();
  return 0;
}
