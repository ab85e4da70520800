// Parses a PTX text into a tree. Throws Error for invalid PTX. The parser never reads outside the text, and limits the
// depth, count and size of everything that a text can request.
#pragma once

#include <string_view>

#include "host/simgpu/ptx/ast.h"

namespace simgpu::ptx {

Module parse(std::string_view text);

}  // namespace simgpu::ptx
