// Calls that query the advice for managed memory. A range has an attribute only if all its parts have it.
#include "host/simgpu/api/memory/managed.h"

#include <algorithm>

#include "ring/abi/range_attributes.h"

using namespace simgpu;

namespace {

bool same(const CUmemLocation& a, const CUmemLocation& b) {
  const bool numbered = a.type == CU_MEM_LOCATION_TYPE_DEVICE || a.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return a.type == b.type && (!numbered || a.id == b.id);
}

std::vector<CUdevice> accessors_of(const std::vector<Advice>& parts) {
  std::vector<CUdevice> numbers;
  for (const CUdevice number : parts.front().accessed_by)
    if (std::all_of(parts.begin(), parts.end(), [&](const Advice& a) { return a.accessed_by.contains(number); }))
      numbers.push_back(number);
  return numbers;
}

cuabi::RangeAdvice advice_of(const std::vector<Advice>& parts) {
  return {.read_mostly = std::all_of(parts.begin(), parts.end(), [](const Advice& a) { return a.read_mostly; }),
          .preferred = cuabi::common_place(parts, &Advice::preferred, same),
          .prefetched = cuabi::common_place(parts, &Advice::prefetched, same),
          .accessed_by = accessors_of(parts)};
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
    const cuabi::RangeAdvice advice = advice_of(driver.managed_advice.of(devPtr, count));
    return cuabi::range_attributes(advice, data, dataSizes, attributes, numAttributes);
  });
}
