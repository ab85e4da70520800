// Queries for the advice on managed memory. A range has an attribute if every section of it has the attribute.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "guest/calls/calls.h"
#include "guest/calls/memory/managed.h"
#include "guest/process/process.h"
#include "ring/abi/range_attributes.h"

namespace guest::calls {
namespace {

std::vector<CUdevice> accessors_of(const std::vector<Advice>& parts) {
  std::uint64_t common = ~std::uint64_t{0};
  for (const Advice& part : parts) common &= part.accessed_by;
  std::vector<CUdevice> numbers;
  for (; common != 0; common &= common - 1) {
    const std::uint64_t lowest = common & (~common + 1);
    numbers.push_back(lowest == Advice::host ? CUdevice{CU_DEVICE_CPU} : __builtin_ctzll(lowest));
  }
  return numbers;
}

cuabi::RangeAdvice advice_of(const std::vector<Advice>& parts) {
  const auto same = [](const CUmemLocation& a, const CUmemLocation& b) { return a.type == b.type && a.id == b.id; };
  return {.read_mostly = std::all_of(parts.begin(), parts.end(), [](const Advice& a) { return a.read_mostly; }),
          .preferred = cuabi::common_place(parts, &Advice::preferred, same),
          .prefetched = cuabi::common_place(parts, &Advice::prefetched, same),
          .accessed_by = accessors_of(parts)};
}

}  // namespace

CUresult cuMemRangeGetAttribute(void* data, std::size_t bytes, CUmem_range_attribute attribute, CUdeviceptr start,
                                std::size_t count) {
  return calls::cuMemRangeGetAttributes(&data, &bytes, &attribute, 1, start, count);
}

CUresult cuMemRangeGetAttributes(void** data, std::size_t* bytes, CUmem_range_attribute* attributes, std::size_t number,
                                 CUdeviceptr start, std::size_t count) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (data == nullptr || bytes == nullptr || attributes == nullptr || number == 0 || !is_managed_range(start, count))
    return CUDA_ERROR_INVALID_VALUE;
  return cuabi::range_attributes(advice_of(session()->memory.managed.of(start, count)), data, bytes, attributes,
                                 number);
}

}  // namespace guest::calls
