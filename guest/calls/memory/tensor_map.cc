// Tensor maps. The driver encodes the maps, which kernels read, and checks all numbers. The calls are handwritten
// because their arrays have three lengths: the rank, the rank less one, and the rank less two.
#include <algorithm>
#include <cstring>

#include "guest/calls/calls.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

constexpr std::uint32_t most_dimensions = api::TensorMapRecord::most_dimensions;

// The parameters that all three encoding calls share. The check returns false if nothing can be sent.
struct Tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t *dimensions, *strides;
  const cuuint32_t* steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;

  bool readable(cuuint32_t least_rank) const {
    return rank >= least_rank && rank <= most_dimensions && dimensions != nullptr && steps != nullptr &&
           strides != nullptr;
  }
  api::TensorMapRecord record() const {
    api::TensorMapRecord r{};
    r.address = reinterpret_cast<std::uint64_t>(address);
    std::copy_n(dimensions, rank, r.dimensions);
    std::copy_n(strides, rank - 1, r.strides);
    std::copy_n(steps, rank, r.steps);
    r.type = static_cast<std::uint32_t>(type);
    r.rank = rank;
    r.interleave = static_cast<std::uint32_t>(interleave);
    r.swizzle = static_cast<std::uint32_t>(swizzle);
    r.promotion = static_cast<std::uint32_t>(promotion);
    r.fill = static_cast<std::uint32_t>(fill);
    return r;
  }
};

template <class Record>
CUresult ask_driver(int call, Context& context, const Record& record, CUtensorMap* map) {
  const auto take = [&](CUresult result, ring::SharedReader& reply) {
    if (result != CUDA_SUCCESS) return;
    const auto made = reply.read<api::TensorMapReply>();
    std::memcpy(map, made.map, sizeof *map);
  };
  return cross({.call = call, .context = context}, record, {}, take).result;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuTensorMapEncodeTiled>(context); r != CUDA_SUCCESS) return r;
  const Tensor tensor{type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
  if (map == nullptr || !tensor.readable(1) || box == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::TensorMapRecord record = tensor.record();
  std::copy_n(box, rank, record.box);
  return ask_driver(api::id_of::cuTensorMapEncodeTiled, *context, record, map);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* dimensions, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuTensorMapEncodeIm2col>(context); r != CUDA_SUCCESS) return r;
  const Tensor tensor{type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
  if (map == nullptr || !tensor.readable(3) || lower == nullptr || upper == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::TensorMapRecord record = tensor.record();
  std::copy_n(lower, rank - 2, record.lower);
  std::copy_n(upper, rank - 2, record.upper);
  record.channels = channels;
  record.pixels = pixels;
  return ask_driver(api::id_of::cuTensorMapEncodeIm2col, *context, record, map);
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                     const cuuint64_t* dimensions, const cuuint64_t* strides, int lower, int upper,
                                     cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
                                     CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
                                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                     CUtensorMapFloatOOBfill fill) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuTensorMapEncodeIm2colWide>(context); r != CUDA_SUCCESS) return r;
  const Tensor tensor{type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
  if (map == nullptr || !tensor.readable(3)) return CUDA_ERROR_INVALID_VALUE;
  api::TensorMapRecord record = tensor.record();
  record.lower[0] = lower;
  record.upper[0] = upper;
  record.channels = channels;
  record.pixels = pixels;
  record.mode = static_cast<std::uint32_t>(mode);
  return ask_driver(api::id_of::cuTensorMapEncodeIm2colWide, *context, record, map);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuTensorMapReplaceAddress>(context); r != CUDA_SUCCESS) return r;
  if (map == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::MoveTensorMapRecord record{.address = reinterpret_cast<std::uint64_t>(address), .map = {}};
  static_assert(sizeof record.map == sizeof *map);
  std::memcpy(record.map, map, sizeof record.map);
  return ask_driver(api::id_of::cuTensorMapReplaceAddress, *context, record, map);
}

}  // namespace guest::calls
