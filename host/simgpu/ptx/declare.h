// Parses declarations of variables and parameters with initialisers, and constant expressions. Throws Error.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/ptx/cursor.h"

namespace simgpu::ptx {

// The state space that a directive names: global, shared, local, const, param, reg.
std::optional<Space> space_of(std::string_view directive);

// The attributes between space and name: alignment, type, vector width, pointer notes.
struct Shape {
  Type type = Type::None;
  unsigned align = 0;
  unsigned vector = 1;
  bool managed = false;
  ReferenceKind reference = ReferenceKind::None;
};
Shape parse_shape(Cursor& cursor);

// Parses a name with array bounds and initialiser; the cursor is at the name.
Variable parse_declarator(Cursor& cursor, Space space, const Shape& shape);

// (.param .b32 a, .param .align 8 .b8 b[16])
std::vector<Variable> parse_parameters(Cursor& cursor);

// Skips the parentheses of an .attribute. Throws Error if an attribute is not in `known`.
void skip_attribute(Cursor& cursor, std::initializer_list<std::string_view> known);

// Parses an integer expression of literals. Floating-point bits are allowed in initialisers only.
std::int64_t parse_constant(Cursor& cursor);

}  // namespace simgpu::ptx
