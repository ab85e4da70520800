// Calls that query the advice for managed memory. A range has an attribute only if all its parts have it.
#include "host/simgpu/api/memory/managed.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

using namespace simgpu;

namespace {

using Parts = std::vector<Advice>;

bool same(const CUmemLocation& a, const CUmemLocation& b) {
  const bool numbered = a.type == CU_MEM_LOCATION_TYPE_DEVICE || a.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return a.type == b.type && (!numbered || a.id == b.id);
}

// Returns the location that all parts have in common; type INVALID if the parts differ.
CUmemLocation common(const Parts& parts, CUmemLocation Advice::*place) {
  const CUmemLocation& first = parts.front().*place;
  for (const Advice& part : parts)
    if (!same(part.*place, first)) return {CU_MEM_LOCATION_TYPE_INVALID, 0};
  return first;
}

CUresult put(void* data, std::size_t size, std::int32_t value) {
  if (size != sizeof value) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// Writes as many device numbers as fit, and fills the rest with CU_DEVICE_INVALID.
CUresult put_accessors(void* data, std::size_t size, const Parts& parts) {
  if (size == 0 || size % sizeof(CUdevice) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUdevice> numbers;
  for (const CUdevice number : parts.front().accessed_by)
    if (std::all_of(parts.begin(), parts.end(), [&](const Advice& a) { return a.accessed_by.contains(number); }))
      numbers.push_back(number);
  numbers.resize(size / sizeof(CUdevice), CU_DEVICE_INVALID);
  std::memcpy(data, numbers.data(), size);
  return CUDA_SUCCESS;
}

CUresult answer(const Parts& parts, void* data, std::size_t size, CUmem_range_attribute attribute) {
  const CUmemLocation preferred = common(parts, &Advice::preferred), prefetched = common(parts, &Advice::prefetched);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return put(data, size, std::all_of(parts.begin(), parts.end(), [](const Advice& a) { return a.read_mostly; }));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: return put(data, size, number_of_place(preferred));
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: return put_accessors(data, size, parts);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: return put(data, size, number_of_place(prefetched));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return put(data, size, preferred.type);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return put(data, size, preferred.id);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: return put(data, size, prefetched.type);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: return put(data, size, prefetched.id);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuMemRangeGetAttribute(void* data, std::size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr,
                                std::size_t count) {
  return cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

CUresult cuMemRangeGetAttributes(void** data, std::size_t* dataSizes, CUmem_range_attribute* attributes,
                                 std::size_t numAttributes, CUdeviceptr devPtr, std::size_t count) {
  return with_context([&](Driver& driver, Context&) {
    if (data == nullptr || dataSizes == nullptr || attributes == nullptr || numAttributes == 0 ||
        !is_managed_range(driver, devPtr, count))
      return CUDA_ERROR_INVALID_VALUE;
    const Parts parts = driver.managed_advice.of(devPtr, count);
    for (std::size_t i = 0; i < numAttributes; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (const CUresult error = answer(parts, data[i], dataSizes[i], attributes[i]); error != CUDA_SUCCESS)
        return error;
    }
    return CUDA_SUCCESS;
  });
}
