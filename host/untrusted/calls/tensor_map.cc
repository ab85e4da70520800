// Tensor maps. The driver checks the numbers; the record's arrays always have the length of the highest rank.
#include <cstring>

#include "host/untrusted/calls/calls.h"

namespace host::calls {
namespace {

// Converts a number that may be outside the enumeration.
template <class Enum>
Enum as(std::uint32_t number) {
  Enum value;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof value);
  return value;
}

void* address_of(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// Answers with the map that `make` creates.
template <class A, class F>
CUresult answer_with(A& a, F&& make) {
  CUtensorMap map{};
  const CUresult result = make(&map);
  api::TensorMapReply reply{};
  std::memcpy(reply.map, &map, sizeof map);
  return a.answer(result, reply);
}

}  // namespace

CUresult cuTensorMapEncodeTiled(call_of::cuTensorMapEncodeTiled& a) {
  const auto& r = a.record;
  return answer_with(a, [&](CUtensorMap* map) {
    return a.call(map, as<CUtensorMapDataType>(r.type), r.rank, address_of(r.address),
                  reinterpret_cast<const cuuint64_t*>(r.dimensions), reinterpret_cast<const cuuint64_t*>(r.strides),
                  r.box, r.steps, as<CUtensorMapInterleave>(r.interleave), as<CUtensorMapSwizzle>(r.swizzle),
                  as<CUtensorMapL2promotion>(r.promotion), as<CUtensorMapFloatOOBfill>(r.fill));
  });
}

CUresult cuTensorMapEncodeIm2col(call_of::cuTensorMapEncodeIm2col& a) {
  const auto& r = a.record;
  return answer_with(a, [&](CUtensorMap* map) {
    return a.call(map, as<CUtensorMapDataType>(r.type), r.rank, address_of(r.address),
                  reinterpret_cast<const cuuint64_t*>(r.dimensions), reinterpret_cast<const cuuint64_t*>(r.strides),
                  r.lower, r.upper, r.channels, r.pixels, r.steps, as<CUtensorMapInterleave>(r.interleave),
                  as<CUtensorMapSwizzle>(r.swizzle), as<CUtensorMapL2promotion>(r.promotion),
                  as<CUtensorMapFloatOOBfill>(r.fill));
  });
}

CUresult cuTensorMapEncodeIm2colWide(call_of::cuTensorMapEncodeIm2colWide& a) {
  const auto& r = a.record;
  return answer_with(a, [&](CUtensorMap* map) {
    return a.call(map, as<CUtensorMapDataType>(r.type), r.rank, address_of(r.address),
                  reinterpret_cast<const cuuint64_t*>(r.dimensions), reinterpret_cast<const cuuint64_t*>(r.strides),
                  r.lower[0], r.upper[0], r.channels, r.pixels, r.steps, as<CUtensorMapInterleave>(r.interleave),
                  as<CUtensorMapIm2ColWideMode>(r.mode), as<CUtensorMapSwizzle>(r.swizzle),
                  as<CUtensorMapL2promotion>(r.promotion), as<CUtensorMapFloatOOBfill>(r.fill));
  });
}

CUresult cuTensorMapReplaceAddress(call_of::cuTensorMapReplaceAddress& a) {
  return answer_with(a, [&](CUtensorMap* map) {
    std::memcpy(map, a.record.map, sizeof *map);
    return a.call(map, address_of(a.record.address));
  });
}

}  // namespace host::calls
