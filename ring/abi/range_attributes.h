// The results of cuMemRangeGetAttribute for a range of managed memory, which may have several parts with different
// advice. All functions are pure, except that they write to the caller's buffer.
//
// ```cpp
// CUresult read_mostly(int* answer) {
//   const cuabi::RangeAdvice range{.read_mostly = true};
//   return cuabi::range_attribute(range, answer, sizeof *answer, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);  // 1
// }
// ```
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "ring/api/cuda.h"

namespace cuabi {

// The advice that all parts of a range have.
struct RangeAdvice {
  bool read_mostly = false;
  // INVALID if the parts have different places, or none.
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0}, prefetched{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::vector<CUdevice> accessed_by = {};  // in the order of the result, with the host last
};

// Returns the device's number; CU_DEVICE_CPU for the host, CU_DEVICE_INVALID for no place.
inline CUdevice number_of_place(const CUmemLocation& place) {
  if (place.type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
  return place.type == CU_MEM_LOCATION_TYPE_DEVICE ? place.id : CU_DEVICE_CPU;
}

// Returns the place that all parts share; INVALID if two parts differ by `same(a, b)`. Precondition: `parts` is not
// empty.
template <class Advice, class Same>
CUmemLocation common_place(const std::vector<Advice>& parts, CUmemLocation Advice::*place, Same same) {
  const CUmemLocation& first = parts.front().*place;
  for (const Advice& part : parts)
    if (!same(part.*place, first)) return {CU_MEM_LOCATION_TYPE_INVALID, 0};
  return first;
}

inline CUresult put_number(void* data, std::size_t bytes, std::int32_t value) {
  if (bytes != sizeof value) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// Writes as many device numbers as fit, and fills the rest with CU_DEVICE_INVALID.
inline CUresult put_accessors(void* data, std::size_t bytes, const std::vector<CUdevice>& accessors) {
  if (bytes == 0 || bytes % sizeof(CUdevice) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t i = 0; i < bytes / sizeof(CUdevice); ++i) {
    const CUdevice number = i < accessors.size() ? accessors[i] : CUdevice{CU_DEVICE_INVALID};
    std::memcpy(to + i * sizeof number, &number, sizeof number);
  }
  return CUDA_SUCCESS;
}

inline CUresult range_attribute(const RangeAdvice& range, void* data, std::size_t bytes,
                                CUmem_range_attribute attribute) {
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: return put_number(data, bytes, range.read_mostly);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: return put_number(data, bytes, number_of_place(range.preferred));
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: return put_accessors(data, bytes, range.accessed_by);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return put_number(data, bytes, number_of_place(range.prefetched));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return put_number(data, bytes, range.preferred.type);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return put_number(data, bytes, range.preferred.id);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: return put_number(data, bytes, range.prefetched.type);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: return put_number(data, bytes, range.prefetched.id);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// The work of cuMemRangeGetAttributes after the checks of the range.
inline CUresult range_attributes(const RangeAdvice& range, void** data, const std::size_t* bytes,
                                 const CUmem_range_attribute* attributes, std::size_t number) {
  for (std::size_t i = 0; i < number; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = range_attribute(range, data[i], bytes[i], attributes[i]); r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

}  // namespace cuabi
