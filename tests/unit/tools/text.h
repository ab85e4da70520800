// Helpers for the tests of the commands' output.
#pragma once

#include <string>

namespace ivgpu {

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace ivgpu
