// Parses declarations of variables and parameters, their initialisers, and constant expressions. Throws Error.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/ptx/cursor.h"

namespace simgpu::ptx {

// Returns the state space of a directive: global, shared, local, const, param or reg.
std::optional<Space> space_of(std::string_view directive);

// The attributes between state space and name: alignment, type, vector width, pointer attributes.
struct Shape {
  Type type = Type::None;
  unsigned align = 0;
  unsigned vector = 1;
  bool managed = false;
  ReferenceKind reference = ReferenceKind::None;
};
Shape parse_shape(Cursor& cursor);

// Parses a name with array bounds and initialiser. The cursor must be at the name.
Variable parse_declarator(Cursor& cursor, Space space, const Shape& shape);

// Parses a parameter list such as (.param .b32 a, .param .align 8 .b8 b[16]).
std::vector<Variable> parse_parameters(Cursor& cursor);

// Skips the parentheses of an .attribute. Throws Error if an attribute is not in `known`.
void skip_attribute(Cursor& cursor, std::initializer_list<std::string_view> known);

// Parses an integer expression of literals. Bits of floating-point literals are allowed only in initialisers.
std::int64_t parse_constant(Cursor& cursor);

}  // namespace simgpu::ptx
