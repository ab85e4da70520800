// Checks the hints of streams and launches. The simulation ignores valid hints.
#pragma once

#include "host/simgpu/api/device/device.h"

namespace simgpu {

// Returns true if the window is valid. A valid window may refer to any memory, as cuda.h permits.
bool is_window(const CUaccessPolicyWindow& window);
bool is_domain_map(const CUlaunchMemSyncDomainMap& map);
bool is_domain(CUlaunchMemSyncDomain domain);
bool is_carveout(unsigned percent);
bool is_launch_attribute(CUlaunchAttributeID id);

}  // namespace simgpu
