// Cases for copies from, to and between arrays.
#include <vector>

#include "tests/contract/arrays.h"

namespace contract {
namespace {

constexpr std::size_t row = 256;  // bytes of 64 texels

long long sum_of(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  return std::accumulate(at, at + size, 0LL);
}

CUDA_MEMCPY3D nothing() { return zeroed<CUDA_MEMCPY3D>(); }

void from_host(CUDA_MEMCPY3D& c, const void* host, std::size_t pitch, std::size_t height = 0) {
  c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = host, c.srcPitch = pitch, c.srcHeight = height;
}
void to_host(CUDA_MEMCPY3D& c, void* host, std::size_t pitch, std::size_t height = 0) {
  c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = host, c.dstPitch = pitch, c.dstHeight = height;
}
void from_array(CUDA_MEMCPY3D& c, CUarray array) { c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = array; }
void to_array(CUDA_MEMCPY3D& c, CUarray array) { c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = array; }
void size(CUDA_MEMCPY3D& c, std::size_t width, std::size_t height, std::size_t depth) {
  c.WidthInBytes = width, c.Height = height, c.Depth = depth;
}

// Fills an array of this size from `bytes`, whose rows have no gaps.
CUresult fill(CUarray array, const void* bytes, std::size_t width, std::size_t height, std::size_t depth) {
  auto c = nothing();
  from_host(c, bytes, width, height);
  to_array(c, array);
  size(c, width, height, depth);
  return CU(cuMemcpy3D_v2)(&c);
}

// Shows whether an array of this size contains `bytes`.
void show_content(const std::string& what, CUarray array, const void* bytes, std::size_t width, std::size_t height,
                  std::size_t depth) {
  std::vector<unsigned char> back(width * height * depth);
  auto c = nothing();
  from_array(c, array);
  to_host(c, back.data(), width, height);
  size(c, width, height, depth);
  show(what + ", read", CU(cuMemcpy3D_v2)(&c));
  show_flag(what + ", as it was written", std::memcmp(back.data(), bytes, back.size()) == 0);
}

GROUP(array_rows, InContext) {
  const CUarray array = make_array(described(64)), other = make_array(described(64));
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, row);
  const auto bytes = pattern<row>();
  std::array<unsigned char, row> back{};
  show("cuMemcpyHtoA", CU(cuMemcpyHtoA_v2)(array, 0, bytes.data(), row));
  show("cuMemcpyAtoH", CU(cuMemcpyAtoH_v2)(back.data(), array, 0, row));
  show_flag("the bytes are the same", back == bytes);
  show("cuMemcpyAtoD", CU(cuMemcpyAtoD_v2)(a, array, 0, row));
  back.fill(0);
  CU(cuMemcpyDtoH_v2)(back.data(), a, row);
  show_flag("in memory they are the same", back == bytes);
  show("cuMemcpyAtoA", CU(cuMemcpyAtoA_v2)(other, 64, array, 128, 64));
  show("cuMemcpyAtoH of a part", CU(cuMemcpyAtoH_v2)(back.data(), other, 64, 64));
  show_flag("the part is the same", std::memcmp(back.data(), bytes.data() + 128, 64) == 0);
  CU(cuMemsetD8_v2)(a, 3, row);
  show("cuMemcpyDtoA", CU(cuMemcpyDtoA_v2)(array, 16, a, 100));
  show("cuMemcpyAtoH after it", CU(cuMemcpyAtoH_v2)(back.data(), array, 0, row));
  show("the sum of its bytes", sum_of(back.data(), row));
}

GROUP(array_rows_async, InContext) {
  const CUarray array = make_array(described(64));
  CUstream stream = nullptr;
  void* pinned = nullptr;
  CU(cuStreamCreate)(&stream, 0);
  CU(cuMemHostAlloc)(&pinned, 2 * row, 0);
  auto* const host = static_cast<unsigned char*>(pinned);
  const auto bytes = pattern<row>();
  std::array<unsigned char, row> back{};
  std::memcpy(host, bytes.data(), row);
  show("cuMemcpyHtoAAsync", CU(cuMemcpyHtoAAsync_v2)(array, 0, host, row, stream));
  show("cuMemcpyAtoHAsync", CU(cuMemcpyAtoHAsync_v2)(host + row, array, 0, row, stream));
  CU(cuStreamSynchronize)(stream);
  show_flag("the bytes are the same", std::memcmp(host, host + row, row) == 0);
  show("cuMemcpyHtoAAsync from pageable memory", CU(cuMemcpyHtoAAsync_v2)(array, 64, bytes.data(), 64, stream));
  show("cuMemcpyAtoHAsync to pageable memory", CU(cuMemcpyAtoHAsync_v2)(back.data(), array, 64, 64, stream));
  CU(cuStreamSynchronize)(stream);
  show_flag("the pageable bytes are the same", std::memcmp(back.data(), bytes.data(), 64) == 0);
  show("cuMemcpyHtoAAsync in the NULL stream", CU(cuMemcpyHtoAAsync_v2)(array, 0, host, row, nullptr));
  show("cuMemcpyHtoAAsync of too much", CU(cuMemcpyHtoAAsync_v2)(array, 4, host, row, stream));
  show("cuMemcpyAtoHAsync of too much", CU(cuMemcpyAtoHAsync_v2)(host, array, 4, row, stream));
  show("cuMemcpyHtoAAsync of null", CU(cuMemcpyHtoAAsync_v2)(array, 0, nullptr, row, stream));
  show("cuMemcpyAtoHAsync to null", CU(cuMemcpyAtoHAsync_v2)(nullptr, array, 0, row, stream));
  show("after those", CU(cuStreamSynchronize)(stream));
}

GROUP(array_row_errors, InContext) {
  const CUarray array = make_array(described(64)),
                bytes_array = make_array(described(64, 0, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8));
  static unsigned char host[2 * row];
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, row);
  show("HtoA of too much", CU(cuMemcpyHtoA_v2)(array, 0, host, row + 4));
  show("HtoA beyond the end", CU(cuMemcpyHtoA_v2)(array, row, host, 4));
  show("HtoA far beyond the end", CU(cuMemcpyHtoA_v2)(array, SIZE_MAX - 3, host, 4));
  show("HtoA of half a texel", CU(cuMemcpyHtoA_v2)(array, 0, host, 2));
  show("HtoA at half a texel", CU(cuMemcpyHtoA_v2)(array, 2, host, 4));
  show("HtoA of nothing", CU(cuMemcpyHtoA_v2)(array, 0, host, 0));
  show("HtoA of nothing, behind the end", CU(cuMemcpyHtoA_v2)(array, row, host, 0));
  show("HtoA from null", CU(cuMemcpyHtoA_v2)(array, 0, nullptr, 16));
  show("AtoH to null", CU(cuMemcpyAtoH_v2)(nullptr, array, 0, 16));
  show("AtoH of too much", CU(cuMemcpyAtoH_v2)(host, array, 4, row));
  show("AtoH of nothing to null", CU(cuMemcpyAtoH_v2)(nullptr, array, 0, 0));
  show("AtoD to null", CU(cuMemcpyAtoD_v2)(0, array, 0, 16));
  show("AtoD of too much", CU(cuMemcpyAtoD_v2)(a, array, 0, row + 4));
  show("AtoD behind the memory's end", CU(cuMemcpyAtoD_v2)(a + row, array, 0, 16));
  show("AtoD to the stack", CU(cuMemcpyAtoD_v2)(address_of(host), array, 0, 16));
  show("AtoD to an odd address", CU(cuMemcpyAtoD_v2)(a + 1, array, 0, 16));
  show("AtoD of half a texel", CU(cuMemcpyAtoD_v2)(a, array, 0, 6));
  show("DtoA from null", CU(cuMemcpyDtoA_v2)(array, 0, 0, 16));
  show("DtoA of too much", CU(cuMemcpyDtoA_v2)(array, 252, a, 8));
  show("DtoA from an odd address", CU(cuMemcpyDtoA_v2)(array, 0, a + 1, 16));
  show("AtoA of too much", CU(cuMemcpyAtoA_v2)(array, 0, array, 4, row));
  show("AtoA between texels of other sizes", CU(cuMemcpyAtoA_v2)(array, 0, bytes_array, 0, 16));
  show("AtoA of nothing", CU(cuMemcpyAtoA_v2)(array, 0, array, 0, 0));
  show("after those", CU(cuCtxSynchronize)());
}

// CUDA's documentation covers only one-dimensional arrays.
GROUP(array_rows_of_two_dimensions, InContext) {
  const CUarray array = make_array(described(64, 4));
  const auto bytes = pattern<4 * row>();
  std::array<unsigned char, 4 * row> back{};
  show("filled", fill(array, bytes.data(), row, 4, 1));
  show("AtoH of a row", CU(cuMemcpyAtoH_v2)(back.data(), array, 0, row));
  show_flag("it is the first", std::memcmp(back.data(), bytes.data(), row) == 0);
  show("AtoH of a row at its end", CU(cuMemcpyAtoH_v2)(back.data(), array, row - 4, 4));
  show("AtoH of two rows", CU(cuMemcpyAtoH_v2)(back.data(), array, 0, 2 * row));
  show("HtoA of two rows", CU(cuMemcpyHtoA_v2)(array, 0, bytes.data(), 2 * row));
  show("HtoA of the second row", CU(cuMemcpyHtoA_v2)(array, row, bytes.data(), row));
}

GROUP(array_copies_2d, InContext) {
  const CUarray array = make_array(described(64, 16)), other = make_array(described(64, 16));
  static const auto bytes = pattern<16 * row>();
  static std::array<unsigned char, 16 * row> back;
  auto c = zeroed<CUDA_MEMCPY2D>();
  c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = bytes.data(), c.srcPitch = row;
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = array;
  c.WidthInBytes = row, c.Height = 16;
  show("host to array", CU(cuMemcpy2D_v2)(&c));
  c = zeroed<CUDA_MEMCPY2D>();
  c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = array, c.srcXInBytes = 64, c.srcY = 3;
  c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = back.data(), c.dstPitch = 128;
  c.WidthInBytes = 128, c.Height = 8;
  show("a part of the array to the host", CU(cuMemcpy2D_v2)(&c));
  bool same = true;
  for (std::size_t y = 0; y < 8; ++y)
    same = same && std::memcmp(back.data() + 128 * y, bytes.data() + row * (y + 3) + 64, 128) == 0;
  show_flag("the part is the same", same);
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = other, c.dstXInBytes = 128, c.dstY = 8;
  show("a part of the array to another", CU(cuMemcpy2DUnaligned_v2)(&c));
  c = zeroed<CUDA_MEMCPY2D>();
  c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = other, c.srcXInBytes = 128, c.srcY = 8;
  c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = back.data(), c.dstPitch = 128;
  c.WidthInBytes = 128, c.Height = 8;
  back.fill(0);
  show("asynchronously to the host", CU(cuMemcpy2DAsync_v2)(&c, nullptr));
  CU(cuCtxSynchronize)();
  same = true;
  for (std::size_t y = 0; y < 8; ++y)
    same = same && std::memcmp(back.data() + 128 * y, bytes.data() + row * (y + 3) + 64, 128) == 0;
  show_flag("the part of the other is the same", same);
}

GROUP(array_copies_2d_errors, InContext) {
  const CUarray array = make_array(described(64, 16));
  static unsigned char host[32 * row];
  const auto start = [&] {
    auto c = zeroed<CUDA_MEMCPY2D>();
    c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = host, c.srcPitch = row;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = array;
    c.WidthInBytes = row, c.Height = 16;
    return c;
  };
  const auto ask = [](const std::string& what, const CUDA_MEMCPY2D& c) { show(what, CU(cuMemcpy2D_v2)(&c)); };
  auto c = start();
  c.WidthInBytes = row + 4, c.srcPitch = 2 * row;
  ask("too wide", c);
  c = start(), c.Height = 17;
  ask("too high", c);
  c = start(), c.dstXInBytes = 4;
  ask("beyond a row's end", c);
  c = start(), c.dstY = 1;
  ask("beyond the last row", c);
  c = start(), c.dstY = SIZE_MAX;
  ask("far beyond the last row", c);
  c = start(), c.WidthInBytes = 6;
  ask("a texel and a half", c);
  c = start(), c.dstXInBytes = 2, c.WidthInBytes = 4;
  ask("at half a texel", c);
  c = start(), c.srcPitch = 64;
  ask("a pitch below the width", c);
  c = start(), c.srcPitch = 0;
  ask("no pitch", c);
  c = start(), c.dstPitch = 1;
  ask("a pitch of the array", c);
  c = start(), c.Height = 0;
  ask("no rows", c);
  c = start(), c.WidthInBytes = 0;
  ask("no width", c);
  c = start(), c.srcHost = nullptr;
  ask("from null", c);
}

GROUP(array_copies_3d, InContext) {
  constexpr std::size_t width = 64, height = 8, depth = 4, all = width * height * depth;
  static const auto bytes = pattern<all>();
  const auto show_round = [&](const std::string& what, const CUDA_ARRAY3D_DESCRIPTOR& d) {
    const CUarray array = make_array(d);
    const std::size_t rows = d.Height == 0 ? 1 : d.Height, slices = d.Depth == 0 ? 1 : d.Depth;
    show(what + ", written", fill(array, bytes.data(), d.Width * 4, rows, slices));
    show_content(what, array, bytes.data(), d.Width * 4, rows, slices);
  };
  show_round("1D", described(16));
  show_round("2D", described(16, height));
  show_round("3D", described(16, height, depth));
  show_round("1D layered", described(16, 0, depth, CUDA_ARRAY3D_LAYERED));
  show_round("2D layered", described(16, height, depth, CUDA_ARRAY3D_LAYERED));
  show_round("cube", described(4, 4, 6, CUDA_ARRAY3D_CUBEMAP));
  show_round("layered cube", described(4, 4, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
}

// Copies texels of each size from 1 to 16 bytes.
GROUP(array_copies_of_formats, InContext) {
  static const auto bytes = pattern<4096>();
  for (const unsigned channels : {1U, 2U, 4U})
    for (const auto& [format, texel] : {std::pair{CU_AD_FORMAT_UNSIGNED_INT8, 1U}, std::pair{CU_AD_FORMAT_HALF, 2U},
                                        std::pair{CU_AD_FORMAT_FLOAT, 4U}}) {
      const CUarray array = make_array(described(13, 5, 3, 0, format, channels));
      const std::string what = std::to_string(texel * channels) + " bytes";
      show(what + ", written", fill(array, bytes.data(), std::size_t{13} * texel * channels, 5, 3));
      show_content(what, array, bytes.data(), std::size_t{13} * texel * channels, 5, 3);
    }
}

GROUP(array_copies_3d_parts, InContext) {
  const CUarray array = make_array(described(16, 8, 4)), layers = make_array(described(16, 8, 4, CUDA_ARRAY3D_LAYERED));
  static const auto bytes = pattern<2048>();
  static std::array<unsigned char, 2048> back;
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuMemsetD8_v2)(a, 0, 4096);
  show("filled", fill(array, bytes.data(), 64, 8, 4));
  auto c = nothing();
  from_array(c, array);
  c.srcXInBytes = 16, c.srcY = 2, c.srcZ = 1;
  to_array(c, layers);
  c.dstXInBytes = 32, c.dstY = 4, c.dstZ = 2;
  size(c, 32, 3, 2);
  show("array to layers", CU(cuMemcpy3D_v2)(&c));
  c = nothing();
  from_array(c, layers);
  c.srcXInBytes = 32, c.srcY = 4, c.srcZ = 2;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE, c.dstDevice = a, c.dstPitch = 64, c.dstHeight = 8, c.dstXInBytes = 4;
  size(c, 32, 3, 2);
  show("layers to memory", CU(cuMemcpy3D_v2)(&c));
  CU(cuMemcpyDtoH_v2)(back.data(), a, 2048);
  bool same = true;
  for (std::size_t z = 0; z < 2; ++z)
    for (std::size_t y = 0; y < 3; ++y)
      same = same &&
             std::memcmp(back.data() + 512 * z + 64 * y + 4, bytes.data() + 512 * (z + 1) + 64 * (y + 2) + 16, 32) == 0;
  show_flag("the part is the same", same);
  show("the sum of all bytes", sum_of(back.data(), back.size()));
  c = nothing();
  c.srcMemoryType = CU_MEMORYTYPE_UNIFIED, c.srcDevice = a, c.srcPitch = 64, c.srcHeight = 8;
  to_array(c, array);
  size(c, 64, 8, 2);
  show("memory to array, in a stream", CU(cuMemcpy3DAsync_v2)(&c, nullptr));
  CU(cuCtxSynchronize)();
  show_content("memory in the array", array, back.data(), 64, 8, 2);
}

GROUP(array_copies_of_levels, InContext) {
  const CUmipmappedArray levels = make_mipmapped(described(16, 8), 3);
  static const auto bytes = pattern<512>();
  CUarray first = nullptr, second = nullptr;
  CU(cuMipmappedArrayGetLevel)(&first, levels, 0);
  CU(cuMipmappedArrayGetLevel)(&second, levels, 1);
  show("level 0", fill(first, bytes.data(), 64, 8, 1));
  show("level 1", fill(second, bytes.data() + 64, 32, 4, 1));
  show_content("level 0", first, bytes.data(), 64, 8, 1);
  show_content("level 1", second, bytes.data() + 64, 32, 4, 1);
  show("level 1, too wide", fill(second, bytes.data(), 64, 4, 1));
  auto c = nothing();
  from_host(c, bytes.data(), 64, 8);
  to_array(c, first);
  size(c, 32, 4, 1);
  c.dstLOD = 1;
  show("a level by its number", CU(cuMemcpy3D_v2)(&c));
}

GROUP(array_copies_3d_errors, InContext) {
  const CUarray array = make_array(described(16, 8, 4)),
                wide = make_array(described(16, 8, 4, 0, CU_AD_FORMAT_FLOAT, 2));
  static unsigned char host[8192];
  const auto start = [&] {
    auto c = nothing();
    from_host(c, host, 64, 8);
    to_array(c, array);
    size(c, 64, 8, 4);
    return c;
  };
  const auto ask = [](const std::string& what, const CUDA_MEMCPY3D& c) { show(what, CU(cuMemcpy3D_v2)(&c)); };
  auto c = start();
  ask("all of it", c);
  c = start(), c.Depth = 5;
  ask("too deep", c);
  c = start(), c.dstZ = 1;
  ask("beyond the last slice", c);
  c = start(), c.dstZ = SIZE_MAX;
  ask("far beyond the last slice", c);
  c = start(), c.dstY = 1;
  ask("beyond the last row", c);
  c = start(), c.dstXInBytes = 4;
  ask("beyond a row's end", c);
  c = start(), c.dstXInBytes = 2, c.WidthInBytes = 4;
  ask("at half a texel", c);
  c = start(), c.WidthInBytes = 62;
  ask("half a texel less", c);
  c = start(), c.Depth = 0;
  ask("no slices", c);
  c = start(), c.srcHeight = 4;
  ask("a height below the rows", c);
  c = start(), c.srcHeight = 0;
  ask("no height", c);
  c = start(), c.srcLOD = 1;
  ask("a level of the host", c);
  c = start(), c.dstLOD = 1;
  ask("a level of the array", c);
  c = start(), c.reserved0 = host;
  ask("a reserved pointer", c);
  c = start(), c.reserved1 = host;
  ask("the other reserved pointer", c);
  c = start(), c.srcHost = nullptr;
  ask("from null", c);
  c = start();
  from_array(c, wide);
  ask("between texels of other sizes", c);
}

GROUP(array_copies_null_array, InContext) {
  static unsigned char host[64];
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 64);
  show_guarded("HtoA", [] { return CU(cuMemcpyHtoA_v2)(nullptr, 0, host, 16); });
  show_guarded("AtoH", [] { return CU(cuMemcpyAtoH_v2)(host, nullptr, 0, 16); });
  show_guarded("AtoD", [&] { return CU(cuMemcpyAtoD_v2)(a, nullptr, 0, 16); });
  show_guarded("DtoA", [&] { return CU(cuMemcpyDtoA_v2)(nullptr, 0, a, 16); });
  show_guarded("AtoA", [] { return CU(cuMemcpyAtoA_v2)(nullptr, 0, nullptr, 0, 16); });
  show_guarded("HtoA of nothing", [] { return CU(cuMemcpyHtoA_v2)(nullptr, 0, host, 0); });
}

GROUP(array_copies_null_array_3d, InContext) {
  static unsigned char host[64];
  auto c = nothing();
  from_host(c, host, 64, 1);
  to_array(c, nullptr);
  size(c, 64, 1, 1);
  show_guarded("to none", [&] { return CU(cuMemcpy3D_v2)(&c); });
}

}  // namespace
}  // namespace contract
