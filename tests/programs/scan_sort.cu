// Sorts, scans and reductions by key from the toolkit's headers (CUB and Thrust), as user programs use them: sizes near
// tile and block limits, CUB calls that first ask for the size of temporary memory, and Thrust on a stream. All values
// are integers, so that every result is exact.
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <numeric>

#include "check.h"

namespace {

// CUB's first call returns the size of the temporary memory and launches nothing; the second call does the work.
template <class Call>
void with_temporary_memory(Call call) {
  size_t bytes = 0;
  CHECK_CUDA(call(nullptr, bytes));
  char* memory = check::device_buffer<char>(bytes == 0 ? 1 : bytes);
  CHECK_CUDA(call(memory, bytes));
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaFree(memory));
}

void print(const char* what, int n, const std::vector<int>& values) {
  std::printf("scan_sort: %s of %d, checksum %016llx\n", what, n,
              static_cast<unsigned long long>(check::checksum(values)));
}

std::vector<int> numbers(int n, unsigned salt) {
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) {
    values[i] = (check::small_number(i, salt) * 4096 + check::small_number(i, salt + 1) * 256 - i) * 7919;
  }
  return values;
}

void sort(int n) {
  const std::vector<int> keys = numbers(n, 1);
  std::vector<int> places(n), expected(n);
  std::iota(places.begin(), places.end(), 0);
  expected = places;
  std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  int *keys_in = check::device_copy(keys), *places_in = check::device_copy(places);
  int *keys_out = check::device_buffer<int>(n), *places_out = check::device_buffer<int>(n);
  with_temporary_memory([&](void* memory, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, keys_in, keys_out, places_in, places_out, n);
  });
  const std::vector<int> sorted = check::host_copy(keys_out, n), order = check::host_copy(places_out, n);
  check::compare("sort", order, expected);
  for (int i = 0; i < n; ++i) CHECK_THAT(sorted[i] == keys[expected[i]], "sort: key %d is %d.", i, sorted[i]);
  print("sort", n, sorted);
  for (int* buffer : {keys_in, keys_out, places_in, places_out}) CHECK_CUDA(cudaFree(buffer));
}

void scans(int n) {
  const std::vector<int> values = numbers(n, 5);
  std::vector<int> expected(n);
  int* in = check::device_copy(values);
  int* out = check::device_buffer<int>(n);
  const auto add = [](int a, int b) { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); };
  std::partial_sum(values.begin(), values.end(), expected.begin(), add);
  with_temporary_memory(
      [&](void* memory, size_t& bytes) { return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, n); });
  check::compare("inclusive scan", check::host_copy(out, n), expected);
  print("inclusive scan", n, expected);

  expected.insert(expected.begin(), 0);
  expected.pop_back();
  with_temporary_memory(
      [&](void* memory, size_t& bytes) { return cub::DeviceScan::ExclusiveSum(memory, bytes, in, out, n); });
  check::compare("exclusive scan", check::host_copy(out, n), expected);
  print("exclusive scan", n, expected);
  CHECK_CUDA(cudaFree(in));
  CHECK_CUDA(cudaFree(out));
}

// Uses Thrust on a stream of the program. Keys come in runs of different lengths.
void reduce_by_key(int n) {
  std::vector<int> keys(n), expected_keys, expected;
  const std::vector<int> values = numbers(n, 9);
  for (int i = 0; i < n; ++i) {
    keys[i] = i == 0 ? 0 : keys[i - 1] + (check::small_number(i, 3) < 4 ? 1 : 0);
    if (i == 0 || keys[i] != keys[i - 1]) {
      expected_keys.push_back(keys[i]);
      expected.push_back(0);
    }
    expected.back() = static_cast<int>(static_cast<unsigned>(expected.back()) + static_cast<unsigned>(values[i]));
  }
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  const auto pointer = [](int* at) { return thrust::device_pointer_cast(at); };
  int *keys_in = check::device_copy(keys), *values_in = check::device_copy(values);
  int *keys_out = check::device_buffer<int>(n), *values_out = check::device_buffer<int>(n);
  const auto ends = thrust::reduce_by_key(thrust::cuda::par.on(stream), pointer(keys_in), pointer(keys_in) + n,
                                          pointer(values_in), pointer(keys_out), pointer(values_out));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  const auto groups = static_cast<size_t>(ends.first - pointer(keys_out));
  CHECK_THAT(groups == expected.size(), "reduce_by_key: %zu groups, not %zu.", groups, expected.size());
  check::compare("reduce_by_key, keys", check::host_copy(keys_out, groups), expected_keys);
  check::compare("reduce_by_key", check::host_copy(values_out, groups), expected);
  print("reduce_by_key", n, expected);
  for (int* buffer : {keys_in, keys_out, values_in, values_out}) CHECK_CUDA(cudaFree(buffer));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

}  // namespace

int main(int argc, char** argv) {
  long n = 30000;
  check::parse(argc, argv, "scan_sort", "sorts and scans with the toolkit's own headers",
               {{"--n", "elements of the largest run", &n, 1, 10000000}});
  for (const int size : {1, 33, 1024, static_cast<int>(n)}) {
    sort(size);
    scans(size);
    reduce_by_key(size);
  }
  return 0;
}
