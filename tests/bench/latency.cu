// What a program feels: launches, synchronisations, copies, first result. Run natively and through loopback by
// tools/measure, which puts the two beside each other. Prints one line a figure: name, median, 99th percentile, unit.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

__global__ void nothing(float*, float*, float*, int, float, float, int, int) {}
__global__ void store(int* at, int value) { *at = value; }

void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "latency: %s: %s\n", what, cudaGetErrorName(e));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

double microseconds(Clock::time_point from) {
  return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
}

void print(const char* name, std::vector<double> samples, const char* unit) {
  std::sort(samples.begin(), samples.end());
  std::printf("%s %.3f %.3f %s\n", name, samples[samples.size() / 2], samples[samples.size() * 99 / 100], unit);
  std::fflush(stdout);
}

// Each sample is one call of `f`, in microseconds, divided by `per`. With a `burst`, the device is waited for, untimed,
// before every so many calls: what is timed is then the call alone, and not a queue that is full.
void time_each(const char* name, int samples, double per, const std::function<void()>& f, int burst = 0) {
  std::vector<double> times;
  for (int i = 0; i < samples + samples / 10; ++i) {
    if (burst != 0 && i % burst == 0) CHECK(cudaDeviceSynchronize());
    const auto start = Clock::now();
    f();
    if (i >= samples / 10) times.push_back(microseconds(start) / per);
  }
  print(name, times, "us");
}

void launch() { nothing<<<1, 32>>>(nullptr, nullptr, nullptr, 0, 0, 0, 0, 0); }

void bandwidth(const char* name, std::size_t bytes, bool pinned, bool to_device, int samples) {
  void *host = nullptr, *device = nullptr;
  if (pinned && cudaMallocHost(&host, bytes) != cudaSuccess) {
    cudaGetLastError();
    std::fprintf(stderr, "latency: %s left out: no pinned memory of %zu bytes\n", name, bytes);
    return;
  }
  if (!pinned) host = std::malloc(bytes);
  CHECK(cudaMalloc(&device, bytes));
  std::memset(host, 1, bytes);
  CHECK(cudaMemset(device, 2, bytes));
  std::vector<double> rates;
  for (int i = 0; i < samples + 2; ++i) {
    const auto start = Clock::now();
    CHECK(to_device ? cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)
                    : cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    if (i >= 2) rates.push_back(static_cast<double>(bytes) / microseconds(start) / 1000);
  }
  print(name, rates, "GB/s");
  CHECK(cudaFree(device));
  if (pinned)
    CHECK(cudaFreeHost(host));
  else
    std::free(host);
}

void first_result(Clock::time_point start) {
  int *device = nullptr, value = 0;
  CHECK(cudaMalloc(&device, sizeof value));
  store<<<1, 1>>>(device, 42);
  CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  if (value != 42) std::exit(1);
  print("first_call_to_first_result", {microseconds(start) / 1000}, "ms");
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const int n = quick ? 20 : 2000;
  first_result(Clock::now());

  time_each("launch_issue", n, 1, launch, 64);
  CHECK(cudaDeviceSynchronize());
  time_each("kernels_back_to_back", quick ? 3 : 20, 1000, [] {
    for (int i = 0; i < 1000; ++i) launch();
    CHECK(cudaDeviceSynchronize());
  });
  time_each("launch_synchronize", n, 1, [] {
    launch();
    CHECK(cudaStreamSynchronize(nullptr));
  });
  time_each("20_launches_synchronize", n / 4, 1, [] {
    for (int i = 0; i < 20; ++i) launch();
    CHECK(cudaStreamSynchronize(nullptr));
  });
  time_each("idle_synchronize", n, 1, [] { CHECK(cudaStreamSynchronize(nullptr)); });
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  time_each(
      "event_record", n, 1, [&] { CHECK(cudaEventRecord(event)); }, 64);
  CHECK(cudaDeviceSynchronize());
  time_each("event_query", n, 1, [&] { cudaEventQuery(event); });
  time_each("stream_query", n, 1, [] { cudaStreamQuery(nullptr); });

  int* device = nullptr;
  int value = 1;
  CHECK(cudaMalloc(&device, 1 << 20));
  time_each("copy_4_bytes_h2d", n, 1, [&] { CHECK(cudaMemcpy(device, &value, 4, cudaMemcpyHostToDevice)); });
  time_each("copy_4_bytes_d2h", n, 1, [&] { CHECK(cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost)); });
  time_each("malloc_free_1MiB", n / 10, 1, [] {
    void* at = nullptr;
    CHECK(cudaMalloc(&at, 1 << 20));
    CHECK(cudaFree(at));
  });
  const int rounds = quick ? 2 : 20;
  const std::size_t large = quick ? 8 << 20 : 256 << 20;
  bandwidth("pinned_16MiB_h2d", 16 << 20, true, true, rounds);
  bandwidth("pinned_16MiB_d2h", 16 << 20, true, false, rounds);
  bandwidth("pinned_large_h2d", large, true, true, rounds);
  bandwidth("pinned_large_d2h", large, true, false, rounds);
  bandwidth("pageable_1MiB_h2d", 1 << 20, false, true, rounds * 5);
  bandwidth("pageable_1MiB_d2h", 1 << 20, false, false, rounds * 5);
  bandwidth("pageable_large_h2d", large, false, true, rounds);
  bandwidth("pageable_large_d2h", large, false, false, rounds);
}
