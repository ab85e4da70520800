// Cases for virtual memory management: reserved addresses, memory objects, mappings and access rights.
#include "tests/contract/suite.h"

#include <algorithm>
#include <string>

namespace contract {
namespace {

constexpr std::size_t mib = 1 << 20;

CUmemAllocationProp device_memory() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return p;
}

CUmemAccessDesc access_of(CUmemAccess_flags flags) { return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags}; }

CUdeviceptr reserve(std::size_t size) {
  CUdeviceptr a = 0;
  CU(cuMemAddressReserve)(&a, size, 0, 0, 0);
  return a;
}

CUmemGenericAllocationHandle new_object(std::size_t size) {
  const CUmemAllocationProp p = device_memory();
  CUmemGenericAllocationHandle handle = 0;
  CU(cuMemCreate)(&handle, size, &p, 0);
  return handle;
}

CUresult set_access(CUdeviceptr at, std::size_t size, CUmemAccess_flags flags) {
  const CUmemAccessDesc access = access_of(flags);
  return CU(cuMemSetAccess)(at, size, &access, 1);
}
constexpr auto nothing = CU_MEM_ACCESS_FLAGS_PROT_NONE, reading = CU_MEM_ACCESS_FLAGS_PROT_READ,
               writing = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

// Returns the address of 4 MiB in two objects of 2 MiB, readable and writable.
CUdeviceptr two_mappings(CUmemGenericAllocationHandle handles[2] = nullptr) {
  const CUdeviceptr a = reserve(4 * mib);
  for (const std::size_t i : {0, 1}) {
    const CUmemGenericAllocationHandle handle = new_object(2 * mib);
    CU(cuMemMap)(a + i * 2 * mib, 2 * mib, 0, handle, 0);
    if (handles != nullptr) handles[i] = handle;
  }
  set_access(a, 4 * mib, writing);
  return a;
}

CUresult store(CUfunction function, CUdeviceptr at, unsigned value) {
  void* parameters[] = {&at, &value};
  const CUresult r = CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  return r == CUDA_SUCCESS ? CU(cuCtxSynchronize)() : r;
}

GROUP(virtual_granularity, InContext) {
  CUmemAllocationProp p = device_memory();
  std::size_t bytes = 0;
  for (const int option : {0, 1, 2, -1}) {
    show("granularity, option " + std::to_string(option),
         CU(cuMemGetAllocationGranularity)(&bytes, &p, odd<CUmemAllocationGranularity_flags>(option)));
    show("it is", static_cast<long long>(bytes));
  }
  for (const int place : {0, 2, 3, 4, 9}) {
    p = device_memory(), p.location.type = odd<CUmemLocationType>(place);
    show("granularity, place " + std::to_string(place), CU(cuMemGetAllocationGranularity)(&bytes, &p, {}));
  }
  p = device_memory(), p.location.id = 99;
  show("granularity, device 99", CU(cuMemGetAllocationGranularity)(&bytes, &p, {}));
  p = device_memory(), p.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  show("granularity, no type", CU(cuMemGetAllocationGranularity)(&bytes, &p, {}));
  p = device_memory(), p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  show("granularity, with descriptors", CU(cuMemGetAllocationGranularity)(&bytes, &p, {}));
  p = device_memory();
  show("granularity null", CU(cuMemGetAllocationGranularity)(nullptr, &p, {}));
  show("granularity of nothing", CU(cuMemGetAllocationGranularity)(&bytes, nullptr, {}));
}

void show_reserved(const std::string& what, std::size_t size, std::size_t alignment, CUdeviceptr hint,
                   unsigned long long flags = 0) {
  CUdeviceptr a = 0;
  show("cuMemAddressReserve, " + what, CU(cuMemAddressReserve)(&a, size, alignment, hint, flags));
  show_flag("its alignment", a % std::max(alignment, 2 * mib) == 0);
  show("its end", CU(cuMemAddressFree)(a, size));
}

GROUP(virtual_reservations, InContext) {
  show_reserved("2 MiB", 2 * mib, 0, 0);
  show_reserved("32 GiB", 32768 * mib, 0, 0);
  show_reserved("0", 0, 0, 0);
  show_reserved("4 KiB", 4096, 0, 0);
  show_reserved("3 MiB", 3 * mib, 0, 0);
  show_reserved("flags 1", 2 * mib, 0, 0, 1);
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{3}, std::size_t{4096}, 2 * mib, 6 * mib, 1024 * mib})
    show_reserved("alignment " + std::to_string(alignment), 2 * mib, alignment, 0);
  for (const CUdeviceptr hint : {CUdeviceptr{1}, CUdeviceptr{4096}, CUdeviceptr{0x100000100000},
                                 CUdeviceptr{0x800000000000}, CUdeviceptr{0x100000000000}})
    show_reserved("hint " + std::to_string(hint), 2 * mib, 0, hint);
  const CUdeviceptr a = reserve(4 * mib);
  CUdeviceptr b = 0;
  show("a hint that is taken", CU(cuMemAddressReserve)(&b, 2 * mib, 0, a, 0));
  show_flag("it came elsewhere", b != a);
  show("cuMemAddressFree of half", CU(cuMemAddressFree)(a, 2 * mib));
  show("cuMemAddressFree of the other half", CU(cuMemAddressFree)(a + 2 * mib, 2 * mib));
  show("cuMemAddressFree of more", CU(cuMemAddressFree)(a, 6 * mib));
  show("cuMemAddressFree of nothing", CU(cuMemAddressFree)(a, 0));
  show("cuMemAddressFree", CU(cuMemAddressFree)(a, 4 * mib));
  show("cuMemAddressFree twice", CU(cuMemAddressFree)(a, 4 * mib));
  show("cuMemAddressFree of null", CU(cuMemAddressFree)(0, 2 * mib));
  show("cuMemAddressReserve null", CU(cuMemAddressReserve)(nullptr, 2 * mib, 0, 0, 0));
}

// Cases for addresses without a mapping.
GROUP(virtual_reserved, InContext) {
  const CUdeviceptr a = reserve(4 * mib);
  CUdeviceptr start = 0;
  std::size_t size = 0;
  unsigned type = 9, word = 0;
  unsigned long long flags = 9;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, device};
  show("their type", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &size, a + mib));
  show("a fill", CU(cuMemsetD8_v2)(a, 1, 16));
  show("a copy to them", CU(cuMemcpyHtoD_v2)(a, &word, 4));
  show("a copy from them", CU(cuMemcpyDtoH_v2)(&word, a, 4));
  show("cuMemGetAccess", CU(cuMemGetAccess)(&flags, &there, a));
  show("cuMemSetAccess", set_access(a, 4 * mib, writing));
  show("cuMemUnmap", CU(cuMemUnmap)(a, 4 * mib));
  show("cuMemRetainAllocationHandle", CU(cuMemRetainAllocationHandle)(&handle, reinterpret_cast<void*>(a)));
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, nullptr));
}

void show_object(const std::string& what, std::size_t size, const CUmemAllocationProp& p,
                 unsigned long long flags = 0) {
  CUmemGenericAllocationHandle handle = 0;
  show("cuMemCreate, " + what, CU(cuMemCreate)(&handle, size, &p, flags));
  if (handle != 0) CU(cuMemRelease)(handle);
}

GROUP(virtual_objects, InContext) {
  CUmemAllocationProp p = device_memory();
  show_object("2 MiB", 2 * mib, p);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, mib, 3 * mib, std::size_t{1} << 60})
    show_object(std::to_string(size) + " bytes", size, p);
  show_object("flags 1", 2 * mib, p, 1);
  for (const int number : {99, -1}) {
    p.location.id = number;
    show_object("device " + std::to_string(number), 2 * mib, p);
  }
  p.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 99};
  show_object("host node 99", 2 * mib, p);
  for (const int place : {0, 2, 3, 4, 9}) {
    p = device_memory(), p.location.type = odd<CUmemLocationType>(place);
    show_object("place " + std::to_string(place), 2 * mib, p);
  }
  for (const int type : {0, 2, 3}) {
    p = device_memory(), p.type = odd<CUmemAllocationType>(type);
    show_object("type " + std::to_string(type), 2 * mib, p);
  }
  for (const int handles : {1, 2, 4, 8, 16}) {
    p = device_memory(), p.requestedHandleTypes = odd<CUmemAllocationHandleType>(handles);
    show_object("handle types " + std::to_string(handles), 2 * mib, p);
  }
  for (const unsigned char compression : {'\1', '\2', '\377'}) {
    p = device_memory(), p.allocFlags.compressionType = compression;
    show_object("compression " + std::to_string(compression), 2 * mib, p);
  }
  p = device_memory(), p.allocFlags.gpuDirectRDMACapable = 1;
  show_object("for RDMA", 2 * mib, p);
  for (const unsigned usage : {1U, 2U, 4U}) {
    p = device_memory(), p.allocFlags.usage = static_cast<unsigned short>(usage);
    show_object("usage " + std::to_string(usage), 2 * mib, p);
  }
  p = device_memory(), p.allocFlags.reserved[0] = 1;
  show_object("reserved 1", 2 * mib, p);
  p = device_memory();
  CUmemGenericAllocationHandle handle = 0;
  show("cuMemCreate null", CU(cuMemCreate)(nullptr, 2 * mib, &p, 0));
  show("cuMemCreate of nothing", CU(cuMemCreate)(&handle, 2 * mib, nullptr, 0));
}

GROUP(virtual_handles, InContext) {
  CUmemAllocationProp p = device_memory(), got{};
  CUmemGenericAllocationHandle handle = new_object(4 * mib), again = 0;
  const CUdeviceptr a = reserve(4 * mib);
  const auto inside = reinterpret_cast<void*>(a + 3 * mib);
  CU(cuMemMap)(a, 4 * mib, 0, handle, 0);
  show("cuMemGetAllocationPropertiesFromHandle", CU(cuMemGetAllocationPropertiesFromHandle)(&got, handle));
  show_flag("its type", got.type == p.type);
  show_flag("its place", got.location.type == p.location.type && got.location.id == p.location.id);
  show("its handle types", got.requestedHandleTypes);
  show("cuMemRetainAllocationHandle", CU(cuMemRetainAllocationHandle)(&again, inside));
  show_flag("it is the same", again == handle);
  show("cuMemRelease", CU(cuMemRelease)(handle));
  show("cuMemRelease of what was retained", CU(cuMemRelease)(handle));
  show("cuMemRelease once more", CU(cuMemRelease)(handle));
  show("its properties then", CU(cuMemGetAllocationPropertiesFromHandle)(&got, handle));
  show("cuMemRetainAllocationHandle then", CU(cuMemRetainAllocationHandle)(&again, inside));
  show_flag("it is the same still", again == handle);
  show("cuMemRelease of that", CU(cuMemRelease)(again));
  int on_the_stack = 0;
  CUdeviceptr plain = 0;
  CU(cuMemAlloc_v2)(&plain, 100);
  show("cuMemRetainAllocationHandle of the stack", CU(cuMemRetainAllocationHandle)(&again, &on_the_stack));
  show("cuMemRetainAllocationHandle of plain memory",
       CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(plain)));
  CU(cuMemAllocAsync)(&plain, 100, nullptr);
  show("cuMemRetainAllocationHandle of a pool's memory",
       CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(plain)));
  show("cuMemRetainAllocationHandle of null", CU(cuMemRetainAllocationHandle)(&again, nullptr));
}

GROUP(virtual_mappings, InContext) {
  const CUdeviceptr a = reserve(8 * mib);
  const CUmemGenericAllocationHandle one = new_object(2 * mib), two = new_object(4 * mib);
  show("cuMemMap outside of a reservation", CU(cuMemMap)(a + (CUdeviceptr{1} << 40), 2 * mib, 0, one, 0));
  show("cuMemMap over the end of one", CU(cuMemMap)(a + 6 * mib, 4 * mib, 0, two, 0));
  show("cuMemMap, offset 2 MiB", CU(cuMemMap)(a, 2 * mib, 2 * mib, two, 0));
  show("cuMemMap, offset 1", CU(cuMemMap)(a, 2 * mib, 1, one, 0));
  show("cuMemMap of more than there is", CU(cuMemMap)(a, 4 * mib, 0, one, 0));
  show("cuMemMap of less than there is", CU(cuMemMap)(a, 2 * mib, 0, two, 0));
  show("cuMemMap of 1 MiB", CU(cuMemMap)(a, mib, 0, one, 0));
  show("cuMemMap of nothing", CU(cuMemMap)(a, 0, 0, one, 0));
  show("cuMemMap at 4 KiB", CU(cuMemMap)(a + 4096, 2 * mib, 0, one, 0));
  show("cuMemMap, flags 1", CU(cuMemMap)(a, 2 * mib, 0, one, 1));
  show("cuMemMap", CU(cuMemMap)(a, 2 * mib, 0, one, 0));
  show("cuMemMap there again", CU(cuMemMap)(a, 2 * mib, 0, one, 0));
  show("cuMemMap, half over it", CU(cuMemMap)(a, 4 * mib, 0, two, 0));
  show("cuMemMap a second time", CU(cuMemMap)(a + 6 * mib, 2 * mib, 0, one, 0));
  show("cuMemMap of the other", CU(cuMemMap)(a + 2 * mib, 4 * mib, 0, two, 0));
  show("cuMemAddressFree while mapped", CU(cuMemAddressFree)(a, 8 * mib));
  show("cuMemUnmap of half a mapping", CU(cuMemUnmap)(a + 2 * mib, 2 * mib));
  show("cuMemUnmap of a half and a whole", CU(cuMemUnmap)(a, 4 * mib));
  show("cuMemUnmap of nothing", CU(cuMemUnmap)(a, 0));
  show("cuMemUnmap of 1 MiB", CU(cuMemUnmap)(a, mib));
  show("cuMemUnmap of two", CU(cuMemUnmap)(a, 6 * mib));
  show("cuMemUnmap of them twice", CU(cuMemUnmap)(a, 6 * mib));
  show("cuMemMap again", CU(cuMemMap)(a + 4 * mib, 2 * mib, 0, one, 0));
  show("cuMemUnmap of all with a hole", CU(cuMemUnmap)(a, 8 * mib));
  show("cuMemUnmap beyond the reservation", CU(cuMemUnmap)(a, 16 * mib));
  show("cuMemUnmap outside of one", CU(cuMemUnmap)(a + (CUdeviceptr{1} << 40), 2 * mib));
  show("cuMemAddressFree", CU(cuMemAddressFree)(a, 8 * mib));
  show("cuMemUnmap after it", CU(cuMemUnmap)(a, 2 * mib));
  show("cuMemMap after it", CU(cuMemMap)(a, 2 * mib, 0, one, 0));
  show("cuMemRelease", CU(cuMemRelease)(one));
}

// Copies, fills and kernels treat adjacent mappings as one range.
GROUP(virtual_copies, InContext) {
  const CUdeviceptr a = two_mappings();
  unsigned words[4] = {1, 2, 3, 4}, seen[4] = {};
  show("a fill over both", CU(cuMemsetD8_v2)(a, 1, 4 * mib));
  show("a copy to both", CU(cuMemcpyHtoD_v2)(a + 2 * mib - 8, words, sizeof words));
  show("a copy from both", CU(cuMemcpyDtoH_v2)(seen, a + 2 * mib - 8, sizeof seen));
  show("its last word", seen[3]);
  show("a copy within them", CU(cuMemcpyDtoD_v2)(a, a + 2 * mib - 8, sizeof words));
  show("a copy from the second", CU(cuMemcpyDtoH_v2)(seen, a + 2 * mib, 8));
  show("its first word", seen[0]);
  CUdeviceptr plain = 0;
  CU(cuMemAlloc_v2)(&plain, 4 * mib);
  show("a copy of both to plain memory", CU(cuMemcpyDtoDAsync_v2)(plain, a, 4 * mib, nullptr));
  show("a kernel in the second", store(function_of(load_module(), "store"), a + 2 * mib + 64, 9));
  CU(cuMemcpyDtoH_v2)(seen, a + 2 * mib + 64, 4);
  show("its word", seen[0]);
  show("a fill beyond them", CU(cuMemsetD8_v2)(a + 2 * mib, 1, 4 * mib));
  show("a copy beyond them", CU(cuMemcpyHtoD_v2)(a + 4 * mib - 8, words, sizeof words));
}

GROUP(virtual_mapped_twice, InContext) {
  const CUdeviceptr a = reserve(8 * mib);
  const CUmemGenericAllocationHandle one = new_object(2 * mib);
  unsigned word = 0;
  CU(cuMemMap)(a, 2 * mib, 0, one, 0);
  CU(cuMemMap)(a + 6 * mib, 2 * mib, 0, one, 0);
  show("cuMemSetAccess of the first", set_access(a, 2 * mib, writing));
  show("cuMemSetAccess of the second", set_access(a + 6 * mib, 2 * mib, writing));
  show("cuMemsetD32 at the first", CU(cuMemsetD32_v2)(a + 4, 5, 1));
  show("cuMemcpyDtoH from the second", CU(cuMemcpyDtoH_v2)(&word, a + 6 * mib + 4, 4));
  show("the word", word);
  show("cuMemUnmap of the first", CU(cuMemUnmap)(a, 2 * mib));
  show("cuMemRelease", CU(cuMemRelease)(one));
  CU(cuMemcpyDtoH_v2)(&word, a + 6 * mib + 4, 4);
  show("the word in the second", word);
  show("cuMemMap of the released", CU(cuMemMap)(a, 2 * mib, 0, one, 0));
  show("cuMemUnmap of both", CU(cuMemUnmap)(a, 8 * mib));
}

GROUP(virtual_access, InContext) {
  const CUdeviceptr a = reserve(8 * mib);
  const CUmemGenericAllocationHandle one = new_object(2 * mib), two = new_object(4 * mib);
  unsigned long long flags = 9;
  unsigned word = 0;
  CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, device};
  CU(cuMemMap)(a, 2 * mib, 0, one, 0);
  CU(cuMemMap)(a + 2 * mib, 4 * mib, 0, two, 0);
  show("cuMemGetAccess before", CU(cuMemGetAccess)(&flags, &there, a));
  show("flags", static_cast<long long>(flags));
  show("a fill without access", CU(cuMemsetD8_v2)(a, 1, 16));
  show("a copy without access", CU(cuMemcpyDtoH_v2)(&word, a, 4));
  show("cuMemcpy without access", CU(cuMemcpy)(address_of(&word), a, 4));
  show("cuMemSetAccess of half a mapping", set_access(a + 2 * mib, 2 * mib, writing));
  show("cuMemSetAccess from within a mapping", set_access(a + 4 * mib, 2 * mib, writing));
  show("cuMemSetAccess with a hole", set_access(a, 8 * mib, writing));
  show("cuMemSetAccess of nothing", set_access(a, 0, writing));
  show("cuMemSetAccess of 1 MiB", set_access(a, mib, writing));
  show("cuMemSetAccess of two", set_access(a, 6 * mib, writing));
  show("cuMemGetAccess after", CU(cuMemGetAccess)(&flags, &there, a + 5));
  show("flags", static_cast<long long>(flags));
  show("a fill", CU(cuMemsetD8_v2)(a, 1, 6 * mib));
  CU(cuCtxSynchronize)();  // the fill must not lose access while it runs
  show("cuMemSetAccess read", set_access(a, 2 * mib, reading));
  CU(cuMemGetAccess)(&flags, &there, a);
  show("flags", static_cast<long long>(flags));
  show("a fill of what can be read", CU(cuMemsetD8_v2)(a, 1, 16));
  show("a copy to it", CU(cuMemcpyHtoD_v2)(a, &word, 4));
  show("a copy from it", CU(cuMemcpyDtoH_v2)(&word, a, 4));
  show("the word", word);
  show("a copy from both", CU(cuMemcpyDtoD_v2)(a + 3 * mib, a + mib, mib));
  show("a fill of both", CU(cuMemsetD8_v2)(a + mib, 1, 2 * mib));
  CU(cuCtxSynchronize)();  // the copy must not lose access while it runs
  show("cuMemSetAccess none", set_access(a, 2 * mib, nothing));
  CU(cuMemGetAccess)(&flags, &there, a);
  show("flags", static_cast<long long>(flags));
  show("a copy from it then", CU(cuMemcpyDtoH_v2)(&word, a, 4));
  for (const int given : {2, 4, -1})
    show("cuMemSetAccess flags " + std::to_string(given), set_access(a, 2 * mib, odd<CUmemAccess_flags>(given)));
}

GROUP(virtual_access_places, InContext) {
  const CUdeviceptr a = two_mappings();
  unsigned long long flags = 9;
  int on_the_stack = 0;
  CUdeviceptr plain = 0;
  CUmemLocation there{CU_MEM_LOCATION_TYPE_DEVICE, device};
  for (const int place : {0, 2, 3, 4, 9}) {
    CUmemAccessDesc access = access_of(writing);
    access.location.type = there.type = odd<CUmemLocationType>(place);
    show("cuMemSetAccess, place " + std::to_string(place), CU(cuMemSetAccess)(a, 2 * mib, &access, 1));
    show("cuMemGetAccess, place " + std::to_string(place), CU(cuMemGetAccess)(&flags, &there, a));
  }
  CUmemAccessDesc access = access_of(writing);
  access.location.id = 99;
  there = access.location;
  show("cuMemSetAccess, device 99", CU(cuMemSetAccess)(a, 2 * mib, &access, 1));
  show("cuMemGetAccess, device 99", CU(cuMemGetAccess)(&flags, &there, a));
  there.id = device;
  CU(cuMemAlloc_v2)(&plain, 100);
  show("cuMemGetAccess of the stack", CU(cuMemGetAccess)(&flags, &there, address_of(&on_the_stack)));
  show("cuMemGetAccess of plain memory", CU(cuMemGetAccess)(&flags, &there, plain));
  show("cuMemSetAccess of plain memory", set_access(plain, 2 * mib, writing));
  CUmemAccessDesc both[] = {access_of(reading), access_of(writing)};
  show("cuMemSetAccess of one device twice", CU(cuMemSetAccess)(a, 2 * mib, both, 2));
  show("cuMemSetAccess count 0", CU(cuMemSetAccess)(a, 2 * mib, both, 0));
  show("cuMemGetAccess null", CU(cuMemGetAccess)(nullptr, &there, a));
  show("cuMemGetAccess of no place", CU(cuMemGetAccess)(&flags, nullptr, a));
  show("cuMemSetAccess null", CU(cuMemSetAccess)(a, 2 * mib, nullptr, 1));
}

GROUP(virtual_pointers, InContext) {
  const CUdeviceptr a = two_mappings(), inside = a + 3 * mib;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &size, inside));
  show("offset of its start", static_cast<long long>(start - a));
  show("its size", static_cast<long long>(size));
  for (int i = 1; i <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; ++i) {
    unsigned long long value[8] = {};
    show("attribute " + std::to_string(i), CU(cuPointerGetAttribute)(value, odd<CUpointer_attribute>(i), inside));
    const bool plain = i == 2 || i == 8 || i == 9 || i == 10 || i == 12 || i == 13 || i == 16 || i == 17 || i == 18;
    if (plain) show("it is", static_cast<long long>(value[0]));
    if (i == 1) show_flag("it is null", value[0] == 0);
  }
  CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside);
  show("start of its range", static_cast<long long>(start - a));
  CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, inside);
  show("start of its mapping", static_cast<long long>(start - a));
  show("cuMemFree of a mapping", CU(cuMemFree_v2)(a));
  show("cuMemFreeAsync of a mapping", CU(cuMemFreeAsync)(a, nullptr));
  show("cuMemHostRegister of a mapping", CU(cuMemHostRegister_v2)(reinterpret_cast<void*>(a), 4096, 0));
  show("cuMemHostGetDevicePointer of it", CU(cuMemHostGetDevicePointer_v2)(&start, reinterpret_cast<void*>(a), 0));
}

GROUP(virtual_after_a_reset, InContext) {
  CUmemGenericAllocationHandle handles[2] = {};
  const CUdeviceptr a = two_mappings(handles);
  const CUmemAllocationProp p = device_memory();
  CUmemGenericAllocationHandle made = 0;
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show("cuMemUnmap of one", CU(cuMemUnmap)(a, 2 * mib));
  show("cuMemSetAccess of the other", set_access(a + 2 * mib, 2 * mib, reading));
  show("cuMemCreate", CU(cuMemCreate)(&made, 2 * mib, &p, 0));
  show("cuMemUnmap of the other", CU(cuMemUnmap)(a + 2 * mib, 2 * mib));
  show("cuMemRelease", CU(cuMemRelease)(handles[0]));
  show("cuMemRelease of the other", CU(cuMemRelease)(handles[1]));
  show("cuMemAddressFree", CU(cuMemAddressFree)(a, 4 * mib));
}

GROUP(virtual_without_context, Initialized) {
  const CUmemAllocationProp p = device_memory();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr a = 0;
  std::size_t bytes = 0;
  show("cuMemGetAllocationGranularity", CU(cuMemGetAllocationGranularity)(&bytes, &p, {}));
  show("cuMemAddressReserve", CU(cuMemAddressReserve)(&a, 2 * mib, 0, 0, 0));
  show("cuMemCreate", CU(cuMemCreate)(&handle, 2 * mib, &p, 0));
  show("cuMemMap", CU(cuMemMap)(a, 2 * mib, 0, handle, 0));
  show("cuMemSetAccess", set_access(a, 2 * mib, writing));
  show("cuMemUnmap", CU(cuMemUnmap)(a, 2 * mib));
  show("cuMemRelease", CU(cuMemRelease)(handle));
  show("cuMemAddressFree", CU(cuMemAddressFree)(a, 2 * mib));
}

// A kernel's access without the required right ends the context.
GROUP(virtual_kernel_writes_constant, InContext) {
  const CUdeviceptr a = two_mappings();
  const CUfunction function = function_of(load_module(), "store");
  show("a kernel", store(function, a, 3));
  show("cuMemSetAccess read", set_access(a, 2 * mib, reading));
  show("a kernel in the other", store(function, a + 2 * mib, 3));
  show("a kernel that writes", store(function, a, 3));
}

GROUP(virtual_kernel_without_access, InContext) {
  const CUdeviceptr a = two_mappings();
  const CUfunction function = function_of(load_module(), "store");
  show("cuMemSetAccess none", set_access(a, 2 * mib, nothing));
  show("a kernel in the other", store(function, a + 2 * mib, 3));
  show("a kernel that writes", store(function, a, 3));
}

// Handles that no call has returned may crash a driver.
GROUP(virtual_made_up_handles, Loaded) {
  static CUmemAllocationProp p{};
  const auto alone = [](const std::string& what, CUresult (*call)(CUmemGenericAllocationHandle)) {
    for (const bool was_one : {true, false}) {
      show_alone(what + (was_one ? " of a released object" : " of zero"), [&] {
        CUcontext context = nullptr;
        CU(cuInit)(0);
        CU(cuDevicePrimaryCtxRetain)(&context, device);
        CU(cuCtxSetCurrent)(context);
        const CUmemGenericAllocationHandle made = was_one ? new_object(2 * mib) : 0;
        if (was_one) CU(cuMemRelease)(made);
        return call(made);
      });
    }
  };
  alone("cuMemRelease", [](CUmemGenericAllocationHandle h) { return CU(cuMemRelease)(h); });
  alone("cuMemMap", [](CUmemGenericAllocationHandle h) { return CU(cuMemMap)(reserve(2 * mib), 2 * mib, 0, h, 0); });
  alone("cuMemGetAllocationPropertiesFromHandle",
        [](CUmemGenericAllocationHandle h) { return CU(cuMemGetAllocationPropertiesFromHandle)(&p, h); });
  show_alone("cuMemGetAllocationPropertiesFromHandle null", [] {
    CU(cuInit)(0);
    return CU(cuMemGetAllocationPropertiesFromHandle)(nullptr, new_object(2 * mib));
  });
  show_alone("cuMemRetainAllocationHandle null", [] {
    CU(cuInit)(0);
    return CU(cuMemRetainAllocationHandle)(nullptr, reinterpret_cast<void*>(reserve(2 * mib)));
  });
}

}  // namespace
}  // namespace contract
