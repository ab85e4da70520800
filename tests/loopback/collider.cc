// A program that maps memory where the driver places its own. The tests read its output.
//
// usage: loopback_collider LIBCUDA TOP RANGE...
// TOP is the end of the driver's chunks, in hexadecimal. The program first maps each RANGE, FROM-TO in MiB below TOP.
// It then allocates small and large blocks, and a thousand small blocks. It prints the number of collisions in its log,
// and whether any two blocks overlap.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "ring/api/cuda.h"
#include "tests/named_driver.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::map<std::uint64_t, std::uint64_t> taken;  // start -> end of each mapping of the program and the driver

// Records a range. Returns false if the range overlaps a recorded one.
bool note(std::uint64_t start, std::uint64_t bytes) {
  const auto next = taken.lower_bound(start);
  if (next != taken.end() && next->first < start + bytes) return false;
  if (next != taken.begin() && std::prev(next)->second > start) return false;
  taken[start] = start + bytes;
  return true;
}

bool map_range(std::uint64_t top, const char* range) {
  char* end = nullptr;
  const std::uint64_t from = std::strtoull(range, &end, 10) * mib, to = std::strtoull(end + 1, nullptr, 10) * mib;
  void* const wanted = reinterpret_cast<void*>(top - from);
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  return mmap(wanted, from - to, PROT_NONE, flags, -1, 0) == wanted && note(top - from, from - to);
}

bool start() {
  CUcontext current = nullptr;
  return CU(cuInit)(0) == CUDA_SUCCESS && CU(cuDevicePrimaryCtxRetain)(&current, 0) == CUDA_SUCCESS &&
         CU(cuCtxSetCurrent)(current) == CUDA_SUCCESS;
}

// Returns true if an allocation succeeds, overlaps no other range, and keeps its first and last byte.
bool allocate(std::size_t bytes) {
  CUdeviceptr at = 0;
  unsigned char back[2] = {};
  if (const CUresult r = CU(cuMemAlloc_v2)(&at, bytes); r != CUDA_SUCCESS)
    return std::printf("%zu bytes: error %d\n", bytes, static_cast<int>(r)), false;
  if (!note(at, bytes)) return std::printf("%zu bytes at %llx overlap\n", bytes, at), false;
  return CU(cuMemsetD8_v2)(at, 0x5a, 1) == CUDA_SUCCESS && CU(cuMemsetD8_v2)(at + bytes - 1, 0x5a, 1) == CUDA_SUCCESS &&
         CU(cuMemcpyDtoH_v2)(back, at, 1) == CUDA_SUCCESS &&
         CU(cuMemcpyDtoH_v2)(back + 1, at + bytes - 1, 1) == CUDA_SUCCESS && back[0] == 0x5a && back[1] == 0x5a;
}

void tell_collisions() {
  std::ifstream log(std::getenv("IVGPU_LOG_FILE"));
  unsigned count = 0;
  for (std::string line; std::getline(log, line);) count += line.find("collides with a mapping") != line.npos ? 1 : 0;
  std::printf("collided %u\n", count);
}

int run() {
  bool good = true;
  for (const std::size_t bytes : {std::size_t{4}, 20 * mib, std::size_t{512}, 256 * mib >> 10, 2 * mib, 900 * mib >> 10,
                                  mib, 300 * mib, std::size_t{70'000}, 2000 * mib, std::size_t{5}})
    good = allocate(bytes) && good;
  std::puts(good ? "apart" : "not apart");
  tell_collisions();
  for (int i = 0; i < 1000; ++i) good = allocate(static_cast<std::size_t>(1 + i * 7)) && good;
  std::puts(good ? "a thousand more" : "not a thousand more");
  tell_collisions();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 8;
  const std::uint64_t top = std::strtoull(argv[2], nullptr, 16);
  for (int i = 3; i < argc; ++i)
    if (!map_range(top, argv[i])) return std::printf("%s is not free\n", argv[i]), 7;
  if (open_library(argv[1]) == nullptr) return std::printf("%s\n", dlerror()), 7;
  return start() ? run() : 6;
}
