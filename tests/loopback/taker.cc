// A program that allocates device memory in pieces, in one way, until no memory is left. The tests read the program's
// output line by line.
//
// usage: loopback_taker LIBCUDA WAY [hold]
// Prints the results of cuMemGetInfo and cuDeviceTotalMem, the allocated MiB, the final error, and both results again.
// With `hold` the program keeps all memory until it reads a line, and then prints the results once more.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ring/api/cuda.h"
#include "tests/named_driver.h"

namespace {

constexpr std::size_t piece = std::size_t{16} << 20;
constexpr unsigned most_pieces = 1024;

CUresult allocate() {
  CUdeviceptr at = 0;
  return CU(cuMemAlloc_v2)(&at, piece);
}
CUresult allocate_rows() {
  CUdeviceptr at = 0;
  std::size_t pitch = 0;
  return CU(cuMemAllocPitch_v2)(&at, &pitch, 16000, piece / 16384, 4);
}
CUresult allocate_in_order() {
  CUdeviceptr at = 0;
  return CU(cuMemAllocAsync)(&at, piece, nullptr);
}
// Allocates on the second device, in stream order or from the device's pool, while the first device's context is
// current.
CUresult of_the_second(bool by_its_pool) {
  static CUstream stream = nullptr;
  static CUmemoryPool pool = nullptr;
  CUcontext first = nullptr, second = nullptr;
  CUdeviceptr at = 0;
  if (stream == nullptr) {
    CU(cuCtxGetCurrent)(&first);
    CU(cuDevicePrimaryCtxRetain)(&second, 1);
    CU(cuCtxSetCurrent)(second);
    CU(cuStreamCreate)(&stream, 0);
    CU(cuDeviceGetDefaultMemPool)(&pool, 1);
    CU(cuCtxSetCurrent)(first);
  }
  return by_its_pool ? CU(cuMemAllocFromPoolAsync)(&at, piece, pool, nullptr) : CU(cuMemAllocAsync)(&at, piece, stream);
}
CUresult in_order_of_the_second() { return of_the_second(false); }
CUresult from_pool_of_the_second() { return of_the_second(true); }
CUresult from_pool() {
  static CUmemoryPool pool = nullptr;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  if (pool == nullptr)
    if (const CUresult r = CU(cuMemPoolCreate)(&pool, &props); r != CUDA_SUCCESS) return r;
  CUdeviceptr at = 0;
  return CU(cuMemAllocFromPoolAsync)(&at, piece, pool, nullptr);
}
CUresult memory_object() {
  CUmemAllocationProp props{};
  props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle memory = 0;
  return CU(cuMemCreate)(&memory, piece, &props, 0);
}
CUDA_ARRAY3D_DESCRIPTOR texels() {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = 1024, d.Height = 1024, d.Format = CU_AD_FORMAT_FLOAT, d.NumChannels = 4;
  return d;
}
CUresult array() {
  const CUDA_ARRAY3D_DESCRIPTOR d = texels();
  CUarray made = nullptr;
  return CU(cuArray3DCreate_v2)(&made, &d);
}
CUresult layered_array() {
  CUDA_ARRAY3D_DESCRIPTOR d = texels();
  d.Width = 512, d.Height = 512, d.Depth = 4, d.Flags = CUDA_ARRAY3D_LAYERED;
  CUarray made = nullptr;
  return CU(cuArray3DCreate_v2)(&made, &d);
}
CUresult mipmapped_array() {
  CUDA_ARRAY3D_DESCRIPTOR d = texels();
  d.Width = 768;
  CUmipmappedArray made = nullptr;
  return CU(cuMipmappedArrayCreate)(&made, &d, 10);
}
CUresult context() {
  CUcontext made = nullptr;
  const CUresult result = CU(cuCtxCreate_v4)(&made, nullptr, 0, 0);
  if (result == CUDA_SUCCESS) CU(cuCtxPopCurrent_v2)(&made);
  return result;
}
CUresult heap() {
  static std::size_t bytes = 0;
  bytes += piece;
  return CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
}
// Loads a module with a variable as large as a piece.
CUresult module() {
  static const std::string text = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .global .align 8 .b8 big[" +
                                  std::to_string(piece) + "];\n.visible .entry nothing() { ret; }\n";
  CUmodule made = nullptr;
  return CU(cuModuleLoadData)(&made, text.c_str());
}

constexpr struct {
  const char* name;
  CUresult (*take)();
} ways[] = {{"allocate", allocate},
            {"allocate-rows", allocate_rows},
            {"allocate-in-order", allocate_in_order},
            {"in-order-of-the-second", in_order_of_the_second},
            {"from-pool-of-the-second", from_pool_of_the_second},
            {"from-pool", from_pool},
            {"memory-object", memory_object},
            {"array", array},
            {"layered-array", layered_array},
            {"mipmapped-array", mipmapped_array},
            {"context", context},
            {"heap", heap},
            {"module", module}};

void copy_info(const char* when) {
  std::size_t free = 0, total = 0, of_device = 0;
  const CUresult info = CU(cuMemGetInfo_v2)(&free, &total);
  CU(cuDeviceTotalMem_v2)(&of_device, 0);
  std::printf("%s %d: free %zu, total %zu, device %zu\n", when, static_cast<int>(info), free >> 20, total >> 20,
              of_device >> 20);
  std::fflush(stdout);
}

int take_all(CUresult (*take)(), bool hold) {
  CUcontext current = nullptr;
  CUresult result = CU(cuInit)(0);
  if (result == CUDA_SUCCESS) result = CU(cuDevicePrimaryCtxRetain)(&current, 0);
  if (result == CUDA_SUCCESS) result = CU(cuCtxSetCurrent)(current);
  if (result != CUDA_SUCCESS) return std::printf("no context %d\n", static_cast<int>(result)), 1;
  copy_info("before");
  unsigned pieces = 0;
  while (pieces < most_pieces && (result = take()) == CUDA_SUCCESS) ++pieces;
  std::printf("took %zu MiB, then %d\n", (pieces * piece) >> 20, static_cast<int>(result));
  copy_info("after");
  if (hold) std::getchar(), copy_info("at the end");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 8;
  if (open_library(argv[1]) == nullptr) return std::printf("%s\n", dlerror()), 7;
  for (const auto& way : ways)
    if (std::strcmp(argv[2], way.name) == 0) return take_all(way.take, argc > 3);
  return 8;
}
