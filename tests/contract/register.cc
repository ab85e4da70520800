// Cases for registered memory: which memory can be registered, queries about it, and its use in copies and kernels.
#include "tests/contract/suite.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace contract {
namespace {

constexpr std::size_t page = 4096;

char* map(int protection, int flags, int file = -1) {
  return static_cast<char*>(mmap(nullptr, 16 * page, protection, flags, file, 0));
}
char* anonymous() { return map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS); }

int file_of_pages() {
  char path[] = "/var/tmp/ivgpu-contract-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ftruncate(file, 16 * page) != 0) std::exit(1);
  unlink(path);
  return file;
}

void show_registered(const std::string& what, void* at, std::size_t size, unsigned flags = 0) {
  CUdeviceptr there = 0;
  unsigned given = 99;
  show("cuMemHostRegister of " + what, CU(cuMemHostRegister_v2)(at, size, flags));
  show(what + ": cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer_v2)(&there, at, 0));
  show_flag(what + ": it is the host's", there == address_of(at));
  show(what + ": cuMemHostGetFlags", CU(cuMemHostGetFlags)(&given, at));
  show(what + ": flags", given);
  show(what + ": cuMemHostUnregister", CU(cuMemHostUnregister)(at));
}

GROUP(register_kinds, InContext) {
  char on_the_stack[3 * page];
  std::memset(on_the_stack, 1, sizeof on_the_stack);
  char* from_heap = static_cast<char*>(std::malloc(100));
  show_registered("anonymous memory", anonymous(), 4 * page);
  show_registered("one byte", anonymous() + 5, 1);
  show_registered("shared anonymous memory", map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS), page);
  show_registered("the stack", on_the_stack, sizeof on_the_stack);
  show_registered("the heap", from_heap, 100);
  const int file = file_of_pages();
  show_registered("a private file", map(PROT_READ | PROT_WRITE, MAP_PRIVATE, file), page);
  show_registered("memory without access", map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS), page);
  char* half = anonymous();
  mprotect(half + page, page, PROT_NONE);
  show_registered("memory that is half without access", half, 2 * page);
  munmap(half + page, page);
  show_registered("memory with a hole", half, 3 * page);
  show_registered("a shared file", map(PROT_READ | PROT_WRITE, MAP_SHARED, file), page);
  std::free(from_heap);
}

GROUP(register_flags, InContext) {
  for (const unsigned flags : {1U, 2U, 3U, 8U, 9U, 16U, 32U})
    show_registered("flags " + std::to_string(flags), anonymous(), page, flags);
  char* constant = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  show_registered("constant memory", constant, page);
  show_registered("constant memory, flags 8", constant, page, CU_MEMHOSTREGISTER_READ_ONLY);
  show_registered("constant memory, flags 10", constant, page, CU_MEMHOSTREGISTER_READ_ONLY | 2);
  show_registered("flags 4", anonymous(), page, CU_MEMHOSTREGISTER_IOMEMORY);
}

// Two registrations may share a page, but no byte. A copy must not span both of them.
GROUP(register_neighbours, InContext) {
  char* p = anonymous();
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 8 * page);
  show("page 0 and 1", CU(cuMemHostRegister_v2)(p, 2 * page, 0));
  show("page 1 and 2", CU(cuMemHostRegister_v2)(p + page, 2 * page, 0));
  show("page 0 alone", CU(cuMemHostRegister_v2)(p, page, 0));
  show("one byte of page 1", CU(cuMemHostRegister_v2)(p + page + 7, 1, 0));
  show("page 2 and 3", CU(cuMemHostRegister_v2)(p + 2 * page, 2 * page, 0));
  show("half of page 4", CU(cuMemHostRegister_v2)(p + 4 * page, page / 2, 0));
  show("the other half", CU(cuMemHostRegister_v2)(p + 4 * page + page / 2, page / 2, 0));
  show("the byte before both", CU(cuMemHostRegister_v2)(p + 4 * page - 1, 2, 0));
  show("a copy over one", CU(cuMemcpyHtoD_v2)(a, p, 2 * page));
  show("a copy over two", CU(cuMemcpyHtoD_v2)(a, p, 4 * page));
  show("an asynchronous one", CU(cuMemcpyHtoDAsync_v2)(a, p, 4 * page, nullptr));
  show("a copy back over two", CU(cuMemcpyDtoH_v2)(p, a, 4 * page));
  show("a copy that begins in one", CU(cuMemcpyHtoD_v2)(a, p + 3 * page, 2 * page));
  show("a copy that ends in one", CU(cuMemcpyHtoD_v2)(a, p + 5 * page - 16, 32));
  show("a copy beside them", CU(cuMemcpyHtoD_v2)(a, p + 6 * page, page));
  show("a fill of one", CU(cuMemsetD8_v2)(address_of(p), 7, 2 * page));
  show("its last byte", p[2 * page - 1]);
  show("a fill of two", CU(cuMemsetD8_v2)(address_of(p), 7, 4 * page));
  show("cuMemHostUnregister of the first", CU(cuMemHostUnregister)(p));
  show("cuMemHostUnregister of what is not one", CU(cuMemHostUnregister)(p + page));
  show("cuMemHostUnregister of the second", CU(cuMemHostUnregister)(p + 2 * page));
  show("a copy over both then", CU(cuMemcpyHtoD_v2)(a, p, 4 * page));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(register_and_kernels, InContext) {
  char* p = anonymous();
  const CUfunction function = function_of(load_module(), "store");
  CUdeviceptr at = 0;
  unsigned value = 77, word = 0;
  void* parameters[] = {&at, &value};
  CU(cuMemHostRegister_v2)(p + page, page, 0);
  CU(cuMemHostGetDevicePointer_v2)(&at, p + page + 8, 0);
  show("a kernel", CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  std::memcpy(&word, p + page + 8, sizeof word);
  show("the word", word);
  show("munmap before its end", munmap(p, 16 * page));
  show("cuMemHostUnregister", CU(cuMemHostUnregister)(p + page));
  show("after that", CU(cuCtxSynchronize)());
}

GROUP(register_pointers, InContext) {
  char* p = anonymous();
  CU(cuMemHostRegister_v2)(p + 100, 5000, 0);
  const CUdeviceptr inside = address_of(p) + 200;
  CUdeviceptr start = 0, first = 0;
  std::size_t size = 0;
  CU(cuMemHostGetDevicePointer_v2)(&first, p + 100, 0);
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &size, inside));
  show("offset of its start", static_cast<long long>(start - address_of(p)));
  show("its size", static_cast<long long>(size));
  for (int i = 1; i <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; ++i) {
    unsigned long long value[8] = {};
    show("attribute " + std::to_string(i), CU(cuPointerGetAttribute)(value, odd<CUpointer_attribute>(i), inside));
    const bool plain = i == 2 || i == 8 || i == 9 || i == 10 || i == 12 || i == 13 || i == 14 || i == 16 || i == 17;
    if (plain) show("it is", static_cast<long long>(value[0]));
    if (i == 3 || i == 4) show_flag("it is the address", value[0] == inside);
  }
  CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside);
  show("start of its range", static_cast<long long>(start - address_of(p)));
  unsigned type = 9;
  show("type of the byte before", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside - 101));
  show("type of the byte behind", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside + 4900));
  show("cuMemFree of it", CU(cuMemFree_v2)(address_of(p) + 100));
  show("cuMemFreeAsync of it", CU(cuMemFreeAsync)(address_of(p) + 100, nullptr));
  show("cuMemHostGetDevicePointer inside", CU(cuMemHostGetDevicePointer_v2)(&start, p + 200, 0));
  show("its offset", static_cast<long long>(start - first) + 100);
  show("cuMemHostGetDevicePointer before", CU(cuMemHostGetDevicePointer_v2)(&start, p + 99, 0));
  show("cuMemHostUnregister", CU(cuMemHostUnregister)(p + 100));
  show("type after that", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
}

GROUP(register_of_other_memory, InContext) {
  void* pinned = nullptr;
  CUdeviceptr a = 0, managed = 0;
  CU(cuMemHostAlloc)(&pinned, 8192, 0);
  CU(cuMemAllocManaged)(&managed, 8192, CU_MEM_ATTACH_GLOBAL);
  CU(cuMemAlloc_v2)(&a, 8192);
  show("cuMemHostRegister inside pinned memory", CU(cuMemHostRegister_v2)(static_cast<char*>(pinned) + 100, 100, 0));
  show("cuMemHostRegister of managed memory", CU(cuMemHostRegister_v2)(reinterpret_cast<void*>(managed), 100, 0));
  show("cuMemHostRegister of device memory", CU(cuMemHostRegister_v2)(reinterpret_cast<void*>(a), 100, 0));
  show("cuMemHostUnregister of managed memory", CU(cuMemHostUnregister)(reinterpret_cast<void*>(managed)));
  show("cuMemHostUnregister of device memory", CU(cuMemHostUnregister)(reinterpret_cast<void*>(a)));
  show("cuMemHostRegister over the end of addresses", CU(cuMemHostRegister_v2)(pinned, ~std::size_t{0}, 0));
}

GROUP(register_after_a_reset, InContext) {
  char* p = anonymous();
  CUcontext context = nullptr;
  unsigned type = 9;
  CU(cuMemHostRegister_v2)(p, page, 0);
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show("cuMemHostUnregister", CU(cuMemHostUnregister)(p));
  show("cuMemHostRegister", CU(cuMemHostRegister_v2)(p, page, 0));
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  show("its type in a new context", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(p)));
  show("cuMemHostRegister in it", CU(cuMemHostRegister_v2)(p, page, 0));
  show("cuMemHostUnregister in it", CU(cuMemHostUnregister)(p));
}

// A kernel writes to memory that was registered as read-only.
GROUP(register_constant_memory, InContext) {
  char* p = anonymous();
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, page);
  show("cuMemHostRegister", CU(cuMemHostRegister_v2)(p, page, CU_MEMHOSTREGISTER_READ_ONLY));
  show("a copy from it", CU(cuMemcpyHtoD_v2)(a, p, page));
  show("a copy from it, asynchronous", CU(cuMemcpyAsync)(a, address_of(p), page, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

}  // namespace
}  // namespace contract
