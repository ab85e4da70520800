// The size of the clusters of a launch: from the launch's attribute, the kernel's directives and its attributes.
#pragma once

#include "host/simgpu/api/objects.h"

#include <optional>

namespace simgpu {

// The size that a kernel's directive or its attributes require. None: a launch chooses.
std::optional<Dim3> required_cluster(const LoadedFunction& function);

// The most blocks that a cluster of this kernel may have.
std::uint32_t largest_cluster(const LoadedFunction& function);

// The size that a launch has which asks for `asked`. None: without clusters. INVALID_CLUSTER_SIZE if the kernel does not
// allow it.
CUresult cluster_of(const LoadedFunction& function, const std::optional<Dim3>& asked, std::optional<Dim3>& out);

}  // namespace simgpu
