// Parses a function's body: scoped declarations, labels, instructions. Throws Error.
#pragma once

#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/ptx/cursor.h"

namespace simgpu::ptx {

// The cursor is at the opening brace. `function` has its signature; fills registers, variables, body and labels.
void parse_body(Cursor& cursor, Function& function);

}  // namespace simgpu::ptx
