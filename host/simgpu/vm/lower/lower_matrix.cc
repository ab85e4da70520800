// Lowers instructions that a whole warp executes on matrices in its registers: mma, wmma, ldmatrix, stmatrix,
// movmatrix.
#include "host/simgpu/vm/lower/lower.h"
#include "host/simgpu/vm/matrix/matrix_forms.h"

namespace simgpu {
namespace {

using matrix::Element;
using matrix::Layout;
using matrix::Product;
using matrix::ProductKind;
using matrix::Role;
using matrix::Suffixes;
using matrix::Transfer;
using ptx::Space;
using ptx::Type;
using Kind = ptx::Operand::Kind;

Space space_of(Suffixes& suffixes, bool global) {
  if (suffixes.take("shared") || suffixes.take("shared::cta")) return Space::Shared;
  return global && suffixes.take("global") ? Space::Global : Space::Generic;
}

// Returns false if the suffixes lack popc, or do not select exactly one of `and` and `xor`.
bool take_operation(Suffixes& suffixes, std::uint8_t& options) {
  const bool both = suffixes.take("and");
  if (both) options |= matrix::product_of_and;
  return suffixes.take("popc") && both != suffixes.take("xor");
}

// Returns the rounding mode as Ins::flags encodes it.
std::uint8_t take_rounding(Suffixes& suffixes) {
  if (suffixes.take("rm")) return 1;
  if (suffixes.take("rp")) return 2;
  if (suffixes.take("rz")) return 3;
  return 0;
}

// Reads the suffixes of a product; returns false if they are not valid together.
bool take_product(Suffixes& suffixes, ProductKind kind, Product& product) {
  const std::vector<Element>& types = suffixes.types;
  if (suffixes.shape == matrix::no_shape || suffixes.columns.size() != 2) return false;
  product.shape = suffixes.shape;
  if (suffixes.columns[0]) product.options |= matrix::product_a_columns;
  if (suffixes.columns[1]) product.options |= matrix::product_b_columns;
  if (types.size() == 4) {
    product.d = types[0];
    product.a = types[1];
    product.b = types[2];
    product.c = types[3];
    if (kind == ProductKind::Wmma && product.a == Element::F16) return false;
  } else if (types.size() == 2 && kind == ProductKind::Wmma) {
    product.a = product.b = Element::F16;
    product.d = types[0];
    product.c = types[1];
  } else {
    return false;
  }
  if (suffixes.take("satfinite")) product.options |= matrix::product_saturates;
  if (product.a == Element::F64 && !suffixes.take("rn")) product.round = take_rounding(suffixes);
  if (product.a == Element::B1 && !take_operation(suffixes, product.options)) return false;
  return suffixes.take("sync") && suffixes.take("aligned") && suffixes.all_read() && matrix::has_product(kind, product);
}

}  // namespace

// ---- registers

std::uint32_t Lowering::emit_whole_warp(Handlers handlers) {
  control_ = true;
  const std::uint32_t at = emit(handlers);
  ins(at).index = static_cast<std::uint32_t>(code_.extra.size());
  read(at, Field::E, constant_value(0xffff'ffff, 4));
  return at;
}

Lowering::Fragment Lowering::fragment_into(const ptx::Operand& list, const Layout& layout) {
  if (list.kind != Kind::List || list.parts.size() != layout.registers()) {
    fail("opcode " + shown(in()) + " needs " + std::to_string(layout.registers()) + " registers in a list");
  }
  Fragment fragment;
  for (const ptx::Operand& part : list.parts) fragment.into.push_back(destination(part, layout.unit == 64 ? 8 : 4));
  return fragment;
}

Lowering::Fragment Lowering::fragment_from(const ptx::Operand& list, const Layout& layout, Element element) {
  if (list.kind != Kind::List || list.parts.size() != layout.registers()) {
    fail("opcode " + shown(in()) + " needs " + std::to_string(layout.registers()) + " registers in a list");
  }
  const Type type = element == Element::F64 ? Type::F64 : element == Element::F32 ? Type::F32 : Type::B32;
  Fragment fragment;
  for (const ptx::Operand& part : list.parts) fragment.from.push_back(source(part, type));
  return fragment;
}

void Lowering::add_registers(std::uint32_t at, const Fragment& fragment) {
  for (const std::uint32_t reg : fragment.into) extra(at, reg_value(reg), true);
  for (const Value& value : fragment.from) extra(at, value, false);
}

// ---- products

void Lowering::product(const Product& product) {
  expect_operands(4, 4);
  const Layout sums = layout_of(product, Role::Accumulator, product.d);
  const Fragment fragments[] = {
      fragment_into(operand(0), sums),
      fragment_from(operand(1), layout_of(product, Role::A, product.a), product.a),
      fragment_from(operand(2), layout_of(product, Role::B, product.b), product.b),
      fragment_from(operand(3), layout_of(product, Role::Accumulator, product.c), product.c),
  };
  const std::uint32_t at = emit_whole_warp(matrix::product_handler(product.a));
  ins(at).imm = matrix::as_immediate(product);
  for (const Fragment& fragment : fragments) add_registers(at, fragment);
}

void Lowering::mma() {
  Suffixes suffixes(in().suffixes);
  Product wanted;
  if (!take_product(suffixes, ProductKind::Mma, wanted)) not_served();
  product(wanted);
}

// ---- wmma

void Lowering::wmma() {
  Suffixes suffixes(in().suffixes);
  if (suffixes.take("mma")) {
    Product wanted;
    wanted.options = matrix::product_of_wmma;
    if (!take_product(suffixes, ProductKind::Wmma, wanted)) not_served();
    return product(wanted);
  }
  const bool loads = suffixes.take("load");
  if (!loads && !suffixes.take("store")) not_served();
  Transfer wanted;
  wanted.role = loads && suffixes.take("a") ? Role::A : loads && suffixes.take("b") ? Role::B : Role::Accumulator;
  if (wanted.role == Role::Accumulator && !suffixes.take(loads ? "c" : "d")) not_served();
  const Space space = space_of(suffixes, true);
  if (!suffixes.take("sync") || !suffixes.take("aligned") || !suffixes.all_read()) not_served();
  if (suffixes.shape == matrix::no_shape || suffixes.columns.size() != 1 || suffixes.types.size() != 1) not_served();
  wanted.shape = suffixes.shape;
  wanted.element = suffixes.types[0];
  wanted.columns = suffixes.columns[0];
  if (!matrix::has_transfer(wanted)) not_served();
  transfer(wanted, space, loads);
}

void Lowering::transfer(const Transfer& transfer, Space space, bool loads) {
  expect_operands(2, 3);
  const Layout layout = layout_of(transfer);
  const unsigned line = transfer.columns ? layout.rows : layout.columns;
  const Value stride = in().operands.size() == 3
                           ? source_bits(operand(2), 4, Type::U32)
                           : constant_value(std::uint64_t{line} * matrix::elements_in_unit(transfer.element), 4);
  const Value address = generic_address(operand(loads ? 1 : 0), space);
  const Fragment fragment =
      loads ? fragment_into(operand(0), layout) : fragment_from(operand(1), layout, transfer.element);
  const std::uint32_t at = emit_whole_warp(loads ? matrix::load_handler() : matrix::store_handler());
  ins(at).imm = matrix::as_immediate(transfer);
  read(at, Field::A, address);
  read(at, Field::B, stride);
  add_registers(at, fragment);
}

// ---- ldmatrix, stmatrix, movmatrix

void Lowering::ldmatrix() { tiles(true); }
void Lowering::stmatrix() { tiles(false); }

void Lowering::tiles(bool loads) {
  Suffixes suffixes(in().suffixes);
  const std::uint16_t count = suffixes.take("x1") ? 1 : suffixes.take("x2") ? 2 : suffixes.take("x4") ? 4 : 0;
  const bool transposed = suffixes.take("trans");
  const Space space = space_of(suffixes, false);
  const bool whole = suffixes.take("sync") && suffixes.take("aligned") && suffixes.take("m8n8") && suffixes.take("b16");
  if (!whole || count == 0 || !suffixes.all_read() || !suffixes.types.empty()) not_served();
  expect_operands(2, 2);
  const Value address = generic_address(operand(loads ? 1 : 0), space);
  Layout registers = matrix::tile_layout(false);
  registers.elements = static_cast<std::uint16_t>(count * registers.elements);
  const Fragment fragment =
      loads ? fragment_into(operand(0), registers) : fragment_from(operand(1), registers, Element::None);
  const std::uint32_t at = emit_whole_warp(loads ? matrix::tiles_load_handler() : matrix::tiles_store_handler());
  ins(at).count = count;
  ins(at).imm = transposed ? 1 : 0;
  read(at, Field::A, address);
  add_registers(at, fragment);
}

void Lowering::movmatrix() {
  Suffixes suffixes(in().suffixes);
  const bool whole = suffixes.take("sync") && suffixes.take("aligned") && suffixes.take("m8n8") &&
                     suffixes.take("trans") && suffixes.take("b16");
  if (!whole || !suffixes.all_read() || !suffixes.types.empty() || suffixes.shape != matrix::no_shape) not_served();
  expect_operands(2, 2);
  const Value from = source(operand(1), Type::B32);
  const std::uint32_t into = destination(operand(0), 4);
  const std::uint32_t at = emit_whole_warp(matrix::tile_transpose_handler());
  read(at, Field::A, from);
  write(at, Field::D, into);
}

}  // namespace simgpu
