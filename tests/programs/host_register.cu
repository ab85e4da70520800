// Memory of the program that CUDA registers at its own address: from malloc, not page-aligned, with other data on its
// first page. Kernels read and write the memory by its device pointer, and copies use its own address. Threads that
// write into the memory while it is repeatedly registered and unregistered must lose no write.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "check.h"

namespace {

__global__ void advance(unsigned* values, int n, unsigned by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = values[i] * 3 + by;
}

unsigned element(long i) { return static_cast<unsigned>(i * 2654435761u); }

void launch(unsigned* values, int n, unsigned by) {
  advance<<<(n + 255) / 256, 256>>>(values, n, by);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
}

void expect(const unsigned* values, int n, unsigned (*expected)(unsigned), const char* where) {
  for (int i = 0; i < n; ++i)
    CHECK_THAT(values[i] == expected(element(i)), "%s: element %d is %u, not %u.", where, i, values[i],
               expected(element(i)));
}

// A buffer of n elements inside a larger one, at an unaligned position.
struct Buffer {
  explicit Buffer(int n) : all(static_cast<unsigned*>(std::malloc((n + 2048) * sizeof(unsigned)))), values(all + 333) {
    for (int i = 0; i < 333; ++i) all[i] = 7;
    for (int i = 0; i < n; ++i) values[i] = element(i);
    values[n] = 9;
  }
  ~Buffer() { std::free(all); }
  unsigned *all, *values;
};

unsigned* registered(unsigned* values, int n) {
  unsigned* on_device = nullptr;
  CHECK_CUDA(cudaHostRegister(values, n * sizeof(unsigned), cudaHostRegisterMapped));
  CHECK_CUDA(cudaHostGetDevicePointer(reinterpret_cast<void**>(&on_device), values, 0));
  return on_device;
}

void kernels_and_copies(int n) {
  Buffer buffer(n);
  unsigned* const values = buffer.values;
  unsigned* const other = check::device_buffer<unsigned>(n);
  const size_t bytes = n * sizeof(unsigned);
  unsigned* const on_device = registered(values, n);
  expect(
      values, n, [](unsigned x) { return x; }, "registered");
  launch(on_device, n, 5);
  expect(
      values, n, [](unsigned x) { return x * 3 + 5; }, "after a kernel");
  CHECK_CUDA(cudaMemcpyAsync(other, values, bytes, cudaMemcpyHostToDevice, nullptr));
  launch(other, n, 1);
  CHECK_CUDA(cudaMemset(on_device, 0, bytes));
  CHECK_CUDA(cudaMemcpyAsync(values, other, bytes, cudaMemcpyDeviceToHost, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  expect(
      values, n, [](unsigned x) { return (x * 3 + 5) * 3 + 1; }, "after copies");
  CHECK_CUDA(cudaMemcpy(on_device, other, bytes / 2, cudaMemcpyDeviceToDevice));
  cudaPointerAttributes attributes;
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, values));
  CHECK_THAT(attributes.type == cudaMemoryTypeHost && attributes.devicePointer == on_device &&
                 attributes.hostPointer == values,
             "The attributes of registered memory name other memory.");
  CHECK_CUDA(cudaHostUnregister(values));
  expect(
      values, n, [](unsigned x) { return (x * 3 + 5) * 3 + 1; }, "unregistered");
  for (int i = 0; i < 333; ++i) CHECK_THAT(buffer.all[i] == 7, "A neighbour in front has changed.");
  CHECK_THAT(values[n] == 9, "A neighbour behind has changed.");
  CHECK_CUDA(cudaFree(other));
  std::printf("kernels and copies: %016llx\n", static_cast<unsigned long long>(check::checksum(values, bytes)));
}

// Each thread counts in its own elements, one per page, and checks that each element still has the last written value.
void writers(int n, int rounds) {
  constexpr int threads = 2, step = 1024;
  Buffer buffer(n);
  std::atomic<bool> stop{false}, lost{false};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      unsigned written = 0;
      for (int i = t; i < n; i += step) buffer.values[i] = 0;
      while (!stop) {
        for (int i = t; i < n; i += step) {
          volatile unsigned& value = buffer.values[i];
          if (value != written) lost = true;
          value = written + 1;
        }
        ++written;
      }
    });
  for (int round = 0; round < rounds; ++round) {
    registered(buffer.values, n);
    CHECK_CUDA(cudaHostUnregister(buffer.values));
  }
  stop = true;
  for (std::thread& t : running) t.join();
  CHECK_THAT(!lost, "A write of another thread was lost.");
  std::printf("writers: nothing lost\n");
}

void refusals(int n) {
  Buffer buffer(n);
  registered(buffer.values, n);
  const auto name = [](cudaError_t error) { return cudaGetErrorName(error); };
  std::printf("twice: %s\n", name(cudaHostRegister(buffer.values, 4, 0)));
  std::printf("inside: %s\n", name(cudaHostUnregister(buffer.values + 1)));
  unsigned* const other = check::device_buffer<unsigned>(16);
  std::printf("past its end: %s\n", name(cudaMemcpy(other, buffer.values + n - 1, 8, cudaMemcpyHostToDevice)));
  CHECK_CUDA(cudaFree(other));
  CHECK_CUDA(cudaHostUnregister(buffer.values));
  std::printf("unregistered twice: %s\n", name(cudaHostUnregister(buffer.values)));
  std::printf("nothing: %s\n", name(cudaHostRegister(buffer.values, 0, 0)));
  (void)cudaGetLastError();
}

// A child writes beside registered memory, on the memory's first and last page. The parent's bytes must not change.
void child(int n) {
  Buffer buffer(n);
  registered(buffer.values, n);
  const pid_t id = fork();
  if (id == 0) {
    buffer.all[0] = 1, buffer.values[n] = 1;
    _exit(buffer.values[0] == element(0) && buffer.values[n / 2] == element(n / 2) ? 0 : 1);
  }
  int status = 0;
  waitpid(id, &status, 0);
  CHECK_THAT(status == 0, "A forked child does not find the memory.");
  CHECK_THAT(buffer.all[0] == 7 && buffer.values[n] == 9, "A child has written into its parent's memory.");
  CHECK_CUDA(cudaHostUnregister(buffer.values));
  std::printf("child: its writes are its own\n");
}

// The process ends while memory is registered, and reads the memory until the end.
struct ReadAtTheEnd {
  unsigned* values = nullptr;
  ~ReadAtTheEnd() {
    if (values != nullptr && values[12] != element(12)) _exit(1);
  }
} at_the_end;

}  // namespace

int main(int argc, char** argv) {
  long n = 200000, rounds = 50;
  check::parse(argc, argv, "host_register", "memory from malloc that CUDA registers where it is",
               {{"--n", "elements", &n, 4096, 1 << 28},
                {"--rounds", "registrations beside threads that write", &rounds, 1, 100000}});
  const int count = static_cast<int>(n);
  kernels_and_copies(count);
  writers(count, static_cast<int>(rounds));
  refusals(count);
  child(count);
  at_the_end.values = (new Buffer(count))->values;
  registered(at_the_end.values, count);
  return 0;
}
