// The bounds of hints, as cuda.h gives them.
#include "host/simgpu/api/hints.h"

namespace simgpu {
namespace {

bool is_share(float ratio) { return ratio >= 0 && ratio <= 1; }  // NaN is none

}  // namespace

bool is_window(const CUaccessPolicyWindow& window) {
  const bool hit = window.hitProp >= CU_ACCESS_PROPERTY_NORMAL && window.hitProp <= CU_ACCESS_PROPERTY_PERSISTING;
  const bool miss = window.missProp >= CU_ACCESS_PROPERTY_NORMAL && window.missProp <= CU_ACCESS_PROPERTY_STREAMING;
  return window.num_bytes <= std::size_t{device_window} && is_share(window.hitRatio) && hit && miss;
}

bool is_domain_map(const CUlaunchMemSyncDomainMap& map) {
  return map.default_ < device_memory_domains && map.remote < device_memory_domains;
}

bool is_domain(CUlaunchMemSyncDomain domain) {
  return domain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT || domain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
}

// All ones: the driver's own choice.
bool is_carveout(unsigned percent) { return percent <= 100 || percent == ~0U; }

}  // namespace simgpu
