// Counters in managed memory to which kernels of two streams and threads of the host add. If the device allows
// concurrent use of managed memory, the host adds while the kernels run, otherwise after the wait; the output is the
// same.
//
// Words that both sides change by atomic operations are a separate case. CUDA's documentation promises that these
// operations exclude each other if concurrent access is available. The guest library offers concurrent access, but
// cannot keep that promise on a GPU behind PCIe. Without native atomic operations the host therefore uses words beside
// those of the kernels, unless --same-words tests the promise.
#include <algorithm>
#include <thread>

#include "check.h"

namespace {

constexpr int blocks = 8, block = 128, host_threads = 2;
constexpr unsigned long long wide_step = 0x100000001ull;  // a lost half would be detected

// The counters of all threads. Float sums consist of integers, so that their order does not matter.
struct Counters {
  unsigned count;
  int lowest, highest;
  unsigned bits;
  unsigned long long wide;
  float single;
  double twice;
  unsigned swapped;  // changed by compare and swap
  unsigned turns[64];
};

// The counters of the kernels and of the host are on one page, but in separate cache lines.
struct Shared {
  alignas(256) Counters device;
  alignas(256) Counters host;
};

enum class Scope { device, system };

// Kernels of both scopes change the same words at the same time.
template <Scope scope>
__global__ void add(Counters* c, int rounds) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    const unsigned slot = (me + i) % 64;
    if constexpr (scope == Scope::device) {
      atomicAdd(&c->count, 1u), atomicAdd(&c->wide, wide_step), atomicAdd(&c->turns[slot], 1u);
      atomicMin(&c->lowest, -me), atomicMax(&c->highest, me), atomicOr(&c->bits, 1u << (me % 16));
      atomicAdd(&c->single, 1.0f), atomicAdd(&c->twice, 0.5);
    } else {
      atomicAdd_system(&c->count, 1u), atomicAdd_system(&c->wide, wide_step), atomicAdd_system(&c->turns[slot], 1u);
      atomicMin_system(&c->lowest, -2 * me), atomicMax_system(&c->highest, 2 * me);
      atomicOr_system(&c->bits, 0x10000u << (me % 15));
      atomicAdd_system(&c->single, 1.0f), atomicAdd_system(&c->twice, 0.5);
    }
  }
  if (threadIdx.x != 0) return;
  for (int i = 0; i < rounds; ++i) {
    unsigned seen = 0, wanted;
    do {
      wanted = seen;
      seen = scope == Scope::device ? atomicCAS(&c->swapped, wanted, wanted + 3)
                                    : atomicCAS_system(&c->swapped, wanted, wanted + 3);
    } while (seen != wanted);
  }
}

__global__ void count_up(unsigned* counter, unsigned add) { atomicAdd(counter, add); }

template <class T>
T* managed(size_t count = 1, unsigned flags = cudaMemAttachGlobal) {
  void* at = nullptr;
  CHECK_CUDA(cudaMallocManaged(&at, count * sizeof(T), flags));
  return static_cast<T*>(at);
}

bool device_says(cudaDeviceAttr attribute) {
  int value = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&value, attribute, 0));
  return value != 0;
}

// ---- the host's share

template <class T>
void add_on_host(T* at, T summand) {
  __atomic_fetch_add(at, summand, __ATOMIC_RELAXED);
}

// A thread's part of the operations, on the words for which the processor has an atomic operation.
void add_share(Counters* c, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    add_on_host(&c->count, 1u);
    add_on_host(&c->wide, wide_step);
    add_on_host(&c->turns[i % 64], 1u);
    __atomic_fetch_or(&c->bits, 1u << 31, __ATOMIC_RELAXED);
    unsigned seen = __atomic_load_n(&c->swapped, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&c->swapped, &seen, seen + 3, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}

void add_shares(Counters* c, int rounds) {
  std::vector<std::thread> threads;
  for (int i = 0; i < host_threads; ++i) threads.emplace_back(add_share, c, rounds);
  for (std::thread& thread : threads) thread.join();
}

// ---- the expected sums of both sides

struct Sums {
  unsigned count, bits, swapped;
  int lowest, highest;
  unsigned long long wide;
  double floats;
  unsigned turns;
};

Sums sums_of(const Counters& a, const Counters& b) {
  Sums s{};
  s.count = a.count + b.count, s.bits = a.bits | b.bits, s.swapped = a.swapped + b.swapped;
  s.lowest = std::min(a.lowest, b.lowest), s.highest = std::max(a.highest, b.highest);
  s.wide = a.wide + b.wide;
  s.floats = a.single + 2 * a.twice + b.single + 2 * b.twice;
  for (int i = 0; i < 64; ++i) s.turns += a.turns[i] + b.turns[i];
  return s;
}

Sums expected_of(int rounds, int host_rounds) {
  constexpr int threads = blocks * block;
  const unsigned device = 2u * threads * rounds, host = static_cast<unsigned>(host_threads) * host_rounds;
  Sums s{};
  s.count = s.turns = device + host;
  s.wide = wide_step * (device + host);
  s.bits = ~0u;
  s.swapped = 3 * (2u * blocks * rounds + host);
  s.lowest = -2 * (threads - 1), s.highest = 2 * (threads - 1);
  s.floats = 2.0 * device;
  return s;
}

void expect_sums(const Sums& found, const Sums& wanted, const char* what) {
  CHECK_THAT(found.count == wanted.count && found.turns == wanted.turns, "%s: counted %u and %u, not %u.", what,
             found.count, found.turns, wanted.count);
  CHECK_THAT(found.wide == wanted.wide, "%s: the wide sum is %llx, not %llx.", what, found.wide, wanted.wide);
  CHECK_THAT(found.bits == wanted.bits, "%s: the bits are %x, not %x.", what, found.bits, wanted.bits);
  CHECK_THAT(found.swapped == wanted.swapped, "%s: swapped to %u, not %u.", what, found.swapped, wanted.swapped);
  CHECK_THAT(found.lowest == wanted.lowest && found.highest == wanted.highest, "%s: from %d to %d, not %d to %d.", what,
             found.lowest, found.highest, wanted.lowest, wanted.highest);
  CHECK_THAT(found.floats == wanted.floats, "%s: the floats' sum is %g, not %g.", what, found.floats, wanted.floats);
  std::printf("managed_atomics: %s: %u counted, wide %llx, swapped %u, from %d to %d, floats %g\n", what, found.count,
              found.wide, found.swapped, found.lowest, found.highest, found.floats);
}

// ---- the ways to count

struct Ways {
  bool meanwhile;  // the host may use managed memory while kernels run
  bool same_words;
  int rounds, host_rounds;
};

// A host that waits for the kernels first adds to the kernels' own words.
void count_together(const char* what, Shared* shared, const Ways& ways, const cudaStream_t (&streams)[2]) {
  shared->device = shared->host = Counters{};
  Counters* const host_words = ways.same_words ? &shared->device : &shared->host;
  add<Scope::device><<<blocks, block, 0, streams[0]>>>(&shared->device, ways.rounds);
  add<Scope::system><<<blocks, block, 0, streams[1]>>>(&shared->device, ways.rounds);
  CHECK_CUDA(cudaGetLastError());
  if (ways.meanwhile) add_shares(host_words, ways.host_rounds);
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
  if (!ways.meanwhile) add_shares(host_words, ways.host_rounds);
  expect_sums(sums_of(shared->device, shared->host), expected_of(ways.rounds, ways.host_rounds), what);
}

// Advice about the preferred location must not change a sum.
void count_advised(Shared* shared, const Ways& ways, const cudaStream_t (&streams)[2]) {
  const cudaMemLocation device{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0};
  CHECK_CUDA(cudaMemAdvise(shared, sizeof *shared, cudaMemAdviseSetPreferredLocation, device));
  CHECK_CUDA(cudaMemAdvise(shared, sizeof *shared, cudaMemAdviseSetAccessedBy, host));
  CHECK_CUDA(cudaMemPrefetchAsync(shared, sizeof *shared, device, 0, streams[0]));
  CHECK_CUDA(cudaStreamSynchronize(streams[0]));
  count_together("with the device preferred", shared, ways, streams);
  CHECK_CUDA(cudaMemAdvise(shared, sizeof *shared, cudaMemAdviseSetPreferredLocation, host));
  CHECK_CUDA(cudaMemAdvise(shared, sizeof *shared, cudaMemAdviseSetAccessedBy, device));
  CHECK_CUDA(cudaMemPrefetchAsync(shared, sizeof *shared, host, 0, streams[1]));
  CHECK_CUDA(cudaStreamSynchronize(streams[1]));
  count_together("with the host preferred", shared, ways, streams);
  CHECK_CUDA(cudaMemAdvise(shared, sizeof *shared, cudaMemAdviseUnsetAccessedBy, device));
  CHECK_CUDA(cudaMemAdvise(shared, sizeof *shared, cudaMemAdviseUnsetPreferredLocation, host));
}

// Prefetches between the kernels of a stream. Each kernel must find the value of the previous kernel.
void count_between_prefetches(const cudaStream_t (&streams)[2], int turns) {
  unsigned* const counter = managed<unsigned>();
  const cudaMemLocation places[] = {{cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeHost, 0}};
  *counter = 1;
  for (int turn = 0; turn < turns; ++turn) {
    count_up<<<4, 32, 0, streams[0]>>>(counter, 1);
    CHECK_CUDA(cudaMemPrefetchAsync(counter, sizeof *counter, places[turn % 2], 0, streams[0]));
    count_up<<<2, 32, 0, streams[1]>>>(counter, 2);
  }
  CHECK_CUDA(cudaGetLastError());
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
  const unsigned wanted = 1 + 256u * turns;
  CHECK_THAT(*counter == wanted, "Between prefetches: counted to %u, not to %u.", *counter, wanted);
  std::printf("managed_atomics: between prefetches: %u\n", *counter);
  CHECK_CUDA(cudaFree(counter));
}

// Once a stream is done, the host may use a counter that is attached to it, whatever the other stream does, with and
// without concurrent access.
void count_attached(const cudaStream_t (&streams)[2], int turns) {
  unsigned* const counters[2] = {managed<unsigned>(1, cudaMemAttachHost), managed<unsigned>(1, cudaMemAttachHost)};
  for (int k = 0; k < 2; ++k) {
    *counters[k] = 0;
    CHECK_CUDA(cudaStreamAttachMemAsync(streams[k], counters[k], 0, cudaMemAttachSingle));
    CHECK_CUDA(cudaStreamSynchronize(streams[k]));
  }
  for (int turn = 0; turn < turns; ++turn) {
    count_up<<<4, 32, 0, streams[1]>>>(counters[1], 1);
    count_up<<<4, 32, 0, streams[0]>>>(counters[0], 1);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaStreamSynchronize(streams[0]));
    add_on_host(counters[0], 1000u);
  }
  CHECK_CUDA(cudaStreamSynchronize(streams[1]));
  const unsigned wanted[2] = {1128u * turns, 128u * turns};
  for (int k = 0; k < 2; ++k)
    CHECK_THAT(*counters[k] == wanted[k], "Attached: counter %d is at %u, not at %u.", k, *counters[k], wanted[k]);
  std::printf("managed_atomics: attached to streams: %u and %u\n", *counters[0], *counters[1]);
  for (unsigned* const counter : counters) CHECK_CUDA(cudaFree(counter));
}

// A counter of both streams is attached to one stream, and then to all streams again.
void count_attached_in_turn(const cudaStream_t (&streams)[2], int turns) {
  unsigned* const counter = managed<unsigned>();
  *counter = 0;
  for (int turn = 0; turn < turns; ++turn) {
    for (const cudaStream_t stream : streams) count_up<<<1, 32, 0, stream>>>(counter, 1);
    for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
    const cudaStream_t one = streams[turn % 2];
    CHECK_CUDA(cudaStreamAttachMemAsync(one, counter, 0, cudaMemAttachSingle));
    count_up<<<1, 32, 0, one>>>(counter, 3);
    CHECK_CUDA(cudaStreamSynchronize(one));
    add_on_host(counter, 40u);
    CHECK_CUDA(cudaStreamAttachMemAsync(one, counter, 0, cudaMemAttachGlobal));
    CHECK_CUDA(cudaStreamSynchronize(one));
  }
  CHECK_CUDA(cudaGetLastError());
  const unsigned wanted = 200u * turns;
  CHECK_THAT(*counter == wanted, "Attached in turn: counted to %u, not to %u.", *counter, wanted);
  std::printf("managed_atomics: attached in turn: %u\n", *counter);
  CHECK_CUDA(cudaFree(counter));
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 16, host_rounds = 2000, turns = 6, same_words = 0;
  check::parse(argc, argv, "managed_atomics", "host and kernels add to counters in managed memory",
               {{"--rounds", "additions of each thread of a kernel", &rounds, 1, 4000},
                {"--host-rounds", "additions of each thread of the host", &host_rounds, 1, 10000000},
                {"--turns", "turns of host and kernels", &turns, 1, 10000},
                {"--same-words", "1: to the same words, where concurrent access is given", &same_words, 0, 1}});
  const bool concurrent = device_says(cudaDevAttrConcurrentManagedAccess);
  const bool native = device_says(cudaDevAttrHostNativeAtomicSupported);
  const Ways ways{concurrent, !concurrent || native || same_words != 0, static_cast<int>(rounds),
                  static_cast<int>(host_rounds)};
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Shared* const shared = managed<Shared>();
  count_together("two streams and the host", shared, ways, streams);
  count_advised(shared, ways, streams);
  count_between_prefetches(streams, static_cast<int>(turns));
  count_attached(streams, static_cast<int>(turns));
  count_attached_in_turn(streams, static_cast<int>(turns));
  CHECK_CUDA(cudaFree(shared));
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  return 0;
}
