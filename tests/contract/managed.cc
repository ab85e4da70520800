// Cases for managed memory: advice, and queries about the advice.
#include "tests/contract/suite.h"

#include <cstring>
#include <string>

namespace contract {
namespace {

constexpr std::size_t page = 4096, size = 64 * page;
constexpr CUmemLocation on_device{CU_MEM_LOCATION_TYPE_DEVICE, device}, on_host{CU_MEM_LOCATION_TYPE_HOST, 0};

constexpr auto read_mostly = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, preferred = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
               accessed_by = CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
               prefetched = CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;

CUdeviceptr managed(std::size_t bytes = size) {
  CUdeviceptr a = 0;
  CU(cuMemAllocManaged)(&a, bytes, CU_MEM_ATTACH_GLOBAL);
  return a;
}

CUmemLocation place_of(int type, int id = 0) { return {odd<CUmemLocationType>(type), id}; }

int value_of(CUmem_range_attribute attribute, CUdeviceptr at, std::size_t bytes = size) {
  int value = 77;
  CU(cuMemRangeGetAttribute)(&value, sizeof value, attribute, at, bytes);
  return value;
}

// The host reads the word itself, which faults if there is no such memory.
void expect_word(const std::string& what, const volatile unsigned* word, unsigned value) {
  show_guarded(what, [=] { return *word == value ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN; });
}
void write(volatile unsigned* word, unsigned value) {
  show_guarded("the host writes " + std::to_string(value), [=] {
    *word = value;
    return CUDA_SUCCESS;
  });
}

void show_range(const std::string& what, CUdeviceptr at, std::size_t bytes = size) {
  for (const int i : {1, 2, 3, 4, 5, 7})
    show(what + ", attribute " + std::to_string(i), value_of(odd<CUmem_range_attribute>(i), at, bytes));
}

GROUP(managed_allocations, InContext) {
  CUdeviceptr a = 0, start = 0;
  std::size_t bytes = 0;
  for (const unsigned flags : {0U, 1U, 2U, 3U, 4U, 8U})
    show("cuMemAllocManaged flags " + std::to_string(flags), CU(cuMemAllocManaged)(&a, 100, flags));
  show("cuMemAllocManaged 0", CU(cuMemAllocManaged)(&a, 0, CU_MEM_ATTACH_GLOBAL));
  show("cuMemAllocManaged null", CU(cuMemAllocManaged)(nullptr, 100, CU_MEM_ATTACH_GLOBAL));
  show("cuMemAllocManaged 2^60", CU(cuMemAllocManaged)(&a, std::size_t{1} << 60, CU_MEM_ATTACH_GLOBAL));
  a = managed(100);
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &bytes, a + 50));
  show("its offset", static_cast<long long>(a - start));
  show("its size", static_cast<long long>(bytes));
  show("cuMemFree inside", CU(cuMemFree_v2)(a + 16));
  show("cuMemFreeHost", CU(cuMemFreeHost)(reinterpret_cast<void*>(a)));
  show("cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer_v2)(&start, reinterpret_cast<void*>(a), 0));
  show("cuMemHostGetFlags", CU(cuMemHostGetFlags)(reinterpret_cast<unsigned*>(&bytes), reinterpret_cast<void*>(a)));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, nullptr));
  show("after that", CU(cuCtxSynchronize)());
  a = managed(100);
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("cuMemFree twice", CU(cuMemFree_v2)(a));
}

// The host and kernels see each other's writes.
GROUP(managed_use, InContext) {
  const CUfunction function = function_of(load_module(), "store");
  CUdeviceptr a = managed();
  auto* word = reinterpret_cast<unsigned*>(a);
  unsigned value = 5, seen = 0;
  void* parameters[] = {&a, &value};
  write(word, 3);
  show("a copy of what the host has written", CU(cuMemcpyDtoH_v2)(&seen, a, 4));
  show("the word", seen);
  show("a kernel", CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("the word is 5", word, 5);
  show("a fill", CU(cuMemsetD32_v2)(a, 9, 4));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("the last word is 9", word + 3, 9);
  show("a fill beyond its end", CU(cuMemsetD8_v2)(a, 1, size + 1));
  show("a copy as of the host", CU(cuMemcpyHtoD_v2)(a + 16, word, 16));
  show("cuMemcpy", CU(cuMemcpy)(a + 32, a, 16));
}

GROUP(managed_pointers, InContext) {
  const CUdeviceptr a = managed(100);
  for (int i = 1; i <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; ++i) {
    unsigned long long value[8] = {};
    show("attribute " + std::to_string(i), CU(cuPointerGetAttribute)(value, odd<CUpointer_attribute>(i), a + 8));
    const bool plain = i == 2 || i == 8 || i == 9 || i == 10 || i == 12 || i == 13 || i == 14 || i == 16 || i == 17;
    if (plain) show("it is", static_cast<long long>(value[0]));
    if (i == 3 || i == 4) show_flag("it is the address", value[0] == a + 8);
  }
}

GROUP(managed_attributes, InContext) {
  const CUdeviceptr a = managed();
  int values[4] = {77, 77, 77, 77};
  for (int i = 0; i <= 9; ++i)
    show("attribute " + std::to_string(i),
         CU(cuMemRangeGetAttribute)(values, 4, odd<CUmem_range_attribute>(i), a, size));
  show_range("fresh", a);
  for (const std::size_t bytes : {0, 1, 2, 3, 5, 8, 12}) {
    show("read mostly, " + std::to_string(bytes) + " bytes",
         CU(cuMemRangeGetAttribute)(values, bytes, read_mostly, a, size));
    show("accessed by, " + std::to_string(bytes) + " bytes",
         CU(cuMemRangeGetAttribute)(values, bytes, accessed_by, a, size));
    show("type of the preferred place, " + std::to_string(bytes) + " bytes",
         CU(cuMemRangeGetAttribute)(values, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, a, size));
  }
  CUdeviceptr plain = 0;
  CU(cuMemAlloc_v2)(&plain, size);
  int on_the_stack = 0;
  show("of plain memory", CU(cuMemRangeGetAttribute)(values, 4, preferred, plain, size));
  show("of the stack", CU(cuMemRangeGetAttribute)(values, 4, preferred, address_of(&on_the_stack), 4));
  show("of null", CU(cuMemRangeGetAttribute)(values, 4, preferred, 0, 4));
  show("of nothing", CU(cuMemRangeGetAttribute)(values, 4, preferred, a, 0));
  show("of more than there is", CU(cuMemRangeGetAttribute)(values, 4, preferred, a, 1024 * size));
  show("of one byte inside", CU(cuMemRangeGetAttribute)(values, 4, preferred, a + 100, 1));
  show("into null", CU(cuMemRangeGetAttribute)(nullptr, 4, preferred, a, size));
}

GROUP(managed_several_attributes, InContext) {
  const CUdeviceptr a = managed();
  int first = 77, third[3] = {77, 77, 77};
  void* data[] = {&first, third};
  std::size_t sizes[] = {sizeof first, sizeof third};
  CUmem_range_attribute attributes[] = {read_mostly, accessed_by};
  CU(cuMemAdvise_v2)(a, size, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device);
  CU(cuMemAdvise_v2)(a, size, CU_MEM_ADVISE_SET_ACCESSED_BY, on_device);
  show("cuMemRangeGetAttributes", CU(cuMemRangeGetAttributes)(data, sizes, attributes, 2, a, size));
  show("read mostly", first);
  for (const int number : third) show("accessed by", number);
  show("none", CU(cuMemRangeGetAttributes)(data, sizes, attributes, 0, a, size));
  sizes[1] = 5;
  show("one of a wrong size", CU(cuMemRangeGetAttributes)(data, sizes, attributes, 2, a, size));
  sizes[1] = 4;
  attributes[1] = odd<CUmem_range_attribute>(99);
  show("one that there is not", CU(cuMemRangeGetAttributes)(data, sizes, attributes, 2, a, size));
  show("of nothing", CU(cuMemRangeGetAttributes)(data, sizes, attributes, 1, a, 0));
  show("of null", CU(cuMemRangeGetAttributes)(data, sizes, attributes, 1, 0, size));
  show("no data", CU(cuMemRangeGetAttributes)(nullptr, sizes, attributes, 1, a, size));
  show("no sizes", CU(cuMemRangeGetAttributes)(data, nullptr, attributes, 1, a, size));
  show("no attributes", CU(cuMemRangeGetAttributes)(data, sizes, nullptr, 1, a, size));
}

GROUP(managed_advice, InContext) {
  const CUdeviceptr a = managed();
  for (int advice = 0; advice <= 7; ++advice) {
    show("advice " + std::to_string(advice) + ", device", CU(cuMemAdvise)(a, size, odd<CUmem_advise>(advice), device));
    show_range("then", a);
    show("advice " + std::to_string(advice) + ", the host",
         CU(cuMemAdvise)(a, size, odd<CUmem_advise>(advice), CU_DEVICE_CPU));
    show_range("then", a);
  }
}

GROUP(managed_advice_places, InContext) {
  const CUdeviceptr a = managed();
  for (int advice = 1; advice <= 6; ++advice) {
    const std::string name = "advice " + std::to_string(advice);
    for (const int number : {99, -1, -2, -3})
      show(name + ", device " + std::to_string(number), CU(cuMemAdvise)(a, size, odd<CUmem_advise>(advice), number));
    for (const int place : {0, 1, 2, 3, 4, 9}) {
      const CUresult result = CU(cuMemAdvise_v2)(a, size, odd<CUmem_advise>(advice), place_of(place));
      show(name + ", place " + std::to_string(place), result);
      show("preferred", value_of(preferred, a));
      show("type of that", value_of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, a));
      show("accessed by", value_of(accessed_by, a));
    }
    show(name + ", device 99, new form", CU(cuMemAdvise_v2)(a, size, odd<CUmem_advise>(advice), place_of(1, 99)));
    show(name + ", host node 99", CU(cuMemAdvise_v2)(a, size, odd<CUmem_advise>(advice), place_of(3, 99)));
  }
}

GROUP(managed_advice_ranges, InContext) {
  const CUdeviceptr a = managed();
  constexpr auto advice = CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
  CUdeviceptr plain = 0;
  int on_the_stack = 0;
  CU(cuMemAlloc_v2)(&plain, size);
  show("of a part", CU(cuMemAdvise_v2)(a + 16 * page, 16 * page, advice, on_device));
  show("preferred of the part", value_of(preferred, a + 16 * page, 16 * page));
  show("preferred of a page in it", value_of(preferred, a + 20 * page, page));
  show("preferred of the page before", value_of(preferred, a + 15 * page, page));
  show("preferred of all", value_of(preferred, a));
  show("of the rest, the host", CU(cuMemAdvise_v2)(a + 32 * page, 32 * page, advice, on_host));
  show("preferred of both", value_of(preferred, a + 16 * page, 48 * page));
  show("preferred of the rest", value_of(preferred, a + 32 * page, 32 * page));
  show("type of both", value_of(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, a + 16 * page, 48 * page));
  show("of one byte", CU(cuMemAdvise_v2)(a + 100, 1, advice, on_device));
  show("preferred of its page", value_of(preferred, a, page));
  show("of all, read mostly", CU(cuMemAdvise_v2)(a, size, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device));
  show("of a part, not", CU(cuMemAdvise_v2)(a, page, CU_MEM_ADVISE_UNSET_READ_MOSTLY, on_device));
  show("read mostly, all", value_of(read_mostly, a));
  show("read mostly, the rest", value_of(read_mostly, a + page, size - page));
  show("of nothing", CU(cuMemAdvise_v2)(a, 0, advice, on_device));
  show("of more than there is", CU(cuMemAdvise_v2)(a, 1024 * size, advice, on_device));
  show("of plain memory", CU(cuMemAdvise_v2)(plain, size, advice, on_device));
  show("of the stack", CU(cuMemAdvise_v2)(address_of(&on_the_stack), 4, advice, on_device));
  show("of null", CU(cuMemAdvise_v2)(0, page, advice, on_device));
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("of freed memory", CU(cuMemAdvise_v2)(a, size, advice, on_device));
  show_range("of new memory", managed());
}

GROUP(managed_prefetch, InContext) {
  const CUdeviceptr a = managed();
  CUdeviceptr plain = 0;
  CUstream stream = nullptr;
  CU(cuMemAlloc_v2)(&plain, size);
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  for (const int number : {0, -1, -2, 99}) {
    show("cuMemPrefetchAsync to " + std::to_string(number), CU(cuMemPrefetchAsync)(a, size, number, stream));
    show_range("then", a);
  }
  for (const int place : {0, 1, 2, 3, 4, 9}) {
    show("cuMemPrefetchAsync_v2, place " + std::to_string(place),
         CU(cuMemPrefetchAsync_v2)(a, size, place_of(place), 0, stream));
    show_range("then", a);
  }
  show("of a part", CU(cuMemPrefetchAsync_v2)(a + page, page, on_device, 0, stream));
  show("prefetched, the part", value_of(prefetched, a + page, page));
  show("prefetched, all", value_of(prefetched, a));
  show("to device 99, new form", CU(cuMemPrefetchAsync_v2)(a, size, place_of(1, 99), 0, stream));
  show("to host node 99", CU(cuMemPrefetchAsync_v2)(a, size, place_of(3, 99), 0, stream));
  show("flags 1", CU(cuMemPrefetchAsync_v2)(a, size, on_device, 1, stream));
  show("of nothing", CU(cuMemPrefetchAsync_v2)(a, 0, on_device, 0, stream));
  show("of more than there is", CU(cuMemPrefetchAsync_v2)(a, 1024 * size, on_device, 0, stream));
  show("of plain memory", CU(cuMemPrefetchAsync_v2)(plain, size, on_device, 0, stream));
  show("of null", CU(cuMemPrefetchAsync_v2)(0, size, on_device, 0, stream));
  show("in the NULL stream", CU(cuMemPrefetchAsync_v2)(a, size, on_host, 0, nullptr));
  show("cuMemPrefetchAsync_ptsz", CU(cuMemPrefetchAsync_ptsz)(a, size, device, nullptr));
  show("cuMemPrefetchAsync_v2_ptsz", CU(cuMemPrefetchAsync_v2_ptsz)(a, size, on_host, 0, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(managed_batches, InContext) {
  const CUdeviceptr a = managed(), b = managed();
  CUdeviceptr plain = 0;
  CUstream stream = nullptr;
  CU(cuMemAlloc_v2)(&plain, size);
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr starts[] = {a, a + 8 * page, b};
  std::size_t sizes[] = {8 * page, 56 * page, size}, first[] = {0, 2};
  CUmemLocation places[] = {on_device, on_host};
  const auto prefetch = [&](std::size_t count, std::size_t place_count, unsigned long long flags, CUstream s) {
    return CU(cuMemPrefetchBatchAsync)(starts, sizes, count, places, first, place_count, flags, s);
  };
  show("cuMemPrefetchBatchAsync", prefetch(3, 2, 0, stream));
  show("prefetched, the first two", value_of(prefetched, a));
  show("prefetched, the third", value_of(prefetched, b));
  show("in the NULL stream", prefetch(3, 2, 0, nullptr));
  show("in the legacy stream", prefetch(3, 2, 0, CU_STREAM_LEGACY));
  show("flags 1", prefetch(3, 2, 1, stream));
  show("no ranges", prefetch(0, 0, 0, stream));
  show("no places", prefetch(3, 0, 0, stream));
  show("more places than ranges", prefetch(1, 2, 0, stream));
  first[1] = 3;
  show("a place behind the ranges", prefetch(3, 2, 0, stream));
  first[1] = 0;
  show("two places at once", prefetch(3, 2, 0, stream));
  first[0] = 1, first[1] = 2;
  show("no place for the first", prefetch(3, 2, 0, stream));
  first[0] = 0;
  places[1] = place_of(1, 99);
  show("device 99", prefetch(3, 2, 0, stream));
  places[1] = place_of(0);
  show("no place", prefetch(3, 2, 0, stream));
  places[1] = on_device;
  sizes[2] = 0;
  show("a range of nothing", prefetch(3, 2, 0, stream));
  sizes[2] = size, starts[2] = plain;
  show("plain memory", prefetch(3, 2, 0, stream));
  starts[2] = 0;
  show("null", prefetch(3, 2, 0, stream));
  starts[2] = b;
  show("cuMemDiscardBatchAsync", CU(cuMemDiscardBatchAsync)(starts, sizes, 3, 0, stream));
  show("cuMemDiscardBatchAsync in the NULL stream", CU(cuMemDiscardBatchAsync)(starts, sizes, 3, 0, nullptr));
  show("cuMemDiscardBatchAsync flags 1", CU(cuMemDiscardBatchAsync)(starts, sizes, 3, 1, stream));
  show("cuMemDiscardBatchAsync of none", CU(cuMemDiscardBatchAsync)(starts, sizes, 0, 0, stream));
  show("cuMemDiscardAndPrefetchBatchAsync",
       CU(cuMemDiscardAndPrefetchBatchAsync)(starts, sizes, 3, places, first, 2, 0, stream));
  show("prefetched, the third", value_of(prefetched, b));
  show("cuMemDiscardAndPrefetchBatchAsync flags 1",
       CU(cuMemDiscardAndPrefetchBatchAsync)(starts, sizes, 3, places, first, 2, 1, stream));
  show("cuMemPrefetchBatchAsync_ptsz",
       CU(cuMemPrefetchBatchAsync_ptsz)(starts, sizes, 3, places, first, 2, 0, nullptr));
  show("cuMemDiscardBatchAsync_ptsz", CU(cuMemDiscardBatchAsync_ptsz)(starts, sizes, 3, 0, nullptr));
  show("cuMemDiscardAndPrefetchBatchAsync_ptsz",
       CU(cuMemDiscardAndPrefetchBatchAsync_ptsz)(starts, sizes, 3, places, first, 2, 0, nullptr));
  show("after those", CU(cuCtxSynchronize)());
  CUdeviceptr part[] = {a + 100};
  std::size_t odd_size[] = {1};
  show("cuMemDiscardBatchAsync of one byte", CU(cuMemDiscardBatchAsync)(part, odd_size, 1, 0, stream));
  show("cuMemDiscardBatchAsync null", CU(cuMemDiscardBatchAsync)(nullptr, nullptr, 1, 0, stream));
}

GROUP(managed_streams, InContext) {
  const CUdeviceptr a = managed();
  CUdeviceptr plain = 0;
  CUstream stream = nullptr;
  CU(cuMemAlloc_v2)(&plain, size);
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  for (const unsigned flags : {CU_MEM_ATTACH_SINGLE, CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST}) {
    const std::string name = "cuStreamAttachMemAsync flags " + std::to_string(flags);
    show(name, CU(cuStreamAttachMemAsync)(stream, a, 0, flags));
    show(name + ", NULL stream", CU(cuStreamAttachMemAsync)(nullptr, a, 0, flags));
  }
  show("of its size", CU(cuStreamAttachMemAsync)(stream, a, size, CU_MEM_ATTACH_SINGLE));
  show("of a part", CU(cuStreamAttachMemAsync)(stream, a, page, CU_MEM_ATTACH_SINGLE));
  show("of more", CU(cuStreamAttachMemAsync)(stream, a, 2 * size, CU_MEM_ATTACH_SINGLE));
  show("inside", CU(cuStreamAttachMemAsync)(stream, a + page, 0, CU_MEM_ATTACH_SINGLE));
  show("cuStreamAttachMemAsync_ptsz", CU(cuStreamAttachMemAsync_ptsz)(nullptr, a, 0, CU_MEM_ATTACH_SINGLE));
  show("after those", CU(cuCtxSynchronize)());
  CUstreamAttrValue value{};
  show("the stream answers", CU(cuStreamGetAttribute)(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
}

// The driver crashes for some of these arguments, so each of them has a group of its own.
void show_attachment(CUdeviceptr at, unsigned flags) {
  CUstream stream = nullptr;
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  show_guarded("cuStreamAttachMemAsync", [&] { return CU(cuStreamAttachMemAsync)(stream, at, 0, flags); });
}
GROUP(managed_attached_flags_0, InContext) { show_attachment(managed(), 0); }
GROUP(managed_attached_flags_3, InContext) { show_attachment(managed(), 3); }
GROUP(managed_attached_flags_5, InContext) { show_attachment(managed(), 5); }
GROUP(managed_attached_flags_8, InContext) { show_attachment(managed(), 8); }
GROUP(managed_attached_null, InContext) { show_attachment(0, CU_MEM_ATTACH_SINGLE); }
GROUP(managed_attached_device_memory, InContext) {
  CUdeviceptr plain = 0;
  CU(cuMemAlloc_v2)(&plain, size);
  show_attachment(plain, CU_MEM_ATTACH_SINGLE);
}

GROUP(pointer_settings, InContext) {
  CUdeviceptr plain = 0;
  void* pinned = nullptr;
  unsigned value = 1, seen = 9;
  int on_the_stack = 0;
  constexpr auto attribute = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
  CU(cuMemAlloc_v2)(&plain, 1000);
  CU(cuMemHostAlloc)(&pinned, 1000, 0);
  const CUdeviceptr a = managed();
  for (const unsigned given : {1U, 0U, 2U}) {
    show("device memory, " + std::to_string(given), CU(cuPointerSetAttribute)(&given, attribute, plain + 8));
    CU(cuPointerGetAttribute)(&seen, attribute, plain);
    show("it is", seen);
  }
  show("managed memory", CU(cuPointerSetAttribute)(&value, attribute, a));
  show("pinned memory", CU(cuPointerSetAttribute)(&value, attribute, address_of(pinned)));
  show("the stack", CU(cuPointerSetAttribute)(&value, attribute, address_of(&on_the_stack)));
  show("null", CU(cuPointerSetAttribute)(&value, attribute, 0));
  for (const int other : {0, 1, 2, 5, 8, 99})
    show("attribute " + std::to_string(other),
         CU(cuPointerSetAttribute)(&value, odd<CUpointer_attribute>(other), plain));
  CUdeviceptr pooled = 0;
  CU(cuMemAllocAsync)(&pooled, 100, nullptr);
  show("a pool's memory", CU(cuPointerSetAttribute)(&value, attribute, pooled));
  show("no value", CU(cuPointerSetAttribute)(nullptr, attribute, plain));
}

// A module with a managed variable, which the host can access as well.
const char with_variable[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4 .b32 shared_word = 7;
.visible .global .align 4 .b32 own_word = 8;
.visible .entry add() {
  .reg .u32 %r<2>;
  ld.volatile.global.u32 %r1, [shared_word];
  add.u32 %r1, %r1, 1;
  st.volatile.global.u32 [shared_word], %r1;
  ret;
}
)";

GROUP(managed_variables, InContext) {
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr a = 0, start = 0, own = 0;
  std::size_t bytes = 0;
  unsigned type = 9, is_managed = 9;
  show("cuModuleLoadData", CU(cuModuleLoadData)(&module, with_variable));
  CU(cuModuleGetFunction)(&add, module, "add");
  show("cuModuleGetGlobal", CU(cuModuleGetGlobal_v2)(&a, &bytes, module, "shared_word"));
  show("its size", static_cast<long long>(bytes));
  CU(cuModuleGetGlobal_v2)(&own, &bytes, module, "own_word");
  auto* word = reinterpret_cast<volatile unsigned*>(a);
  expect_word("its value is 7", word, 7);
  show("a kernel", CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 8", word, 8);
  write(word, 20);
  show("a kernel again", CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 21", word, 21);
  CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a);
  show("its memory type", type);
  CU(cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a);
  show("it is managed", is_managed & 0xff);
  is_managed = 9;
  CU(cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, own);
  show("the other is managed", is_managed & 0xff);
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &bytes, a));
  show("cuMemAdvise", CU(cuMemAdvise_v2)(a, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device));
  show("read mostly", value_of(read_mostly, a, 4));
  show("cuMemPrefetchAsync", CU(cuMemPrefetchAsync_v2)(a, 4, on_device, 0, nullptr));
  show("cuStreamAttachMemAsync", CU(cuStreamAttachMemAsync)(nullptr, a, 0, CU_MEM_ATTACH_GLOBAL));
  show("cuMemAdvise of the other", CU(cuMemAdvise_v2)(own, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device));
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("cuModuleUnload", CU(cuModuleUnload)(module));
  show("its memory type then", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
}

GROUP(managed_without_context, Initialized) {
  CUcontext context = nullptr;
  int value = 0;
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  CUdeviceptr a = managed(), b = 0;
  CU(cuCtxSetCurrent)(nullptr);
  show("cuMemAllocManaged", CU(cuMemAllocManaged)(&b, 100, CU_MEM_ATTACH_GLOBAL));
  show("cuMemAdvise", CU(cuMemAdvise_v2)(a, size, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device));
  show("cuMemRangeGetAttribute", CU(cuMemRangeGetAttribute)(&value, 4, read_mostly, a, size));
  show("cuMemPrefetchAsync", CU(cuMemPrefetchAsync_v2)(a, size, on_device, 0, nullptr));
  show("cuStreamAttachMemAsync", CU(cuStreamAttachMemAsync)(nullptr, a, 0, CU_MEM_ATTACH_GLOBAL));
  show("cuPointerSetAttribute", CU(cuPointerSetAttribute)(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
}

}  // namespace
}  // namespace contract
