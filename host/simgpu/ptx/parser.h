// Reads one PTX text into a tree. Throws Error for anything that is not PTX; never reads outside the text, and every
// recursion, count and size that a text can ask for is bounded.
#pragma once

#include <string_view>

#include "host/simgpu/ptx/ast.h"

namespace simgpu::ptx {

Module parse(std::string_view text);

}  // namespace simgpu::ptx
