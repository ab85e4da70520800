// Cases for device memory, pinned memory and registered memory.
#include "tests/contract/suite.h"

#include <sys/mman.h>

#include <cstring>

namespace contract {
namespace {

GROUP(memory, InContext) {
  CUdeviceptr a = 0, base = 0;
  std::size_t pitch = 0, size = 0;
  show("cuMemAlloc 0", CU(cuMemAlloc_v2)(&a, 0));
  show("cuMemAlloc null", CU(cuMemAlloc_v2)(nullptr, 4));
  show("cuMemAlloc absurd", CU(cuMemAlloc_v2)(&a, std::size_t{1} << 60));
  show("cuMemAllocPitch element 3", CU(cuMemAllocPitch_v2)(&a, &pitch, 100, 10, 3));
  show("cuMemAllocPitch width 0", CU(cuMemAllocPitch_v2)(&a, &pitch, 0, 10, 4));
  show("cuMemAllocPitch height 0", CU(cuMemAllocPitch_v2)(&a, &pitch, 100, 0, 4));
  show("cuMemAllocPitch absurd", CU(cuMemAllocPitch_v2)(&a, &pitch, std::size_t{1} << 40, 1 << 30, 4));
  show("cuMemAllocPitch", CU(cuMemAllocPitch_v2)(&a, &pitch, 100, 10, 4));
  show("pitch", static_cast<long long>(pitch));
  show("cuMemFree of that", CU(cuMemFree_v2)(a));
  show("cuMemFree twice", CU(cuMemFree_v2)(a));
  int on_the_stack = 0;
  show("cuMemFree of the stack", CU(cuMemFree_v2)(reinterpret_cast<CUdeviceptr>(&on_the_stack)));
  CU(cuMemAlloc_v2)(&a, 1000);
  show("cuMemFree inside", CU(cuMemFree_v2)(a + 16));
  show("cuMemGetAddressRange inside", CU(cuMemGetAddressRange_v2)(&base, &size, a + 999));
  show("base", static_cast<long long>(base - a));
  show("size", static_cast<long long>(size));
  show("cuMemGetAddressRange of the stack",
       CU(cuMemGetAddressRange_v2)(&base, &size, reinterpret_cast<CUdeviceptr>(&on_the_stack)));
  show("cuMemGetAddressRange nulls", CU(cuMemGetAddressRange_v2)(nullptr, nullptr, a));
  show("cuMemFreeHost of device memory", CU(cuMemFreeHost)(reinterpret_cast<void*>(a)));
  CU(cuMemFree_v2)(a);
  show("cuMemAllocManaged flags 0", CU(cuMemAllocManaged)(&a, 16, 0));
  show("cuMemAllocManaged flags 4", CU(cuMemAllocManaged)(&a, 16, CU_MEM_ATTACH_SINGLE));
  show("cuMemAllocManaged 0", CU(cuMemAllocManaged)(&a, 0, CU_MEM_ATTACH_GLOBAL));
  show("cuMemAllocManaged", CU(cuMemAllocManaged)(&a, 16, CU_MEM_ATTACH_GLOBAL));
  show("cuMemFree managed", CU(cuMemFree_v2)(a));
}

GROUP(host_memory, InContext) {
  void* p = nullptr;
  CUdeviceptr a = 0;
  unsigned flags = 0;
  show("cuMemHostAlloc 0", CU(cuMemHostAlloc)(&p, 0, 0));
  show("cuMemHostAlloc flags 8", CU(cuMemHostAlloc)(&p, 16, 8));
  show("cuMemHostAlloc null", CU(cuMemHostAlloc)(nullptr, 16, 0));
  show("cuMemHostAlloc absurd", CU(cuMemHostAlloc)(&p, std::size_t{1} << 60, 0));
  show("cuMemHostAlloc", CU(cuMemHostAlloc)(&p, 100, 0));
  show("cuMemHostGetFlags", CU(cuMemHostGetFlags)(&flags, p));
  show("flags", flags);
  show("cuMemHostGetFlags inside", CU(cuMemHostGetFlags)(&flags, static_cast<char*>(p) + 8));
  show("cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer_v2)(&a, p, 0));
  show("equal to the host's", a == reinterpret_cast<CUdeviceptr>(p) ? 1 : 0);
  show("cuMemHostGetDevicePointer inside", CU(cuMemHostGetDevicePointer_v2)(&a, static_cast<char*>(p) + 8, 0));
  show("cuMemHostGetDevicePointer flags 1", CU(cuMemHostGetDevicePointer_v2)(&a, p, 1));
  show("cuMemHostUnregister of allocated", CU(cuMemHostUnregister)(p));
  show("cuMemHostRegister of allocated", CU(cuMemHostRegister_v2)(p, 100, 0));
  show("cuMemFreeHost inside", CU(cuMemFreeHost)(static_cast<char*>(p) + 8));
  show("cuMemFree of host memory", CU(cuMemFree_v2)(reinterpret_cast<CUdeviceptr>(p)));
  show("cuMemFreeHost", CU(cuMemFreeHost)(p));
  show("cuMemFreeHost twice", CU(cuMemFreeHost)(p));
  show("cuMemFreeHost null", CU(cuMemFreeHost)(nullptr));
}

// Freed pinned memory is reused for a larger block, and one copy spans the whole block.
GROUP(host_memory_again, InContext) {
  constexpr std::size_t mib = 1 << 20;
  void* p = nullptr;
  CUdeviceptr a = 0;
  for (const std::size_t size : {64, 40}) {
    show("cuMemHostAlloc", CU(cuMemHostAlloc)(&p, size * mib, 0));
    show("cuMemFreeHost", CU(cuMemFreeHost)(p));
  }
  show("cuMemHostAlloc of more", CU(cuMemHostAlloc)(&p, 96 * mib, 0));
  std::memset(p, 0x5a, 96 * mib);
  CU(cuMemAlloc_v2)(&a, 96 * mib);
  show("cuMemcpyHtoD over all", CU(cuMemcpyHtoD_v2)(a, p, 96 * mib));
  std::memset(p, 0, 96 * mib);
  show("cuMemcpyDtoHAsync over all", CU(cuMemcpyDtoHAsync_v2)(p, a, 96 * mib, nullptr));
  CU(cuStreamSynchronize)(nullptr);
  const auto* bytes = static_cast<const unsigned char*>(p);
  show("its first byte", bytes[0]);
  show("its middle", bytes[63 * mib]);
  show("its last byte", bytes[96 * mib - 1]);
  show("cuMemsetD8 over all", CU(cuMemsetD8_v2)(reinterpret_cast<CUdeviceptr>(p), 1, 96 * mib));
  show("cuMemFreeHost of more", CU(cuMemFreeHost)(p));
}

GROUP(registered_memory, InContext) {
  CUdeviceptr a = 0;
  unsigned flags = 0;
  const auto map = [](std::size_t size) {
    return static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  };
  char* q = map(1 << 16);
  show("cuMemHostGetFlags of pageable", CU(cuMemHostGetFlags)(&flags, q));
  show("cuMemHostGetDevicePointer of pageable", CU(cuMemHostGetDevicePointer_v2)(&a, q, 0));
  show("cuMemHostRegister null", CU(cuMemHostRegister_v2)(nullptr, 16, 0));
  show("cuMemHostRegister 0", CU(cuMemHostRegister_v2)(q + 40000, 0, 0));
  show("cuMemHostRegister flags 0x100", CU(cuMemHostRegister_v2)(q, 4096, 0x100));
  show("cuMemHostRegister", CU(cuMemHostRegister_v2)(q + 100, 5000, 0));
  show("cuMemHostRegister overlapping", CU(cuMemHostRegister_v2)(q + 200, 16, 0));
  show("cuMemHostRegister the same", CU(cuMemHostRegister_v2)(q + 100, 5000, 0));
  show("cuMemHostGetFlags of registered", CU(cuMemHostGetFlags)(&flags, q + 100));
  show("flags of registered", flags);
  show("cuMemHostUnregister inside", CU(cuMemHostUnregister)(q + 200));
  show("cuMemFreeHost of registered", CU(cuMemFreeHost)(q + 100));
  show("cuMemHostUnregister", CU(cuMemHostUnregister)(q + 100));
  show("cuMemHostUnregister twice", CU(cuMemHostUnregister)(q + 100));
  show("cuMemHostUnregister null", CU(cuMemHostUnregister)(nullptr));
  munmap(q, 1 << 16);
  show("cuMemHostRegister of a hole", CU(cuMemHostRegister_v2)(q, 4096, 0));
}

GROUP(memory_questions, InContext) {
  CUdeviceptr a = 0, pitched = 0, start = 0;
  std::size_t pitch = 0, free_bytes = 0, total = 0;
  void* p = nullptr;
  show("cuMemGetInfo", CU(cuMemGetInfo_v2)(&free_bytes, &total));
  show_flag("free is not more than all", free_bytes != 0 && free_bytes <= total);
  show("cuMemGetInfo null", CU(cuMemGetInfo_v2)(nullptr, nullptr));
  show("cuMemGetInfo no total", CU(cuMemGetInfo_v2)(&free_bytes, nullptr));
  show("cuMemGetInfo no free", CU(cuMemGetInfo_v2)(nullptr, &total));
  show("cuMemAllocPitch null", CU(cuMemAllocPitch_v2)(nullptr, &pitch, 100, 10, 4));
  show("cuMemAllocPitch no pitch", CU(cuMemAllocPitch_v2)(&pitched, nullptr, 100, 10, 4));
  for (const unsigned element : {0U, 1U, 2U, 8U, 16U, 32U})
    show("cuMemAllocPitch element " + std::to_string(element),
         CU(cuMemAllocPitch_v2)(&pitched, &pitch, 100, 10, element));
  show("cuMemAllocPitch of a wide row", CU(cuMemAllocPitch_v2)(&pitched, &pitch, 513, 2, 4));
  show("pitch", static_cast<long long>(pitch));
  CU(cuMemAlloc_v2)(&a, 1);
  show("an allocation's alignment is 512", static_cast<long long>(a % 512));
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &pitch, a));
  show("of one byte, size", static_cast<long long>(pitch));
  show("cuMemGetAddressRange of null", CU(cuMemGetAddressRange_v2)(&start, &pitch, 0));
  show("cuMemGetAddressRange behind the end", CU(cuMemGetAddressRange_v2)(&start, &pitch, a + 1));
  CU(cuMemHostAlloc)(&p, 100, 0);
  show("cuMemGetAddressRange of pinned memory", CU(cuMemGetAddressRange_v2)(&start, &pitch, address_of(p) + 8));
  show("its offset", static_cast<long long>(address_of(p) - start));
  show("its size", static_cast<long long>(pitch));
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("cuMemGetAddressRange after that", CU(cuMemGetAddressRange_v2)(&start, &pitch, a));
  show("cuMemFree of pinned memory's middle", CU(cuMemFree_v2)(address_of(p) + 8));
  show("cuMemFree of a small number", CU(cuMemFree_v2)(1));
}

GROUP(host_memory_kinds, InContext) {
  void* p = nullptr;
  CUdeviceptr a = 0;
  unsigned flags = 0;
  show("cuMemAllocHost", CU(cuMemAllocHost_v2)(&p, 100));
  CU(cuMemHostGetFlags)(&flags, p);
  show("its flags", flags);
  show("cuMemAllocHost 0", CU(cuMemAllocHost_v2)(&p, 0));
  show("cuMemAllocHost null", CU(cuMemAllocHost_v2)(nullptr, 16));
  show("cuMemHostAlloc portable", CU(cuMemHostAlloc)(&p, 100, CU_MEMHOSTALLOC_PORTABLE));
  CU(cuMemHostGetFlags)(&flags, p);
  show("its flags", flags);
  show("cuMemHostAlloc write-combined", CU(cuMemHostAlloc)(&p, 100, CU_MEMHOSTALLOC_WRITECOMBINED));
  CU(cuMemHostGetFlags)(&flags, p);
  show("its flags", flags);
  show("cuMemHostGetFlags null", CU(cuMemHostGetFlags)(nullptr, p));
  show("cuMemHostGetFlags of null", CU(cuMemHostGetFlags)(&flags, nullptr));
  show("cuMemHostGetFlags behind the end", CU(cuMemHostGetFlags)(&flags, static_cast<char*>(p) + (1 << 21)));
  show("cuMemHostGetDevicePointer null", CU(cuMemHostGetDevicePointer_v2)(nullptr, p, 0));
  show("cuMemHostGetDevicePointer of null", CU(cuMemHostGetDevicePointer_v2)(&a, nullptr, 0));
  show("cuMemHostAlloc 0 null", CU(cuMemHostAlloc)(nullptr, 0, 0));
  show("cuMemHostAlloc 0 flags 8", CU(cuMemHostAlloc)(&p, 0, 8));
  show("cuMemFreeHost of the stack", CU(cuMemFreeHost)(&flags));
}

}  // namespace
}  // namespace contract
