// Reads declarations of variables and parameters, with initialisers, and constant expressions. Throws Error.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "host/simgpu/ptx/ast.h"
#include "host/simgpu/ptx/cursor.h"

namespace simgpu::ptx {

// The space that a directive names: global, shared, local, const, param, reg.
std::optional<Space> space_of(std::string_view directive);

// The words between the space and the names: alignment, type, vector width, pointer notes.
struct Shape {
  Type type = Type::None;
  unsigned align = 0;
  unsigned vector = 1;
  bool managed = false;
  ReferenceKind reference = ReferenceKind::None;
};
Shape parse_shape(Cursor& cursor);

// One name with its array bounds and initialiser; the cursor stands on the name.
Variable parse_declarator(Cursor& cursor, Space space, const Shape& shape);

// (.param .b32 a, .param .align 8 .b8 b[16])
std::vector<Variable> parse_parameters(Cursor& cursor);

// Moves past the parentheses of an .attribute. Throws at an attribute that is not in the list.
void skip_attribute(Cursor& cursor, std::initializer_list<std::string_view> known);

// An integer expression of literals; bits of a floating-point literal count as such only in an initialiser.
std::int64_t parse_constant(Cursor& cursor);

}  // namespace simgpu::ptx
