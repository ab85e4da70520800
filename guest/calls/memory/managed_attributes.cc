// Queries for the advice on managed memory. A range has an attribute if every section of it has the attribute.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "guest/calls/calls.h"
#include "guest/calls/memory/managed.h"
#include "guest/process/process.h"

namespace guest::calls {
namespace {

using Parts = std::vector<Advice>;

bool same(const CUmemLocation& a, const CUmemLocation& b) { return a.type == b.type && a.id == b.id; }

// The place that all sections share; INVALID if they differ.
CUmemLocation common(const Parts& parts, CUmemLocation Advice::*place) {
  const CUmemLocation& first = parts.front().*place;
  for (const Advice& part : parts)
    if (!same(part.*place, first)) return {CU_MEM_LOCATION_TYPE_INVALID, 0};
  return first;
}

CUresult put(void* data, std::size_t bytes, std::int32_t value) {
  if (bytes != sizeof value) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// Writes as many device numbers as fit, the host's last, and fills the rest with CU_DEVICE_INVALID.
CUresult put_accessors(void* data, std::size_t bytes, const Parts& parts) {
  if (bytes == 0 || bytes % sizeof(CUdevice) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t accessors = ~std::uint64_t{0};
  for (const Advice& part : parts) accessors &= part.accessed_by;
  auto* to = static_cast<std::byte*>(data);
  for (const std::byte* const end = to + bytes; to != end; to += sizeof(CUdevice)) {
    const std::uint64_t lowest = accessors & (~accessors + 1);
    CUdevice number = CU_DEVICE_INVALID;
    if (lowest != 0) number = lowest == Advice::host ? CU_DEVICE_CPU : __builtin_ctzll(lowest);
    std::memcpy(to, &number, sizeof number);
    accessors &= ~lowest;
  }
  return CUDA_SUCCESS;
}

CUresult answer(const Parts& parts, void* data, std::size_t bytes, CUmem_range_attribute attribute) {
  const CUmemLocation preferred = common(parts, &Advice::preferred), prefetched = common(parts, &Advice::prefetched);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return put(data, bytes, std::all_of(parts.begin(), parts.end(), [](const Advice& a) { return a.read_mostly; }));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: return put(data, bytes, number_of_place(preferred));
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: return put_accessors(data, bytes, parts);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: return put(data, bytes, number_of_place(prefetched));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return put(data, bytes, preferred.type);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return put(data, bytes, preferred.id);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: return put(data, bytes, prefetched.type);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: return put(data, bytes, prefetched.id);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
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
  const Parts parts = session()->memory.managed.of(start, count);
  for (std::size_t i = 0; i < number; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = answer(parts, data[i], bytes[i], attributes[i]); r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
