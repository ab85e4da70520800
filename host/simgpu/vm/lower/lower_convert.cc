// Lowers conversions between types.
#include <algorithm>

#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

namespace {

unsigned carrier(Type type) { return std::max(2U, ptx::size_of(type)); }

}  // namespace

// Returns the source in a register of the type's size. 8-bit values are extended to 16 bits.
Value Lowering::natural(const Value& value, Type type) {
  const Value fitted = resized(value, carrier(type), ptx::is_signed(type));
  if (ptx::size_of(type) != 1) return fitted;
  const Type extension = ptx::is_signed(type) ? Type::S8 : Type::U8;
  return emit_temp(2, table_.convert(Type::B8, extension, form_), {fitted});
}

// Writes the value to the destination, whose register may be wider than the type.
void Lowering::put_converted(const Value& value, Type type) {
  const Value target = any_register(operand(0));
  if (target.size < value.size) fail("register " + std::string(operand(0).name) + " is too narrow for " + shown(in()));
  const Handlers handlers = target.size == value.size ? table_.move(value.size)
                                                      : table_.resize(target.size, value.size, ptx::is_signed(type));
  emit_to(target.reg, handlers, {value});
}

// Conversions between halves and other types, except f32 and f64, go through doubles. A double holds every half
// exactly, and every integer that a half can represent.
Value Lowering::through_double(const Value& value, Type from) {
  Form form;
  form.words.set(static_cast<std::size_t>(Word::rn));
  return emit_temp(8, table_.convert(Type::F64, from, form), {value});
}

// In cvt.rn.f16x2.f32 d, a, b the value a becomes the upper half.
void Lowering::cvt_pair() {
  if (form_.type(1) != Type::F32) return cvt_bytes();
  expect_operands(3, 3);
  const Type part = form_.type(0) == Type::F16x2 ? Type::F16 : Type::Bf16;
  std::array<Value, 2> wide;
  for (std::size_t k = 0; k < 2; ++k) {
    const Value single = source(operand(k + 1), Type::F32);
    const Value half = emit_temp(2, table_.convert(part, Type::F32, form_), {single});
    code_.body.back().flags |= mode_flags();
    wide[k] = resized(half, 4, false);
  }
  const Value high = emit_temp(4, row("shl", Type::B32), {wide[0], constant_value(16, 4)});
  emit_to(destination(operand(0), 4), row("or", Type::B32), {high, wide[1]});
}

// Converts pairs of 8-bit floats from and to pairs of halves, and from two singles.
void Lowering::cvt_bytes() {
  const Type to = form_.type(0);
  const Type from = form_.type(1);
  if (from == Type::F32) {
    expect_operands(3, 3);
    const Value a = source(operand(1), from);
    const Value b = source(operand(2), from);
    emit_to(destination(operand(0), 2), table_.byte_pair(to), {a, b});
  } else {
    expect_operands(2, 2);
    const Value a = source(operand(1), from);
    emit_to(destination(operand(0), ptx::size_of(to)), table_.convert(to, from, form_), {a});
  }
  code_.body.back().flags |= mode_flags();
}

void Lowering::cvt_tf32() {
  expect_operands(2, 2);
  if (form_.type(1) != Type::F32) not_served();
  const Value a = source(operand(1), Type::F32);
  emit_to(destination(operand(0), 4), table_.cut(form_), {a});
  code_.body.back().flags |= mode_flags();
}

void Lowering::cvt() {
  if (form_.type_count != 2) not_served();
  if (form_.type(0) == Type::E4m3x2 || form_.type(0) == Type::E5m2x2) return cvt_bytes();
  if (form_.type(0) == Type::Tf32) return cvt_tf32();
  if (form_.type(0) == Type::F16x2 || form_.type(0) == Type::Bf16x2) return cvt_pair();
  expect_operands(2, 2);
  const Type to = form_.type(0);
  Type from = form_.type(1);
  const bool whole = !ptx::is_float(to) && !ptx::is_float(from);
  Value value;
  if (operand(1).kind == Kind::Register) {
    value = any_register(operand(1));
    if (value.size < ptx::size_of(from)) fail("register " + std::string(operand(1).name) + " is too narrow");
  } else {
    value = source_bits(operand(1), carrier(from), from);
  }
  if (ptx::is_float(from) && value.size != ptx::size_of(from)) fail("a float needs a register of its size");
  value = natural(value, from);
  if (whole && !form_.has(Word::sat)) {
    value = resized(value, carrier(to), ptx::is_signed(from));
    if (ptx::size_of(to) == 1) value = natural(value, to);
    return put_converted(value, to);
  }
  const Value target = any_register(operand(0));
  if (ptx::is_half(from) && !ptx::is_float(to)) {
    // The conversion goes through singles, so that a NaN has the result that the rule for singles gives.
    value = emit_temp(4, table_.convert(Type::F32, from, Form{}), {value});
    from = Type::F32;
  } else if (ptx::is_half(from) && ptx::is_half(to)) {
    value = through_double(value, from);
    from = Type::F64;
    if (form_.has(Word::rni) || form_.has(Word::rzi) || form_.has(Word::rmi) || form_.has(Word::rpi)) {
      value = emit_temp(8, table_.convert(Type::F64, Type::F64, form_), {value});
    }
  } else if (ptx::is_half(to) && !ptx::is_float(from)) {
    value = through_double(value, from);
    from = Type::F64;
  }
  const Handlers handlers = table_.convert(to, from, form_);
  const bool direct = target.size == carrier(to);
  const std::uint32_t result = direct ? target.reg : temp(carrier(to));
  emit_to(result, handlers, {value});
  code_.body.back().flags |= mode_flags();
  if (!direct) put_converted(reg_value(result), to);
}

}  // namespace simgpu
