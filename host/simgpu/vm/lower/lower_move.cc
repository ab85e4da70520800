// Lowers moves between registers, packing and unpacking of registers, and conversions of generic addresses.
#include <algorithm>

#include "host/simgpu/vm/lower/lower.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

void Lowering::mov() {
  expect_operands(2, 2);
  if (form_.type_count != 1) not_served();
  if (form_.type() == Type::B128) return mov_wide();
  if (operand(0).kind == Kind::List) return unpack();
  if (operand(1).kind == Kind::List) return pack();
  const Type type = form_.type();
  const unsigned size = type == Type::Pred ? 0 : ptx::size_of(type);
  const Value value = size == 0 ? predicate(operand(1)) : source(operand(1), type);
  emit_to(destination(operand(0), size), table_.move(size == 1 ? 2 : size), {value});
}

// In mov.b64 %rd, {%r1, %r2} the first element becomes the lowest bits.
void Lowering::pack() {
  const unsigned size = ptx::size_of(form_.type());
  const auto& parts = operand(1).parts;
  if (parts.empty() || size % parts.size() != 0 || size > 8) not_served();
  const auto part = static_cast<unsigned>(size / parts.size());
  if (part < 2) not_served();
  const Type type = size == 8 ? Type::B64 : Type::B32;
  Value all = resized(source_bits(parts[0], part, Type::None), size, false);
  for (unsigned k = 1; k < parts.size(); ++k) {
    const Value wide = resized(source_bits(parts[k], part, Type::None), size, false);
    const Value shifted = emit_temp(size, row("shl", type), {wide, constant_value(std::uint64_t{8} * part * k, 4)});
    all = emit_temp(size, row("or", type), {all, shifted});
  }
  emit_to(destination(operand(0), size), table_.move(size), {all});
}

void Lowering::unpack() {
  const unsigned size = ptx::size_of(form_.type());
  const auto& parts = operand(0).parts;
  if (parts.empty() || size % parts.size() != 0 || size > 8) not_served();
  const auto part = static_cast<unsigned>(size / parts.size());
  if (part < 2) not_served();
  const Type type = size == 8 ? Type::B64 : Type::B32;
  const Value all = source_bits(operand(1), size, Type::None);
  std::vector<Value> values;
  for (unsigned k = 0; k < parts.size(); ++k) {
    if (parts[k].kind == Kind::Sink) {
      values.push_back(all);
      continue;
    }
    values.push_back(k == 0 ? all
                            : emit_temp(size, row("shr", type), {all, constant_value(std::uint64_t{8} * part * k, 4)}));
  }
  for (unsigned k = 0; k < parts.size(); ++k) {
    if (parts[k].kind == Kind::Sink) continue;
    const std::uint32_t d = destination(parts[k], part);
    if (values[k].constant) {
      emit_to(d, table_.move(part), {resized(values[k], part, false)});
    } else {
      emit_to(d, table_.resize(part, size, false), {values[k]});
    }
  }
}

// ---- generic addresses ----------------------------------------------------------------------------------------------

namespace {

std::uint64_t window_of(const Form& form) {
  if (form.has(Word::shared)) return shared_window;
  if (form.has(Word::local)) return local_window;
  if (form.has(Word::param)) return param_window;
  return 0;
}

}  // namespace

void Lowering::cvta() {
  expect_operands(2, 2);
  if (form_.type() != Type::U64) not_served();
  const Value value = source(operand(1), Type::U64);
  const std::uint32_t d = destination(operand(0), 8);
  // A parameter of a .func is in local memory, so its address is a local address.
  const bool local_param = form_.has(Word::param) && !function_.entry;
  const std::uint64_t window = local_param ? local_window : window_of(form_);
  if (window == 0) return emit_to(d, table_.move(8), {value});
  emit_to(d, row(form_.has(Word::to) ? "sub" : "add", Type::U64), {value, constant_value(window, 8)});
}

void Lowering::isspacep() {
  expect_operands(2, 2);
  const Value value = source(operand(1), Type::U64);
  const std::uint32_t d = destination(operand(0), 0);
  const std::uint64_t window = window_of(form_);
  if (form_.has(Word::const_)) return emit_to(d, table_.move(0), {constant_value(0, 0)});
  if (window == 0) {
    return emit_to(d, table_.compare(Word::lt, Type::U64), {value, constant_value(shared_window, 8)});
  }
  const Value offset = emit_temp(8, row("sub", Type::U64), {value, constant_value(window, 8)});
  // .shared without ::cluster stands for the shared memory of the own block.
  const std::vector<std::string_view>& suffixes = in().suffixes;
  const bool own =
      form_.has(Word::shared) && std::find(suffixes.begin(), suffixes.end(), "shared::cluster") == suffixes.end();
  emit_to(d, table_.compare(Word::lt, Type::U64), {offset, constant_value(own ? own_shared_size : window_size, 8)});
}

}  // namespace simgpu
