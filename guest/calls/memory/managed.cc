// Calls that allocate managed memory and advise on its location. Program, worker and GPU share the memory in place. The
// guest therefore moves nothing and orders no work; it checks and stores the advice
// (guest/objects/memory/managed_ranges.h).
#include "guest/calls/memory/managed.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/find_stream.h"
#include "guest/calls/memory/arena_block.h"

namespace guest::calls {
namespace {

bool is_node(int number) {
  char path[64];
  std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d", number);
  return number == 0 || (number > 0 && access(path, F_OK) == 0);
}

// Checks and stores advice. Older and newer versions of the call return different errors for an unknown device.
CUresult advise(CUdeviceptr start, std::size_t bytes, CUmem_advise advice, const CUmemLocation& place,
                CUresult no_device) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  const bool typed = place.type >= CU_MEM_LOCATION_TYPE_DEVICE && place.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  if (!is_managed_range(start, bytes) || !typed) return CUDA_ERROR_INVALID_VALUE;
  const CUresult judged = judge_place(place);
  const CUresult no_place = judged == CUDA_ERROR_INVALID_DEVICE ? no_device : judged;
  const bool host = place.type != CU_MEM_LOCATION_TYPE_DEVICE, node = host && place.type != CU_MEM_LOCATION_TYPE_HOST;
  const auto change = [&](auto&& f) {
    session()->memory.managed.change(start, bytes, f);
    return CUDA_SUCCESS;
  };
  const std::uint64_t accessor = host ? Advice::host : 1ULL << (place.id & 63);
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      return change([&](Advice& a) { a.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY; });
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      // A NUMA node of the host counts as the host.
      if (no_place != CUDA_SUCCESS) return no_place;
      return change([&](Advice& a) { a.preferred = host ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0} : place; });
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: return change([&](Advice& a) { a.preferred = {}; });
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      if (no_place != CUDA_SUCCESS) return no_place;
      if (node) return CUDA_ERROR_INVALID_VALUE;
      return change([&](Advice& a) {
        a.accessed_by = advice == CU_MEM_ADVISE_SET_ACCESSED_BY ? a.accessed_by | accessor : a.accessed_by & ~accessor;
      });
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

bool is_managed_range(CUdeviceptr start, std::size_t bytes) {
  return bytes != 0 && session()->memory.addresses.kind_of(start, bytes) == Place::Kind::Managed;
}

CUresult judge_place(const CUmemLocation& place) {
  switch (place.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return check_device(place.id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return is_node(place.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUmemLocation place_of_number(CUdevice number) {
  if (number == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, number};
}

// Managed memory is filled with zeros, as the driver does.
CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
  const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
  if (address == nullptr || bytes == 0 || !known) return CUDA_ERROR_INVALID_VALUE;
  Session& s = *session();
  if (!s.memory.addresses.arena_is_at_one_address()) {
    log(Level::Warn, "cuMemAllocManaged is refused: this process's arena could not be mapped where the GPU has it");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::byte* const block = allocate_block(Place::Kind::Managed, bytes, flags, *context);
  if (block == nullptr) return no_block();
  std::memset(block, 0, bytes);
  *address = reinterpret_cast<CUdeviceptr>(block);
  s.memory.managed.forget(*address, bytes);  // drops the advice about an earlier block
  return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr start, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise(start, bytes, advice, place_of_number(device), CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuMemAdvise_v2(CUdeviceptr start, std::size_t bytes, CUmem_advise advice, CUmemLocation place) {
  return advise(start, bytes, advice, place, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr start, std::size_t bytes, CUmemLocation place, unsigned flags,
                               CUstream stream) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (flags != 0 || !is_managed_range(start, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = judge_place(place); r != CUDA_SUCCESS) return r;
  session()->memory.managed.change(start, bytes, [&](Advice& a) { a.prefetched = place; });
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr start, std::size_t bytes, CUdevice device, CUstream stream) {
  return calls::cuMemPrefetchAsync_v2(start, bytes, place_of_number(device), 0, stream);
}

// The call has no effect beyond its checks. Memory cannot be attached to the NULL stream alone.
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr start, std::size_t bytes, unsigned flags) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
  const Place place = session()->memory.addresses.find(start);
  if (!known || (flags == CU_MEM_ATTACH_SINGLE && ref.null_stream) || place.kind != Place::Kind::Managed ||
      start != place.start || (bytes != 0 && bytes != place.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
