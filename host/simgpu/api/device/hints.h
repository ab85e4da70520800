// Hints that streams and launches share. The simulation does nothing with them, but refuses what is none.
#pragma once

#include "host/simgpu/api/device/device.h"

namespace simgpu {

// True if a window may be asked for. Its memory may be any: cuda.h makes no demand.
bool is_window(const CUaccessPolicyWindow& window);
bool is_domain_map(const CUlaunchMemSyncDomainMap& map);
bool is_domain(CUlaunchMemSyncDomain domain);
bool is_carveout(unsigned percent);
bool is_launch_attribute(CUlaunchAttributeID id);

}  // namespace simgpu
