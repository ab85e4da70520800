// Green contexts: two parts of the device's multiprocessors, and kernels that report the multiprocessor on which they
// ran. The program uses streams made for a part, a part that is made current, both parts from a thread each, an order
// by events, and work after a part's end. It prints no counts, since they depend on the device.
#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <thread>

#include "check.h"

namespace {

constexpr unsigned most_multiprocessors = 1024;

// The observations of the launches' blocks: how many blocks ran, and on which multiprocessors.
struct Seen {
  unsigned blocks;
  unsigned on[most_multiprocessors];
};

__global__ void where(Seen* seen) {
  if (threadIdx.x != 0) return;
  unsigned multiprocessor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  atomicAdd(&seen->blocks, 1);
  atomicAdd(&seen->on[multiprocessor % most_multiprocessors], 1);
}

// These kernels have one thread each. The order of their launches affects the value.
__global__ void add(unsigned long long* value, unsigned n) { *value += n; }
__global__ void triple(unsigned long long* value) { *value *= 3; }

// These entry points are newer than the version that check.h requests.
template <class Function>
Function entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &found, 13000, cudaEnableDefault, &status));
  CHECK_THAT(status == cudaDriverEntryPointSuccess && found != nullptr, "The driver has no %s.", name);
  return reinterpret_cast<Function>(found);
}
#define ENTRY(name) entry<decltype(&::name)>(#name)

CUdevResource no_resource() {
  CUdevResource resource;
  std::memset(&resource, 0, sizeof resource);
  return resource;
}

CUdevResource all_of_device() {
  CUdevResource all = no_resource();
  CHECK_DRIVER(ENTRY(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  return all;
}

// A green context of a part, with its own stream.
class Part {
 public:
  explicit Part(CUdevResource resource) : share_(resource.sm.smCount) {
    CUdevResourceDesc description = nullptr;
    CHECK_DRIVER(ENTRY(cuDevResourceGenerateDesc)(&description, &resource, 1));
    CHECK_DRIVER(ENTRY(cuGreenCtxCreate)(&green_, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CHECK_DRIVER(ENTRY(cuCtxFromGreenCtx)(&context_, green_));
    CHECK_DRIVER(ENTRY(cuGreenCtxStreamCreate)(&stream_, green_, CU_STREAM_NON_BLOCKING, 0));
    CHECK_CUDA(cudaMalloc(&seen_, sizeof *seen_));
    CHECK_CUDA(cudaMemset(seen_, 0, sizeof *seen_));
    CHECK_CUDA(cudaDeviceSynchronize());  // non-blocking streams do not wait for a fill
  }

  // Launches more blocks than the part can run at once, and counts them.
  void run(cudaStream_t stream) {
    launched_ += 64 * share_;
    where<<<64 * share_, 256, 0, stream>>>(seen_);
    CHECK_CUDA(cudaGetLastError());
  }
  void run() { run(stream_); }

  // While the green context is current, a stream that a program creates belongs to it.
  void run_current() {
    CUstream made = nullptr;
    CUgreenCtx of = nullptr;
    CUcontext popped = nullptr;
    CUfunction kernel = nullptr;
    CHECK_CUDA(cudaGetFuncBySymbol(&kernel, reinterpret_cast<const void*>(where)));
    CHECK_DRIVER(DRIVER_ENTRY(cuCtxPushCurrent)(context_));
    CHECK_DRIVER(DRIVER_ENTRY(cuStreamCreate)(&made, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(ENTRY(cuStreamGetGreenCtx)(made, &of));
    CHECK_THAT(of == green_, "A stream that was made while a green context was current is not its.");
    void* parameters[] = {&seen_};
    launched_ += 64 * share_;
    CHECK_DRIVER(DRIVER_ENTRY(cuLaunchKernel)(kernel, 64 * share_, 1, 1, 256, 1, 1, 0, made, parameters, nullptr));
    CHECK_DRIVER(DRIVER_ENTRY(cuStreamSynchronize)(made));
    CHECK_DRIVER(DRIVER_ENTRY(cuStreamDestroy)(made));
    CHECK_DRIVER(DRIVER_ENTRY(cuCtxPopCurrent)(&popped));
    CHECK_THAT(popped == context_, "Another context was current.");
  }

  // Returns the multiprocessors on which all launches ran. There may be no more of them than the part has.
  std::set<unsigned> ran_on() {
    CHECK_CUDA(cudaStreamSynchronize(stream_));
    const Seen seen = check::host_copy(seen_, 1).front();
    CHECK_THAT(seen.blocks == launched_, "%u blocks ran, %u were launched.", seen.blocks, launched_);
    std::set<unsigned> on;
    for (unsigned i = 0; i < most_multiprocessors; ++i)
      if (seen.on[i] != 0) on.insert(i);
    CHECK_THAT(!on.empty() && on.size() <= share_, "Kernels ran on %zu multiprocessors of a part of %u.", on.size(),
               share_);
    return on;
  }

  void end() {
    CHECK_CUDA(cudaStreamDestroy(stream_));
    CHECK_DRIVER(ENTRY(cuGreenCtxDestroy)(green_));
    CHECK_CUDA(cudaFree(seen_));
  }

  CUgreenCtx green() const { return green_; }
  cudaStream_t stream() const { return stream_; }

 private:
  const unsigned share_;
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  Seen* seen_ = nullptr;
  unsigned launched_ = 0;
};

// Splits the device into two parts of the minimum size, and the rest.
void split(CUdevResource* parts) {
  const CUdevResource all = all_of_device();
  CUdevResource rest = no_resource();
  unsigned groups = 2;
  CHECK_DRIVER(ENTRY(cuDevSmResourceSplitByCount)(parts, &groups, &all, &rest, 0, all.sm.minSmPartitionSize));
  CHECK_THAT(groups == 2, "There are %u groups of the least size, not 2.", groups);
  CHECK_THAT(parts[0].sm.smCount == parts[1].sm.smCount, "The parts are not alike.");
  std::printf("two parts and the rest are all of it: %d\n",
              2 * parts[0].sm.smCount + rest.sm.smCount == all.sm.smCount);
}

void expect_apart(const char* how, Part& a, Part& b) {
  const std::set<unsigned> first = a.ran_on(), second = b.ran_on();
  std::vector<unsigned> both;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both));
  CHECK_THAT(both.empty(), "%s: both ran on %zu multiprocessors.", how, both.size());
  std::printf("%s: each in its part\n", how);
}

// Part a adds and part b triples, alternately, after all earlier work of a.
void keep_order(Part& a, Part& b, unsigned rounds) {
  auto* value = check::device_buffer<unsigned long long>(1);
  CHECK_CUDA(cudaMemset(value, 0, sizeof *value));
  CHECK_CUDA(cudaDeviceSynchronize());
  cudaEvent_t event = nullptr;
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  unsigned long long expected = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    Part &first = i % 2 == 0 ? a : b, &second = i % 2 == 0 ? b : a;
    add<<<1, 1, 0, first.stream()>>>(value, i);
    CHECK_DRIVER(ENTRY(cuGreenCtxRecordEvent)(first.green(), event));
    CHECK_DRIVER(ENTRY(cuGreenCtxWaitEvent)(second.green(), event));
    triple<<<1, 1, 0, second.stream()>>>(value);
    CHECK_CUDA(cudaGetLastError());
    expected = (expected + i) * 3;
    CHECK_DRIVER(ENTRY(cuGreenCtxRecordEvent)(second.green(), event));
    CHECK_DRIVER(ENTRY(cuGreenCtxWaitEvent)(first.green(), event));
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  check::compare("in turns", check::host_copy(value, 1), std::vector<unsigned long long>{expected});
  std::printf("in turns: %llu\n", expected);
  CHECK_CUDA(cudaEventDestroy(event));
  CHECK_CUDA(cudaFree(value));
}

// Runs each part in its own thread, which makes the part current repeatedly.
void run_in_threads(Part& a, Part& b, unsigned rounds) {
  const auto work = [&](Part& part) {
    CHECK_CUDA(cudaSetDevice(0));
    for (unsigned i = 0; i < rounds; ++i) part.run_current(), part.run();
  };
  std::thread other(work, std::ref(b));
  work(a);
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 8;
  check::parse(argc, argv, "green_contexts", "parts of a device's multiprocessors as green contexts",
               {{"--rounds", "how often work is handed to and fro", &rounds, 1, 30}});
  CHECK_CUDA(cudaFree(nullptr));
  CUdevResource parts[2];
  split(parts);
  Part a(parts[0]), b(parts[1]);
  a.run(), b.run();
  expect_apart("by streams", a, b);
  a.run_current(), b.run_current();
  expect_apart("made current", a, b);
  run_in_threads(a, b, static_cast<unsigned>(rounds));
  expect_apart("in threads", a, b);
  keep_order(a, b, static_cast<unsigned>(rounds));

  CUgreenCtx green = nullptr;
  CHECK_DRIVER(ENTRY(cuStreamGetGreenCtx)(nullptr, &green));
  std::printf("the primary context's stream has none: %d\n", green == nullptr);
  a.end();
  b.run();
  b.ran_on();
  std::printf("one goes on after the other's end\n");
  b.end();
  Part again(parts[0]);
  again.run();
  again.ran_on();
  again.end();
  std::printf("a part is used again\n");
  CHECK_CUDA(cudaDeviceSynchronize());
  std::printf("green_contexts: pass\n");
  return 0;
}
