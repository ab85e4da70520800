// Attempts of a worker that a guest controls: each attempt has a name and one argument. The test's driver library makes
// the attempts inside the complete jail, and reports their results.
#pragma once

#include <string>

namespace misbehave {

// Maps "name argument" to "done", "refused ERRNO", or "unknown". An attempt that ends the process does not return.
std::string attempt(const std::string& command);

}  // namespace misbehave
