// Parses the body of a function: scoped declarations, labels, instructions. Throws Error.
#pragma once

#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/ptx/cursor.h"

namespace simgpu::ptx {

// The cursor must be at the opening brace, and `function` must have its signature. The call fills registers, variables,
// body and labels.
void parse_body(Cursor& cursor, Function& function);

}  // namespace simgpu::ptx
