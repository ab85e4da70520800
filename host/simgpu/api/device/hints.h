// Hints of streams and launches. The simulation checks and ignores them.
#pragma once

#include "host/simgpu/api/device/device.h"

namespace simgpu {

// True if the window is valid. It may name any memory, as cuda.h permits.
bool is_window(const CUaccessPolicyWindow& window);
bool is_domain_map(const CUlaunchMemSyncDomainMap& map);
bool is_domain(CUlaunchMemSyncDomain domain);
bool is_carveout(unsigned percent);
bool is_launch_attribute(CUlaunchAttributeID id);

}  // namespace simgpu
