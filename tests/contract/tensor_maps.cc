// Cases for tensor maps. Their bytes depend on the driver, so the cases show which arguments are valid, and whether
// equal arguments yield equal bytes.
#include "tests/contract/suite.h"

namespace contract {
namespace {

// A plain tensor of three dimensions. A case changes one parameter.
struct Tiled {
  CUtensorMap map;
  CUtensorMap* to = &map;
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  cuuint32_t rank = 3;
  CUdeviceptr address = 0;
  cuuint64_t dimensions[6] = {64, 32, 8, 1, 1, 1};
  cuuint64_t strides[5] = {256, 8192, 65536, 65536, 65536};
  cuuint32_t box[6] = {16, 8, 2, 1, 1, 1};
  cuuint32_t steps[6] = {1, 1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  explicit Tiled(CUdeviceptr at) : address(at) { std::memset(&map, 0xee, sizeof map); }
  Tiled(const Tiled& other) { *this = other; }
  Tiled& operator=(const Tiled& other) {
    std::memcpy(static_cast<void*>(this), &other, sizeof *this);
    to = &map;
    return *this;
  }
  CUresult encode() {
    return CU(cuTensorMapEncodeTiled)(to, type, rank, reinterpret_cast<void*>(address), dimensions, strides, box, steps,
                                      interleave, swizzle, promotion, fill);
  }
};

CUdeviceptr some_memory() {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 1 << 20);
  return a;
}

template <class Change>
void tiled(const std::string& what, CUdeviceptr a, Change change) {
  Tiled t(a);
  change(t);
  show(what, t.encode());
}

GROUP(tensor_maps_tiled, InContext) {
  const CUdeviceptr a = some_memory();
  Tiled one(a), other(a);
  show("a map", one.encode());
  other.encode();
  show_flag("equal arguments make equal bytes", std::memcmp(&one.map, &other.map, sizeof one.map) == 0);
  other.dimensions[0] = 32;
  other.encode();
  show_flag("others make others", std::memcmp(&one.map, &other.map, sizeof one.map) != 0);
  for (int type = -1; type <= 16; ++type)
    tiled("type " + std::to_string(type), a, [&](Tiled& t) { t.type = odd<CUtensorMapDataType>(type); });
  for (const cuuint32_t rank : {0U, 1U, 2U, 3U, 4U, 5U, 6U})
    tiled("rank " + std::to_string(rank), a, [&](Tiled& t) { t.rank = rank; });
  tiled("not all bytes are aligned", a, [](Tiled& t) { t.address += 8; });
  tiled("16 bytes", a, [](Tiled& t) { t.address += 16; });
}

GROUP(tensor_maps_tiled_sizes, InContext) {
  const CUdeviceptr a = some_memory();
  tiled("dimension 0", a, [](Tiled& t) { t.dimensions[1] = 0; });
  tiled("dimension 2^32", a, [](Tiled& t) { t.dimensions[2] = std::uint64_t{1} << 32; });
  tiled("dimension 2^32 + 1", a, [](Tiled& t) { t.dimensions[2] = (std::uint64_t{1} << 32) + 1; });
  tiled("stride 8", a, [](Tiled& t) { t.strides[0] = 8; });
  tiled("stride 0", a, [](Tiled& t) { t.strides[0] = 0; });
  tiled("a stride below the row", a, [](Tiled& t) { t.strides[0] = 16; });
  tiled("a plane's stride below a row's", a, [](Tiled& t) { t.strides[1] = 16; });
  tiled("stride 2^40 - 16", a, [](Tiled& t) { t.strides[1] = (std::uint64_t{1} << 40) - 16; });
  tiled("stride 2^40", a, [](Tiled& t) { t.strides[1] = std::uint64_t{1} << 40; });
  tiled("box 0", a, [](Tiled& t) { t.box[1] = 0; });
  tiled("box 256", a, [](Tiled& t) { t.box[1] = 256; });
  tiled("box 257", a, [](Tiled& t) { t.box[1] = 257; });
  tiled("a box beyond the tensor", a, [](Tiled& t) { t.box[2] = 64; });
  tiled("an inner box of 12 bytes", a, [](Tiled& t) { t.box[0] = 3; });
  tiled("a large box", a, [](Tiled& t) { t.box[0] = t.box[1] = t.box[2] = 256; });
  tiled("step 0", a, [](Tiled& t) { t.steps[1] = 0; });
  tiled("step 8", a, [](Tiled& t) { t.steps[1] = 8; });
  tiled("step 9", a, [](Tiled& t) { t.steps[1] = 9; });
  tiled("first step 0", a, [](Tiled& t) { t.steps[0] = 0; });
}

GROUP(tensor_maps_tiled_modes, InContext) {
  const CUdeviceptr a = some_memory();
  for (const int swizzle : {-1, 0, 1, 2, 3, 4, 5, 6, 7}) {
    const std::string name = "swizzle " + std::to_string(swizzle);
    tiled(name + ", 32 bytes", a, [&](Tiled& t) { t.box[0] = 8, t.swizzle = odd<CUtensorMapSwizzle>(swizzle); });
    tiled(name + ", 64 bytes", a, [&](Tiled& t) { t.box[0] = 16, t.swizzle = odd<CUtensorMapSwizzle>(swizzle); });
    tiled(name + ", 128 bytes", a, [&](Tiled& t) { t.box[0] = 32, t.swizzle = odd<CUtensorMapSwizzle>(swizzle); });
    tiled(name + ", 256 bytes", a, [&](Tiled& t) { t.box[0] = 64, t.swizzle = odd<CUtensorMapSwizzle>(swizzle); });
  }
  for (const int interleave : {-1, 0, 1, 2, 3})
    for (const int swizzle : {0, 1}) {
      const std::string name = "interleave " + std::to_string(interleave) + ", swizzle " + std::to_string(swizzle);
      tiled(name, a, [&](Tiled& t) {
        t.interleave = odd<CUtensorMapInterleave>(interleave), t.swizzle = odd<CUtensorMapSwizzle>(swizzle);
      });
    }
  tiled("interleave 1 of rank 2", a, [](Tiled& t) { t.rank = 2, t.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; });
  tiled("interleave 2 at 16 bytes", a, [](Tiled& t) {
    t.address += 16, t.interleave = CU_TENSOR_MAP_INTERLEAVE_32B, t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  });
  tiled("interleave 2, a stride of 48", a, [](Tiled& t) {
    t.strides[0] = 48, t.interleave = CU_TENSOR_MAP_INTERLEAVE_32B, t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  });
  for (const int promotion : {-1, 0, 1, 2, 3, 4})
    tiled("promotion " + std::to_string(promotion), a,
          [&](Tiled& t) { t.promotion = odd<CUtensorMapL2promotion>(promotion); });
  for (const int fill : {-1, 0, 1, 2})
    tiled("fill " + std::to_string(fill), a, [&](Tiled& t) { t.fill = odd<CUtensorMapFloatOOBfill>(fill); });
  tiled("fill 1 of integers", a, [](Tiled& t) {
    t.type = CU_TENSOR_MAP_DATA_TYPE_INT32, t.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  });
}

// Values of four and six bits, which only GPUs newer than the H200 support.
GROUP(tensor_maps_packed, InContext) {
  const CUdeviceptr a = some_memory();
  for (const int type : {13, 14, 15}) {
    const std::string name = "type " + std::to_string(type);
    const auto packed = [&](Tiled& t) {
      t.type = odd<CUtensorMapDataType>(type);
      t.dimensions[0] = 256, t.box[0] = 128;
    };
    tiled(name, a, packed);
    tiled(name + ", 129 values", a, [&](Tiled& t) { packed(t), t.dimensions[0] = 129; });
    tiled(name + ", a box of 64", a, [&](Tiled& t) { packed(t), t.box[0] = 64; });
    tiled(name + ", at 16 bytes", a, [&](Tiled& t) { packed(t), t.address += 16; });
    tiled(name + ", swizzle 1", a, [&](Tiled& t) { packed(t), t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; });
    tiled(name + ", swizzle 3", a, [&](Tiled& t) { packed(t), t.swizzle = CU_TENSOR_MAP_SWIZZLE_128B; });
    tiled(name + ", fill 1", a,
          [&](Tiled& t) { packed(t), t.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; });
  }
}

// Tensor maps with addresses of each kind of memory.
GROUP(tensor_maps_addresses, InContext) {
  const CUdeviceptr a = some_memory();
  void* pinned = nullptr;
  alignas(64) char stack[64];
  CU(cuMemHostAlloc)(&pinned, 1 << 20, 0);
  tiled("pinned memory", a, [&](Tiled& t) { t.address = address_of(pinned); });
  tiled("the stack", a, [&](Tiled& t) { t.address = address_of(stack); });
  tiled("nowhere", a, [](Tiled& t) { t.address = 0; });
  tiled("a tensor beyond the memory's end", a, [](Tiled& t) { t.dimensions[2] = 1 << 20; });
  tiled("from the middle", a, [](Tiled& t) { t.address += 1 << 19; });
  CU(cuMemFree_v2)(a);
  tiled("freed memory", a, [](Tiled&) {});
}

GROUP(tensor_maps_without_a_context, Initialized) {
  tiled("a map", 0x100000, [](Tiled&) {});
}

GROUP(tensor_maps_misplaced, InContext) {
  Tiled t(some_memory());
  alignas(64) char room[sizeof(CUtensorMap) + 64];
  t.to = reinterpret_cast<CUtensorMap*>(room + 32);
  show_guarded("at 32 bytes", [&] { return t.encode(); });
  t.to = reinterpret_cast<CUtensorMap*>(room + 8);
  show_guarded("at 8 bytes", [&] { return t.encode(); });
}

GROUP(tensor_maps_null, InContext) {
  Tiled t(some_memory());
  const auto encode = CU(cuTensorMapEncodeTiled);
  const auto at = reinterpret_cast<void*>(t.address);
  const auto ask = [&](CUtensorMap* map, const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
                       const cuuint32_t* steps) {
    return encode(map, t.type, 3, at, dimensions, strides, box, steps, t.interleave, t.swizzle, t.promotion, t.fill);
  };
  show_guarded("no map", [&] { return ask(nullptr, t.dimensions, t.strides, t.box, t.steps); });
  show_guarded("no dimensions", [&] { return ask(&t.map, nullptr, t.strides, t.box, t.steps); });
  show_guarded("no strides", [&] { return ask(&t.map, t.dimensions, nullptr, t.box, t.steps); });
  show_guarded("no box", [&] { return ask(&t.map, t.dimensions, t.strides, nullptr, t.steps); });
  show_guarded("no steps", [&] { return ask(&t.map, t.dimensions, t.strides, t.box, nullptr); });
  show_guarded("no strides, rank 1", [&] {
    return encode(&t.map, t.type, 1, at, t.dimensions, nullptr, t.box, t.steps, t.interleave, t.swizzle, t.promotion,
                  t.fill);
  });
}

// A tensor of four images of 32 by 16 pixels with 64 channels.
struct Pixels {
  CUtensorMap map;
  CUdeviceptr address;
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 4, channels = 64, pixels = 128;
  cuuint64_t dimensions[5] = {64, 32, 16, 4, 1};
  cuuint64_t strides[4] = {128, 4096, 65536, 262144};
  int lower[3] = {-1, -1, 0}, upper[3] = {-1, -1, 0};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapIm2ColWideMode mode = CU_TENSOR_MAP_IM2COL_WIDE_MODE_W;

  explicit Pixels(CUdeviceptr at) : address(at) { std::memset(&map, 0xee, sizeof map); }
  CUresult encode() {
    return CU(cuTensorMapEncodeIm2col)(&map, type, rank, reinterpret_cast<void*>(address), dimensions, strides, lower,
                                       upper, channels, pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
  CUresult encode_wide() {
    return CU(cuTensorMapEncodeIm2colWide)(&map, type, rank, reinterpret_cast<void*>(address), dimensions, strides,
                                           lower[0], upper[0], channels, pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                           mode, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
};

template <class Change>
void im2col(const std::string& what, CUdeviceptr a, Change change) {
  Pixels p(a);
  change(p);
  show(what, p.encode());
}

GROUP(tensor_maps_im2col, InContext) {
  const CUdeviceptr a = some_memory();
  im2col("a map", a, [](Pixels&) {});
  for (const cuuint32_t rank : {0U, 1U, 2U, 3U, 4U, 5U, 6U})
    im2col("rank " + std::to_string(rank), a, [&](Pixels& p) { p.rank = rank; });
  for (const int corner : {-129, -128, 127, 128})
    im2col("lower corner " + std::to_string(corner), a, [&](Pixels& p) { p.lower[0] = p.upper[0] = corner; });
  im2col("an empty box", a, [](Pixels& p) { p.lower[1] = 40, p.upper[1] = 0; });
  im2col("a box without rows", a, [](Pixels& p) { p.lower[0] = 16, p.upper[0] = 0; });
  for (const cuuint32_t channels : {0U, 8U, 256U, 257U})
    im2col("channels " + std::to_string(channels), a,
           [&](Pixels& p) { p.channels = channels, p.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; });
  im2col("too many channels for the swizzle", a, [](Pixels& p) { p.channels = 128; });
  im2col("channels of 14 bytes", a, [](Pixels& p) { p.channels = 7; });
  for (const cuuint32_t pixels : {0U, 1U, 1024U, 1025U})
    im2col("pixels " + std::to_string(pixels), a, [&](Pixels& p) { p.pixels = pixels; });
  im2col("step 0", a, [](Pixels& p) { p.steps[2] = 0; });
  im2col("8 bytes further", a, [](Pixels& p) { p.address += 8; });
}

GROUP(tensor_maps_im2col_wide, InContext) {
  const CUdeviceptr a = some_memory();
  const auto ask = [&](const std::string& what, const std::function<void(Pixels&)>& change) {
    Pixels p(a);
    change(p);
    show(what, p.encode_wide());
  };
  ask("a map", [](Pixels&) {});
  ask("mode W128", [](Pixels& p) { p.mode = CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128; });
  ask("mode 9", [](Pixels& p) { p.mode = odd<CUtensorMapIm2ColWideMode>(9); });
  ask("no swizzle", [](Pixels& p) { p.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; });
  ask("rank 2", [](Pixels& p) { p.rank = 2; });
  ask("corner 32768", [](Pixels& p) { p.lower[0] = 32768; });
  ask("pixels 1025", [](Pixels& p) { p.pixels = 1025; });
}

GROUP(tensor_maps_im2col_null, InContext) {
  Pixels p(some_memory());
  const auto ask = [&](CUtensorMap* map, const int* lower, const int* upper) {
    return CU(cuTensorMapEncodeIm2col)(map, p.type, 4, reinterpret_cast<void*>(p.address), p.dimensions, p.strides,
                                       lower, upper, 64, 128, p.steps, CU_TENSOR_MAP_INTERLEAVE_NONE, p.swizzle,
                                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  show_guarded("no map", [&] { return ask(nullptr, p.lower, p.upper); });
  show_guarded("no lower corner", [&] { return ask(&p.map, nullptr, p.upper); });
  show_guarded("no upper corner", [&] { return ask(&p.map, p.lower, nullptr); });
}

GROUP(tensor_maps_moved, InContext) {
  const CUdeviceptr a = some_memory(), b = some_memory();
  const auto move = CU(cuTensorMapReplaceAddress);
  Tiled t(a), fresh(b);
  t.encode();
  fresh.encode();
  show("moved", move(&t.map, reinterpret_cast<void*>(b)));
  show_flag("as made there", std::memcmp(&t.map, &fresh.map, sizeof t.map) == 0);
  show("by 8 bytes", move(&t.map, reinterpret_cast<void*>(b + 8)));
  show("by 16 bytes", move(&t.map, reinterpret_cast<void*>(b + 16)));
  show("to nowhere", move(&t.map, nullptr));
  show_guarded("no map", [&] { return move(nullptr, reinterpret_cast<void*>(b)); });
}

GROUP(tensor_maps_moved_zeros, InContext) {
  Tiled t(some_memory());
  std::memset(&t.map, 0, sizeof t.map);
  show_guarded("a map of zeros",
               [&] { return CU(cuTensorMapReplaceAddress)(&t.map, reinterpret_cast<void*>(t.address)); });
}

}  // namespace
}  // namespace contract
