// Relocatable device code: kernels of two files that call each other's functions, by name and through a pointer, and
// that use each other's variables.
#include "relocatable_parts.h"

#include "check.h"

namespace {

__global__ void use(unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = weighted(i) + chosen_step(i) + recursive_sum(i % 16);
  atomicAdd(&tally.calls, 1u);
}

constexpr unsigned initial[4] = {2, 3, 5, 7};

unsigned weighted_here(unsigned i, const unsigned* by, unsigned plus) { return i * by[i % 4] + plus; }

void check_use(unsigned n, const unsigned* by, unsigned plus) {
  unsigned* out = check::device_buffer<unsigned>(n);
  use<<<(n + 127) / 128, 128>>>(out, n);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<unsigned> got = check::host_copy(out, n);
  for (unsigned i = 0; i < n; ++i) {
    const unsigned wanted = weighted_here(i, by, plus) + 2 * i + (i % 16) * (i % 16 + 1) / 2;
    CHECK_THAT(got[i] == wanted, "Thread %u has %u, not %u.", i, got[i], wanted);
  }
  CHECK_CUDA(cudaFree(out));
}

void check_tally(unsigned calls, unsigned sum) {
  Tally got{};
  CHECK_CUDA(cudaMemcpyFromSymbol(&got, tally, sizeof got));
  CHECK_THAT(got.calls == calls && got.sum == sum, "The tally is %u, %u, not %u, %u.", got.calls, got.sum, calls, sum);
}

}  // namespace

int main(int argc, char** argv) {
  long size = 1000;
  check::parse(argc, argv, "relocatable", "device code of two files",
               {{"--n", "threads of each kernel", &size, 1, 1 << 20}});
  const auto n = static_cast<unsigned>(size);
  check_use(n, initial, 0);
  check_tally(n, 0);
  std::printf("functions and variables of the other file\n");

  const unsigned plus = 11;
  CHECK_CUDA(cudaMemcpyToSymbol(bias, &plus, sizeof plus));
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += weighted_here(i, initial, plus);
  launch_tally(n);
  check_tally(2 * n, sum);
  std::printf("a kernel of the other file, with a constant that this one has set\n");

  const unsigned changed[4] = {1, 10, 100, 1000};
  CHECK_CUDA(cudaMemcpyToSymbol(weights, changed, sizeof changed));
  check_use(n, changed, plus);
  check_tally(3 * n, sum);
  std::printf("pass\n");
  return 0;
}
