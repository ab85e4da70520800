// Objects of one context that are used while another context is current. The program uses the driver API, with a
// context on the first device and one on the last device, which may be the same device. It looks up functions and
// variables, puts work into streams, allocates memory in stream order, copies and frees it. Memory that is requested
// for a device must be on that device. Then one context ends, and objects that were found while it was current must
// still work.
#include <string>

#include "check.h"

namespace {

constexpr const char* text = R"(.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 total;
.visible .entry add(.param .u64 to, .param .u32 count, .param .u32 value)
{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [value];
  mov.u32 %r3, %tid.x;
  setp.ge.u32 %p, %r3, %r1;
  @%p bra done;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r4, [%rd3];
  add.u32 %r4, %r4, %r2;
  st.global.u32 [%rd3], %r4;
  mov.u64 %rd2, total;
  atom.global.add.u32 %r4, [%rd2], %r2;
done:
  ret;
}
)";

constexpr unsigned threads = 256;

CUcontext make_context(CUdevice device) {
  CUcontext context = nullptr;
  CHECK_DRIVER(cuCtxCreate(&context, nullptr, 0, device));
  return context;
}

// The objects of a context, created while the context is current.
struct Own {
  CUdevice device;
  CUcontext context;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  explicit Own(CUdevice on) : device(on), context(make_context(on)) {
    CHECK_DRIVER(cuModuleLoadData(&module, text));
    CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(cuMemAlloc(&memory, threads * sizeof(unsigned)));
  }
};

// Objects found in one context's module, and memory allocated in its stream's order, while the other context is
// current.
struct Found {
  CUfunction add = nullptr, listed = nullptr;
  CUdeviceptr total = 0, block = 0;
  Found(const Own& one, CUcontext other) {
    CHECK_DRIVER(cuCtxSetCurrent(other));
    size_t bytes = 0;
    CHECK_DRIVER(cuModuleGetFunction(&add, one.module, "add"));
    CHECK_DRIVER(cuModuleEnumerateFunctions(&listed, 1, one.module));
    CHECK_DRIVER(cuModuleGetGlobal(&total, &bytes, one.module, "total"));
    CHECK_THAT(bytes == sizeof(unsigned), "total has %zu bytes.", bytes);
    CHECK_DRIVER(cuMemAllocAsync(&block, threads * sizeof(unsigned), one.stream));
    CHECK_DRIVER(cuStreamSynchronize(one.stream));
  }
};

void check_place(const Own& one, CUdeviceptr at, const char* what) {
  int device = -1;
  CHECK_DRIVER(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at));
  CHECK_THAT(device == one.device, "%s lies on device %d, not %d.", what, device, one.device);
}

// Requests memory for one device while a context of another device is current.
void check_memory_by_device(const Own& one, const Own& other) {
  CHECK_DRIVER(cuCtxSetCurrent(other.context));
  CUmemoryPool pool = nullptr;
  CUdeviceptr pooled = 0, mapped = 0;
  CHECK_DRIVER(cuDeviceGetDefaultMemPool(&pool, one.device));
  CHECK_DRIVER(cuMemAllocFromPoolAsync(&pooled, 256, pool, other.stream));
  check_place(one, pooled, "Memory of its pool");
  CHECK_DRIVER(cuMemFreeAsync(pooled, other.stream));

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = one.device;
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle object = 0;
  size_t bytes = 0;
  CHECK_DRIVER(cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK_DRIVER(cuMemCreate(&object, bytes, &properties, 0));
  CHECK_DRIVER(cuMemAddressReserve(&mapped, bytes, 0, 0, 0));
  CHECK_DRIVER(cuMemMap(mapped, bytes, 0, object, 0));
  CHECK_DRIVER(cuMemSetAccess(mapped, bytes, &access, 1));
  check_place(one, mapped, "A memory object");
  CHECK_DRIVER(cuMemUnmap(mapped, bytes));
  CHECK_DRIVER(cuMemAddressFree(mapped, bytes));
  CHECK_DRIVER(cuMemRelease(object));
}

// Fills a block in stream order, and a variable, whatever context is current. Memory of a pool can be filled in this
// state, but it cannot be copied while another device's context is current.
void fill(const Own& one, const Found& found, unsigned value) {
  CHECK_DRIVER(cuMemsetD32Async(found.block, value, threads, one.stream));
  CHECK_DRIVER(cuMemcpyHtoD(found.total, &value, sizeof value));
  CUcontext current = nullptr;
  CUdevice device = 0;
  CHECK_DRIVER(cuCtxGetCurrent(&current));
  CHECK_DRIVER(cuCtxGetDevice(&device));
  if (device != one.device) {
    const CUresult refused = cuMemcpyDtoDAsync(one.memory, found.block, threads * sizeof(unsigned), one.stream);
    const CUresult told = refused == CUDA_SUCCESS ? cuStreamSynchronize(one.stream) : refused;
    CHECK_THAT(told == CUDA_ERROR_INVALID_VALUE, "The copy of another device's pool gave %d.", told);
    CHECK_DRIVER(cuCtxSetCurrent(one.context));
  }
  CHECK_DRIVER(cuMemcpyDtoDAsync(one.memory, found.block, threads * sizeof(unsigned), one.stream));
  CHECK_DRIVER(cuCtxSetCurrent(current));
  CHECK_DRIVER(cuStreamSynchronize(one.stream));
}

void add(const Own& one, CUfunction function, unsigned value) {
  CUdeviceptr to = one.memory;
  unsigned count = threads;
  void* parameters[] = {&to, &count, &value};
  CHECK_DRIVER(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, one.stream, parameters, nullptr));
}

unsigned long long result(const Own& one, const Found& found, unsigned each, unsigned total) {
  CHECK_DRIVER(cuStreamSynchronize(one.stream));
  std::vector<unsigned> seen(threads + 1);
  CHECK_DRIVER(cuMemcpyDtoH(seen.data(), one.memory, threads * sizeof(unsigned)));
  CHECK_DRIVER(cuMemcpyDtoH(&seen[threads], found.total, sizeof(unsigned)));
  for (unsigned i = 0; i < threads; ++i) CHECK_THAT(seen[i] == each, "Word %u is %u, not %u.", i, seen[i], each);
  CHECK_THAT(seen[threads] == total, "total is %u, not %u.", seen[threads], total);
  return check::checksum(seen);
}

void round(const Own& one, const Found& found, CUcontext other, unsigned value) {
  CHECK_DRIVER(cuCtxSetCurrent(other));
  fill(one, found, value);
  CHECK_DRIVER(cuCtxSetCurrent(one.context));
  add(one, found.add, 1);
  add(one, found.listed, 2);
  CHECK_DRIVER(cuCtxSetCurrent(other));
  std::printf("%u: %016llx\n", value, result(one, found, value + 3, value + 3 * threads));
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 3, wanted = 1;
  check::parse(argc, argv, "other_context", "what belongs to one context, used while another one is current",
               {{"--rounds", "rounds", &rounds, 1, 1000}, {"--devices", "devices that must be there", &wanted, 1, 2}});
  int devices = 0;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGetCount(&devices));
  CHECK_THAT(devices >= wanted, "The program is to use %ld devices, and there are %d.", wanted, devices);
  const Own first(0), last(devices - 1);
  const Found of_first(first, last.context), of_last(last, first.context);
  for (const CUdeviceptr at : {first.memory, of_first.total, of_first.block})
    check_place(first, at, "Memory of the first");
  for (const CUdeviceptr at : {last.memory, of_last.total, of_last.block}) check_place(last, at, "Memory of the last");
  check_memory_by_device(first, last);
  check_memory_by_device(last, first);
  for (unsigned i = 0; i < static_cast<unsigned>(rounds); ++i) {
    round(first, of_first, last.context, 10 * i);
    round(last, of_last, first.context, 10 * i + 5);
  }
  CHECK_DRIVER(cuCtxSetCurrent(first.context));
  CHECK_DRIVER(cuMemFreeAsync(of_last.block, last.stream));
  CHECK_DRIVER(cuCtxDestroy(last.context));
  round(first, of_first, first.context, 77);
  CHECK_DRIVER(cuMemFreeAsync(of_first.block, first.stream));
  CHECK_DRIVER(cuModuleUnload(first.module));
  CHECK_DRIVER(cuCtxDestroy(first.context));
  std::printf("other_context passed\n");
}
