// Asks which memory of a process the kernel module nvidia-uvm manages: which ways of allocating memory map the module's
// device file and how much, and whether the driver evicts such memory for another process's plain allocations.
// docs/design/029-memory-quotas.md has the results.
// usage: probe_managed [LIBCUDA]
#include <cuda.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "tests/probes/programs.h"

namespace {

using probe::mib;

struct Mapped {
  std::size_t ranges = 0, bytes = 0;
};

// The mappings of /dev/nvidia-uvm in this process.
Mapped mapped() {
  Mapped all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("nvidia-uvm") == std::string::npos) continue;
    unsigned long long begin = 0, end = 0;
    std::sscanf(line.c_str(), "%llx-%llx", &begin, &end);
    ++all.ranges, all.bytes += end - begin;
  }
  return all;
}

void step(const std::string& what, const std::function<CUresult()>& act) {
  const Mapped before = mapped();
  const CUresult result = act();
  const Mapped after = mapped();
  const auto more = [](std::size_t a, std::size_t b) { return static_cast<double>(a) - static_cast<double>(b); };
  std::printf("| %-56s | %d | %+5.0f | %+10.3f | %10.3f |\n", what.c_str(), static_cast<int>(result),
              more(after.ranges, before.ranges), more(after.bytes, before.bytes) / mib,
              static_cast<double>(after.bytes) / mib);
}

CUresult managed_of(CUdeviceptr* at, std::size_t bytes) {
  const CUresult made = CU(cuMemAllocManaged)(at, bytes, CU_MEM_ATTACH_GLOBAL);
  if (made != CUDA_SUCCESS) return made;
  CU(cuMemsetD8_v2)(*at, 1, bytes);
  return CU(cuCtxSynchronize)();
}

constexpr const char* head = ".version 7.0\n.target sm_70\n.address_size 64\n";

void objects() {
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle memory = 0;
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  step("cuMemCreate of 64 MiB, reserved, mapped, access", [&] {
    CU(cuMemCreate)(&memory, 64 * mib, &p, 0);
    CU(cuMemAddressReserve)(&at, 1024 * mib, 0, 0, 0);
    CU(cuMemMap)(at, 64 * mib, 0, memory, 0);
    CUmemAccessDesc access{};
    access.location = p.location, access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CU(cuMemSetAccess)(at, 64 * mib, &access, 1);
  });
  step("cuMemAllocAsync of 64 MiB", [&] { return CU(cuMemAllocAsync)(&at, 64 * mib, nullptr); });
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = d.Height = 4096, d.Format = CU_AD_FORMAT_FLOAT, d.NumChannels = 4;
  step("array of 4096 x 4096 float4", [&] { return CU(cuArray3DCreate_v2)(&array, &d); });
  void* host = nullptr;
  step("cuMemHostAlloc of 64 MiB", [&] { return CU(cuMemHostAlloc)(&host, 64 * mib, CU_MEMHOSTALLOC_DEVICEMAP); });
  void* own = mmap(nullptr, 64 * mib, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  step("cuMemHostRegister of 64 MiB",
       [&] { return CU(cuMemHostRegister_v2)(own, 64 * mib, CU_MEMHOSTREGISTER_DEVICEMAP); });
}

void modules() {
  CUmodule module = nullptr;
  step("a module with a variable of 100 MiB", [&] {
    return CU(cuModuleLoadData)(&module, (std::string(head) + ".visible .global .align 8 .b8 big[104857600];\n.visible "
                                                              ".entry f() { ret; }\n")
                                             .c_str());
  });
  for (const char* bytes : {"4", "100000", "10485760"})
    step("a module with a managed variable of " + std::string(bytes) + " bytes", [&] {
      return CU(cuModuleLoadData)(&module,
                                  (std::string(head) + ".visible .global .attribute(.managed) .align 8 .b8 m[" + bytes +
                                   "];\n.visible .entry f() { ret; }\n")
                                      .c_str());
    });
  step("its end", [&] { return CU(cuModuleUnload)(module); });
}

void ways() {
  std::printf("\n| way | result | ranges | MiB more | MiB in all |\n|---|---|---|---|---|\n");
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  step("cuInit", [&] { return CU(cuInit)(0); });
  MUST(CU(cuDeviceGet)(&device, 0));
  for (const CUdevice_attribute which :
       {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS}) {
    int value = 0;
    MUST(CU(cuDeviceGetAttribute)(&value, which, device));
    std::printf("| attribute %d: %d |\n", static_cast<int>(which), value);
  }
  step("a primary context", [&] {
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
    return CU(cuCtxSetCurrent)(context);
  });
  step("a second context", [&] { return CU(cuCtxCreate)(&context, nullptr, 0, device); });
  step("100 streams, each with a memset", [&] {
    CUdeviceptr some = 0;
    CU(cuMemAlloc_v2)(&some, 100);
    for (int i = 0; i < 100; ++i) {
      CUstream stream = nullptr;
      if (const CUresult r = CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING); r != CUDA_SUCCESS) return r;
      CU(cuMemsetD8Async)(some, 1, 100, stream);
    }
    return CU(cuCtxSynchronize)();
  });
  step("10000 events", [&] {
    for (int i = 0; i < 10000; ++i) {
      CUevent event = nullptr;
      if (const CUresult r = CU(cuEventCreate)(&event, 0); r != CUDA_SUCCESS) return r;
      CU(cuEventRecord)(event, nullptr);
    }
    return CU(cuCtxSynchronize)();
  });
  step("cuMemAlloc of 1 GiB", [&] { return CU(cuMemAlloc_v2)(&at, 1024 * mib); });
  objects();
  step("the stack's limit to 16384", [&] { return CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 16384); });
  modules();
  step("cuMemAllocManaged of 64 MiB, used by the GPU", [&] { return managed_of(&at, 64 * mib); });
  step("its end", [&] { return CU(cuMemFree_v2)(at); });
  step("cuMemAllocManaged of 1 MiB, used by the GPU", [&] { return managed_of(&at, mib); });
  step("cuMemAllocManaged of 3000 bytes, used by the GPU", [&] { return managed_of(&at, 3000); });
  step("the end of a context", [&] { return CU(cuCtxDestroy_v2)(context); });
}

constexpr std::size_t theirs = 2048 * mib;

// Keeps managed memory on the GPU until the other process has tried to allocate, and checks that the memory is
// unchanged.
void hold(probe::Shared& shared, const std::function<void()>& ready) {
  const probe::Gpu gpu;
  CUdeviceptr at = 0;
  if (managed_of(&at, theirs) != CUDA_SUCCESS) _exit(1);
  ready();
  while (shared.stop == 0) usleep(1000);
  std::array<unsigned char, 4096> back{};
  bool right = true;
  for (std::size_t from = 0; from < theirs; from += 16 * mib) {
    CU(cuMemcpyDtoH_v2)(back.data(), at + from, back.size());
    for (const unsigned char byte : back) right = right && byte == 1;
  }
  shared.result[0] = right ? 1 : 2;
}

// Allocates all free memory, and 1 GiB more.
void take_all() {
  const probe::Gpu gpu;
  std::size_t free = 0, after = 0, total = 0, taken = 0;
  double slowest_us = 0;
  MUST(CU(cuMemGetInfo_v2)(&free, &total));
  CUresult last = CUDA_SUCCESS;
  while (taken < free + 1024 * mib && last == CUDA_SUCCESS) {
    CUdeviceptr at = 0;
    const auto began = probe::Clock::now();
    last = CU(cuMemAlloc_v2)(&at, 256 * mib);
    slowest_us = std::max(slowest_us, probe::us_since(began));
    if (last == CUDA_SUCCESS) taken += 256 * mib;
  }
  MUST(CU(cuMemGetInfo_v2)(&after, &total));
  std::printf(
      "\nfree beside 2 GiB of managed memory of another process: %zu MiB of %zu; taken %zu MiB, last result %d, "
      "slowest allocation %.0f us; free after it: %zu MiB\n",
      free / mib, total / mib, taken / mib, static_cast<int>(last), slowest_us, after / mib);
}

void makes_way() {
  probe::Shared& shared = *probe::share();
  probe::processes(
      1, shared, [&](int, const std::function<void()>& ready) { hold(shared, ready); }, 0, take_all);
  std::printf("the other process then reads %s\n", shared.result[0] == 1 ? "what it wrote" : "something else");
}

}  // namespace

int main(int argc, char** argv) {
  if (!probe::open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  setvbuf(stdout, nullptr, _IONBF, 0);
  probe::ask_alone("ways", ways);
  makes_way();
}
