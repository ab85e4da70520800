// Multiplies matrices on tensor cores through nvcuda::wmma: half precision with sums in single and half precision, and
// 8-bit integers with sums that saturate. The elements are small integers, so that every sum is exact in any order and
// must equal the CPU's result in every bit. A warp computes one tile of the result; sides are multiples of a tile.
#include <mma.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "check.h"

namespace {

namespace wmma = nvcuda::wmma;

struct Shape {
  int rows, inner, columns;
};

// Tiles have M rows, N columns and an inner length of 16; A and C are stored by rows, B by columns. Each warp has a
// tile.
template <int M, int N, class T, class S>
__device__ void multiply_tile(const T* a, const T* b, S* c, Shape shape, S start, [[maybe_unused]] bool saturate) {
  constexpr int K = 16;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  const int across = shape.columns / N;
  const int row = warp / across * M;
  const int column = warp % across * N;
  if (row >= shape.rows) return;  // applies to a whole warp
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, M, N, K, S> sum;
  wmma::fill_fragment(sum, start);
  for (int k = 0; k < shape.inner; k += K) {
    wmma::load_matrix_sync(left, a + row * shape.inner + k, shape.inner);
    wmma::load_matrix_sync(right, b + column * shape.inner + k, shape.inner);
    if constexpr (std::is_same_v<S, int>) {
      wmma::mma_sync(sum, left, right, sum, saturate);
    } else {
      wmma::mma_sync(sum, left, right, sum);
    }
  }
  wmma::store_matrix_sync(c + row * shape.columns + column, sum, shape.columns, wmma::mem_row_major);
}

template <int M, int N, class S>
__global__ void multiply_halves(const half* a, const half* b, S* c, Shape shape) {
  multiply_tile<M, N>(a, b, c, shape, S(1), false);
}

template <int M, int N, class T>
__global__ void multiply_bytes(const T* a, const T* b, int* c, Shape shape, int start, bool saturate) {
  multiply_tile<M, N>(a, b, c, shape, start, saturate);
}

// Uses shared memory, and B stored by rows. Doubles every element of the sum in place.
__global__ void multiply_shared(const half* a, const half* b, float* c, int inner) {
  __shared__ __align__(32) half tiles[2][16 * 16];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int start = 0; start < inner; start += 16) {
    for (int at = threadIdx.x; at < 16 * 16; at += warpSize) {
      tiles[0][at] = a[at / 16 * inner + start + at % 16];
      tiles[1][at] = b[(start + at / 16) * 16 + at % 16];
    }
    __syncwarp();
    wmma::load_matrix_sync(left, tiles[0], 16);
    wmma::load_matrix_sync(right, tiles[1], 16);
    wmma::mma_sync(sum, left, right, sum);
    __syncwarp();
  }
  for (int k = 0; k < sum.num_elements; ++k) sum.x[k] *= 2;
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

// ---- the CPU's side

std::vector<int> numbers(int count, unsigned salt, int least) {
  std::vector<int> values(count);
  for (int i = 0; i < count; ++i) values[i] = check::small_number(i, salt) % 5 + least;
  return values;
}

template <class T>
std::vector<T> as_type(const std::vector<int>& values) {
  std::vector<T> converted(values.size());
  for (size_t i = 0; i < values.size(); ++i) converted[i] = static_cast<T>(static_cast<float>(values[i]));
  return converted;
}

// A is stored by rows, B by columns. Sums begin with `start`. If they saturate, they do so after each sixteen products.
std::vector<int> on_cpu(const std::vector<int>& a, const std::vector<int>& b, Shape shape, int start, bool saturate) {
  using Limits = std::numeric_limits<int>;
  std::vector<int> c(static_cast<size_t>(shape.rows) * shape.columns);
  for (int i = 0; i < shape.rows; ++i) {
    for (int j = 0; j < shape.columns; ++j) {
      int64_t sum = start;
      for (int k = 0; k < shape.inner; ++k) {
        sum += a[i * shape.inner + k] * b[j * shape.inner + k];
        if (saturate && k % 16 == 15) sum = std::clamp<int64_t>(sum, Limits::min(), Limits::max());
      }
      c[i * shape.columns + j] = static_cast<int>(sum);
    }
  }
  return c;
}

template <class S>
void compare(const char* what, const S* device_c, const std::vector<int>& expected) {
  const std::vector<S> got = check::host_copy(device_c, expected.size());
  std::vector<double> as_doubles(got.size());
  for (size_t i = 0; i < got.size(); ++i) as_doubles[i] = static_cast<double>(static_cast<float>(got[i]));
  check::compare(what, as_doubles, std::vector<double>(expected.begin(), expected.end()));
  std::printf("wmma: %s, checksum %016llx\n", what, static_cast<unsigned long long>(check::checksum(expected)));
}

unsigned blocks(Shape shape, int m, int n) { return (shape.rows / m * (shape.columns / n) + 3) / 4; }
constexpr unsigned threads = 128;  // four warps

template <int M, int N, class S>
void halves(const char* what, Shape shape) {
  const std::vector<int> a = numbers(shape.rows * shape.inner, 1, -2);
  const std::vector<int> b = numbers(shape.columns * shape.inner, 2, -1);
  const std::vector<int> expected = on_cpu(a, b, shape, 1, false);
  half* device_a = check::device_copy(as_type<half>(a));
  half* device_b = check::device_copy(as_type<half>(b));
  S* device_c = check::device_buffer<S>(expected.size());
  multiply_halves<M, N><<<blocks(shape, M, N), threads>>>(device_a, device_b, device_c, shape);
  CHECK_CUDA(cudaGetLastError());
  compare(what, device_c, expected);
  CHECK_CUDA(cudaFree(device_a));
  CHECK_CUDA(cudaFree(device_b));
  CHECK_CUDA(cudaFree(device_c));
}

// `start` is near the end of the range, or zero.
template <int M, int N, class T>
void bytes(const char* what, Shape shape, int start, bool saturate) {
  const int least = std::numeric_limits<T>::min() < 0 ? -2 : 0;
  const std::vector<int> a = numbers(shape.rows * shape.inner, 3, least);
  const std::vector<int> b = numbers(shape.columns * shape.inner, 4, least);
  const std::vector<int> expected = on_cpu(a, b, shape, start, saturate);
  T* device_a = check::device_copy(as_type<T>(a));
  T* device_b = check::device_copy(as_type<T>(b));
  int* device_c = check::device_buffer<int>(expected.size());
  multiply_bytes<M, N><<<blocks(shape, M, N), threads>>>(device_a, device_b, device_c, shape, start, saturate);
  CHECK_CUDA(cudaGetLastError());
  check::compare(what, check::host_copy(device_c, expected.size()), expected);
  std::printf("wmma: %s, checksum %016llx\n", what, static_cast<unsigned long long>(check::checksum(expected)));
  CHECK_CUDA(cudaFree(device_a));
  CHECK_CUDA(cudaFree(device_b));
  CHECK_CUDA(cudaFree(device_c));
}

void shared(int inner) {
  const std::vector<int> a = numbers(16 * inner, 5, -2);
  const std::vector<int> b = numbers(16 * inner, 6, -2);
  std::vector<int> expected(16 * 16);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      for (int k = 0; k < inner; ++k) expected[j * 16 + i] += 2 * a[i * inner + k] * b[k * 16 + j];
    }
  }
  half* device_a = check::device_copy(as_type<half>(a));
  half* device_b = check::device_copy(as_type<half>(b));
  float* device_c = check::device_buffer<float>(expected.size());
  multiply_shared<<<1, 32>>>(device_a, device_b, device_c, inner);
  CHECK_CUDA(cudaGetLastError());
  compare("shared memory", device_c, expected);
  CHECK_CUDA(cudaFree(device_a));
  CHECK_CUDA(cudaFree(device_b));
  CHECK_CUDA(cudaFree(device_c));
}

}  // namespace

int main(int argc, char** argv) {
  long tiles = 3;
  check::parse(argc, argv, "wmma", "multiplies matrices on tensor cores and compares with the CPU",
               {{"--tiles", "tiles of 32 in a side of the matrices", &tiles, 1, 16}});
  const int n = static_cast<int>(32 * tiles);
  const Shape shape{n, n / 2, n + 32};
  halves<16, 16, float>("16 by 16 halves into singles", shape);
  halves<16, 16, half>("16 by 16 halves into halves", shape);
  halves<32, 8, float>("32 by 8 halves into singles", shape);
  halves<8, 32, half>("8 by 32 halves into halves", shape);
  bytes<16, 16, signed char>("16 by 16 signed bytes", shape, 0, false);
  bytes<32, 8, unsigned char>("32 by 8 unsigned bytes", shape, 0, false);
  bytes<8, 32, signed char>("8 by 32 signed bytes", shape, 0, false);
  bytes<16, 16, unsigned char>("unsigned bytes that saturate", shape, std::numeric_limits<int>::max() - 100, true);
  bytes<16, 16, signed char>("signed bytes that wrap", shape, std::numeric_limits<int>::max(), false);
  shared(n);
  return 0;
}
