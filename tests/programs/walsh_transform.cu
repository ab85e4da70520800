// The fast Walsh transform. Kernels process the wide strides in global memory, two strides per kernel, and the narrow
// strides in shared memory, for many short vectors at once (a two-dimensional grid). The input is small integers in
// floats, so that results are exact. The transform of the transform is the input times its length.
#include "check.h"

namespace {

constexpr int block = 128;
constexpr int shared_logarithm = 9;  // the longest part that is transformed in shared memory

// Processes two strides at once, stride and twice stride, with one thread per four elements.
__global__ void two_strides(float* data, int stride, int length) {
  const int quarter = blockIdx.x * blockDim.x + threadIdx.x;
  if (quarter >= length / 4) return;
  float* at = data + static_cast<size_t>(blockIdx.y) * length + quarter % stride + quarter / stride * stride * 4;
  const float a = at[0], b = at[stride], c = at[2 * stride], d = at[3 * stride];
  const float ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
  at[0] = ac + bd;
  at[stride] = ac - bd;
  at[2 * stride] = a_c + b_d;
  at[3 * stride] = a_c - b_d;
}

__global__ void one_stride(float* data, int stride, int length) {
  const int half = blockIdx.x * blockDim.x + threadIdx.x;
  if (half >= length / 2) return;
  float* at = data + static_cast<size_t>(blockIdx.y) * length + half % stride + half / stride * stride * 2;
  const float a = at[0], b = at[stride];
  at[0] = a + b;
  at[stride] = a - b;
}

__global__ void in_shared_memory(float* data, int logarithm) {
  extern __shared__ float part[];
  const int size = 1 << logarithm;
  float* mine = data + static_cast<size_t>(blockIdx.x) * size;
  for (int i = threadIdx.x; i < size; i += blockDim.x) part[i] = mine[i];
  for (int stride = size / 2; stride > 0; stride /= 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
      const int at = i % stride + i / stride * stride * 2;
      const float a = part[at], b = part[at + stride];
      part[at] = a + b;
      part[at + stride] = a - b;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += blockDim.x) mine[i] = part[i];
}

void transform(float* data, int logarithm, int vectors) {
  const int length = 1 << logarithm;
  const auto grid = [&](int threads) { return dim3((threads + block - 1) / block, vectors); };
  int left = logarithm;
  for (; left - 2 >= shared_logarithm; left -= 2) {
    two_strides<<<grid(length / 4), block>>>(data, 1 << (left - 2), length);
  }
  if (left > shared_logarithm) {
    one_stride<<<grid(length / 2), block>>>(data, 1 << (left - 1), length);
    --left;
  }
  in_shared_memory<<<vectors*(length >> left), block, sizeof(float) << left>>>(data, left);
  CHECK_CUDA(cudaGetLastError());
}

void transform_on_the_cpu(float* data, int length) {
  for (int stride = length / 2; stride > 0; stride /= 2) {
    for (int i = 0; i < length / 2; ++i) {
      float* at = data + i % stride + i / stride * stride * 2;
      const float a = at[0], b = at[stride];
      at[0] = a + b;
      at[stride] = a - b;
    }
  }
}

void run(int logarithm, int vectors) {
  const int length = 1 << logarithm;
  std::vector<float> in(static_cast<size_t>(length) * vectors);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(check::small_number(i, 6) - 7);
  std::vector<float> expected = in;
  for (int v = 0; v < vectors; ++v) transform_on_the_cpu(expected.data() + static_cast<size_t>(v) * length, length);

  float* data = check::device_copy(in);
  transform(data, logarithm, vectors);
  const std::vector<float> got = check::host_copy(data, in.size());
  check::compare("transform", got, expected);
  transform(data, logarithm, vectors);
  for (float& value : in) value *= static_cast<float>(length);
  check::compare("transform of the transform", check::host_copy(data, in.size()), in);
  std::printf("walsh_transform: %d of %d, checksum %016llx\n", vectors, length,
              static_cast<unsigned long long>(check::checksum(got)));
  CHECK_CUDA(cudaFree(data));
}

}  // namespace

int main(int argc, char** argv) {
  long logarithm = 12;
  check::parse(argc, argv, "walsh_transform", "transforms vectors of powers of two",
               {{"--log", "logarithm of the longest length", &logarithm, 2, 20}});
  run(static_cast<int>(logarithm), 3);
  run(static_cast<int>(logarithm) - 1, 2);
  run(2, 50);
  return 0;
}
