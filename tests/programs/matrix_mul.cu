// Multiplies matrices through tiles in static and dynamic shared memory. Sizes need not be multiples of the tile. The
// elements are small integers, so that float sums are exact in any order and must equal the CPU's result in every bit.
#include "check.h"

namespace {

constexpr int tile = 16;

struct Shape {
  int rows, inner, columns;
};

// Computes one element of C per thread. `left` and `right` are one tile each, in the block's shared memory.
__device__ void multiply_tiles(const float* a, const float* b, float* c, Shape shape, float* left, float* right) {
  const int row = blockIdx.y * tile + threadIdx.y;
  const int column = blockIdx.x * tile + threadIdx.x;
  const int here = threadIdx.y * tile + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < shape.inner; start += tile) {
    const int a_column = start + threadIdx.x;
    const int b_row = start + threadIdx.y;
    left[here] = row < shape.rows && a_column < shape.inner ? a[row * shape.inner + a_column] : 0.0f;
    right[here] = b_row < shape.inner && column < shape.columns ? b[b_row * shape.columns + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += left[threadIdx.y * tile + k] * right[k * tile + threadIdx.x];
    __syncthreads();
  }
  if (row < shape.rows && column < shape.columns) c[row * shape.columns + column] = sum;
}

__global__ void multiply_static(const float* a, const float* b, float* c, Shape shape) {
  __shared__ float left[tile * tile];
  __shared__ float right[tile * tile];
  multiply_tiles(a, b, c, shape, left, right);
}

__global__ void multiply_dynamic(const float* a, const float* b, float* c, Shape shape) {
  extern __shared__ float tiles[];
  multiply_tiles(a, b, c, shape, tiles, tiles + tile * tile);
}

std::vector<float> multiply_on_cpu(const std::vector<float>& a, const std::vector<float>& b, Shape shape) {
  std::vector<float> c(static_cast<size_t>(shape.rows) * shape.columns);
  for (int i = 0; i < shape.rows; ++i) {
    for (int k = 0; k < shape.inner; ++k) {
      const float left = a[i * shape.inner + k];
      for (int j = 0; j < shape.columns; ++j) c[i * shape.columns + j] += left * b[k * shape.columns + j];
    }
  }
  return c;
}

std::vector<float> numbers(size_t count, unsigned salt) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(check::small_number(i, salt) - 7);
  return values;
}

void run(Shape shape) {
  const std::vector<float> a = numbers(static_cast<size_t>(shape.rows) * shape.inner, 3);
  const std::vector<float> b = numbers(static_cast<size_t>(shape.inner) * shape.columns, 4);
  const std::vector<float> expected = multiply_on_cpu(a, b, shape);
  float* device_a = check::device_copy(a);
  float* device_b = check::device_copy(b);
  float* device_c = check::device_buffer<float>(expected.size());

  const dim3 block(tile, tile);
  const dim3 grid((shape.columns + tile - 1) / tile, (shape.rows + tile - 1) / tile);
  CHECK_CUDA(cudaMemset(device_c, 0xff, expected.size() * sizeof(float)));
  multiply_static<<<grid, block>>>(device_a, device_b, device_c, shape);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<float> c = check::host_copy(device_c, expected.size());
  check::compare("static shared memory", c, expected);

  CHECK_CUDA(cudaMemset(device_c, 0xff, expected.size() * sizeof(float)));
  multiply_dynamic<<<grid, block, 2 * tile * tile * sizeof(float)>>>(device_a, device_b, device_c, shape);
  CHECK_CUDA(cudaGetLastError());
  check::compare("dynamic shared memory", check::host_copy(device_c, expected.size()), expected);

  CHECK_CUDA(cudaFree(device_a));
  CHECK_CUDA(cudaFree(device_b));
  CHECK_CUDA(cudaFree(device_c));
  std::printf("matrix_mul: %d x %d by %d x %d, checksum %016llx\n", shape.rows, shape.inner, shape.inner, shape.columns,
              static_cast<unsigned long long>(check::checksum(c)));
}

}  // namespace

int main(int argc, char** argv) {
  long size = 96;
  check::parse(argc, argv, "matrix_mul", "multiplies matrices on the GPU and compares with the CPU",
               {{"--size", "rows of the largest matrix", &size, 16, 2048}});
  const int n = static_cast<int>(size);
  run({n, n, n});
  run({n - 5, n / 2 + 3, n / 3 + 1});
  return 0;
}
