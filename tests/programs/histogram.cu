// Histograms and other counters with atomics, in shared and in global memory: every atomic operation, for 32-bit and
// 64-bit integers, floats and doubles. Floats are sums of small integers, so that any order gives the same bits.
#include <algorithm>

#include "check.h"

namespace {

constexpr int block = 128;
constexpr int bins = 64;

__device__ unsigned bin_of(unsigned value) { return (value >> 3) % bins; }

__global__ void count_in_shared_memory(const unsigned* in, unsigned* out, int n) {
  __shared__ unsigned count[bins];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) count[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&count[bin_of(in[i])], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) atomicAdd(&out[b], count[b]);
}

// `out` has `bins` elements; each element is the sum of the values that belong to its bin.
template <class T>
__global__ void add_in_global_memory(const unsigned* in, T* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&out[bin_of(in[i])], static_cast<T>(in[i] % 16));
  }
}

template <class T>
__global__ void add_in_shared_memory(const unsigned* in, T* out, int n) {
  __shared__ T sum[bins];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) sum[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&sum[bin_of(in[i])], static_cast<T>(in[i] % 16));
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) atomicAdd(&out[b], sum[b]);
}

// The results of all operations whose result does not depend on the order.
template <class T>
struct Words {
  T least, greatest, bits_of_all, bits_of_any, parity;
};

template <class T>
__device__ void combine(Words<T>* words, T value) {
  atomicMin(&words->least, value);
  atomicMax(&words->greatest, value);
  atomicAnd(&words->bits_of_all, value);
  atomicOr(&words->bits_of_any, value);
  atomicXor(&words->parity, value);
}

template <class T>
__device__ __host__ T word(unsigned value) {
  return static_cast<T>(static_cast<T>(value) * static_cast<T>(0x10001000100010ll) +
                        static_cast<T>(0x2000000080000040ll));
}

// `start` leaves every value unchanged. Even elements are computed in shared memory first, odd elements directly in
// global memory.
template <class T>
__global__ void all_operations(const unsigned* in, Words<T> start, Words<T>* out, int n) {
  __shared__ Words<T> shared;
  if (threadIdx.x == 0) shared = start;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) combine(i % 2 == 0 ? &shared : out, word<T>(in[i]));
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicMin(&out->least, shared.least);
  atomicMax(&out->greatest, shared.greatest);
  atomicAnd(&out->bits_of_all, shared.bits_of_all);
  atomicOr(&out->bits_of_any, shared.bits_of_any);
  atomicXor(&out->parity, shared.parity);
}

constexpr unsigned prime = 65521;

struct Turns {
  unsigned up, down, product, left;
  unsigned long long chain;
  unsigned short narrow_product;
  unsigned tickets[bins];
};

// Operations that return a value to the thread. Each thread calls each operation once, and the program checks the
// values of all threads together.
__global__ void take_turns(Turns* turns, unsigned long long* returned, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&turns->tickets[atomicInc(&turns->up, bins - 1)], 1u);
  atomicAdd_system(&turns->tickets[atomicDec(&turns->down, bins - 1)], 1u);
  atomicSub(&turns->left, i);
  atomicAdd(returned, atomicExch(&turns->chain, static_cast<unsigned long long>(i) << 20));
  unsigned seen = turns->product;
  for (unsigned expected = ~seen; seen != expected;) {
    expected = seen;
    seen = atomicCAS(&turns->product, expected, expected * (i % 1000 + 2) % prime);
  }
  unsigned short narrow = turns->narrow_product;
  for (unsigned short expected = ~narrow; narrow != expected;) {
    expected = narrow;
    narrow = atomicCAS(&turns->narrow_product, expected, static_cast<unsigned short>(expected * (i % 100 * 2 + 3)));
  }
}

int grid_for(int n) { return (n + block - 1) / block; }

template <class T>
void compare_and_print(const char* what, const T* out, const std::vector<T>& expected) {
  CHECK_CUDA(cudaGetLastError());
  const std::vector<T> got = check::host_copy(out, expected.size());
  check::compare(what, got, expected);
  std::printf("histogram: %s, checksum %016llx\n", what, static_cast<unsigned long long>(check::checksum(got)));
}

void counts(const std::vector<unsigned>& in, const unsigned* device_in) {
  std::vector<unsigned> expected(bins);
  for (const unsigned value : in) ++expected[(value >> 3) % bins];
  unsigned* out = check::device_buffer<unsigned>(bins);
  CHECK_CUDA(cudaMemset(out, 0, bins * sizeof(unsigned)));
  count_in_shared_memory<<<5, block>>>(device_in, out, static_cast<int>(in.size()));
  compare_and_print("counts", out, expected);
  CHECK_CUDA(cudaFree(out));
}

template <class T>
void sums(const char* type, const std::vector<unsigned>& in, const unsigned* device_in) {
  std::vector<T> expected(bins);
  for (const unsigned value : in) expected[(value >> 3) % bins] += static_cast<T>(value % 16);
  T* out = check::device_buffer<T>(bins);
  CHECK_CUDA(cudaMemset(out, 0, bins * sizeof(T)));
  add_in_global_memory<<<5, block>>>(device_in, out, static_cast<int>(in.size()));
  compare_and_print(type, out, expected);
  CHECK_CUDA(cudaMemset(out, 0, bins * sizeof(T)));
  add_in_shared_memory<<<5, block>>>(device_in, out, static_cast<int>(in.size()));
  check::compare(type, check::host_copy(out, bins), expected);
  CHECK_CUDA(cudaFree(out));
}

template <class T>
void operations(const char* type, const std::vector<unsigned>& in, const unsigned* device_in, Words<T> start) {
  Words<T> expected = start;
  for (const unsigned value : in) {
    const T w = word<T>(value);
    expected.least = std::min(expected.least, w);
    expected.greatest = std::max(expected.greatest, w);
    expected.bits_of_all &= w;
    expected.bits_of_any |= w;
    expected.parity ^= w;
  }
  Words<T>* out = check::device_copy(std::vector<Words<T>>{start});
  all_operations<<<grid_for(static_cast<int>(in.size())), block>>>(device_in, start, out, static_cast<int>(in.size()));
  CHECK_CUDA(cudaGetLastError());
  const Words<T> got = check::host_copy(out, 1)[0];
  CHECK_THAT(got.least == expected.least, "%s: the minimum is wrong.", type);
  CHECK_THAT(got.greatest == expected.greatest, "%s: the maximum is wrong.", type);
  CHECK_THAT(got.bits_of_all == expected.bits_of_all, "%s: the conjunction is wrong.", type);
  CHECK_THAT(got.bits_of_any == expected.bits_of_any, "%s: the disjunction is wrong.", type);
  CHECK_THAT(got.parity == expected.parity, "%s: the parity is wrong.", type);
  std::printf("histogram: %s, min, max, and, or, xor, checksum %016llx\n", type,
              static_cast<unsigned long long>(check::checksum(&got, sizeof(got))));
  CHECK_CUDA(cudaFree(out));
}

void turns(unsigned n) {
  Turns start = {};
  start.left = 1u << 31;
  start.product = start.narrow_product = 1;
  Turns expected = start;
  unsigned long long chained = 0;
  for (unsigned i = 0; i < n; ++i) {
    expected.left -= i;
    expected.product = expected.product * (i % 1000 + 2) % prime;
    expected.narrow_product = static_cast<unsigned short>(expected.narrow_product * (i % 100 * 2 + 3));
    chained += static_cast<unsigned long long>(i) << 20;
  }
  Turns* device = check::device_copy(std::vector<Turns>{start});
  auto* returned = check::device_copy(std::vector<unsigned long long>{0});
  take_turns<<<grid_for(static_cast<int>(n)), block>>>(device, returned, static_cast<int>(n));
  CHECK_CUDA(cudaGetLastError());
  const Turns got = check::host_copy(device, 1)[0];
  const unsigned long long sum = check::host_copy(returned, 1)[0] + got.chain;
  CHECK_THAT(got.up == n % bins && got.down == (bins - n % bins) % bins, "The turns end at %u and %u.", got.up,
             got.down);
  for (unsigned i = 0; i < bins; ++i) {  // up returns 0 first; down returns 0 and then the last value
    const unsigned times = n / bins * 2 + (i < n % bins) + ((bins - i) % bins < n % bins);
    CHECK_THAT(got.tickets[i] == times, "Ticket %u was taken %u times, not %u.", i, got.tickets[i], times);
  }
  CHECK_THAT(got.left == expected.left, "Subtraction leaves %u, not %u.", got.left, expected.left);
  CHECK_THAT(sum == chained, "What was exchanged adds up to %llu, not %llu.", sum, chained);
  CHECK_THAT(got.product == expected.product, "The product is %u, not %u.", got.product, expected.product);
  CHECK_THAT(got.narrow_product == expected.narrow_product, "The 16-bit product is %u, not %u.", got.narrow_product,
             expected.narrow_product);
  std::printf("histogram: turns end at %u and %u, %u left, products %u and %u\n", got.up, got.down, got.left,
              got.product, got.narrow_product);
  CHECK_CUDA(cudaFree(device));
  CHECK_CUDA(cudaFree(returned));
}

}  // namespace

int main(int argc, char** argv) {
  long n = 8000;
  check::parse(argc, argv, "histogram", "counts with atomics on the GPU and compares with the CPU",
               {{"--n", "number of elements", &n, 1, 1000000}});
  std::vector<unsigned> in(n);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<unsigned>(check::small_number(i, 1) << 8 | check::small_number(i, 2) << 4 |
                                  check::small_number(i, 3));
  }
  const unsigned* device_in = check::device_copy(in);
  counts(in, device_in);
  sums<int>("int", in, device_in);
  sums<unsigned long long>("unsigned 64-bit", in, device_in);
  sums<float>("float", in, device_in);
  sums<double>("double", in, device_in);
  operations<int>("int", in, device_in, {INT32_MAX, INT32_MIN, -1, 0, 0});
  operations<unsigned>("unsigned", in, device_in, {UINT32_MAX, 0, UINT32_MAX, 0, 0});
  operations<long long>("int64", in, device_in, {INT64_MAX, INT64_MIN, -1, 0, 0});
  operations<unsigned long long>("unsigned 64-bit", in, device_in, {UINT64_MAX, 0, UINT64_MAX, 0, 0});
  turns(static_cast<unsigned>(n));
  CHECK_CUDA(cudaFree(const_cast<unsigned*>(device_in)));
  return 0;
}
