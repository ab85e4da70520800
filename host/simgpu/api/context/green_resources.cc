// Calls that query, split and describe device resources. Multiprocessors are the only type of resource.
#include "host/simgpu/api/context/green_resources.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/driver.h"

namespace simgpu {
namespace {

// Smallest group of multiprocessors from compute capability 9.0 on, as cuda.h documents: 8, or 2 if the program gives
// up co-scheduling.
constexpr unsigned coscheduled = 8, alone = 2;

// The driver's private data in the reserved bytes of a CUdevResource.
struct Hidden {
  std::uint32_t magic;
  Multiprocessors part;
};
constexpr std::uint32_t magic = 0x73676976;
static_assert(sizeof(Hidden) <= sizeof(CUdevResource::_internal_padding));

int index_of(Driver& driver, const Device& device) {
  const auto same = [&](const auto& each) { return each.get() == &device; };
  return static_cast<int>(std::find_if(driver.devices.begin(), driver.devices.end(), same) - driver.devices.begin());
}

CUresult answer(CUdevResource* out, CUdevResourceType type, const Multiprocessors& part) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = resource_of(part);
  return CUDA_SUCCESS;
}

// These flags exclude each other. The driver ignores all other flags.
constexpr unsigned excluding =
    CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;

// The group size and the number of groups that answer a request.
struct Split {
  unsigned size = 0, groups = 0;
};

Split split_of(const Multiprocessors& all, unsigned wish, unsigned granularity) {
  const unsigned size = (std::max(wish, 1U) + granularity - 1) / granularity * granularity;
  return {size, all.count / size};
}

CUdevResource nothing() {
  CUdevResource none;
  std::memset(&none, 0, sizeof none);
  return none;
}

}  // namespace

CUdevResource resource_of(const Multiprocessors& part) {
  CUdevResource resource = nothing();
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm = {
      .smCount = part.count, .minSmPartitionSize = part.granularity, .smCoscheduledAlignment = part.granularity};
  const Hidden hidden{.magic = magic, .part = part};
  std::memcpy(resource._internal_padding, &hidden, sizeof hidden);
  return resource;
}

std::optional<Multiprocessors> multiprocessors_in(const CUdevResource& resource) {
  Hidden hidden;
  std::memcpy(&hidden, resource._internal_padding, sizeof hidden);
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM || hidden.magic != magic) return std::nullopt;
  return hidden.part;
}

Multiprocessors all_of_device(int device) {
  return {.device = device, .first = 0, .count = device_multiprocessors, .granularity = coscheduled, .split = 0};
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return with_driver([&](Driver& driver) {
    if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return answer(resource, type, all_of_device(device));
  });
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    if (hCtx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;  // NULL does not stand for the current context here
    CUresult error;
    const std::shared_ptr<Context> context = context_named(driver, hCtx, &error);
    if (context == nullptr) return error;
    const std::shared_ptr<GreenContext> green = green_of(driver, context);
    return answer(resource, type, green == nullptr ? all_of_device(index_of(driver, context->device)) : green->has);
  });
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<GreenContext> green = driver.greens.find(hCtx);
    return green == nullptr ? CUDA_ERROR_INVALID_CONTEXT : answer(resource, type, green->has);
  });
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* nbGroups, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned useFlags, unsigned minCount) {
  return with_driver([&](Driver& driver) {
    if (nbGroups == nullptr || input == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((result != nullptr && *nbGroups == 0) || (useFlags & excluding) == excluding) return CUDA_ERROR_INVALID_VALUE;
    const std::optional<Multiprocessors> all = multiprocessors_in(*input);
    if (!all) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (minCount > all->count || all->split != 0)
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;  // a part can be split only through a green context
    const bool fine = (useFlags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
    const unsigned granularity = fine ? alone : coscheduled;
    const Split split = split_of(*all, minCount, granularity);
    *nbGroups = result == nullptr ? split.groups : std::min(*nbGroups, split.groups);
    Multiprocessors part{.device = all->device,
                         .first = all->first,
                         .count = split.size,
                         .granularity = granularity,
                         .split = driver.next_id()};
    for (unsigned i = 0; result != nullptr && i < *nbGroups; ++i, part.first += split.size)
      result[i] = resource_of(part);
    part.count = all->count - *nbGroups * split.size;
    if (remaining != nullptr) *remaining = part.count == 0 || result == nullptr ? nothing() : resource_of(part);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources, unsigned nbResources) {
  if (phDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    if (resources == nullptr || nbResources == 0) return CUDA_ERROR_INVALID_VALUE;
    auto description = std::make_shared<ResourceDescription>();
    for (const CUdevResource& resource : std::span(resources, nbResources)) {
      const std::optional<Multiprocessors> part = multiprocessors_in(resource);
      if (!part) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
      description->parts.push_back(*part);
    }
    const int device = description->parts.front().device;
    const auto elsewhere = [&](const Multiprocessors& part) { return part.device != device; };
    if (std::any_of(description->parts.begin(), description->parts.end(), elsewhere))
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *phDesc = driver.descriptions.insert(description);
    return CUDA_SUCCESS;
  });
}
