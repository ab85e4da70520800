// printf in kernels: the formats, the order within a thread and within a block, lines of many threads, the return
// value, and the position among the program's own lines. The text must follow the lines that the program flushed before
// the synchronisation, and precede the lines that it prints afterwards. Every way of waiting for a kernel must deliver
// the kernel's text.
#include "check.h"

namespace {

__global__ void formats(const char* passed, long long wide, double fraction, int* returned) {
  returned[0] = printf("d %d %i %5d|%-5d|%05d %+d\n", -7, 8, 42, 42, 42, 42);
  returned[1] = printf("u %u %o %x %X %#x\n", 4000000000u, 8u, 0xbeefu, 0xbeefu, 255u);
  printf("wide %lld %llu %llx %lu\n", wide, 0xfedcba9876543210ull, 0xfedcba9876543210ull, 1ul << 40);
  printf("float %f %.3f %10.2f|%e %g %G\n", fraction, fraction, fraction, fraction * 1e10, 0.0001, 1e20);
  printf("special %f %f %f\n", -0.0, 1.0 / (fraction - fraction), -1.0 / (fraction - fraction));
  printf("text %s|%10s|%-10s|%.2s\n", "literal", "right", "left", "cut");
  printf("char %c%c%c %%\n", 'a', 'b', static_cast<char>('a' + wide % 26));
  returned[2] = printf("nothing but text\n");
  returned[3] = printf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                       14, 15, 16);
  returned[4] = printf("without an end of line, ");
  printf("%s\n", passed == nullptr ? "and the rest" : "?");
}

// One thread prints after another, so that the lines have a fixed order.
__global__ void lines(int count) {
  for (int i = 0; i < count; ++i) {
    if (threadIdx.x == i % blockDim.x) printf("line %d of thread %u\n", i, threadIdx.x);
    __syncthreads();
  }
}

// Prints one line, which shows which wait delivered it.
__global__ void marked(int mark) { printf("mark %d\n", mark); }

void own_line(const char* text) {
  std::printf("own: %s\n", text);
  std::fflush(stdout);
}

void all_formats() {
  int* returned = check::device_buffer<int>(5);
  own_line("before the formats");
  formats<<<1, 1>>>(nullptr, -1234567890123456789ll + 26, 2.5, returned);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  own_line("after the formats");
  const int expected[] = {6, 5, 0, 16, 0};  // the number of arguments of each call
  const std::vector<int> got = check::host_copy(returned, 5);
  for (int i = 0; i < 5; ++i)
    CHECK_THAT(got[i] == expected[i], "printf %d returned %d, not %d.", i, got[i], expected[i]);
  CHECK_CUDA(cudaFree(returned));
}

void ways_of_waiting() {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  int* value = check::device_buffer<int>(1);
  int copy = 0;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaEventCreate(&event));
  marked<<<1, 1, 0, stream>>>(1);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  own_line("after cudaStreamSynchronize");
  marked<<<1, 1, 0, stream>>>(2);
  CHECK_CUDA(cudaEventRecord(event, stream));
  CHECK_CUDA(cudaEventSynchronize(event));
  own_line("after cudaEventSynchronize");
  marked<<<1, 1>>>(3);
  CHECK_CUDA(cudaMemcpy(&copy, value, sizeof(int), cudaMemcpyDeviceToHost));
  own_line("after cudaMemcpy");
  marked<<<1, 1>>>(4);
  marked<<<1, 1>>>(5);
  CHECK_CUDA(cudaDeviceSynchronize());
  own_line("after cudaDeviceSynchronize");
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaEventDestroy(event));
  CHECK_CUDA(cudaFree(value));
}

}  // namespace

int main(int argc, char** argv) {
  long count = 40;
  check::parse(argc, argv, "device_printf", "prints from kernels",
               {{"--lines", "lines of one block", &count, 1, 10000}});
  all_formats();
  lines<<<1, 8>>>(static_cast<int>(count));
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  own_line("after the lines");
  ways_of_waiting();
  return 0;
}
