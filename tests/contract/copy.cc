// Cases for copies and fills.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(copies, InContext) {
  CUdeviceptr a = 0, b = 0;
  static char host[8192];
  const auto stack = reinterpret_cast<CUdeviceptr>(host);
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuMemAlloc_v2)(&b, 4096);
  show("HtoD", CU(cuMemcpyHtoD_v2)(a, host, 4096));
  show("HtoD 0 bytes", CU(cuMemcpyHtoD_v2)(a, host, 0));
  show("HtoD 0 bytes, nulls", CU(cuMemcpyHtoD_v2)(0, nullptr, 0));
  show("HtoD from null", CU(cuMemcpyHtoD_v2)(a, nullptr, 16));
  show("HtoD to null", CU(cuMemcpyHtoD_v2)(0, host, 16));
  show("HtoD to the stack", CU(cuMemcpyHtoD_v2)(stack, host + 4096, 16));
  show("DtoH from the stack", CU(cuMemcpyDtoH_v2)(host, stack + 4096, 16));
  show("DtoH to null", CU(cuMemcpyDtoH_v2)(nullptr, a, 16));
  show("DtoD", CU(cuMemcpyDtoD_v2)(b, a, 4096));
  show("DtoD from the stack", CU(cuMemcpyDtoD_v2)(b, stack, 16));
  show("DtoD to the stack", CU(cuMemcpyDtoD_v2)(stack, a, 16));
  show("generic HtoH", CU(cuMemcpy)(stack, stack + 4096, 16));
  show("generic HtoD", CU(cuMemcpy)(a, stack, 16));
  show("generic to null", CU(cuMemcpy)(0, a, 16));
  show("HtoDAsync", CU(cuMemcpyHtoDAsync_v2)(a, host, 4096, nullptr));
  show("HtoDAsync to the stack", CU(cuMemcpyHtoDAsync_v2)(stack, host + 4096, 16, nullptr));
}

GROUP(copies_2d, InContext) {
  CUdeviceptr a = 0;
  static char host[8192];
  const CUdeviceptr stack = address_of(host);
  CU(cuMemAlloc_v2)(&a, 4096);
  CUDA_MEMCPY2D c;
  std::memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = host;
  c.srcPitch = 128;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = a;
  c.dstPitch = 64;
  c.WidthInBytes = 64;
  c.Height = 8;
  show("2D", CU(cuMemcpy2D_v2)(&c));
  show("2D null", CU(cuMemcpy2D_v2)(nullptr));
  c.dstPitch = 32;
  show("2D pitch below the width", CU(cuMemcpy2D_v2)(&c));
  c.dstPitch = 0;
  show("2D pitch 0", CU(cuMemcpy2D_v2)(&c));
  c.Height = 1;
  show("2D pitch 0, one row", CU(cuMemcpy2D_v2)(&c));
  c.dstPitch = 64;
  c.Height = 0;
  show("2D height 0", CU(cuMemcpy2D_v2)(&c));
  c.Height = 8;
  c.WidthInBytes = 0;
  show("2D width 0", CU(cuMemcpy2D_v2)(&c));
  c.WidthInBytes = 64;
  c.srcMemoryType = odd<CUmemorytype>(9);
  show("2D memory type 9", CU(cuMemcpy2D_v2)(&c));
  c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  c.srcDevice = stack;
  show("2D unified", CU(cuMemcpy2D_v2)(&c));
  show("2D unaligned", CU(cuMemcpy2DUnaligned_v2)(&c));
}

GROUP(fills, InContext) {
  CUdeviceptr a = 0;
  int host = 0;
  const CUdeviceptr stack = address_of(&host);
  CU(cuMemAlloc_v2)(&a, 4096);
  show("memset", CU(cuMemsetD8_v2)(a, 1, 4096));
  show("memset 0 bytes", CU(cuMemsetD8_v2)(a, 1, 0));
  show("memset 0 bytes of null", CU(cuMemsetD8_v2)(0, 1, 0));
  show("memset D16 misaligned", CU(cuMemsetD16_v2)(a + 1, 1, 4));
  show("memset D32 misaligned", CU(cuMemsetD32_v2)(a + 2, 1, 4));
  show("memset of the stack", CU(cuMemsetD32_v2)(stack, 1, 4));
  show("memset of null", CU(cuMemsetD32_v2)(0, 1, 4));
  show("memset 2D", CU(cuMemsetD2D8_v2)(a, 64, 1, 32, 8));
  show("memset 2D pitch below the width", CU(cuMemsetD2D8_v2)(a, 16, 1, 32, 8));
  show("memset 2D pitch below the width, one row", CU(cuMemsetD2D8_v2)(a, 16, 1, 32, 1));
  show("memset 2D width 0", CU(cuMemsetD2D8_v2)(a, 64, 1, 0, 8));
  show("memset async", CU(cuMemsetD8Async)(a, 1, 16, nullptr));
  CU(cuCtxSynchronize)();
  CU(cuMemFree_v2)(a);
}

// Host memory is passed as the device's side and device memory as the host's side: CUDA decides by the address.
GROUP(copies_of_pinned_memory, InContext) {
  CUdeviceptr a = 0;
  void *p = nullptr, *q = nullptr;
  char host[64] = {};
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuMemHostAlloc)(&p, 4096, 0);
  CU(cuMemHostAlloc)(&q, 4096, 0);
  const CUdeviceptr pinned = address_of(p), second = address_of(q);
  std::memset(p, 3, 4096);
  show("HtoD from pinned", CU(cuMemcpyHtoD_v2)(a, p, 4096));
  show("DtoH to pinned", CU(cuMemcpyDtoH_v2)(q, a, 4096));
  show("it is there", *static_cast<char*>(q));
  show("HtoD to pinned", CU(cuMemcpyHtoD_v2)(pinned, host, 64));
  show("DtoH from pinned", CU(cuMemcpyDtoH_v2)(host, second, 64));
  show("it is there", host[0]);
  show("HtoD pinned to pinned", CU(cuMemcpyHtoD_v2)(pinned, q, 64));
  show("DtoH pinned to pinned", CU(cuMemcpyDtoH_v2)(q, pinned, 64));
  show("DtoD pinned to device", CU(cuMemcpyDtoD_v2)(a, pinned, 64));
  show("DtoD device to pinned", CU(cuMemcpyDtoD_v2)(pinned, a, 64));
  show("DtoD pinned to pinned", CU(cuMemcpyDtoD_v2)(pinned, second, 64));
  show("HtoDAsync to pinned", CU(cuMemcpyHtoDAsync_v2)(pinned, host, 64, nullptr));
  show("DtoHAsync from pinned", CU(cuMemcpyDtoHAsync_v2)(host, pinned, 64, nullptr));
  show("fill of pinned", CU(cuMemsetD8_v2)(pinned, 5, 64));
  CU(cuCtxSynchronize)();
  show("it is there", *static_cast<char*>(p));
  show("generic pinned to stack", CU(cuMemcpy)(address_of(host), pinned, 64));
  show("it is there", host[0]);
}

GROUP(copies_beyond, InContext) {
  CUdeviceptr a = 0, b = 0;
  static char host[8192];
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuMemAlloc_v2)(&b, 4096);
  show("DtoH", CU(cuMemcpyDtoH_v2)(host, a, 4096));
  show("DtoH 0 bytes", CU(cuMemcpyDtoH_v2)(nullptr, 0, 0));
  show("DtoD 0 bytes", CU(cuMemcpyDtoD_v2)(0, 0, 0));
  show("generic 0 bytes", CU(cuMemcpy)(0, 0, 0));
  show("DtoHAsync", CU(cuMemcpyDtoHAsync_v2)(host, a, 16, nullptr));
  show("DtoHAsync to null", CU(cuMemcpyDtoHAsync_v2)(nullptr, a, 16, nullptr));
  show("DtoHAsync from the stack", CU(cuMemcpyDtoHAsync_v2)(host, address_of(host) + 4096, 16, nullptr));
  show("DtoDAsync", CU(cuMemcpyDtoDAsync_v2)(b, a, 16, nullptr));
  show("DtoDAsync from null", CU(cuMemcpyDtoDAsync_v2)(b, 0, 16, nullptr));
  show("DtoDAsync to the stack", CU(cuMemcpyDtoDAsync_v2)(address_of(host), a, 16, nullptr));
  show("DtoDAsync 0 bytes", CU(cuMemcpyDtoDAsync_v2)(0, 0, 0, nullptr));
  show("HtoDAsync from null", CU(cuMemcpyHtoDAsync_v2)(a, nullptr, 16, nullptr));
  show("generic async HtoD", CU(cuMemcpyAsync)(a, address_of(host), 16, nullptr));
  show("generic async DtoH", CU(cuMemcpyAsync)(address_of(host), a, 16, nullptr));
  show("generic async DtoD", CU(cuMemcpyAsync)(b, a, 16, nullptr));
  show("generic async HtoH", CU(cuMemcpyAsync)(address_of(host), address_of(host) + 4096, 16, nullptr));
  show("generic async to null", CU(cuMemcpyAsync)(0, a, 16, nullptr));
  show("generic async from null", CU(cuMemcpyAsync)(a, 0, 16, nullptr));
  show("generic DtoD", CU(cuMemcpy)(b, a, 16));
  show("generic from null", CU(cuMemcpy)(a, 0, 16));
  show("DtoH on the legacy stream", CU(cuMemcpyDtoHAsync_v2)(host, a, 16, CU_STREAM_LEGACY));
  show("DtoH on the thread's stream", CU(cuMemcpyDtoHAsync_v2)(host, a, 16, CU_STREAM_PER_THREAD));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(fills_of_rows, InContext) {
  CUdeviceptr a = 0;
  unsigned char host[4096];
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuMemsetD8_v2)(a, 0, 4096);
  show("D8", CU(cuMemsetD2D8_v2)(a + 1, 64, 1, 3, 4));
  show("D16", CU(cuMemsetD2D16_v2)(a + 1024, 64, 2, 3, 4));
  show("D32", CU(cuMemsetD2D32_v2)(a + 2048, 64, 3, 3, 4));
  CU(cuMemcpyDtoH_v2)(host, a, sizeof host);
  int sum = 0;
  for (const unsigned char byte : host) sum += byte;
  show("their sum", sum);
  show("D8Async", CU(cuMemsetD2D8Async)(a, 64, 1, 3, 4, nullptr));
  show("D16Async", CU(cuMemsetD2D16Async)(a, 64, 1, 3, 4, nullptr));
  show("D32Async", CU(cuMemsetD2D32Async)(a, 64, 1, 3, 4, nullptr));
  show("D16 misaligned", CU(cuMemsetD2D16_v2)(a + 1, 64, 1, 3, 4));
  show("D32 misaligned pitch", CU(cuMemsetD2D32_v2)(a, 66, 1, 3, 4));
  show("D32 pitch below the width", CU(cuMemsetD2D32_v2)(a, 8, 1, 3, 4));
  show("D8 of null", CU(cuMemsetD2D8_v2)(0, 64, 1, 3, 4));
  show("D8 of the stack", CU(cuMemsetD2D8_v2)(address_of(host), 64, 1, 3, 4));
  show("D8Async of the stack", CU(cuMemsetD2D8Async)(address_of(host), 64, 1, 3, 4, nullptr));
  show("D8 height 0", CU(cuMemsetD2D8_v2)(a, 64, 1, 3, 0));
  show("D32 nothing of null", CU(cuMemsetD2D32_v2)(0, 64, 1, 0, 0));
  show("after those", CU(cuCtxSynchronize)());
}

CUDA_MEMCPY3D slices(CUdeviceptr to, const void* from) {
  CUDA_MEMCPY3D c;
  std::memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = from;
  c.srcPitch = 32, c.srcHeight = 4;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = to;
  c.dstPitch = 64, c.dstHeight = 8;
  c.WidthInBytes = 16, c.Height = 3, c.Depth = 2;
  return c;
}

GROUP(copies_3d, InContext) {
  CUdeviceptr a = 0;
  static unsigned char host[8192], back[8192];
  for (unsigned i = 0; i < sizeof host; ++i) host[i] = static_cast<unsigned char>(i * 7);
  CU(cuMemAlloc_v2)(&a, 8192);
  CUDA_MEMCPY3D c = slices(a, host);
  c.srcXInBytes = 2, c.srcY = 1, c.dstXInBytes = 4, c.dstZ = 1;
  show("host to device", CU(cuMemcpy3D_v2)(&c));
  CU(cuMemcpyDtoH_v2)(back, a, sizeof back);
  show("its first byte", back[4 + 64 * 8] == host[2 + 32] ? 1LL : 0LL);
  show("the second slice's last byte", back[19 + 64 * 2 + 64 * 8 * 2] == host[17 + 32 * 3 + 32 * 4] ? 1LL : 0LL);
  show("null", CU(cuMemcpy3D_v2)(nullptr));
  show("async null", CU(cuMemcpy3DAsync_v2)(nullptr, nullptr));
  show("2D async null", CU(cuMemcpy2DAsync_v2)(nullptr, nullptr));
  show("2D unaligned null", CU(cuMemcpy2DUnaligned_v2)(nullptr));
  c = slices(a, host);
  show("async", CU(cuMemcpy3DAsync_v2)(&c, nullptr));
  c.Depth = 0;
  show("depth 0", CU(cuMemcpy3D_v2)(&c));
  c = slices(a, host);
  c.dstHeight = 2;
  show("a slice lower than the copy", CU(cuMemcpy3D_v2)(&c));
  c = slices(a, host);
  c.srcPitch = 8;
  show("a pitch below the width", CU(cuMemcpy3D_v2)(&c));
  c = slices(a, host);
  c.dstMemoryType = odd<CUmemorytype>(9);
  show("memory type 9", CU(cuMemcpy3D_v2)(&c));
  c = slices(a, nullptr);
  show("from null", CU(cuMemcpy3D_v2)(&c));
  c = slices(0, host);
  show("to null", CU(cuMemcpy3D_v2)(&c));
  c = slices(address_of(back), host);
  show("to the stack, as device memory", CU(cuMemcpy3D_v2)(&c));
  c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  show("host to host", CU(cuMemcpy3D_v2)(&c));
  show("its first byte", back[0] == host[0] ? 1LL : 0LL);
}

GROUP(copies_2d_both_ways, InContext) {
  CUdeviceptr a = 0, b = 0;
  std::size_t pitch = 0;
  void* p = nullptr;
  static unsigned char host[1 << 16], back[1 << 16];
  for (unsigned i = 0; i < sizeof host; ++i) host[i] = static_cast<unsigned char>(i * 31);
  CU(cuMemAllocPitch_v2)(&a, &pitch, 200, 64, 4);
  CU(cuMemAllocPitch_v2)(&b, &pitch, 200, 64, 4);
  CU(cuMemHostAlloc)(&p, 1 << 16, 0);
  CUDA_MEMCPY2D c;
  std::memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = host, c.srcPitch = 256;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE, c.dstDevice = a, c.dstPitch = pitch;
  c.WidthInBytes = 200, c.Height = 64;
  show("host to device", CU(cuMemcpy2D_v2)(&c));
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = a, c.srcPitch = pitch, c.dstDevice = b;
  show("device to device", CU(cuMemcpy2DAsync_v2)(&c, nullptr));
  c.srcDevice = b, c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = p, c.dstPitch = 256;
  show("device to pinned", CU(cuMemcpy2DAsync_v2)(&c, nullptr));
  CU(cuCtxSynchronize)();
  show_flag("pinned, its last row", std::memcmp(static_cast<char*>(p) + 63 * 256, host + 63 * 256, 200) == 0);
  c.dstHost = back, c.dstXInBytes = 8, c.dstY = 2;
  show("device to pageable", CU(cuMemcpy2D_v2)(&c));
  show_flag("pageable, its last row", std::memcmp(back + 65 * 256 + 8, host + 63 * 256, 200) == 0);
  c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = p, c.srcPitch = 256;
  show("pinned to pageable", CU(cuMemcpy2D_v2)(&c));
  c.dstMemoryType = CU_MEMORYTYPE_UNIFIED, c.dstDevice = address_of(p);
  show("to pinned, by its address", CU(cuMemcpy2DUnaligned_v2)(&c));
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE, c.dstDevice = a, c.dstXInBytes = pitch;
  show("past a row's end", CU(cuMemcpy2D_v2)(&c));
}

GROUP(fills_of_words, InContext) {
  CUdeviceptr a = 0;
  unsigned host[4] = {};
  CU(cuMemAlloc_v2)(&a, 4096);
  show("cuMemsetD16", CU(cuMemsetD16_v2)(a, 0x1234, 8));
  show("cuMemsetD32", CU(cuMemsetD32_v2)(a + 16, 0x12345678, 4));
  CU(cuMemcpyDtoH_v2)(host, a + 8, 16);
  show("half a word twice", host[0]);
  show("a word", host[2]);
  show("cuMemsetD8Async", CU(cuMemsetD8Async)(a, 1, 16, nullptr));
  show("cuMemsetD16Async", CU(cuMemsetD16Async)(a, 1, 16, nullptr));
  show("cuMemsetD32Async", CU(cuMemsetD32Async)(a, 1, 16, nullptr));
  show("cuMemsetD16Async misaligned", CU(cuMemsetD16Async)(a + 1, 1, 4, nullptr));
  show("cuMemsetD32Async misaligned", CU(cuMemsetD32Async)(a + 2, 1, 4, nullptr));
  show("cuMemsetD32Async of null", CU(cuMemsetD32Async)(0, 1, 4, nullptr));
  show("cuMemsetD8Async of the stack", CU(cuMemsetD8Async)(address_of(host), 1, 4, nullptr));
  show("cuMemsetD32Async 0 words", CU(cuMemsetD32Async)(a, 1, 0, nullptr));
  show("cuMemsetD16Async 0 words, misaligned", CU(cuMemsetD16Async)(a + 1, 1, 0, nullptr));
  show("cuMemsetD32 absurd", CU(cuMemsetD32_v2)(a, 1, std::size_t{1} << 62));
  show("cuMemsetD32Async absurd", CU(cuMemsetD32Async)(a, 1, std::size_t{1} << 62, nullptr));
  show("after those", CU(cuCtxSynchronize)());
  show("cuMemsetD8 beyond the end", CU(cuMemsetD8_v2)(a, 1, std::size_t{64} << 20));
}

// Each of these groups is the last in its process, since a driver may not survive it.
GROUP(copy_from_device_as_host, InContext) {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 4096);
  show_guarded("HtoD", [&] { return CU(cuMemcpyHtoD_v2)(a, reinterpret_cast<void*>(a + 1024), 64); });
}

GROUP(copy_to_device_as_host, InContext) {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 4096);
  show_guarded("DtoH", [&] { return CU(cuMemcpyDtoH_v2)(reinterpret_cast<void*>(a), a + 1024, 64); });
}

}  // namespace
}  // namespace contract
