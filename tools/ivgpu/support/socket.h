// The client's side of a broker's sockets.
#pragma once

#include <string>

#include "tools/ivgpu/support/child.h"

namespace ivgpu {

// Connects a stream socket. Throws an Error if no process listens at `path`.
Fd connect_to(const std::string& path);

}  // namespace ivgpu
