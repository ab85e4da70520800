// The bounds of hints, as cuda.h gives them.
#include "host/simgpu/api/hints.h"

namespace simgpu {
namespace {

bool is_share(float ratio) { return ratio >= 0 && ratio <= 1; }  // NaN is none

}  // namespace

bool is_window(const CUaccessPolicyWindow& window) {
  // The H200 takes any number as a property, known or not. Only what misses the window may not persist.
  const bool miss = window.missProp != CU_ACCESS_PROPERTY_PERSISTING;
  return window.num_bytes <= std::size_t{device_window} && is_share(window.hitRatio) && miss;
}

bool is_domain_map(const CUlaunchMemSyncDomainMap& map) {
  return map.default_ < device_memory_domains && map.remote < device_memory_domains;
}

bool is_domain(CUlaunchMemSyncDomain domain) {
  return domain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT || domain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
}

// A function's attribute may also be -1, the driver's own choice. A launch's may not.
bool is_carveout(unsigned percent) { return percent <= 100; }

}  // namespace simgpu
