// Parses a PTX text into a tree. Throws Error for invalid PTX. Never reads outside the text, and limits each recursion,
// count and size that a text can request.
#pragma once

#include <string_view>

#include "host/simgpu/ptx/ast.h"

namespace simgpu::ptx {

Module parse(std::string_view text);

}  // namespace simgpu::ptx
