// Thrust: its vectors, transforms, scans, sorts, sets and sums, with pinned memory, with a stream and with the
// program's own allocator.
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/memory.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>

#include "tests/conformance/library.h"

namespace {

constexpr size_t count = 300007;

struct Twist {
  __host__ __device__ unsigned operator()(unsigned i) const { return (i * 2654435761u) ^ (i >> 3); }
};
struct Odd {
  __host__ __device__ bool operator()(unsigned i) const { return i % 2 == 1; }
};

template <class T>
std::vector<T> on_host(const thrust::device_vector<T>& values) {
  std::vector<T> all(values.size());
  thrust::copy(values.begin(), values.end(), all.begin());
  return all;
}

// Memory of the runtime's pool; counts open allocations.
struct Pool {
  using value_type = char;
  cudaStream_t stream;
  int* open;
  char* allocate(std::ptrdiff_t size) {
    void* memory = nullptr;
    CHECK_CUDA(cudaMalloc(&memory, static_cast<size_t>(size)));
    ++*open;
    return static_cast<char*>(memory);
  }
  void deallocate(char* memory, size_t) {
    CHECK_CUDA(cudaFree(memory));
    --*open;
  }
};

}  // namespace

int main() {
  thrust::device_vector<unsigned> values(count), sums(count);
  thrust::sequence(values.begin(), values.end());
  thrust::transform(values.begin(), values.end(), values.begin(), Twist{});
  std::vector<unsigned> mine(count);
  for (unsigned i = 0; i < count; ++i) mine[i] = Twist{}(i);
  check::compare("transform", on_host(values), mine);

  thrust::inclusive_scan(values.begin(), values.end(), sums.begin());
  std::vector<unsigned> my_sums(count);
  std::partial_sum(mine.begin(), mine.end(), my_sums.begin());
  check::compare("scan", on_host(sums), my_sums);
  library::exact("scan", on_host(sums));

  thrust::device_vector<unsigned> places(count);
  thrust::sequence(places.begin(), places.end());
  thrust::device_vector<unsigned> keys = values;
  thrust::stable_sort_by_key(keys.begin(), keys.end(), places.begin(), thrust::greater<unsigned>());
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return mine[a] > mine[b]; });
  check::compare("sort", on_host(places), order);
  library::exact("sort", on_host(places));

  std::printf("odd %lld, sum %llu, largest %u\n",
              static_cast<long long>(thrust::count_if(values.begin(), values.end(), Odd{})),
              thrust::reduce(values.begin(), values.end(), 0ull),
              thrust::reduce(values.begin(), values.end(), 0u, thrust::maximum<unsigned>()));

  thrust::device_vector<double> x(count), y(count);
  thrust::sequence(x.begin(), x.end());
  thrust::fill(y.begin(), y.end(), 0.5);
  std::printf("inner product %.1f\n", thrust::inner_product(x.begin(), x.end(), y.begin(), 0.0));

  thrust::device_vector<unsigned> few = values;
  const auto remainder = [] __host__ __device__(unsigned v) { return v % 100; };
  thrust::transform(few.begin(), few.end(), few.begin(), remainder);
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  int open = 0;
  Pool pool{stream, &open};
  thrust::sort(thrust::cuda::par(pool).on(stream), few.begin(), few.end());
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_THAT(open == 0, "%d pieces of memory were not given back.", open);
  few.erase(thrust::unique(few.begin(), few.end()), few.end());
  std::printf("different remainders %zu\n", few.size());

  thrust::host_vector<unsigned, thrust::mr::stateless_resource_allocator<
                                    unsigned, thrust::system::cuda::universal_host_pinned_memory_resource>>
      pinned(values.begin(), values.end());
  check::compare("pinned", std::vector<unsigned>(pinned.begin(), pinned.end()), mine);
  CHECK_CUDA(cudaStreamDestroy(stream));
}
