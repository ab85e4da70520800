// Limits of hints. They were measured on an H200.
#include "host/simgpu/api/device/hints.h"

namespace simgpu {
namespace {

bool is_share(float ratio) { return ratio >= 0 && ratio <= 1; }  // false for NaN

}  // namespace

bool is_window(const CUaccessPolicyWindow& window) {
  // The driver accepts any number as a property, except that misses must not be PERSISTING.
  return window.num_bytes <= std::size_t{device_window} && is_share(window.hitRatio) &&
         window.missProp != CU_ACCESS_PROPERTY_PERSISTING;
}

bool is_domain_map(const CUlaunchMemSyncDomainMap& map) {
  return map.default_ < device_memory_domains && map.remote < device_memory_domains;
}

bool is_domain(CUlaunchMemSyncDomain domain) {
  return domain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT || domain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
}

bool is_carveout(unsigned percent) { return percent <= 100; }

bool is_launch_attribute(CUlaunchAttributeID id) {
  return id >= CU_LAUNCH_ATTRIBUTE_IGNORE && id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

}  // namespace simgpu
