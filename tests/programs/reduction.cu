// Sums, minima and maxima of a vector in six ways: shared memory alone, warp shuffles (down and butterfly), votes,
// tiles of cooperative groups of several sizes, a coalesced group of the threads that took a branch, and one
// cooperative launch whose blocks meet twice at a grid barrier. All numbers are small integers, so that float sums are
// exact.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <algorithm>
#include <type_traits>

#include "check.h"

namespace cg = cooperative_groups;

namespace {

constexpr int block = 128;
constexpr int warps = block / 32;
constexpr unsigned all_lanes = 0xffffffffu;

template <class T>
__device__ T own_sum(const T* in, int n) {
  T sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  return sum;
}

template <class T>
__global__ void sum_in_shared_memory(const T* in, T* out, int n) {
  __shared__ T part[block];
  part[threadIdx.x] = own_sum(in, n);
  for (int half = block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

template <class T>
__global__ void sum_by_shuffles(const T* in, T* out, int n) {
  __shared__ T part[warps];
  T sum = own_sum(in, n);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(all_lanes, sum, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < warps ? part[threadIdx.x] : T(0);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all_lanes, sum, step);
  if (threadIdx.x == 7) out[blockIdx.x] = sum;  // after a butterfly every lane has the sum
}

template <int size, class T>
__global__ void sum_by_tiles(const T* in, T* out, int n) {
  __shared__ T part[block / size];
  const cg::thread_block whole = cg::this_thread_block();
  const auto tile = cg::tiled_partition<size>(whole);
  const T sum = cg::reduce(tile, own_sum(in, n), cg::plus<T>());
  if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = sum;
  whole.sync();
  if (whole.thread_rank() != 0) return;
  T total = 0;
  for (const T value : part) total += value;
  out[blockIdx.x] = total;
}

// Computes the minimum and maximum of a block, and the number of its odd elements.
__global__ void extremes(const int* in, int* least, int* greatest, int* odd, int n) {
  __shared__ int low[warps], high[warps], count[warps];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int value = i < n ? in[i] : in[0];
  int smallest = value, largest = value;
  for (int step = 1; step < 32; step *= 2) {
    smallest = min(smallest, __shfl_xor_sync(all_lanes, smallest, step));
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, step));
  }
  const unsigned votes = __ballot_sync(all_lanes, i < n && value % 2 != 0);
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) {
    low[warp] = smallest;
    high[warp] = largest;
    count[warp] = __popc(votes);
  }
  const int odd_in_block = __syncthreads_count(i < n && value % 2 != 0);
  if (threadIdx.x != 0) return;
  int total = 0;
  for (int w = 0; w < warps; ++w) {
    smallest = min(smallest, low[w]);
    largest = max(largest, high[w]);
    total += count[w];
  }
  least[blockIdx.x] = smallest;
  greatest[blockIdx.x] = largest;
  odd[blockIdx.x] = total == odd_in_block ? total : -1;
}

// Each thread that finds a multiple of three joins the group; one thread adds for all.
__global__ void count_by_coalesced_group(const int* in, int* multiples, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || in[i] % 3 != 0) return;
  const cg::coalesced_group group = cg::coalesced_threads();
  if (group.thread_rank() == 0) atomicAdd(multiples, static_cast<int>(group.size()));
}

// Computes a sum per block, then the sum of all blocks. Then every block subtracts its part, and the rest must be 0.
__global__ void sum_by_grid(const int* in, long long* part, long long* total, int* wrong, int n) {
  __shared__ long long shared[block];
  const cg::grid_group grid = cg::this_grid();
  const cg::thread_block whole = cg::this_thread_block();
  long long sum = 0;
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) sum += in[i];
  shared[whole.thread_rank()] = sum;
  for (int half = block / 2; half > 0; half /= 2) {
    whole.sync();
    if (whole.thread_rank() < half) shared[whole.thread_rank()] += shared[whole.thread_rank() + half];
  }
  if (whole.thread_rank() == 0) part[blockIdx.x] = shared[0];
  grid.sync();
  if (grid.thread_rank() == 0) {
    *total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) *total += part[b];
  }
  grid.sync();
  long long rest = *total;
  for (unsigned b = 0; b < gridDim.x; ++b) rest -= part[b];
  if (rest != 0 || !grid.is_valid()) atomicAdd(wrong, 1);
}

constexpr int blocks = 6;

template <class T>
void check_sum(const char* way, const char* type, const T* out, T expected) {
  CHECK_CUDA(cudaGetLastError());
  T sum = 0;
  for (const T part : check::host_copy(out, blocks)) sum += part;
  CHECK_THAT(sum == expected, "%s, %s: the sum is %g, the CPU says %g.", way, type, static_cast<double>(sum),
             static_cast<double>(expected));
}

template <class T>
void sums(const char* type, int n) {
  std::vector<T> in(n);
  T expected = 0;
  for (int i = 0; i < n; ++i) expected += in[i] = static_cast<T>(check::small_number(i, 3));
  T* device_in = check::device_copy(in);
  T* out = check::device_buffer<T>(blocks);
  sum_in_shared_memory<<<blocks, block>>>(device_in, out, n);
  check_sum("shared memory", type, out, expected);
  sum_by_shuffles<<<blocks, block>>>(device_in, out, n);
  check_sum("shuffles", type, out, expected);
  sum_by_tiles<32><<<blocks, block>>>(device_in, out, n);
  check_sum("tiles of 32", type, out, expected);
  if constexpr (std::is_same_v<T, int>) {
    sum_by_tiles<8><<<blocks, block>>>(device_in, out, n);
    check_sum("tiles of 8", type, out, expected);
    sum_by_tiles<1><<<blocks, block>>>(device_in, out, n);
    check_sum("tiles of 1", type, out, expected);
  }
  CHECK_CUDA(cudaFree(device_in));
  CHECK_CUDA(cudaFree(out));
  std::printf("reduction: %s, sum %lld\n", type, static_cast<long long>(expected));
}

void votes(const std::vector<int>& in, const int* device_in) {
  const int n = static_cast<int>(in.size());
  const int grid = (n + block - 1) / block;
  int* least = check::device_buffer<int>(grid);
  int* greatest = check::device_buffer<int>(grid);
  int* odd = check::device_buffer<int>(grid);
  extremes<<<grid, block>>>(device_in, least, greatest, odd, n);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<int> low = check::host_copy(least, grid), high = check::host_copy(greatest, grid);
  const int smallest = *std::min_element(low.begin(), low.end());
  const int largest = *std::max_element(high.begin(), high.end());
  int count = 0;
  for (const int part : check::host_copy(odd, grid)) {
    CHECK_THAT(part >= 0, "A ballot and __syncthreads_count disagree.");
    count += part;
  }
  const auto is_odd = [](int value) { return value % 2 != 0; };
  CHECK_THAT(smallest == *std::min_element(in.begin(), in.end()), "The minimum is %d.", smallest);
  CHECK_THAT(largest == *std::max_element(in.begin(), in.end()), "The maximum is %d.", largest);
  CHECK_THAT(count == std::count_if(in.begin(), in.end(), is_odd), "%d are odd.", count);
  std::printf("reduction: from %d to %d, %d odd\n", smallest, largest, count);
  CHECK_CUDA(cudaFree(least));
  CHECK_CUDA(cudaFree(greatest));
  CHECK_CUDA(cudaFree(odd));
}

void coalesced(const std::vector<int>& in, const int* device_in) {
  const int n = static_cast<int>(in.size());
  int* multiples = check::device_buffer<int>(1);
  CHECK_CUDA(cudaMemset(multiples, 0, sizeof(int)));
  count_by_coalesced_group<<<(n + block - 1) / block, block>>>(device_in, multiples, n);
  CHECK_CUDA(cudaGetLastError());
  const int count = check::host_copy(multiples, 1)[0];
  CHECK_THAT(count == std::count_if(in.begin(), in.end(), [](int value) { return value % 3 == 0; }),
             "%d are multiples of three.", count);
  std::printf("reduction: %d multiples of three\n", count);
  CHECK_CUDA(cudaFree(multiples));
}

void grid_barrier(const std::vector<int>& in, const int* device_in) {
  int n = static_cast<int>(in.size());
  int per_multiprocessor = 0, multiprocessors = 0, cooperative = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, sum_by_grid, block, 0));
  CHECK_THAT(cooperative == 1, "The device says that it has no cooperative launch.");
  const int grid = std::min(blocks, per_multiprocessor * multiprocessors);
  long long* part = check::device_buffer<long long>(grid);
  long long* total = check::device_buffer<long long>(1);
  int* wrong = check::device_buffer<int>(1);
  CHECK_CUDA(cudaMemset(wrong, 0, sizeof(int)));
  void* arguments[] = {&device_in, &part, &total, &wrong, &n};
  CHECK_CUDA(cudaLaunchCooperativeKernel(sum_by_grid, dim3(grid), dim3(block), arguments, 0, nullptr));
  const long long sum = check::host_copy(total, 1)[0];
  const int astray = check::host_copy(wrong, 1)[0];
  long long expected = 0;
  for (const int value : in) expected += value;
  CHECK_THAT(astray == 0, "%d threads saw another sum behind the grid's barrier.", astray);
  CHECK_THAT(sum == expected, "The grid's sum is %lld, the CPU says %lld.", sum, expected);
  std::printf("reduction: grid barrier, sum %lld\n", sum);
  const int too_many = per_multiprocessor * multiprocessors + 1;
  const cudaError_t refused =
      cudaLaunchCooperativeKernel(sum_by_grid, dim3(too_many), dim3(block), arguments, 0, nullptr);
  CHECK_THAT(refused == cudaErrorCooperativeLaunchTooLarge, "More blocks than fit at once gave %s.",
             cudaGetErrorName(refused));
  (void)cudaGetLastError();
  CHECK_CUDA(cudaFree(part));
  CHECK_CUDA(cudaFree(total));
  CHECK_CUDA(cudaFree(wrong));
}

}  // namespace

int main(int argc, char** argv) {
  long n = 20000;
  check::parse(argc, argv, "reduction", "sums a vector on the GPU in several ways",
               {{"--n", "number of elements", &n, 1, 1000000}});
  sums<int>("int", static_cast<int>(n));
  sums<long long>("int64", static_cast<int>(n));
  sums<float>("float", static_cast<int>(n));
  std::vector<int> in(n);
  for (int i = 0; i < static_cast<int>(n); ++i) in[i] = check::small_number(i, 3) * 1001 - i % 4096;
  const int* device_in = check::device_copy(in);
  votes(in, device_in);
  coalesced(in, device_in);
  grid_barrier(in, device_in);
  CHECK_CUDA(cudaFree(const_cast<int*>(device_in)));
  return 0;
}
