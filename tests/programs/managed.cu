// Managed memory that the host and kernels use at one address, one after the other. The host writes the memory, kernels
// on two streams change it, fills and copies change it, and the host reads it. Advice, prefetches and stream
// attachments must be reported back as they were set, and must not change a byte.
#include "check.h"

namespace {

constexpr int block = 128;

__global__ void add(unsigned* values, int n, unsigned summand) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += summand;
}

// Follows addresses that the host has written into the memory itself.
struct Node {
  Node* next;
  unsigned value;
};
__global__ void walk(const Node* node, unsigned* sum) {
  *sum = 0;
  for (; node != nullptr; node = node->next) *sum += node->value;
}

template <class T>
T* managed(size_t count, unsigned flags = cudaMemAttachGlobal) {
  void* at = nullptr;
  CHECK_CUDA(cudaMallocManaged(&at, count * sizeof(T), flags));
  return static_cast<T*>(at);
}

unsigned grid_of(int n) { return static_cast<unsigned>((n + block - 1) / block); }

void expect(const char* when, const unsigned* values, int n, unsigned summand) {
  for (int i = 0; i < n; ++i)
    CHECK_THAT(values[i] == static_cast<unsigned>(i) + summand, "%s: element %d is %u, the CPU says %u.", when, i,
               values[i], static_cast<unsigned>(i) + summand);
}

void expect_zero(const unsigned* values, int n) {
  for (int i = 0; i < n; ++i) CHECK_THAT(values[i] == 0, "New memory: element %d is %u.", i, values[i]);
}

void take_turns(unsigned* values, int n, int rounds, const cudaStream_t (&streams)[2]) {
  expect_zero(values, n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<unsigned>(i);
  unsigned summand = 0;
  const int half = n / 2;
  for (int round = 0; round < rounds; ++round) {
    add<<<grid_of(half), block, 0, streams[0]>>>(values, half, 3);
    add<<<grid_of(n - half), block, 0, streams[1]>>>(values + half, n - half, 3);
    CHECK_CUDA(cudaGetLastError());
    for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; ++i) ++values[i];
    summand += 4;
    expect("In turns", values, n, summand);
  }
  std::printf("managed: host and two streams, %d rounds: ok\n", rounds);
}

void follow_addresses(int n) {
  Node* const nodes = managed<Node>(n);
  unsigned *const sum = managed<unsigned>(1), wanted = static_cast<unsigned>(n) * (n - 1) / 2;
  for (int i = 0; i < n; ++i) nodes[i] = {i + 1 < n ? &nodes[i + 1] : nullptr, static_cast<unsigned>(i)};
  walk<<<1, 1>>>(nodes, sum);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_THAT(*sum == wanted, "The sum of a list is %u, the CPU says %u.", *sum, wanted);
  CHECK_CUDA(cudaFree(nodes));
  CHECK_CUDA(cudaFree(sum));
  std::printf("managed: a list of %d: ok\n", n);
}

int told(cudaMemRangeAttribute attribute, const void* at, size_t bytes) {
  int value = 77;
  CHECK_CUDA(cudaMemRangeGetAttribute(&value, sizeof value, attribute, at, bytes));
  return value;
}

void say(unsigned* values, int n, cudaStream_t stream) {
  const size_t bytes = n * sizeof *values;
  const cudaMemLocation device{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0};
  const std::vector<unsigned> before(values, values + n);
  CHECK_CUDA(cudaMemAdvise(values, bytes, cudaMemAdviseSetPreferredLocation, device));
  CHECK_CUDA(cudaMemAdvise(values, bytes, cudaMemAdviseSetAccessedBy, host));
  CHECK_CUDA(cudaMemAdvise(values, bytes, cudaMemAdviseSetReadMostly, device));
  CHECK_THAT(told(cudaMemRangeAttributePreferredLocation, values, bytes) == 0, "The device is not preferred.");
  CHECK_THAT(told(cudaMemRangeAttributeAccessedBy, values, bytes) == cudaCpuDeviceId, "The host is no accessor.");
  CHECK_THAT(told(cudaMemRangeAttributeReadMostly, values, bytes) == 1, "It is not mostly read.");
  CHECK_CUDA(cudaMemAdvise(values, bytes, cudaMemAdviseUnsetReadMostly, device));
  CHECK_CUDA(cudaMemPrefetchAsync(values, bytes, device, 0, stream));
  add<<<grid_of(n), block, 0, stream>>>(values, n, 5);
  CHECK_CUDA(cudaMemPrefetchAsync(values, bytes, host, 0, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_THAT(told(cudaMemRangeAttributeLastPrefetchLocation, values, bytes) == cudaCpuDeviceId,
             "The last prefetch was not to the host.");
  for (int i = 0; i < n; ++i)
    CHECK_THAT(values[i] == before[i] + 5, "Prefetched: element %d is %u, not %u.", i, values[i], before[i] + 5);
  std::printf("managed: advice and prefetches: ok\n");
}

void attach(int n, cudaStream_t stream) {
  unsigned* const values = managed<unsigned>(n, cudaMemAttachHost);
  for (int i = 0; i < n; ++i) values[i] = static_cast<unsigned>(i);
  CHECK_CUDA(cudaStreamAttachMemAsync(stream, values, 0, cudaMemAttachSingle));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  add<<<grid_of(n), block, 0, stream>>>(values, n, 7);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  expect("Attached", values, n, 7);
  CHECK_CUDA(cudaFree(values));
  std::printf("managed: attached to a stream: ok\n");
}

void copy(const unsigned* values, int n) {
  unsigned* const other = managed<unsigned>(n);
  const size_t bytes = n * sizeof *values;
  CHECK_CUDA(cudaMemcpy(other, values, bytes, cudaMemcpyDefault));
  CHECK_CUDA(cudaMemset(other, 0x11, bytes / 2));
  CHECK_CUDA(cudaDeviceSynchronize());
  const std::vector<unsigned> seen = check::host_copy(other, n);
  for (int i = 0; i < n; ++i) {
    const unsigned wanted = i < n / 2 ? 0x11111111u : values[i];
    CHECK_THAT(other[i] == wanted && seen[i] == wanted, "Copied and filled: element %d is %u and %u, not %u.", i,
               other[i], seen[i], wanted);
  }
  cudaPointerAttributes a{};
  CHECK_CUDA(cudaPointerGetAttributes(&a, other));
  CHECK_THAT(a.type == cudaMemoryTypeManaged && a.devicePointer == other && a.hostPointer == other,
             "It is not known as managed memory.");
  CHECK_CUDA(cudaFree(other));
  std::printf("managed: copies and fills: ok\n");
}

}  // namespace

int main(int argc, char** argv) {
  long n = 20000, rounds = 4;
  check::parse(
      argc, argv, "managed", "memory that host and kernels use at one address",
      {{"--n", "number of elements", &n, 2, 10000000}, {"--rounds", "turns of host and kernels", &rounds, 1, 1000}});
  const int even = static_cast<int>(n / 2 * 2), count = static_cast<int>(rounds);
  int served = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&served, cudaDevAttrManagedMemory, 0));
  CHECK_THAT(served == 1, "The device has no managed memory.");
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  unsigned* const values = managed<unsigned>(even);
  take_turns(values, even, count, streams);
  follow_addresses(1000);
  say(values, even, streams[0]);
  attach(even, streams[1]);
  copy(values, even);
  CHECK_CUDA(cudaFree(values));
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  return 0;
}
