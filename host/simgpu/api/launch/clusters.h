// The cluster size of a launch, from the launch's attribute, the kernel's directives and its attributes.
#pragma once

#include "host/simgpu/api/objects.h"

#include <optional>

namespace simgpu {

// The size that the kernel's directive or attributes require; nullopt if a launch may choose.
std::optional<Dim3> required_cluster(const LoadedFunction& function);

// The largest number of blocks in a cluster of this kernel.
std::uint32_t largest_cluster(const LoadedFunction& function);

// Sets `out` to the cluster size of a launch that requests `asked`; nullopt: no clusters. INVALID_CLUSTER_SIZE if the
// kernel forbids the size.
CUresult cluster_of(const LoadedFunction& function, const std::optional<Dim3>& asked, std::optional<Dim3>& out);

}  // namespace simgpu
