// Determines the cluster size of a launch from the launch attribute, the kernel's directives and the kernel's
// attributes.
#pragma once

#include "host/simgpu/api/objects.h"

#include <optional>

namespace simgpu {

// Returns the size that the kernel's directive or attributes require; nullopt if the launch may choose.
std::optional<Dim3> required_cluster(const LoadedFunction& function);

// Returns the largest number of blocks that a cluster of this kernel may have.
std::uint32_t largest_cluster(const LoadedFunction& function);

// Sets `out` to the cluster size of a launch that requests `asked`; nullopt means no clusters. Returns
// INVALID_CLUSTER_SIZE if the kernel forbids the size.
CUresult cluster_of(const LoadedFunction& function, const std::optional<Dim3>& asked, std::optional<Dim3>& out);

}  // namespace simgpu
