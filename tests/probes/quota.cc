// Measures how much of a GPU's memory a process holds according to NVIDIA's management library, before and after each
// kind of allocation, and compares it with the worker's own count (host/session/memory/footprint.h).
// docs/design/029-memory-quotas.md has the results.
// usage: probe_quota [LIBCUDA [LIBNVIDIA_ML]]
#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/broker/gpu/nvml.h"
#include "host/session/memory/footprint.h"
#include "tests/probes/probe.h"

namespace {

constexpr std::uint64_t mib = 1 << 20;

std::unique_ptr<nvml::Library> management;
nvml::Library::Device gpu = nullptr;

// The memory that this process holds, in bytes; -1: unknown.
std::int64_t held() {
  const auto all = management->processes(gpu);
  if (!all) return std::printf("NVML lists no processes: %s\n", all.error().message.c_str()), -1;
  for (const nvml::Process& p : *all)
    if (p.pid == static_cast<unsigned>(getpid())) return p.answered ? static_cast<std::int64_t>(p.bytes) : -1;
  return 0;
}

// Does something, and prints by how much more the process holds after it, and by how much the whole GPU's free memory has
// shrunk. `counted`: what a worker would count.
std::int64_t step(const std::string& what, const std::function<CUresult()>& act, std::int64_t counted = -1) {
  std::size_t free_before = 0, free_after = 0, total = 0;
  CU(cuMemGetInfo_v2)(&free_before, &total);
  const std::int64_t before = held();
  const CUresult result = act();
  const std::int64_t after = held();
  CU(cuMemGetInfo_v2)(&free_after, &total);
  const double more = static_cast<double>(after - before) / static_cast<double>(mib);
  const double less = (static_cast<double>(free_before) - static_cast<double>(free_after)) / static_cast<double>(mib);
  std::printf("| %-52s | %d | %10.2f | %10.2f |", what.c_str(), static_cast<int>(result), more, less);
  if (counted >= 0)
    std::printf(" %10.2f |\n", static_cast<double>(counted) / static_cast<double>(mib));
  else
    std::printf("            |\n");
  return after - before;
}

std::int64_t counted(host::Footprint footprint) { return static_cast<std::int64_t>(footprint.bytes()); }

// ---- ways ----------------------------------------------------------------------------------------------------------

void contexts() {
  CUcontext context = nullptr;
  step("a second context", [&] { return CU(cuCtxCreate_v2)(&context, 0, 0); });
  step("its end", [&] { return CU(cuCtxDestroy_v2)(context); });
  step("100 streams", [&] {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 100 && result == CUDA_SUCCESS; ++i) {
      CUstream stream = nullptr;
      result = CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    }
    return result;
  });
}

void allocations() {
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{100'000}, mib - 1, mib, mib + 1, 2 * mib, 3 * mib, 10 * mib + 1, 100 * mib}) {
    std::vector<CUdeviceptr> all(10);
    step(
        "10 times cuMemAlloc of " + std::to_string(bytes),
        [&] {
          CUresult result = CUDA_SUCCESS;
          for (CUdeviceptr& at : all)
            if (result == CUDA_SUCCESS) result = CU(cuMemAlloc_v2)(&at, bytes);
          return result;
        },
        10 * counted(host::of_allocation(bytes)));
    step("their end", [&] {
      CUresult result = CUDA_SUCCESS;
      for (const CUdeviceptr at : all)
        if (result == CUDA_SUCCESS) result = CU(cuMemFree_v2)(at);
      return result;
    });
  }
  CUdeviceptr at = 0;
  std::size_t pitch = 0;
  step(
      "cuMemAllocPitch, 10000 rows of 5000 bytes", [&] { return CU(cuMemAllocPitch_v2)(&at, &pitch, 5000, 10000, 4); },
      counted(host::of_rows(5000, 10000)));
  CU(cuMemFree_v2)(at);
}

void arrays() {
  const auto of = [](std::size_t w, std::size_t h, std::size_t d, CUarray_format format, unsigned channels,
                     unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR a{};
    a.Width = w, a.Height = h, a.Depth = d, a.Format = format, a.NumChannels = channels, a.Flags = flags;
    return a;
  };
  const std::pair<const char*, CUDA_ARRAY3D_DESCRIPTOR> all[] = {
      {"array of 64 floats", of(64, 0, 0, CU_AD_FORMAT_FLOAT, 1)},
      {"array of 64 x 64 floats", of(64, 64, 0, CU_AD_FORMAT_FLOAT, 1)},
      {"array of 1000 x 1000 float4", of(1000, 1000, 0, CU_AD_FORMAT_FLOAT, 4)},
      {"array of 4096 x 4096 float4", of(4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4)},
      {"array of 300 x 300 x 300 bytes", of(300, 300, 300, CU_AD_FORMAT_UNSIGNED_INT8, 1)},
      {"array of 512 x 512, 20 layers of half2", of(512, 512, 20, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_LAYERED)},
      {"cube of 512 x 512 float4", of(512, 512, 6, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_CUBEMAP)},
      {"array of 4096 x 4096 in BC7", of(4096, 4096, 0, CU_AD_FORMAT_BC7_UNORM, 4)}};
  for (const auto& entry : all) {
    const CUDA_ARRAY3D_DESCRIPTOR& description = entry.second;
    CUarray made = nullptr;
    step(
        entry.first, [&] { return CU(cuArray3DCreate_v2)(&made, &description); }, counted(host::of_array(description)));
    if (made != nullptr) CU(cuArrayDestroy)(made);
  }
  CUmipmappedArray mipmapped = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR d = of(2000, 2000, 0, CU_AD_FORMAT_FLOAT, 4);
  step(
      "mipmapped array of 2000 x 2000 float4, 11 levels",
      [&] { return CU(cuMipmappedArrayCreate)(&mipmapped, &d, 11); }, counted(host::of_array(d, 11)));
  if (mipmapped != nullptr) CU(cuMipmappedArrayDestroy)(mipmapped);
}

std::int64_t reserved(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
  return static_cast<std::int64_t>(bytes);
}

void pools() {
  CUmemoryPool pool = nullptr;
  MUST(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  std::vector<CUdeviceptr> all;
  for (const std::uint64_t bytes : {std::uint64_t{100}, 20 * mib, 20 * mib, 33 * mib, 500 * mib}) {
    CUdeviceptr at = 0;
    const std::int64_t before = reserved(pool);
    step("cuMemAllocAsync of " + std::to_string(bytes), [&] { return CU(cuMemAllocAsync)(&at, bytes, nullptr); });
    std::printf("|   the pool has grown by %.2f MiB\n",
                static_cast<double>(reserved(pool) - before) / static_cast<double>(mib));
    all.push_back(at);
  }
  step("their end in order", [&] {
    for (const CUdeviceptr at : all) CU(cuMemFreeAsync)(at, nullptr);
    return CUDA_SUCCESS;
  });
  step("a wait", [&] { return CU(cuCtxSynchronize)(); });
  std::printf("|   the pool has %.2f MiB\n", static_cast<double>(reserved(pool)) / static_cast<double>(mib));
  step("cuMemPoolTrimTo 0", [&] { return CU(cuMemPoolTrimTo)(pool, 0); });
}

void memory_objects() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle memory = 0;
  CUdeviceptr at = 0;
  step(
      "cuMemCreate of 64 MiB", [&] { return CU(cuMemCreate)(&memory, 64 * mib, &p, 0); }, 64 * mib);
  step(
      "cuMemAddressReserve of 64 GiB", [&] { return CU(cuMemAddressReserve)(&at, 1024 * 64 * mib, 0, 0, 0); }, 0);
  step(
      "cuMemMap", [&] { return CU(cuMemMap)(at, 64 * mib, 0, memory, 0); }, 0);
  step(
      "cuMemRelease of what is mapped", [&] { return CU(cuMemRelease)(memory); }, 0);
  step("cuMemUnmap", [&] { return CU(cuMemUnmap)(at, 64 * mib); });
}

void managed() {
  CUdeviceptr at = 0;
  step("cuMemAllocManaged of 64 MiB", [&] { return CU(cuMemAllocManaged)(&at, 64 * mib, CU_MEM_ATTACH_GLOBAL); });
  step("its first use by the GPU", [&] {
    CU(cuMemsetD8_v2)(at, 1, 64 * mib);
    return CU(cuCtxSynchronize)();
  });
  step("its end", [&] { return CU(cuMemFree_v2)(at); });
}

// ---- what the driver takes beside ----------------------------------------------------------------------------------

int attribute(CUdevice_attribute which) {
  int value = 0;
  CU(cuDeviceGetAttribute)(&value, which, 0);
  return value;
}

void limits() {
  const auto threads = static_cast<std::uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) *
                       static_cast<std::uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  for (const CUlimit limit : {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE}) {
    std::size_t before = 0;
    CU(cuCtxGetLimit)(&before, limit);
    const std::size_t wanted = limit == CU_LIMIT_STACK_SIZE ? 16384 : 256 * mib;
    const std::uint64_t times = limit == CU_LIMIT_STACK_SIZE ? threads : 1;
    step(
        "limit " + std::to_string(limit) + " from " + std::to_string(before) + " to " + std::to_string(wanted),
        [&] { return CU(cuCtxSetLimit)(limit, wanted); }, static_cast<std::int64_t>((wanted - before) * times));
    step("back again", [&] { return CU(cuCtxSetLimit)(limit, before); });
  }
}

CUmodule load(const std::string& text) {
  CUmodule module = nullptr;
  MUST(CU(cuModuleLoadData)(&module, text.c_str()));
  return module;
}

constexpr const char* head = ".version 7.0\n.target sm_70\n.address_size 64\n";

void modules() {
  CUmodule module = nullptr;
  step("a module with a variable of 100 MiB", [&] {
    module = load(std::string(head) + ".visible .global .align 8 .b8 big[104857600];\n.visible .entry f() { ret; }\n");
    return CUDA_SUCCESS;
  });
  step("its end", [&] { return CU(cuModuleUnload)(module); });
  step("a module with a kernel that has 16 KiB of local memory", [&] {
    module =
        load(std::string(head) +
             ".visible .entry f(.param .u32 n) {\n.local .align 8 .b8 mine[16384];\n.reg .u64 %rd<3>; .reg .u32 %r<3>; "
             ".reg .pred %p;\n"
             "ld.param.u32 %r1, [n]; mov.u64 %rd1, mine; cvt.u64.u32 %rd2, %r1; add.u64 %rd1, %rd1, %rd2;\n"
             "st.local.u32 [%rd1], %r1; ld.local.u32 %r2, [%rd1+4096]; setp.eq.u32 %p, %r2, 77; @%p trap; ret; }\n");
    return CUDA_SUCCESS;
  });
  CUfunction f = nullptr;
  MUST(CU(cuModuleGetFunction)(&f, module, "f"));
  step("its first launch", [&] {
    unsigned n = 4;
    void* parameters[] = {&n};
    const CUresult r = CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    return r != CUDA_SUCCESS ? r : CU(cuCtxSynchronize)();
  });
  step("its end", [&] { return CU(cuModuleUnload)(module); });
}

bool find_gpu() {
  CUuuid uuid{};
  MUST(CU(cuDeviceGetUuid_v2)(&uuid, 0));
  std::string name = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    name += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(two);
  }
  const auto found = management->find(name);
  if (!found) return std::printf("NVML does not know %s: %s\n", name.c_str(), found.error().message.c_str()), false;
  gpu = *found;
  std::size_t total = 0;
  MUST(CU(cuDeviceTotalMem_v2)(&total, 0));
  const std::uint64_t told = management->memory(gpu);
  std::printf("cuDeviceTotalMem %zu, NVML's total without what is reserved %llu\n", total,
              static_cast<unsigned long long>(told));
  return true;
}

void time_it() {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) held();
  const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
  std::printf("NVML's list of processes: %.0f us each, pid %d, told %lld bytes\n", passed.count() / 100, getpid(),
              static_cast<long long>(held()));
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  auto library = nvml::Library::load(argc > 2 ? argv[2] : "libnvidia-ml.so.1");
  if (!library) return std::printf("%s\n", library.error().message.c_str()), 1;
  management = *std::move(library);
  if (!probe::open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  MUST(CU(cuInit)(0));
  if (!find_gpu()) return 1;
  std::printf("before any context: %lld bytes\n", static_cast<long long>(held()));
  CUcontext context = nullptr;
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  MUST(CU(cuCtxSetCurrent)(context));
  std::printf("with the primary context: %.2f MiB\n", static_cast<double>(held()) / static_cast<double>(mib));
  time_it();
  std::printf("| what | result | process holds more, MiB | GPU's free is less, MiB | a worker counts |\n");
  std::printf("|---|---|---|---|---|\n");
  contexts();
  allocations();
  arrays();
  pools();
  memory_objects();
  managed();
  limits();
  modules();
  return 0;
}
