#include "host/simgpu/ptx/declare.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace simgpu::ptx {
namespace {

constexpr unsigned max_depth = 32;                          // limit for nested brackets; nvcc nests none
constexpr std::uint64_t max_size = std::uint64_t{1} << 36;  // 64 GiB, more than any device has memory for one variable
constexpr std::uint64_t max_initialised = std::uint64_t{1} << 28;

std::int64_t parse_sum(Cursor& cursor, unsigned depth);

std::int64_t parse_atom(Cursor& cursor, unsigned depth) {
  if (depth > max_depth) cursor.fail("an expression is nested too deeply");
  if (cursor.accept('-'))
    return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(parse_atom(cursor, depth + 1)));
  if (cursor.accept('+')) return parse_atom(cursor, depth + 1);
  if (cursor.accept('~')) return ~parse_atom(cursor, depth + 1);
  if (cursor.accept('!')) return parse_atom(cursor, depth + 1) == 0;
  if (cursor.accept('(')) {
    const std::int64_t value = parse_sum(cursor, depth + 1);
    cursor.expect(')');
    return value;
  }
  if (cursor.peek().kind == Token::Kind::Name && cursor.peek().text == "WARP_SZ") {
    cursor.next();
    return 32;
  }
  return static_cast<std::int64_t>(cursor.integer());
}

std::int64_t parse_product(Cursor& cursor, unsigned depth) {
  auto value = static_cast<std::uint64_t>(parse_atom(cursor, depth));
  while (cursor.accept('*')) value *= static_cast<std::uint64_t>(parse_atom(cursor, depth));
  return static_cast<std::int64_t>(value);
}

std::int64_t parse_sum(Cursor& cursor, unsigned depth) {
  auto value = static_cast<std::uint64_t>(parse_product(cursor, depth));
  for (;;) {
    if (cursor.accept('+')) {
      value += static_cast<std::uint64_t>(parse_product(cursor, depth));
    } else if (cursor.accept('-')) {
      value -= static_cast<std::uint64_t>(parse_product(cursor, depth));
    } else {
      return static_cast<std::int64_t>(value);
    }
  }
}

// Fills a variable's bytes from the elements of an initialiser, which may be nested.
class Initialiser {
 public:
  Initialiser(Cursor& cursor, Variable& variable) : cursor_(cursor), variable_(variable) {}

  void run() { list_or_element(0); }

 private:
  void list_or_element(unsigned depth) {
    if (depth > max_depth) cursor_.fail("an initialiser is nested too deeply");
    if (!cursor_.accept('{')) return element();
    if (cursor_.accept('}')) return;
    do {
      list_or_element(depth + 1);
    } while (cursor_.accept(','));
    cursor_.expect('}');
  }

  void element() {
    const Token& token = cursor_.peek();
    if (token.kind == Token::Kind::Name && token.text != "WARP_SZ") return symbol();
    const bool negative = cursor_.peek().is('-') && cursor_.peek(1).kind != Token::Kind::Integer;
    if (negative) cursor_.next();
    if (cursor_.peek().kind == Token::Kind::Float32 || cursor_.peek().kind == Token::Kind::Float64) {
      return put(float_bits(negative));
    }
    const std::int64_t value = parse_constant(cursor_);
    put(static_cast<std::uint64_t>(negative ? -value : value));
  }

  // Returns a literal's bits in the variable's format. An .f32 may be initialised by a double (0d...), and decimal
  // literals are doubles.
  std::uint64_t float_bits(bool negative) {
    const Token& token = cursor_.next();
    double value = token.kind == Token::Kind::Float64
                       ? std::bit_cast<double>(token.value)
                       : double{std::bit_cast<float>(static_cast<std::uint32_t>(token.value))};
    if (negative) value = -value;
    if (variable_.type == Type::F64) return std::bit_cast<std::uint64_t>(value);
    if (variable_.type != Type::F32) return token.value;
    if (token.kind == Token::Kind::Float32 && !negative) return token.value;
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }

  void symbol() {
    Relocation relocation;
    relocation.offset = variable_.bytes.size();
    relocation.size = size_of(variable_.type);
    relocation.symbol = cursor_.name();
    if (relocation.symbol == "generic" && cursor_.accept('(')) {
      relocation.generic = true;
      relocation.symbol = cursor_.name();
      cursor_.expect(')');
    }
    if (cursor_.peek().is('+') || cursor_.peek().is('-')) relocation.addend = parse_constant(cursor_);
    if (relocation.size < 4) cursor_.fail("an address needs an element of four or eight bytes");
    put(0);
    variable_.relocations.push_back(relocation);
  }

  void put(std::uint64_t value) {
    const unsigned size = size_of(variable_.type);
    if (size > 8) cursor_.fail("a variable of this type has no initialiser");
    if (variable_.bytes.size() + size > max_initialised) cursor_.fail("an initialiser is longer than 256 MiB");
    for (unsigned i = 0; i < size; ++i) variable_.bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  Cursor& cursor_;
  Variable& variable_;
};

void parse_bounds(Cursor& cursor, Variable& variable) {
  while (cursor.accept('[')) {
    if (cursor.accept(']')) {
      if (variable.unsized) cursor.fail("only the first bound of an array may be open");
      variable.unsized = true;
      continue;
    }
    const std::int64_t bound = parse_constant(cursor);
    if (bound < 0 || (bound != 0 && variable.size > max_size / static_cast<std::uint64_t>(bound))) {
      cursor.fail("an array is too large");
    }
    variable.size *= static_cast<std::uint64_t>(bound);
    variable.unsized |= bound == 0;  // PTX treats a bound of 0 like a missing bound
    cursor.expect(']');
  }
}

unsigned parse_alignment(Cursor& cursor) {
  const std::uint64_t align = cursor.integer();
  if (align == 0 || align > 4096 || (align & (align - 1)) != 0) cursor.fail("an alignment must be a power of two");
  return static_cast<unsigned>(align);
}

bool is_pointer_note(std::string_view word) {
  return word == "ptr" || word == "global" || word == "shared" || word == "const" || word == "local";
}

}  // namespace

std::int64_t parse_constant(Cursor& cursor) { return parse_sum(cursor, 0); }

void skip_attribute(Cursor& cursor, std::initializer_list<std::string_view> known) {
  cursor.expect('(');
  for (unsigned depth = 1; depth != 0;) {
    if (cursor.at_end()) cursor.fail("')' is missing at the end of the text");
    const Token& token = cursor.next();
    depth += token.is('(');
    depth -= token.is(')');
    if (token.kind != Token::Kind::Dotted || std::find(known.begin(), known.end(), token.text) != known.end()) continue;
    cursor.fail("the attribute '." + std::string(token.text) + "' is not served");
  }
}

std::optional<Space> space_of(std::string_view directive) {
  if (directive == "global") return Space::Global;
  if (directive == "shared" || directive == "shared::cta") return Space::Shared;
  if (directive == "local") return Space::Local;
  if (directive == "const") return Space::Const;
  if (directive == "param") return Space::Param;
  if (directive == "reg") return Space::Register;
  return std::nullopt;
}

Shape parse_shape(Cursor& cursor) {
  Shape shape;
  while (cursor.peek().kind == Token::Kind::Dotted) {
    const std::string_view word = cursor.next().text;
    if (word == "align") {
      shape.align = parse_alignment(cursor);
    } else if (word == "v2" || word == "v4") {
      shape.vector = word == "v2" ? 2 : 4;
    } else if (word == "attribute") {
      shape.managed |= cursor.peek(1).text == "managed";
      skip_attribute(cursor, {"managed", "unified"});
    } else if (const Type type = type_of(word); type != Type::None) {
      shape.type = type;
    } else if (word == "texref" || word == "surfref") {
      shape.reference = word == "texref" ? ReferenceKind::Texture : ReferenceKind::Surface;
      shape.type = Type::U64;
    } else if (word == "samplerref") {
      cursor.fail("variables of the type .samplerref are not served: use texture objects");
    } else if (!is_pointer_note(word)) {
      cursor.fail("'." + std::string(word) + "' is no known part of a declaration");
    }
  }
  if (shape.type == Type::None) cursor.fail("a declaration has no type");
  return shape;
}

Variable parse_declarator(Cursor& cursor, Space space, const Shape& shape) {
  Variable variable;
  variable.line = cursor.line();
  variable.space = space;
  variable.type = shape.type;
  variable.managed = shape.managed;
  variable.reference = shape.reference;
  variable.name = cursor.name();
  variable.size = std::size_t{size_of(shape.type)} * shape.vector;
  variable.align = shape.align != 0 ? shape.align : std::max(1U, size_of(shape.type) * shape.vector);
  if (variable.size == 0) cursor.fail("a predicate has no place in memory");
  if (shape.reference != ReferenceKind::None) {
    if (space != Space::Global) cursor.fail("texture and surface references are served as global variables");
    return variable;
  }
  parse_bounds(cursor, variable);
  if (!cursor.accept('=')) {
    if (variable.unsized) variable.size = 0;
    return variable;
  }
  Initialiser(cursor, variable).run();
  if (variable.unsized) {
    variable.size = variable.bytes.size();
    variable.unsized = false;
  }
  if (variable.bytes.size() > variable.size) cursor.fail("an initialiser is longer than its variable");
  return variable;
}

std::vector<Variable> parse_parameters(Cursor& cursor) {
  std::vector<Variable> parameters;
  cursor.expect('(');
  if (cursor.accept(')')) return parameters;
  do {
    if (!cursor.accept_dotted("param")) cursor.fail("a parameter must begin with .param");
    const Shape shape = parse_shape(cursor);
    parameters.push_back(parse_declarator(cursor, Space::Param, shape));
  } while (cursor.accept(','));
  cursor.expect(')');
  return parameters;
}

}  // namespace simgpu::ptx
