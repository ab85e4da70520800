// CUB: algorithms of a device (sums, scans, sorts, selections, histograms, runs, segments), of a block and of a warp.
// All numbers are integers, so that the order of additions does not change the result.
#include <cub/cub.cuh>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/conformance/library.h"

namespace {

constexpr int count = 250013, block = 128;

// The first call returns the size of the memory that the second call needs.
template <class Call>
void device_wide(Call call) {
  size_t size = 0;
  CHECK_CUDA(call(nullptr, size));
  void* memory = check::device_buffer<char>(size + 1);
  CHECK_CUDA(call(memory, size));
  CHECK_CUDA(cudaFree(memory));
}

std::vector<int> values() {
  std::vector<int> all(count);
  for (int i = 0; i < count; ++i)
    all[static_cast<size_t>(i)] = check::small_number(static_cast<size_t>(i), 1) * (i % 7 ? 1 : 1000);
  return all;
}

__global__ void in_blocks(const int* in, int* scanned, int* warp_sums) {
  using Scan = cub::BlockScan<int, block>;
  using Sum = cub::WarpReduce<int>;
  __shared__ typename Scan::TempStorage scan_space;
  __shared__ typename Sum::TempStorage sum_space[block / 32];
  const int place = static_cast<int>(blockIdx.x) * block + static_cast<int>(threadIdx.x);
  int sum = 0;
  Scan(scan_space).InclusiveSum(in[place], sum);
  scanned[place] = sum;
  const int whole = Sum(sum_space[threadIdx.x / 32]).Sum(in[place]);
  if (threadIdx.x % 32 == 0) warp_sums[place / 32] = whole;
}

void blocks(const std::vector<int>& in, const int* data) {
  constexpr int blocks = 64, size = blocks * block;
  int *scanned = check::device_buffer<int>(size), *sums = check::device_buffer<int>(size / 32);
  in_blocks<<<blocks, block>>>(data, scanned, sums);
  CHECK_CUDA(cudaGetLastError());
  std::vector<int> right(size), right_sums(size / 32);
  for (int i = 0; i < size; ++i) {
    const auto place = static_cast<size_t>(i);
    right[place] = in[place] + (i % block ? right[place - 1] : 0);
    right_sums[place / 32] += in[place];
  }
  check::compare("block scan", check::host_copy(scanned, size), right);
  check::compare("warp sums", check::host_copy(sums, size / 32), right_sums);
  library::exact("block scan", right);
}

}  // namespace

int main() {
  const auto in = values();
  int* data = check::device_copy(in);
  int *out = check::device_buffer<int>(count), *number = check::device_buffer<int>(1);

  device_wide([&](void* memory, size_t& size) { return cub::DeviceReduce::Sum(memory, size, data, number, count); });
  CHECK_THAT(check::host_copy(number, 1)[0] == std::accumulate(in.begin(), in.end(), 0), "The sum is wrong.");
  std::printf("sum %d\n", check::host_copy(number, 1)[0]);

  device_wide(
      [&](void* memory, size_t& size) { return cub::DeviceScan::ExclusiveSum(memory, size, data, out, count); });
  std::vector<int> right(count);
  std::partial_sum(in.begin(), in.end() - 1, right.begin() + 1);
  check::compare("scan", check::host_copy(out, count), right);
  library::exact("scan", right);

  device_wide(
      [&](void* memory, size_t& size) { return cub::DeviceRadixSort::SortKeys(memory, size, data, out, count); });
  right = in;
  std::sort(right.begin(), right.end());
  check::compare("sort", check::host_copy(out, count), right);

  int* runs = check::device_buffer<int>(count);
  int* lengths = check::device_buffer<int>(count);
  device_wide([&](void* memory, size_t& size) {
    return cub::DeviceRunLengthEncode::Encode(memory, size, out, runs, lengths, number, count);
  });
  std::map<int, int> kinds;
  for (int value : in) ++kinds[value];
  const auto run_count = static_cast<size_t>(check::host_copy(number, 1)[0]);
  CHECK_THAT(run_count == kinds.size(), "There are %zu runs and not %zu.", run_count, kinds.size());
  library::exact("runs", check::host_copy(lengths, run_count));

  const auto large = [] __host__ __device__(const int& value) { return value > 20; };
  device_wide(
      [&](void* memory, size_t& size) { return cub::DeviceSelect::If(memory, size, data, out, number, count, large); });
  std::vector<int> chosen;
  std::copy_if(in.begin(), in.end(), std::back_inserter(chosen), large);
  CHECK_THAT(static_cast<size_t>(check::host_copy(number, 1)[0]) == chosen.size(), "Another number was selected.");
  check::compare("select", check::host_copy(out, chosen.size()), chosen);
  library::exact("select", chosen);

  constexpr int bins = 16;
  int* histogram = check::device_buffer<int>(bins);
  device_wide([&](void* memory, size_t& size) {
    return cub::DeviceHistogram::HistogramEven(memory, size, data, histogram, bins + 1, 0, bins, count);
  });
  std::vector<int> right_bins(bins);
  for (int value : in)
    if (value < bins) ++right_bins[static_cast<size_t>(value)];
  check::compare("histogram", check::host_copy(histogram, bins), right_bins);
  library::exact("histogram", right_bins);

  constexpr int segments = 100;
  std::vector<int> offsets(segments + 1), maxima(segments);
  for (int i = 0; i <= segments; ++i) offsets[static_cast<size_t>(i)] = i * (count / segments);
  for (size_t i = 0; i < segments; ++i)
    maxima[i] = *std::max_element(in.begin() + offsets[i], in.begin() + offsets[i + 1]);
  int* ends = check::device_copy(offsets);
  device_wide([&](void* memory, size_t& size) {
    return cub::DeviceSegmentedReduce::Max(memory, size, data, out, segments, ends, ends + 1);
  });
  check::compare("segments", check::host_copy(out, segments), maxima);
  library::exact("segments", maxima);
  blocks(in, data);
}
