// Lowers the texture instructions tex and tld4, and queries.
#include <algorithm>
#include <initializer_list>

#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {

using ptx::Space;
using ptx::Type;
using Kind = ptx::Operand::Kind;

namespace {

unsigned axes_of(Geometry geometry) {
  switch (geometry) {
    case Geometry::D1:
    case Geometry::D1Layered: return 1;
    case Geometry::D2:
    case Geometry::D2Layered: return 2;
    default: return 3;
  }
}

bool has_layer(Geometry geometry) {
  return geometry == Geometry::D1Layered || geometry == Geometry::D2Layered || geometry == Geometry::CubeLayered;
}

bool is_cube(Geometry geometry) { return geometry == Geometry::Cube || geometry == Geometry::CubeLayered; }

}  // namespace

Geometry Lowering::geometry() const {
  static constexpr std::pair<Word, Geometry> all[] = {{Word::d1, Geometry::D1},
                                                      {Word::d2, Geometry::D2},
                                                      {Word::d3, Geometry::D3},
                                                      {Word::a1d, Geometry::D1Layered},
                                                      {Word::a2d, Geometry::D2Layered},
                                                      {Word::cube, Geometry::Cube},
                                                      {Word::acube, Geometry::CubeLayered}};
  const std::pair<Word, Geometry>* found = nullptr;
  for (const auto& entry : all) {
    if (!form_.has(entry.first)) continue;
    if (found != nullptr) not_served();
    found = &entry;
  }
  if (found == nullptr) not_served();
  return found->second;
}

// Returns the number of a texture or surface object. The number of a texture or surface reference is read from its
// variable.
Value Lowering::object_of(const ptx::Operand& operand) {
  if (operand.kind == Kind::Symbol || operand.kind == Kind::Local) return number_in(symbol_of(operand), operand.name);
  const Value value = any_register(operand);
  if (value.size != 8) fail("a texture or surface object needs a register of 64 bits");
  return value;
}

Value Lowering::number_in(const Symbol& symbol, std::string_view name) {
  const bool is_reference = symbol.kind == Symbol::Kind::Variable && symbol.variable != nullptr &&
                            symbol.variable->reference != ptx::ReferenceKind::None;
  if (!is_reference) fail("'" + std::string(name) + "' is neither a register nor a texture or surface reference");
  const Target from = symbol_target(symbol, 0, Space::Global);
  const std::uint32_t number = temp(8);
  const std::uint32_t at = emit(table_.load(Type::U64, 8, false, 8));
  access_flags(at, from, 1);
  read(at, Field::A, from.base);
  write(at, Field::D, number);
  return reg_value(number);
}

// Reads a vector of 1, 2 or 4 elements, of which `count` elements from `first` on are used. A single element may lack
// braces.
std::vector<Value> Lowering::vector_of(const ptx::Operand& operand, Type type, unsigned first, unsigned count) {
  if (operand.kind != Kind::List && first + count == 1) return {source(operand, type)};
  const std::size_t size = operand.parts.size();
  if (operand.kind != Kind::List || size < first + count || size == 3 || size > 4) {
    fail("a vector of opcode " + shown(in()) + " has the wrong number of elements");
  }
  std::vector<Value> values;
  for (unsigned k = first; k < first + count; ++k) values.push_back(source(operand.parts[k], type));
  return values;
}

// Splits [object, {layer, x, y, z}] into the object, three coordinates and the layer.
std::vector<Value> Lowering::coordinates(const ptx::Operand& address, Type type) {
  if (address.kind != Kind::Address) fail("the object of opcode " + shown(in()) + " is missing");
  if (address.parts.size() == 3) fail("samplers apart from their textures are not served");
  if (address.parts.size() != 2 || address.value != 0)
    fail("the coordinates of opcode " + shown(in()) + " are malformed");
  const Geometry shape = geometry();
  const Value none = constant_value(0, 4);
  const ptx::Operand& places = address.parts[1];
  std::vector<Value> operands = {object_of(address.parts[0])};
  const std::vector<Value> at = vector_of(places, type, has_layer(shape) ? 1 : 0, axes_of(shape));
  operands.insert(operands.end(), at.begin(), at.end());
  operands.resize(4, none);
  operands.push_back(has_layer(shape) ? source(places.parts.front(), Type::U32) : none);
  return operands;
}

void Lowering::texture_operands(std::uint32_t at, const std::vector<Value>& operands) {
  ins(at).index = static_cast<std::uint32_t>(code_.extra.size());
  for (const Value& value : operands) extra(at, value, false);
}

void Lowering::tex() {
  TextureForm form;
  form.geometry = geometry();
  form.numbered = form_.type(1) == Type::S32;
  if (form_.type_count != 2 || (!form.numbered && form_.type(1) != Type::F32)) not_served();
  if (form.numbered && is_cube(form.geometry)) not_served();
  const Type type = form_.type(1);
  std::vector<Value> level;  // the level, or the gradients
  std::size_t next = 2;
  if (form_.has(Word::level)) {
    form.level = TextureForm::Level::Given;
    level.push_back(source(operand(next++), type));
  }
  level.resize(1, constant_value(0, 4));
  if (form_.has(Word::grad)) {
    if (form.numbered || form_.has(Word::level)) not_served();
    form.level = TextureForm::Level::Gradient;
    for (unsigned k = 0; k < 2; ++k) {
      const ptx::Operand& gradient = operand(next++);
      if (gradient.kind != Kind::List) fail("a gradient of opcode " + shown(in()) + " is no vector");
      const std::vector<Value> values = vector_of(gradient, type, 0, axes_of(form.geometry));
      level.insert(level.end(), values.begin(), values.end());
      level.resize(1 + 3 * (k + 1), constant_value(0, 4));
    }
  }
  texture(form, std::move(level), next);
}

void Lowering::tld4() {
  static constexpr Word components[] = {Word::r, Word::g, Word::b, Word::a};
  TextureForm form;
  form.geometry = geometry();
  form.gather = true;
  unsigned found = 0;
  for (std::uint8_t k = 0; k < 4; ++k) {
    if (!form_.has(components[k])) continue;
    form.channel = k;
    ++found;
  }
  const bool halves = form_.type() == Type::F16 || form_.type() == Type::F16x2;
  if (found != 1 || form_.type_count != 2 || form_.type(1) != Type::F32 || halves) not_served();
  texture(form, {constant_value(0, 4)}, 2);
}

// Lowers the common part of tex and tld4. `next` is the number of the operand after the required ones, where offsets
// may follow. A depth to compare with may follow as well; it has no effect, because no texture object of the simulation
// has depths.
void Lowering::texture(const TextureForm& asked, std::vector<Value> level, std::size_t next) {
  TextureForm form = asked;
  const Type type = form_.type();
  form.result = type == Type::F16     ? TextureForm::Result::Halves
                : type == Type::F16x2 ? TextureForm::Result::HalfPairs
                                      : TextureForm::Result::Words;
  const bool words = type == Type::U32 || type == Type::S32 || type == Type::F32;
  if ((!words && type != Type::F16 && type != Type::F16x2) || vector_count() != (type == Type::F16x2 ? 2 : 4)) {
    not_served();
  }
  std::vector<Value> operands = coordinates(operand(1), form_.type(1));
  level.resize(texture_offset - texture_level, constant_value(0, 4));
  operands.insert(operands.end(), level.begin(), level.end());
  if (in().operands.size() > next && operand(next).kind == Kind::List) {
    if (is_cube(form.geometry)) not_served();
    const std::vector<Value> offsets = vector_of(operand(next++), Type::S32, 0, axes_of(form.geometry));
    operands.insert(operands.end(), offsets.begin(), offsets.end());
  }
  operands.resize(texture_result, constant_value(0, 4));
  if (in().operands.size() != next) fail("opcode " + shown(in()) + " with a depth to compare with is not served");
  const std::uint32_t at = emit(texture_handler());
  ins(at).imm = packed_form(form);
  texture_operands(at, operands);
  texture_results(at, form.result);
}

// The destination is {a, b, c, d} or {a, b, c, d}|p. All memory is resident, so p is always true.
void Lowering::texture_results(std::uint32_t at, TextureForm::Result result) {
  const bool paired = operand(0).kind == Kind::Pair;
  const ptx::Operand& into = paired ? operand(0).parts[0] : operand(0);
  const std::size_t count = result == TextureForm::Result::HalfPairs ? 2 : 4;
  if (into.kind != Kind::List || into.parts.size() != count) {
    fail("opcode " + shown(in()) + " has the wrong number of destinations");
  }
  for (const ptx::Operand& part : into.parts) {
    const std::uint32_t reg = destination(part, result == TextureForm::Result::Halves ? 2 : 4);
    extra(at, reg_value(reg), true);
  }
  if (paired) emit_to(destination(operand(0).parts[1], 0), table_.move(0), {constant_value(0xffff'ffff, 0)});
}

// ---- queries

// For all queries except sizes, a device's driver writes the result into the code, taken from the texture or surface
// reference that the code names. A texture object is not a reference, so loading such code fails, with different error
// codes for textures and surfaces.
void Lowering::txq() {
  query(texture_query_handler(), CUDA_ERROR_NOT_FOUND,
        {Word::channel_data_type, Word::channel_order, Word::normalized_coords, Word::force_unnormalized_coords,
         Word::array_size, Word::num_mipmap_levels, Word::num_samples, Word::filter_mode, Word::addr_mode_0,
         Word::addr_mode_1, Word::addr_mode_2});
}
void Lowering::suq() {
  query(surface_query_handler(), CUDA_ERROR_NOT_SUPPORTED,
        {Word::channel_data_type, Word::channel_order, Word::array_size, Word::memory_layout});
}

void Lowering::query(Handlers handlers, CUresult of_references, std::initializer_list<Word> references) {
  static constexpr std::pair<Word, Query> all[] = {
      {Word::width, Query::Width}, {Word::height, Query::Height}, {Word::depth, Query::Depth}};
  const bool with_level = form_.has(Word::level);
  expect_operands(with_level ? 3 : 2, with_level ? 3 : 2);
  if (form_.type_count != 1 || form_.type() != Type::B32 || form_.words.count() != (with_level ? 2 : 1)) not_served();
  const ptx::Operand& object = operand(1);
  if (object.kind != Kind::Address || object.parts.size() != 1 || object.value != 0) {
    fail("the object of opcode " + shown(in()) + " is missing");
  }
  const Value number = object_of(object.parts.front());
  const bool of_reference = std::any_of(references.begin(), references.end(), [&](Word w) { return form_.has(w); });
  if (of_reference && !with_level) {
    if (object.parts.front().kind == Kind::Symbol) not_served();
    throw LoadFailure{of_references, "line " + std::to_string(in().line) + ": opcode " + shown(in()) +
                                         " asks what only a texture or surface reference answers"};
  }
  const Query* asked = nullptr;
  for (const auto& entry : all) {
    if (form_.has(entry.first)) asked = &entry.second;
  }
  if (asked == nullptr) not_served();
  const Value level = with_level ? source(operand(2), Type::U32) : constant_value(0, 4);
  emit_to(destination(operand(0), 4), handlers, {number, level});
  code_.body.back().count = static_cast<std::uint16_t>(*asked);
}

// A sampler is part of its texture object, so no number refers to a sampler alone.
void Lowering::istypep() {
  expect_operands(2, 2);
  if (form_.type_count != 0 || form_.words.count() != 1) not_served();
  const Value number = object_of(operand(1));
  const std::uint32_t d = destination(operand(0), 0);
  if (form_.has(Word::samplerref)) return emit_to(d, table_.move(0), {constant_value(0, 0)});
  const std::uint32_t at = emit(form_.has(Word::texref) ? is_texture_handler() : is_surface_handler());
  read(at, Field::A, number);
  write(at, Field::D, d, true);
}

}  // namespace simgpu
