// Reads a function's body: declarations with block scope, labels, instructions. Throws Error.
#pragma once

#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/ptx/cursor.h"

namespace simgpu::ptx {

// The cursor stands on the opening brace; `function` has its signature and gets registers, variables, body and labels.
void parse_body(Cursor& cursor, Function& function);

}  // namespace simgpu::ptx
