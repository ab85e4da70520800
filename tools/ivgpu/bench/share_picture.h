// What `ivgpu bench share` has measured as one picture: for each load of each mix its rate beside the native one and
// beside its own alone, and how long a piece of its work takes, by each way; and how even it is under leases.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/bench/share.h"

namespace ivgpu::bench {

// An SVG document.
std::string share_picture(const std::vector<Shared>& all);

}  // namespace ivgpu::bench
