// Asks a driver which addresses it treats as memory of its own process, in which cases it uses only a copy's declared
// kind of memory, and how it handles addresses that were freed. docs/design/045-addresses-that-are-gone.md has the
// results of an H200.
// usage: probe_guesses [LIBCUDA]
#include <cuda.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/probes/probe.h"

namespace {

constexpr std::size_t mib = 1 << 20, bytes = 64 << 10;

using probe::text_of;

void say(const std::string& what, const std::string& answer) {
  std::printf("| %s | %s |\n", what.c_str(), answer.c_str());
}
void say(const std::string& what, CUresult answer) { say(what, text_of(answer)); }

CUdevice device = 0;
CUcontext context = nullptr;

void start() {
  MUST(CU(cuInit)(0));
  MUST(CU(cuDeviceGet)(&device, 0));
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
  MUST(CU(cuCtxSetCurrent)(context));
}

CUdeviceptr device_memory() {
  CUdeviceptr at = 0;
  MUST(CU(cuMemAlloc_v2)(&at, bytes));
  MUST(CU(cuMemsetD8_v2)(at, 0x5a, bytes));
  return at;
}

// Each kind of memory that a copy may name. The driver must never accept the heap's address.
struct Kind {
  const char* name;
  std::function<CUdeviceptr()> make;
};

void* anonymous(std::size_t length) {
  void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(at, 0x11, length);
  return at;
}

CUdeviceptr number(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

const Kind kinds[] = {
    {"device", device_memory},
    {"managed",
     [] {
       CUdeviceptr at = 0;
       MUST(CU(cuMemAllocManaged)(&at, bytes, CU_MEM_ATTACH_GLOBAL));
       std::memset(reinterpret_cast<void*>(at), 0x11, bytes);
       return at;
     }},
    {"host, allocated",
     [] {
       void* at = nullptr;
       MUST(CU(cuMemHostAlloc)(&at, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
       return number(at);
     }},
    {"shared pages, registered as the arena is",
     [] {
       const int file = memfd_create("arena", 0);
       if (ftruncate(file, bytes) != 0) std::exit(1);
       void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
       MUST(CU(cuMemHostRegister_v2)(at, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
       return number(at);
     }},
    {"heap", [] { return number(std::calloc(bytes, 1)); }},
    {"a mapping", [] { return number(anonymous(bytes)); }},
    {"nothing", [] { return CUdeviceptr{0x10000}; }},
    {"device memory, freed",
     [] {
       const CUdeviceptr at = device_memory();
       MUST(CU(cuMemFree_v2)(at));
       return at;
     }},
};

const std::pair<CUmemorytype, const char*> types[] = {
    {CU_MEMORYTYPE_DEVICE, "DEVICE"}, {CU_MEMORYTYPE_UNIFIED, "UNIFIED"}, {CU_MEMORYTYPE_HOST, "HOST"}};

CUDA_MEMCPY3D rows(CUmemorytype to_type, CUdeviceptr to, CUmemorytype from_type, CUdeviceptr from) {
  CUDA_MEMCPY3D c;
  std::memset(&c, 0, sizeof c);
  c.dstMemoryType = to_type, c.dstDevice = to, c.dstHost = reinterpret_cast<void*>(to);
  c.srcMemoryType = from_type, c.srcDevice = from, c.srcHost = reinterpret_cast<void*>(from);
  c.dstPitch = c.srcPitch = 256, c.dstHeight = c.srcHeight = 8;
  c.WidthInBytes = 128, c.Height = 8, c.Depth = 2;
  return c;
}

CUresult and_wait(CUresult r) { return r != CUDA_SUCCESS ? r : CU(cuCtxSynchronize)(); }

void copies_of_rows(const Kind& kind) {
  start();
  const CUdeviceptr at = kind.make(), other = device_memory();
  for (const auto& [type, name] : types) {
    std::string answer;
    CUDA_MEMCPY3D c = rows(CU_MEMORYTYPE_DEVICE, other, type, at);
    answer += "from " + text_of(CU(cuMemcpy3D_v2)(&c));
    answer += ", async " + text_of(and_wait(CU(cuMemcpy3DAsync_v2)(&c, nullptr)));
    c = rows(type, at, CU_MEMORYTYPE_DEVICE, other);
    answer += "; to " + text_of(CU(cuMemcpy3D_v2)(&c));
    answer += ", async " + text_of(and_wait(CU(cuMemcpy3DAsync_v2)(&c, nullptr)));
    say(std::string("rows, ") + kind.name + " as " + name, answer);
  }
}

void copies_of_texels(const Kind& kind) {
  start();
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = 128, d.Height = 8, d.Format = CU_AD_FORMAT_UNSIGNED_INT8, d.NumChannels = 1;
  CUarray array = nullptr;
  MUST(CU(cuArray3DCreate_v2)(&array, &d));
  const CUdeviceptr at = kind.make();
  for (const auto& [type, name] : types) {
    CUDA_MEMCPY3D c = rows(CU_MEMORYTYPE_ARRAY, 0, type, at);
    c.dstArray = array, c.Depth = 1;
    std::string answer = "from " + text_of(and_wait(CU(cuMemcpy3DAsync_v2)(&c, nullptr)));
    c = rows(type, at, CU_MEMORYTYPE_ARRAY, 0);
    c.srcArray = array, c.Depth = 1;
    answer += "; to " + text_of(and_wait(CU(cuMemcpy3DAsync_v2)(&c, nullptr)));
    say(std::string("texels, ") + kind.name + " as " + name, answer);
  }
}

// Tries every other call that takes an address as a number.
void other_calls(const Kind& kind) {
  start();
  const CUdeviceptr at = kind.make(), other = device_memory();
  const std::pair<const char*, std::function<CUresult()>> calls[] = {
      {"cuMemcpy from", [&] { return CU(cuMemcpy)(other, at, 256); }},
      {"cuMemcpy to", [&] { return CU(cuMemcpy)(at, other, 256); }},
      {"cuMemcpyAsync from", [&] { return CU(cuMemcpyAsync)(other, at, 256, nullptr); }},
      {"cuMemcpyDtoD from", [&] { return CU(cuMemcpyDtoD_v2)(other, at, 256); }},
      {"cuMemcpyDtoD to", [&] { return CU(cuMemcpyDtoD_v2)(at, other, 256); }},
      {"cuMemcpyDtoDAsync from", [&] { return CU(cuMemcpyDtoDAsync_v2)(other, at, 256, nullptr); }},
      {"cuMemcpyPeer from", [&] { return CU(cuMemcpyPeer)(other, context, at, context, 256); }},
      {"cuMemcpyPeerAsync to", [&] { return CU(cuMemcpyPeerAsync)(at, context, other, context, 256, nullptr); }},
      {"cuMemcpyHtoD to",
       [&] {
         char from[256] = {};
         return CU(cuMemcpyHtoD_v2)(at, from, sizeof from);
       }},
      {"cuMemcpyDtoH from",
       [&] {
         char to[256];
         return CU(cuMemcpyDtoH_v2)(to, at, sizeof to);
       }},
      {"cuMemsetD8", [&] { return CU(cuMemsetD8_v2)(at, 1, 256); }},
      {"cuMemsetD32Async", [&] { return CU(cuMemsetD32Async)(at, 1, 64, nullptr); }},
      {"cuMemsetD2D8", [&] { return CU(cuMemsetD2D8_v2)(at, 256, 1, 128, 8); }},
      {"cuStreamWriteValue32",
       [&] { return CU(cuStreamWriteValue32_v2)(nullptr, at, 1, CU_STREAM_WRITE_VALUE_DEFAULT); }},
      {"cuStreamWaitValue32", [&] { return CU(cuStreamWaitValue32_v2)(nullptr, at, 0, CU_STREAM_WAIT_VALUE_GEQ); }},
      {"cuMemPrefetchAsync",
       [&] {
         return CU(cuMemPrefetchAsync_v2)(at, bytes, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, nullptr);
       }},
      {"cuMemAdvise",
       [&] {
         return CU(cuMemAdvise_v2)(at, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, {CU_MEM_LOCATION_TYPE_DEVICE, 0});
       }},
      {"cuStreamAttachMemAsync", [&] { return CU(cuStreamAttachMemAsync)(nullptr, at, 0, CU_MEM_ATTACH_GLOBAL); }},
      {"cuMemcpyBatchAsync from",
       [&] {
         CUdeviceptr to = other, from = at;
         std::size_t size = 256, first = 0;
         CUmemcpyAttributes attributes{};
         attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
         CUstream stream = nullptr;
         MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
         return CU(cuMemcpyBatchAsync_v2)(&to, &from, &size, 1, &attributes, &first, 1, stream);
       }},
      {"a linear texture",
       [&] {
         CUDA_RESOURCE_DESC d{};
         d.resType = CU_RESOURCE_TYPE_LINEAR;
         d.res.linear = {at, CU_AD_FORMAT_FLOAT, 1, 256};
         CUDA_TEXTURE_DESC t{};
         CUtexObject made = 0;
         return CU(cuTexObjectCreate)(&made, &d, &t, nullptr);
       }},
      {"a linear texture of 16 MiB",
       [&] {
         CUDA_RESOURCE_DESC d{};
         d.resType = CU_RESOURCE_TYPE_LINEAR;
         d.res.linear = {at, CU_AD_FORMAT_FLOAT, 1, 16 * mib};
         CUDA_TEXTURE_DESC t{};
         CUtexObject made = 0;
         return CU(cuTexObjectCreate)(&made, &d, &t, nullptr);
       }},
      {"a pitched texture of 16 MiB",
       [&] {
         CUDA_RESOURCE_DESC d{};
         d.resType = CU_RESOURCE_TYPE_PITCH2D;
         d.res.pitch2D = {at, CU_AD_FORMAT_FLOAT, 1, 1024, 4096, 4096};
         CUDA_TEXTURE_DESC t{};
         CUtexObject made = 0;
         return CU(cuTexObjectCreate)(&made, &d, &t, nullptr);
       }},
      {"a tensor map of 16 MiB",
       [&] {
         CUtensorMap map;
         const cuuint64_t dims[2] = {1024, 4096}, strides[1] = {4096};
         const cuuint32_t box[2] = {64, 8}, steps[2] = {1, 1};
         return CU(cuTensorMapEncodeTiled)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(at), dims,
                                           strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                           CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
       }},
  };
  for (const auto& [name, call] : calls) {
    const CUresult result = call();
    const CUresult after = CU(cuCtxSynchronize)();
    say(std::string(name) + ", " + kind.name,
        text_of(result) + (after == CUDA_SUCCESS ? "" : ", then " + text_of(after)));
    if (after != CUDA_SUCCESS) return;
  }
}

// ---- addresses that were freed -------------------------------------------------------------------------------------

// The mapping of this process that holds the address, as the kernel lists it.
std::string mapping_of(CUdeviceptr at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long from = 0, to = 0;
    char rights[8] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %7s", &from, &to, rights) == 3 && at >= from && at < to)
      return std::string("mapped ") + rights + (line.find("nvidia") != std::string::npos ? " by the driver" : "");
  }
  return "not mapped";
}

// Returns whether ordinary mappings reuse [at, at + length), when the process requests as much memory a hundred times.
std::string reused(CUdeviceptr at, std::size_t length) {
  for (int i = 0; i < 100; ++i) {
    const CUdeviceptr here = number(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (here < at + length && at < here + length) return "yes, the mapping number " + std::to_string(i + 1);
  }
  return "no, of 100 mappings";
}

void freed(const char* name, CUdeviceptr at, std::size_t length, const std::function<CUresult()>& free) {
  const std::string before = mapping_of(at);
  const CUresult r = free();
  const std::string after = mapping_of(at);
  say(std::string(name) + ": before, freed, after, taken by a mapping",
      before + ", " + text_of(r) + ", " + after + ", " + reused(at, length));
}

void freed_addresses() {
  start();
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t step = 0;
  MUST(CU(cuMemGetAllocationGranularity)(&step, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const CUdeviceptr hints[] = {0, 0x7d0000000000ull};
  for (const CUdeviceptr hint : hints) {
    CUdeviceptr at = 0;
    MUST(CU(cuMemAddressReserve)(&at, 32 * step, 0, hint, 0));
    freed(hint == 0 ? "a reservation" : "a reservation by hint", at, 32 * step,
          [&] { return CU(cuMemAddressFree)(at, 32 * step); });
  }
  CUdeviceptr at = 0;
  MUST(CU(cuMemAddressReserve)(&at, 2 * step, 0, 0, 0));
  CUmemGenericAllocationHandle object = 0;
  MUST(CU(cuMemCreate)(&object, step, &prop, 0));
  MUST(CU(cuMemMap)(at, step, 0, object, 0));
  say("a reservation with a mapped piece, freed", CU(cuMemAddressFree)(at, 2 * step));
  say("its piece, unmapped", CU(cuMemUnmap)(at, step));
  say("then freed", CU(cuMemAddressFree)(at, 2 * step));
  for (const std::size_t length : {bytes, 64 * mib}) {
    MUST(CU(cuMemAlloc_v2)(&at, length));
    freed(length == bytes ? "cuMemAlloc of 64 KiB" : "cuMemAlloc of 64 MiB", at, length,
          [&] { return CU(cuMemFree_v2)(at); });
  }
  MUST(CU(cuMemAllocManaged)(&at, 64 * mib, CU_MEM_ATTACH_GLOBAL));
  freed("managed memory of 64 MiB", at, 64 * mib, [&] { return CU(cuMemFree_v2)(at); });
}

// Prints the address of a library's variable before and after a reset, and the driver's result for the old address.
void library_after_reset() {
  start();
  const char ptx[] =
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b32 value = 7;\n"
      ".visible .entry nothing() { ret; }\n";
  CUlibrary library = nullptr;
  MUST(CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr before = 0, after = 0;
  std::size_t size = 0;
  MUST(CU(cuLibraryGetGlobal)(&before, &size, library, "value"));
  say("a library's variable, before a reset: written", CU(cuMemsetD32_v2)(before, 9, 1));
  MUST(CU(cuDevicePrimaryCtxReset_v2)(device));
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
  MUST(CU(cuCtxSetCurrent)(context));
  int value = 0;
  say("after it: the old address read", CU(cuMemcpyDtoH_v2)(&value, before, 4));
  const CUresult found = CU(cuLibraryGetGlobal)(&after, &size, library, "value");
  say("looked up anew", text_of(found) + (after == before ? ", at the same address" : ", elsewhere"));
  say("the new address read", text_of(CU(cuMemcpyDtoH_v2)(&value, after, 4)) + ", " + std::to_string(value));
  CUcontext other = nullptr;
  MUST(CU(cuCtxCreate_v4)(&other, nullptr, 0, device));
  CUdeviceptr there = 0;
  say("in a context of the program's", text_of(CU(cuLibraryGetGlobal)(&there, &size, library, "value")) +
                                           (there == after ? ", at the same address" : ", elsewhere"));
  say("that context ended", CU(cuCtxDestroy_v2)(other));
  MUST(CU(cuCtxSetCurrent)(context));
  say("its variable's address read", CU(cuMemcpyDtoH_v2)(&value, there, 4));
}

}  // namespace

int main(int argc, char** argv) {
  if (!probe::open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  std::printf("| question | answer |\n|---|---|\n");
  for (const Kind& kind : kinds) {
    probe::ask_alone(std::string("rows, ") + kind.name, [&] { copies_of_rows(kind); });
    probe::ask_alone(std::string("texels, ") + kind.name, [&] { copies_of_texels(kind); });
    probe::ask_alone(std::string("calls, ") + kind.name, [&] { other_calls(kind); });
  }
  probe::ask_alone("freed addresses", freed_addresses);
  probe::ask_alone("a library's variable", library_after_reset);
  return 0;
}
