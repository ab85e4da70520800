// Asks a driver about kinds of memory that were not served at the time: pools, virtual memory management, managed
// memory under other pages, registered memory, the forms of CUDA 3. docs/design/022-memory-asked-first.md has the
// results of an H200.
// usage: probe_memory [LIBCUDA]
#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/probes/probe.h"

namespace {

constexpr std::size_t page = 4096, mib = 1 << 20;

// ---- what a question prints: a row of a table ----------------------------------------------------------------------

using probe::text_of;
std::string text_of(unsigned long long v) { return std::to_string(v); }
std::string text_of(unsigned long v) { return std::to_string(v); }
std::string text_of(int v) { return std::to_string(v); }
std::string text_of(unsigned v) { return std::to_string(v); }
std::string text_of(bool v) { return v ? "yes" : "no"; }
std::string hex(std::uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

void say(const std::string& what, const std::string& answer) {
  std::printf("| %s | %s |\n", what.c_str(), answer.c_str());
}
template <class T>
void say(const std::string& what, T answer) {
  say(what, text_of(answer));
}

// ---- what the questions use ----------------------------------------------------------------------------------------

const char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4 .b32 shared_word = 7;
.visible .entry add(.param .u64 at) {
  .reg .u64 %rd<3>; .reg .u32 %r<2>;
  ld.param.u64 %rd1, [at];
  cvta.to.global.u64 %rd2, %rd1;
  ld.volatile.global.u32 %r1, [%rd2];
  add.u32 %r1, %r1, 1;
  st.volatile.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry add_to_shared() {
  .reg .u32 %r<2>;
  ld.volatile.global.u32 %r1, [shared_word];
  add.u32 %r1, %r1, 1;
  st.volatile.global.u32 [shared_word], %r1;
  ret;
}
)";

CUdevice device = 0;
CUcontext context = nullptr;
CUmodule module = nullptr;
CUfunction add = nullptr, add_to_shared = nullptr;

void start() {
  MUST(CU(cuInit)(0));
  MUST(CU(cuDeviceGet)(&device, 0));
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
  MUST(CU(cuCtxSetCurrent)(context));
  MUST(CU(cuModuleLoadData)(&module, ptx));
  MUST(CU(cuModuleGetFunction)(&add, module, "add"));
  MUST(CU(cuModuleGetFunction)(&add_to_shared, module, "add_to_shared"));
}

CUresult launch(CUfunction function, CUdeviceptr at = 0, CUstream stream = nullptr) {
  void* parameters[] = {&at};
  return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, at == 0 ? nullptr : parameters, nullptr);
}
CUresult add_at(CUdeviceptr at) {
  const CUresult r = launch(add, at);
  return r == CUDA_SUCCESS ? CU(cuCtxSynchronize)() : r;
}

// Prints the attributes of a pointer up to `last`. For attributes that are addresses or handles, it prints what the
// number is known to be.
void say_pointer_attributes(const std::string& what, CUdeviceptr at, int last,
                            const std::vector<std::pair<std::uint64_t, const char*>>& known) {
  const auto is_pointer = [](int i) { return i == 1 || i == 3 || i == 4 || i == 7 || i == 11 || i == 17; };
  const auto name_of = [&](std::uint64_t value) {
    for (const auto& [number, name] : known)
      if (value == number) return std::string(name);
    return std::string(value == 0 ? "0" : "another number");
  };
  for (int i = 1; i <= last; ++i) {
    if (i == 5 || i == 6) continue;  // peer tokens and synchronous operations
    unsigned long long value[8] = {};
    const CUresult r = CU(cuPointerGetAttribute)(value, static_cast<CUpointer_attribute>(i), at);
    const std::string text = is_pointer(i) ? name_of(value[0]) : text_of(value[0]);
    say("pointer attribute " + text_of(i) + " of " + what, r == CUDA_SUCCESS ? text : text_of(r));
  }
}

template <class F>
double nanoseconds(int times, F f) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) f();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / times;
}
void say_cost(const std::string& what, double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f us", ns / 1e3);
  say(what, std::string(text));
}

// ---- managed memory, whose pages are replaced ----------------------------------------------------------------------

struct Arena {
  int fd = memfd_create("arena", 0);
  std::byte* at = nullptr;

  Arena() {
    if (fd < 0 || ftruncate(fd, 4 * mib) != 0) std::exit(1);
    at = static_cast<std::byte*>(mmap(nullptr, 4 * mib, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  }
};

// Ways in which a worker could map pages of the arena at the driver's managed range.
void* put_by_mmap(Arena& arena, void* where, std::size_t bytes) {
  return mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, arena.fd, 0);
}
void* put_by_mremap(Arena& arena, void* where,
                    std::size_t bytes) {  // a second mapping of the same pages, without a descriptor
  return mremap(arena.at, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, where);
}

using Put = void* (*)(Arena&, void*, std::size_t);

void replace(const std::string& how, CUdeviceptr start_of_range, std::size_t bytes, CUdeviceptr word,
             CUfunction function, Put put) {
  Arena arena;
  const auto offset = static_cast<std::size_t>(word - start_of_range);
  auto& seen = *reinterpret_cast<volatile unsigned*>(arena.at + offset);
  seen = 100;
  const bool placed = put(arena, reinterpret_cast<void*>(start_of_range), bytes) != MAP_FAILED;
  say(how + ": pages are placed", placed);
  const CUresult registered =
      CU(cuMemHostRegister_v2)(reinterpret_cast<void*>(start_of_range), bytes, CU_MEMHOSTREGISTER_DEVICEMAP);
  say(how + ": cuMemHostRegister there", registered);
  CUdeviceptr as_device = 0;
  say(how + ": cuMemHostGetDevicePointer",
      CU(cuMemHostGetDevicePointer_v2)(&as_device, reinterpret_cast<void*>(start_of_range), 0));
  say(how + ": the same address", as_device == start_of_range);
  CUresult ran = launch(function, function == add ? word : 0);
  if (ran == CUDA_SUCCESS) ran = CU(cuCtxSynchronize)();
  say(how + ": a kernel adds 1", ran);
  say(how + ": the arena's word, 100 before", seen);
  seen = 200;
  ran = launch(function, function == add ? word : 0);
  if (ran == CUDA_SUCCESS) ran = CU(cuCtxSynchronize)();
  say(how + ": after 200 was written and a kernel added 1", seen);
  unsigned type = 0, managed = 9;
  CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word);
  CU(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, word);
  say(how + ": memory type, managed", text_of(type) + ", " + text_of(managed));
  say(how + ": cuMemHostUnregister", CU(cuMemHostUnregister)(reinterpret_cast<void*>(start_of_range)));
  say(how + ": the context still works", CU(cuCtxSynchronize)());
}

void ask_managed_allocation(Put put, const std::string& how) {
  start();
  CUdeviceptr a = 0;
  MUST(CU(cuMemAllocManaged)(&a, 2 * mib, CU_MEM_ATTACH_GLOBAL));
  say(how + ": managed address", hex(a));
  replace(how, a, 2 * mib, a + 64, add, put);
  say(how + ": cuMemFree of the managed range", CU(cuMemFree)(a));
}

void ask_managed_variable(Put put, const std::string& how) {
  start();
  CUdeviceptr a = 0, base = 0;
  std::size_t bytes = 0, range = 0;
  MUST(CU(cuModuleGetGlobal)(&a, &bytes, module, "shared_word"));
  say(how + ": variable's address", hex(a));
  say(how + ": its value on the host", *reinterpret_cast<volatile unsigned*>(a));
  say(how + ": cuMemGetAddressRange", CU(cuMemGetAddressRange)(&base, &range, a));
  say(how + ": base, bytes", hex(base) + ", " + text_of(range));
  const CUdeviceptr first = a & ~(CUdeviceptr{page} - 1);
  replace(how, first, page, a, add_to_shared, put);
  say(how + ": cuModuleUnload", CU(cuModuleUnload)(module));
}

// ---- registered memory ---------------------------------------------------------------------------------------------

void ask_registered() {
  start();
  const auto map = [](int protection, int flags, int fd) {
    return static_cast<char*>(mmap(nullptr, 16 * page, protection, flags, fd, 0));
  };
  const auto ask = [](const std::string& what, void* at, std::size_t bytes, unsigned flags) {
    const CUresult r = CU(cuMemHostRegister_v2)(at, bytes, flags);
    say("cuMemHostRegister of " + what, r);
    if (r != CUDA_SUCCESS) return;
    CUdeviceptr there = 0;
    const CUresult got = CU(cuMemHostGetDevicePointer_v2)(&there, at, 0);
    say(what + ": its device pointer", got != CUDA_SUCCESS                          ? text_of(got)
                                       : there == reinterpret_cast<CUdeviceptr>(at) ? "the same"
                                                                                    : hex(there));
    say(what + ": cuMemHostUnregister", CU(cuMemHostUnregister)(at));
  };
  char on_the_stack[3 * page];
  std::memset(on_the_stack, 1, sizeof on_the_stack);
  const int file = open("/tmp/probe_memory_file", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, 16 * page) != 0) std::exit(1);
  char* anonymous = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  char* constant = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  ask("anonymous memory", anonymous, 4 * page, 0);
  ask("one byte", anonymous + 5, 1, 0);
  ask("anonymous memory, flags portable and mapped", anonymous, page, 3);
  ask("read-only memory", constant, page, 0);
  ask("read-only memory, flag read-only", constant, page, CU_MEMHOSTREGISTER_READ_ONLY);
  ask("anonymous memory, flag read-only", anonymous, page, CU_MEMHOSTREGISTER_READ_ONLY);
  ask("anonymous memory, flag I/O memory", anonymous, page, CU_MEMHOSTREGISTER_IOMEMORY);
  ask("shared anonymous memory", map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1), page, 0);
  ask("a file, shared", map(PROT_READ | PROT_WRITE, MAP_SHARED, file), page, 0);
  ask("a file, private", map(PROT_READ | PROT_WRITE, MAP_PRIVATE, file), page, 0);
  ask("the stack", on_the_stack, sizeof on_the_stack, 0);
  ask("memory without access", map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1), page, 0);
  say("page 0 and 1", CU(cuMemHostRegister_v2)(anonymous, 2 * page, 0));
  say("page 1 and 2, overlapping", CU(cuMemHostRegister_v2)(anonymous + page, 2 * page, 0));
  say("page 2 and 3, adjacent", CU(cuMemHostRegister_v2)(anonymous + 2 * page, 2 * page, 0));
  say("half of page 4", CU(cuMemHostRegister_v2)(anonymous + 4 * page, page / 2, 0));
  say("the other half of page 4", CU(cuMemHostRegister_v2)(anonymous + 4 * page + page / 2, page / 2, 0));
  CUdeviceptr d = 0;
  MUST(CU(cuMemAlloc)(&d, 8 * page));
  say("a copy over two registrations", CU(cuMemcpyHtoD)(d, anonymous, 4 * page));
  say("an asynchronous one", CU(cuMemcpyHtoDAsync)(d, anonymous, 4 * page, nullptr));
  say("a kernel in the first half of page 4", add_at(reinterpret_cast<CUdeviceptr>(anonymous + 4 * page)));
  say("munmap before cuMemHostUnregister", munmap(anonymous, 2 * page) == 0);
  say("then cuMemHostUnregister", CU(cuMemHostUnregister)(anonymous));
  unlink("/tmp/probe_memory_file");
}

// ---- pools ---------------------------------------------------------------------------------------------------------

CUmemPoolProps device_pool() {
  CUmemPoolProps p{};
  p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return p;
}

void say_attributes(const std::string& what, CUmemoryPool pool) {
  for (int i = 1; i <= 13; ++i) {
    unsigned long long value = ~0ull;
    const CUresult r = CU(cuMemPoolGetAttribute)(pool, static_cast<CUmemPool_attribute>(i), &value);
    const bool is_int = i <= 3;
    say(what + ", attribute " + text_of(i), r != CUDA_SUCCESS ? text_of(r)
                                            : is_int          ? text_of(static_cast<unsigned>(value))
                                                              : text_of(value));
  }
}

void ask_pool_attributes() {
  start();
  CUmemoryPool pool = nullptr, made = nullptr;
  MUST(CU(cuDeviceGetDefaultMemPool)(&pool, device));
  say_attributes("default pool", pool);
  CUdeviceptr a = 0;
  say("cuMemAllocAsync of 100", CU(cuMemAllocAsync)(&a, 100, nullptr));
  say("its address", hex(a));
  say_attributes("default pool in use", pool);
  CUmemPoolProps props = device_pool();
  say("cuMemPoolCreate", CU(cuMemPoolCreate)(&made, &props));
  say_attributes("new pool", made);
  for (int i = 1; i <= 9; ++i) {
    unsigned long long value = i == 4 ? 64 * mib : i == 7 || i == 9 ? 1 : 0;
    say("setting attribute " + text_of(i) + " to " + text_of(value),
        CU(cuMemPoolSetAttribute)(made, static_cast<CUmemPool_attribute>(i), &value));
    value = 12345;
    say("setting attribute " + text_of(i) + " to 12345",
        CU(cuMemPoolSetAttribute)(made, static_cast<CUmemPool_attribute>(i), &value));
  }
  say_attributes("new pool, set", made);
  say("cuMemPoolTrimTo 0", CU(cuMemPoolTrimTo)(made, 0));
}

CUmemoryPool any_pool() {
  start();
  CUmemoryPool pool = nullptr;
  MUST(CU(cuDeviceGetDefaultMemPool)(&pool, device));
  return pool;
}
void ask_null_value() {
  say("cuMemPoolSetAttribute null", CU(cuMemPoolSetAttribute)(any_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr));
}
void ask_set_of_no_pool() {
  start();
  unsigned long long value = 0;
  say("cuMemPoolSetAttribute of no pool",
      CU(cuMemPoolSetAttribute)(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
}
void ask_trim_of_no_pool() {
  start();
  say("cuMemPoolTrimTo of no pool", CU(cuMemPoolTrimTo)(nullptr, 0));
}

void ask_pool_properties() {
  start();
  CUmemoryPool pool = nullptr;
  const auto ask = [&](const std::string& what, const CUmemPoolProps& p) {
    pool = nullptr;
    say("cuMemPoolCreate, " + what, CU(cuMemPoolCreate)(&pool, &p));
    if (pool != nullptr) CU(cuMemPoolDestroy)(pool);
  };
  CUmemPoolProps p = device_pool();
  ask("of a device", p);
  p.location.id = 99;
  ask("of device 99", p);
  p = device_pool(), p.location.type = CU_MEM_LOCATION_TYPE_HOST;
  ask("of the host", p);
  p = device_pool(), p.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  ask("of host node 0", p);
  p = device_pool(), p.location.type = CU_MEM_LOCATION_TYPE_INVALID;
  ask("of no place", p);
  p = device_pool(), p.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
  ask("no type", p);
  p = device_pool(), p.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  ask("managed", p);
  p = device_pool(), p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ask("with file descriptors", p);
  p = device_pool(), p.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  ask("with fabric handles", p);
  p = device_pool(), p.handleTypes = CU_MEM_HANDLE_TYPE_WIN32;
  ask("with Windows handles", p);
  p = device_pool(), p.maxSize = 32 * mib;
  ask("at most 32 MiB", p);
  p = device_pool(), p.maxSize = std::size_t{1} << 60;
  ask("at most 2^60", p);
  p = device_pool(), p.usage = 1;
  ask("usage 1", p);
  p = device_pool(), p.reserved[0] = 1;
  ask("reserved 1", p);
  CUdeviceptr a = 0;
  p = device_pool(), p.maxSize = 32 * mib;
  MUST(CU(cuMemPoolCreate)(&pool, &p));
  say("of a pool of 32 MiB: 33 MiB", CU(cuMemAllocFromPoolAsync)(&a, 33 * mib, pool, nullptr));
  say("of a pool of 32 MiB: 32 MiB", CU(cuMemAllocFromPoolAsync)(&a, 32 * mib, pool, nullptr));
  say("1 more", CU(cuMemAllocFromPoolAsync)(&a, 1, pool, nullptr));
  say("of no pool", CU(cuMemAllocFromPoolAsync)(&a, 1, nullptr, nullptr));
}

void ask_pool_lives() {
  start();
  CUmemoryPool pool = nullptr, current = nullptr, was = nullptr;
  CUstream one = nullptr, other = nullptr;
  CUevent event = nullptr;
  CUdeviceptr a = 0, b = 0, base = 0;
  std::size_t bytes = 0;
  const CUmemPoolProps p = device_pool();
  MUST(CU(cuMemPoolCreate)(&pool, &p));
  MUST(CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING));
  MUST(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
  MUST(CU(cuEventCreate)(&event, 0));
  MUST(CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, one));
  say("cuMemGetAddressRange of 1000 bytes of a pool", CU(cuMemGetAddressRange)(&base, &bytes, a));
  say("base, bytes", text_of(base - a) + ", " + text_of(bytes));
  say_pointer_attributes("pool memory", a + 8, 18,
                         {{a + 8, "the address"}, {reinterpret_cast<std::uint64_t>(pool), "the pool"}});
  CUmemGenericAllocationHandle handle = 0;
  say("cuMemRetainAllocationHandle of pool memory",
      CU(cuMemRetainAllocationHandle)(&handle, reinterpret_cast<void*>(a)));
  say("a kernel on another stream, not ordered", launch(add, a, other));
  MUST(CU(cuStreamSynchronize)(other));
  say("cuMemFreeAsync inside", CU(cuMemFreeAsync)(a + 256, one));
  say("cuMemFreeAsync on another stream", CU(cuMemFreeAsync)(a, other));
  say("cuMemFreeAsync again", CU(cuMemFreeAsync)(a, other));
  say("cuPointerGetAttribute after it", CU(cuPointerGetAttribute)(&bytes, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  say("a copy to it", CU(cuMemsetD8)(a, 0, 16));
  MUST(CU(cuMemAllocFromPoolAsync)(&b, 1000, pool, other));
  say("the same address comes back on that stream", a == b);
  MUST(CU(cuMemFreeAsync)(b, other));
  MUST(CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, one));
  say("and on another stream, not ordered", a == b);
  MUST(CU(cuMemFreeAsync)(a, one));
  MUST(CU(cuStreamSynchronize)(one));
  say("cuMemFree of pool memory", [&] {
    MUST(CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, one));
    return CU(cuMemFree)(a);
  }());
  say("cuMemFreeAsync after cuMemFree", CU(cuMemFreeAsync)(a, one));
  say("cuDeviceSetMemPool", CU(cuDeviceSetMemPool)(device, pool));
  MUST(CU(cuDeviceGetMemPool)(&current, device));
  say("it is the device's", current == pool);
  CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  say("cuMemGetMemPool", CU(cuMemGetMemPool)(&was, &there, CU_MEM_ALLOCATION_TYPE_PINNED));
  say("it is that", was == pool);
  say("cuMemGetDefaultMemPool", CU(cuMemGetDefaultMemPool)(&was, &there, CU_MEM_ALLOCATION_TYPE_PINNED));
  there.type = CU_MEM_LOCATION_TYPE_HOST;
  say("cuMemGetDefaultMemPool of the host", CU(cuMemGetDefaultMemPool)(&was, &there, CU_MEM_ALLOCATION_TYPE_PINNED));
  say("cuDeviceSetMemPool null", CU(cuDeviceSetMemPool)(device, nullptr));
  CUmemAccess_flags flags{};
  there.type = CU_MEM_LOCATION_TYPE_DEVICE;
  say("cuMemPoolGetAccess", CU(cuMemPoolGetAccess)(&flags, pool, &there));
  say("flags", static_cast<int>(flags));
  CUmemAccessDesc access{there, CU_MEM_ACCESS_FLAGS_PROT_READ};
  say("cuMemPoolSetAccess read", CU(cuMemPoolSetAccess)(pool, &access, 1));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  say("cuMemPoolSetAccess none", CU(cuMemPoolSetAccess)(pool, &access, 1));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  say("cuMemPoolSetAccess read and write", CU(cuMemPoolSetAccess)(pool, &access, 1));
  say("cuMemPoolSetAccess count 0", CU(cuMemPoolSetAccess)(pool, &access, 0));
  int descriptor = -1;
  say("cuMemPoolExportToShareableHandle without a handle type",
      CU(cuMemPoolExportToShareableHandle)(&descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  MUST(CU(cuMemAllocFromPoolAsync)(&a, 1000, pool, one));
  say("cuMemPoolDestroy with an allocation, and current", CU(cuMemPoolDestroy)(pool));
  MUST(CU(cuDeviceGetMemPool)(&current, device));
  MUST(CU(cuDeviceGetDefaultMemPool)(&was, device));
  say("the device's pool is the default one", current == was);
  say("a kernel on that allocation", launch(add, a, one));
  say("an allocation of the destroyed pool", CU(cuMemAllocFromPoolAsync)(&b, 1000, pool, one));
  say("cuMemPoolTrimTo of the destroyed pool", CU(cuMemPoolTrimTo)(pool, 0));
  say("cuMemFreeAsync of that allocation", CU(cuMemFreeAsync)(a, one));
  say("cuStreamSynchronize", CU(cuStreamSynchronize)(one));
  MUST(CU(cuMemAllocAsync)(&a, 1000, one));
  say("cuStreamDestroy of the stream of an allocation", CU(cuStreamDestroy)(one));
  say("cuMemFreeAsync of it on another", CU(cuMemFreeAsync)(a, other));
  MUST(CU(cuMemAllocAsync)(&a, 1000, other));
  say("cuDevicePrimaryCtxReset with an allocation", CU(cuDevicePrimaryCtxReset)(device));
  say("cuMemFreeAsync after it", CU(cuMemFreeAsync)(a, nullptr));
  say("cuMemAllocAsync after it", CU(cuMemAllocAsync)(&a, 1000, nullptr));
}

void ask_pool_costs() {
  start();
  CUmemoryPool pool = nullptr;
  MUST(CU(cuDeviceGetDefaultMemPool)(&pool, device));
  unsigned long long keep = ~0ull;
  MUST(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  CUstream s = nullptr;
  MUST(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a = 0;
  const auto pair = [&] {
    CU(cuMemAllocAsync)(&a, mib, s);
    CU(cuMemFreeAsync)(a, s);
  };
  pair();
  CU(cuStreamSynchronize)(s);
  say_cost("cuMemAllocAsync and cuMemFreeAsync, 1 MiB, one after the other", nanoseconds(1000, pair));
  CU(cuStreamSynchronize)(s);
  std::vector<CUdeviceptr> many(1000);
  say_cost("cuMemAllocAsync, 1000 of 64 KiB", nanoseconds(1, [&] {
                                                for (auto& m : many) CU(cuMemAllocAsync)(&m, 65536, s);
                                              }) / 1000);
  say_cost("cuMemFreeAsync of these", nanoseconds(1, [&] {
                                        for (auto m : many) CU(cuMemFreeAsync)(m, s);
                                      }) / 1000);
  CU(cuStreamSynchronize)(s);
  say_cost("once more, cuMemAllocAsync", nanoseconds(1, [&] {
                                           for (auto& m : many) CU(cuMemAllocAsync)(&m, 65536, s);
                                         }) / 1000);
  say_cost("cuMemPoolGetAttribute", nanoseconds(1000, [&] {
             CU(cuMemPoolGetAttribute)
             (pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &keep);
           }));
}

// ---- virtual memory ------------------------------------------------------------------------------------------------

CUmemAllocationProp device_memory() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return p;
}

void ask_reservations() {
  start();
  CUmemAllocationProp p = device_memory();
  std::size_t granularity = 0;
  say("cuMemGetAllocationGranularity, minimum",
      CU(cuMemGetAllocationGranularity)(&granularity, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  say("it is", granularity);
  CU(cuMemGetAllocationGranularity)(&granularity, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  say("recommended", granularity);
  const auto ask = [&](const std::string& what, std::size_t bytes, std::size_t alignment, CUdeviceptr hint,
                       unsigned long long flags) {
    CUdeviceptr a = 0;
    const CUresult r = CU(cuMemAddressReserve)(&a, bytes, alignment, hint, flags);
    say("cuMemAddressReserve, " + what, r == CUDA_SUCCESS ? (hint == 0   ? hex(a)
                                                             : a == hint ? "at the hint"
                                                                         : hex(a))
                                                          : text_of(r));
    if (r == CUDA_SUCCESS) CU(cuMemAddressFree)(a, bytes);
  };
  ask("2 MiB", 2 * mib, 0, 0, 0);
  ask("32 GiB", 32768 * mib, 0, 0, 0);
  ask("16 TiB", std::size_t{1} << 44, 0, 0, 0);
  ask("0", 0, 0, 0, 0);
  ask("4 KiB", page, 0, 0, 0);
  ask("3 MiB", 3 * mib, 0, 0, 0);
  ask("flags 1", 2 * mib, 0, 0, 1);
  ask("alignment 3", 2 * mib, 3, 0, 0);
  ask("alignment 1 GiB", 2 * mib, std::size_t{1} << 30, 0, 0);
  for (const CUdeviceptr hint : {CUdeviceptr{0x1000}, CUdeviceptr{0x10000000}, CUdeviceptr{0x200000000},
                                 CUdeviceptr{0x7000000000}, CUdeviceptr{0x100000000000}, CUdeviceptr{0x100000100000},
                                 CUdeviceptr{0x600000000000}, CUdeviceptr{0x800000000000}})
    ask("2 MiB, hint " + hex(hint), 2 * mib, 0, hint, 0);
  for (const std::size_t size : {4 * mib, 20 * mib, 64 * mib, 1024 * mib, 32768 * mib})
    for (const CUdeviceptr hint :
         {CUdeviceptr{0x10000000}, CUdeviceptr{0x4000000000}, CUdeviceptr{0x100000000000}, CUdeviceptr{0x600000000000}})
      ask(text_of(size / mib) + " MiB, hint " + hex(hint), size, 0, hint, 0);
  CUdeviceptr kept = 0;
  for (const CUdeviceptr hint : {CUdeviceptr{0x100000000000}, CUdeviceptr{0x200000000000}}) {
    MUST(CU(cuMemAddressReserve)(&kept, 2 * mib, 0, hint, 0));
    say("2 MiB, hint " + hex(hint) + ", and kept", hex(kept));
  }
  void* mine = mmap(nullptr, 4 * mib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const auto inside = (reinterpret_cast<CUdeviceptr>(mine) + 2 * mib - 1) & ~(CUdeviceptr{2 * mib} - 1);
  ask("2 MiB, hint in the process's own mapping without access", 2 * mib, 0, inside, 0);
  mine = mmap(nullptr, 4 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ask("2 MiB, hint in the process's own memory", 2 * mib, 0,
      (reinterpret_cast<CUdeviceptr>(mine) + 2 * mib - 1) & ~(CUdeviceptr{2 * mib} - 1), 0);
  CUdeviceptr a = 0, b = 0;
  MUST(CU(cuMemAddressReserve)(&a, 4 * mib, 0, 0, 0));
  say("hint at a reservation", CU(cuMemAddressReserve)(&b, 2 * mib, 0, a, 0));
  say("it came elsewhere", b != a);
  unsigned type = 9;
  say("memory type of reserved addresses", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  std::size_t bytes = 0;
  say("cuMemGetAddressRange of them", CU(cuMemGetAddressRange)(&b, &bytes, a + mib));
  say("bytes", bytes);
  say("the CPU's page there",
      mincore(reinterpret_cast<void*>(a), page, reinterpret_cast<unsigned char*>(&type)) == 0 ? "mapped" : "none");
  say("cuMemAddressFree of half", CU(cuMemAddressFree)(a, 2 * mib));
  say("cuMemAddressFree", CU(cuMemAddressFree)(a, 4 * mib));
  say("cuMemAddressFree twice", CU(cuMemAddressFree)(a, 4 * mib));
}

void ask_memory_objects() {
  start();
  CUmemGenericAllocationHandle h = 0;
  const auto ask = [&](const std::string& what, std::size_t bytes, const CUmemAllocationProp& p,
                       unsigned long long flags = 0) {
    h = 0;
    const CUresult r = CU(cuMemCreate)(&h, bytes, &p, flags);
    say("cuMemCreate, " + what, r);
    if (r == CUDA_SUCCESS) CU(cuMemRelease)(h);
  };
  CUmemAllocationProp p = device_memory();
  ask("2 MiB", 2 * mib, p);
  ask("1 MiB", mib, p);
  ask("0", 0, p);
  ask("2^60", std::size_t{1} << 60, p);
  ask("flags 1", 2 * mib, p, 1);
  p.location.id = 99;
  ask("device 99", 2 * mib, p);
  p = device_memory(), p.location.type = CU_MEM_LOCATION_TYPE_HOST;
  ask("of the host", 2 * mib, p);
  p = device_memory(), p.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  ask("of host node 0", 2 * mib, p);
  p = device_memory(), p.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  ask("no type", 2 * mib, p);
  p = device_memory(), p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ask("with file descriptors", 2 * mib, p);
  p = device_memory(), p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  ask("with fabric handles", 2 * mib, p);
  p = device_memory(), p.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  ask("compressible", 2 * mib, p);
  p = device_memory(), p.allocFlags.gpuDirectRDMACapable = 1;
  ask("for RDMA", 2 * mib, p);
  p = device_memory(), p.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  ask("tile pool", 2 * mib, p);
  p = device_memory(), p.allocFlags.reserved[0] = 1;
  ask("reserved 1", 2 * mib, p);
}

void ask_mappings() {
  start();
  CUdeviceptr a = 0, base = 0;
  CUmemGenericAllocationHandle one = 0, two = 0, again = 0;
  const CUmemAllocationProp p = device_memory();
  CUmemAllocationProp got{};
  std::size_t bytes = 0;
  MUST(CU(cuMemAddressReserve)(&a, 8 * mib, 0, 0, 0));
  MUST(CU(cuMemCreate)(&one, 2 * mib, &p, 0));
  MUST(CU(cuMemCreate)(&two, 4 * mib, &p, 0));
  say("handles are small numbers", one < 1u << 20);
  say("cuMemMap outside a reservation", CU(cuMemMap)(a + (CUdeviceptr{1} << 40), 2 * mib, 0, one, 0));
  say("cuMemMap, offset 2 MiB", CU(cuMemMap)(a, 2 * mib, 2 * mib, two, 0));
  say("cuMemMap of more than there is", CU(cuMemMap)(a, 4 * mib, 0, one, 0));
  say("cuMemMap of less than there is", CU(cuMemMap)(a, 2 * mib, 0, two, 0));
  say("cuMemMap, size 1 MiB", CU(cuMemMap)(a, mib, 0, one, 0));
  say("cuMemMap, flags 1", CU(cuMemMap)(a, 2 * mib, 0, one, 1));
  say("cuMemMap", CU(cuMemMap)(a, 2 * mib, 0, one, 0));
  say("cuMemMap there again", CU(cuMemMap)(a, 2 * mib, 0, one, 0));
  say("cuMemMap elsewhere, a second time", CU(cuMemMap)(a + 6 * mib, 2 * mib, 0, one, 0));
  say("cuMemMap of two behind it", CU(cuMemMap)(a + 2 * mib, 4 * mib, 0, two, 0));
  say("a copy without access", CU(cuMemsetD8)(a, 1, 16));
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  unsigned long long flags = 9;
  say("cuMemGetAccess before", CU(cuMemGetAccess)(&flags, &access.location, a));
  say("flags", flags);
  say("cuMemSetAccess of half a mapping", CU(cuMemSetAccess)(a + 2 * mib, 2 * mib, &access, 1));
  say("cuMemSetAccess of a hole", CU(cuMemSetAccess)(a, 16 * mib, &access, 1));
  say("cuMemSetAccess count 0", CU(cuMemSetAccess)(a, 2 * mib, &access, 0));
  say("cuMemSetAccess of all four", CU(cuMemSetAccess)(a, 8 * mib, &access, 1));
  say("cuMemGetAccess after", CU(cuMemGetAccess)(&flags, &access.location, a + 5));
  say("flags", flags);
  say("a fill over two mappings", CU(cuMemsetD8)(a, 1, 4 * mib));
  say("a copy over two mappings", CU(cuMemcpyDtoD)(a + 4 * mib, a + mib, 2 * mib));
  say("a kernel there", add_at(a + 2 * mib));
  unsigned first = 0, last = 0;
  MUST(CU(cuMemsetD32)(a, 5, 1));
  MUST(CU(cuMemcpyDtoH)(&last, a + 6 * mib, 4));
  MUST(CU(cuMemcpyDtoH)(&first, a, 4));
  say("the same memory at two addresses", first == last);
  say("cuMemGetAddressRange of the second mapping", CU(cuMemGetAddressRange)(&base, &bytes, a + 3 * mib));
  say("offset in the reservation, bytes", text_of(base - a) + ", " + text_of(bytes));
  say_pointer_attributes(
      "a mapping", a + 3 * mib, 20,
      {{a + 3 * mib, "the address"}, {a + 2 * mib, "the mapping's start"}, {a, "the reservation's start"}});
  say("cuMemRetainAllocationHandle inside",
      CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(a + 3 * mib)));
  say("it is the same number", again == two);
  say("cuMemGetAllocationPropertiesFromHandle", CU(cuMemGetAllocationPropertiesFromHandle)(&got, two));
  say("they are those given", std::memcmp(&got, &p, sizeof p) == 0);
  say("cuMemRelease", CU(cuMemRelease)(two));
  say("cuMemRelease of what was retained", CU(cuMemRelease)(two));
  say("cuMemRelease once more", CU(cuMemRelease)(two));
  say("cuMemGetAllocationPropertiesFromHandle then", CU(cuMemGetAllocationPropertiesFromHandle)(&got, two));
  say("cuMemRetainAllocationHandle then",
      CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(a + 3 * mib)));
  say("a kernel on it", add_at(a + 2 * mib));
  say("cuMemFree of a mapping", CU(cuMemFree)(a));
  say("cuMemUnmap of half a mapping", CU(cuMemUnmap)(a + 2 * mib, 2 * mib));
  say("cuMemAddressFree while mapped", CU(cuMemAddressFree)(a, 8 * mib));
  say("cuMemUnmap of two mappings", CU(cuMemUnmap)(a, 6 * mib));
  say("cuMemUnmap twice", CU(cuMemUnmap)(a, 6 * mib));
  say("cuMemUnmap of the last", CU(cuMemUnmap)(a + 6 * mib, 2 * mib));
  say("a copy there", CU(cuMemsetD8)(a, 1, 16));
  say("cuMemMap again", CU(cuMemMap)(a + 4 * mib, 2 * mib, 0, one, 0));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  say("cuMemSetAccess read", CU(cuMemSetAccess)(a + 4 * mib, 2 * mib, &access, 1));
  say("a fill of it", CU(cuMemsetD8)(a + 4 * mib, 1, 16));
  say("a copy from it", CU(cuMemcpyDtoH)(&first, a + 4 * mib, 4));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  say("cuMemSetAccess none", CU(cuMemSetAccess)(a + 4 * mib, 2 * mib, &access, 1));
  access.location = {CU_MEM_LOCATION_TYPE_HOST, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  say("cuMemSetAccess of the host", CU(cuMemSetAccess)(a + 4 * mib, 2 * mib, &access, 1));
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {99}};
  say("cuMemSetAccess of device 99", CU(cuMemSetAccess)(a + 4 * mib, 2 * mib, &access, 1));
  say("cuDevicePrimaryCtxReset while mapped", CU(cuDevicePrimaryCtxReset)(device));
  say("cuMemUnmap after it", CU(cuMemUnmap)(a + 4 * mib, 2 * mib));
  say("cuMemRelease after it", CU(cuMemRelease)(one));
  say("cuMemAddressFree after it", CU(cuMemAddressFree)(a, 8 * mib));
}

void ask_mapping_costs() {
  start();
  constexpr int many = 200;
  CUdeviceptr a = 0;
  const CUmemAllocationProp p = device_memory();
  std::vector<CUmemGenericAllocationHandle> h(many);
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  int i = 0;
  say_cost("cuMemAddressReserve 32 GiB, and free", nanoseconds(many, [&] {
             MUST(CU(cuMemAddressReserve)(&a, 32768 * mib, 0, 0, 0));
             MUST(CU(cuMemAddressFree)(a, 32768 * mib));
           }));
  MUST(CU(cuMemAddressReserve)(&a, many * 2 * mib, 0, 0, 0));
  const auto at = [&] { return a + static_cast<CUdeviceptr>(i) * 2 * mib; };
  i = 0;
  say_cost("cuMemCreate 2 MiB", nanoseconds(many, [&] {
             MUST(CU(cuMemCreate)(&h[static_cast<std::size_t>(i)], 2 * mib, &p, 0));
             ++i;
           }));
  i = 0;
  say_cost("cuMemMap", nanoseconds(many, [&] {
             MUST(CU(cuMemMap)(at(), 2 * mib, 0, h[static_cast<std::size_t>(i)], 0));
             ++i;
           }));
  i = 0;
  say_cost("cuMemSetAccess", nanoseconds(many, [&] {
             MUST(CU(cuMemSetAccess)(at(), 2 * mib, &access, 1));
             ++i;
           }));
  unsigned long long flags = 0;
  say_cost("cuMemGetAccess", nanoseconds(many, [&] { MUST(CU(cuMemGetAccess)(&flags, &access.location, a)); }));
  i = 0;
  say_cost("cuMemUnmap", nanoseconds(many, [&] {
             MUST(CU(cuMemUnmap)(at(), 2 * mib));
             ++i;
           }));
  i = 0;
  say_cost("cuMemRelease", nanoseconds(many, [&] {
             MUST(CU(cuMemRelease)(h[static_cast<std::size_t>(i)]));
             ++i;
           }));
  std::size_t granularity = 0;
  say_cost("cuMemGetAllocationGranularity", nanoseconds(many, [&] {
             CU(cuMemGetAllocationGranularity)(&granularity, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
           }));
}

// ---- the forms of CUDA 3 -------------------------------------------------------------------------------------------

template <class F>
F* old(const char* name) {
  return reinterpret_cast<F*>(probe::symbol(name));
}

void ask_old_calls() {
  unsigned a = 0, bytes = 0, total = 0;
  CUdeviceptr high = 0;
  unsigned word = 77;
  say("cuMemGetInfo", old<CUresult(unsigned*, unsigned*)>("cuMemGetInfo")(&bytes, &total));
  say("free, all", text_of(bytes) + ", " + text_of(total));
  say("cuDeviceTotalMem", old<CUresult(unsigned*, CUdevice)>("cuDeviceTotalMem")(&bytes, device));
  say("it is", bytes);
  say("cuMemAlloc", old<CUresult(unsigned*, unsigned)>("cuMemAlloc")(&a, 4096));
  say("its address", hex(a));
  MUST(CU(cuMemAlloc)(&high, 4096));
  say("what cuMemAlloc_v2 gives", hex(high));
  say("cuMemGetAddressRange", old<CUresult(unsigned*, unsigned*, unsigned)>("cuMemGetAddressRange")(&word, &bytes, a));
  say("cuMemcpyHtoD", old<CUresult(unsigned, const void*, unsigned)>("cuMemcpyHtoD")(a, &word, 4));
  say("cuMemcpyHtoD to 0", old<CUresult(unsigned, const void*, unsigned)>("cuMemcpyHtoD")(0, &word, 4));
  say("cuMemcpyHtoD of 0 bytes", old<CUresult(unsigned, const void*, unsigned)>("cuMemcpyHtoD")(0, &word, 0));
  say("cuMemsetD32", old<CUresult(unsigned, unsigned, unsigned)>("cuMemsetD32")(a, 1, 1));
  say("cuModuleGetGlobal", old<CUresult(unsigned*, unsigned*, CUmodule, const char*)>("cuModuleGetGlobal")(
                               &a, &bytes, module, "shared_word"));
  say("cuModuleGetGlobal, only its bytes", old<CUresult(unsigned*, unsigned*, CUmodule, const char*)>(
                                               "cuModuleGetGlobal")(nullptr, &bytes, module, "shared_word"));
  say("cuMemFree", old<CUresult(unsigned)>("cuMemFree")(a));
  say("cuMemFree of 0", old<CUresult(unsigned)>("cuMemFree")(0));
  void* p = nullptr;
  say("cuMemAllocHost", old<CUresult(void**, unsigned)>("cuMemAllocHost")(&p, 4096));
  say("cuMemHostGetDevicePointer", old<CUresult(unsigned*, void*, unsigned)>("cuMemHostGetDevicePointer")(&a, p, 0));
}

void ask_old_forms_in_a_primary_context() {
  start();
  ask_old_calls();
}

// Runs in a context of the old kind.
void ask_old_forms() {
  MUST(CU(cuInit)(0));
  MUST(CU(cuDeviceGet)(&device, 0));
  say("cuCtxCreate", old<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate")(&context, 0, device));
  unsigned version = 0;
  say("cuCtxGetApiVersion", CU(cuCtxGetApiVersion)(context, &version));
  say("it is", version);
  MUST(CU(cuModuleLoadData)(&module, ptx));
  ask_old_calls();
  say("cuCtxDestroy", old<CUresult(CUcontext)>("cuCtxDestroy")(context));
}

}  // namespace

int main(int argc, char** argv) {
  if (!probe::open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  const auto table = [](const char* title, const std::function<void()>& ask) {
    std::printf("\n## %s\n\n| question | answer |\n|---|---|\n", title);
    probe::ask_alone(title, ask);
  };
  table("managed range, replaced by mmap", [] { ask_managed_allocation(put_by_mmap, "mmap"); });
  table("managed range, replaced by mremap", [] { ask_managed_allocation(put_by_mremap, "mremap"); });
  table("managed variable, replaced by mmap", [] { ask_managed_variable(put_by_mmap, "mmap"); });
  table("managed variable, replaced by mremap", [] { ask_managed_variable(put_by_mremap, "mremap"); });
  table("registered memory", ask_registered);
  table("attributes of pools", ask_pool_attributes);
  table("a null value", ask_null_value);
  table("an attribute of no pool", ask_set_of_no_pool);
  table("trimming no pool", ask_trim_of_no_pool);
  table("properties of pools", ask_pool_properties);
  table("the lives of pools", ask_pool_lives);
  table("costs of pools", ask_pool_costs);
  table("reservations", ask_reservations);
  table("memory objects", ask_memory_objects);
  table("mappings", ask_mappings);
  table("costs of mappings", ask_mapping_costs);
  table("the forms of CUDA 3 in a primary context", ask_old_forms_in_a_primary_context);
  table("the forms of CUDA 3", ask_old_forms);
  return 0;
}
