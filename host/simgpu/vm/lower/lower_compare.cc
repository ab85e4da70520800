// Lowers comparisons, selections by predicates, and logic of predicates.
#include <bit>

#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

Word Lowering::comparison() const {
  static constexpr Word all[] = {Word::eq,  Word::ne,  Word::lt,  Word::le,  Word::gt,  Word::ge,
                                 Word::lo,  Word::ls,  Word::hi,  Word::hs,  Word::equ, Word::neu,
                                 Word::ltu, Word::leu, Word::gtu, Word::geu, Word::num, Word::isnan};
  Word found = Word::none;
  for (const Word word : all) {
    if (!form_.has(word)) continue;
    if (found != Word::none) not_served();
    found = word;
  }
  if (found == Word::none) not_served();
  return found;
}

Value Lowering::compared(Word word, Type type, std::size_t first) {
  const Value a = source(operand(first), type);
  const Value b = source(operand(first + 1), type);
  return compared_values(word, type, a, b);
}

Value Lowering::compared_values(Word word, Type type, Value a, Value b) {
  if (ptx::is_half(type)) {
    a = emit_temp(4, table_.convert(Type::F32, type, form_), {a});
    b = emit_temp(4, table_.convert(Type::F32, type, form_), {b});
    type = Type::F32;
  }
  const Value result = emit_temp(0, table_.compare(word, type), {a, b});
  code_.body.back().flags |= mode_flags();
  return result;
}

Value Lowering::half_of(const Value& pair, bool upper) {
  if (!upper) return resized(pair, 2, false);
  const Value shifted = emit_temp(4, row("shr", Type::U32), {pair, constant_value(16, 4)});
  return resized(shifted, 2, false);
}

// Returns the predicate of the lower halves and that of the upper halves.
std::array<Value, 2> Lowering::compared_pairs(Word word, Type type, std::size_t first) {
  const Type part = type == Type::F16x2 ? Type::F16 : Type::Bf16;
  const Value a = source(operand(first), type);
  const Value b = source(operand(first + 1), type);
  const Value low = compared_values(word, part, half_of(a, false), half_of(b, false));
  return {low, compared_values(word, part, half_of(a, true), half_of(b, true))};
}

// Combines `bits` with the third operand if the instruction has .and, .or or .xor.
Value Lowering::combined(const Value& bits, std::size_t third) {
  for (const Word word : {Word::and_, Word::or_, Word::xor_}) {
    if (form_.has(word)) return emit_temp(0, table_.predicate(word), {bits, predicate(operand(third))});
  }
  return bits;
}

void Lowering::setp() {
  const bool joined = form_.has(Word::and_) || form_.has(Word::or_) || form_.has(Word::xor_);
  expect_operands(joined ? 4 : 3, joined ? 4 : 3);
  if (form_.type_count != 1) not_served();
  const ptx::Operand& target = operand(0);
  if (ptx::is_half_pair(form_.type())) {
    if (target.kind != Kind::Pair) fail("opcode " + shown(in()) + " needs two predicates");
    const std::array<Value, 2> bits = compared_pairs(comparison(), form_.type(), 1);
    const Value first = combined(bits[0], 3);
    const Value second = combined(bits[1], 3);
    emit_to(destination(target.parts[0], 0), table_.move(0), {first});
    return emit_to(destination(target.parts[1], 0), table_.move(0), {second});
  }
  if (target.kind == Kind::Pair) {
    const Value bits = compared(comparison(), form_.type(), 1);
    const Value opposite = emit_temp(0, table_.predicate(Word::none), {bits});
    const Value first = combined(bits, 3);
    const Value second = combined(opposite, 3);
    emit_to(destination(target.parts[0], 0), table_.move(0), {first});
    return emit_to(destination(target.parts[1], 0), table_.move(0), {second});
  }
  if (joined) {
    const Value bits = combined(compared(comparison(), form_.type(), 1), 3);
    return emit_to(destination(target, 0), table_.move(0), {bits});
  }
  if (ptx::is_half(form_.type())) {
    return emit_to(destination(target, 0), table_.move(0), {compared(comparison(), form_.type(), 1)});
  }
  const Value a = source(operand(1), form_.type());
  const Value b = source(operand(2), form_.type());
  emit_to(destination(target, 0), table_.compare(comparison(), form_.type()), {a, b});
  code_.body.back().flags |= mode_flags();
}

namespace {

// Returns the bits that `set` writes for true: 1.0 for a float type, all ones for an integer type.
std::uint64_t truth(Type type) {
  switch (type) {
    case Type::F32: return std::bit_cast<std::uint32_t>(1.0F);
    case Type::F16:
    case Type::F16x2: return 0x3c00;
    case Type::Bf16:
    case Type::Bf16x2: return 0x3f80;
    default: return 0xffff'ffff;
  }
}

}  // namespace

void Lowering::set() {
  if (form_.type_count != 2) not_served();
  const bool joined = form_.has(Word::and_) || form_.has(Word::or_) || form_.has(Word::xor_);
  expect_operands(joined ? 4 : 3, joined ? 4 : 3);
  if (ptx::is_half_pair(form_.type(1))) return set_pair();
  const Value bits = combined(compared(comparison(), form_.type(1), 1), 3);
  const Type to = form_.type(0);
  const unsigned size = ptx::size_of(to);
  if (size != 4 && size != 2) not_served();
  emit_to(destination(operand(0), size), table_.select(size),
          {constant_value(truth(to), size), constant_value(0, size), bits});
}

// The result of each half is written to the same half, for every result type.
void Lowering::set_pair() {
  const std::array<Value, 2> bits = compared_pairs(comparison(), form_.type(1), 1);
  const Type to = form_.type(0);
  if (ptx::size_of(to) != 4 || to == Type::F32) not_served();
  const std::uint64_t yes = truth(to) & 0xffff;
  const Value zero = constant_value(0, 4);
  const Value low = emit_temp(4, table_.select(4), {constant_value(yes, 4), zero, combined(bits[0], 3)});
  const Value high = emit_temp(4, table_.select(4), {constant_value(yes << 16, 4), zero, combined(bits[1], 3)});
  emit_to(destination(operand(0), 4), row("or", Type::B32), {high, low});
}

void Lowering::selp() {
  expect_operands(4, 4);
  const Type type = form_.type();
  const Value a = source(operand(1), type);
  const Value b = source(operand(2), type);
  const Value p = predicate(operand(3));
  const unsigned size = ptx::size_of(type);
  emit_to(destination(operand(0), size), table_.select(size), {a, b, p});
}

void Lowering::slct() {
  expect_operands(4, 4);
  if (form_.type_count != 2) not_served();
  const Type type = form_.type(0);
  const Type tested = form_.type(1);
  const Value a = source(operand(1), type);
  const Value b = source(operand(2), type);
  const Value c = source(operand(3), tested);
  const Value p = emit_temp(0, table_.compare(Word::ge, tested), {c, constant_value(0, ptx::size_of(tested))});
  code_.body.back().flags |= mode_flags();
  const unsigned size = ptx::size_of(type);
  emit_to(destination(operand(0), size), table_.select(size), {a, b, p});
}

// Lowers logic of predicates. Logic of integers has rows in the opcode table.
void Lowering::logic() {
  const bool unary = in().opcode == "not";
  if (form_.type() != Type::Pred) return by_row();
  expect_operands(unary ? 2 : 3, unary ? 2 : 3);
  const Value a = predicate(operand(1));
  if (unary) return emit_to(destination(operand(0), 0), table_.predicate(Word::none), {a});
  const Value b = predicate(operand(2));
  const Word word = in().opcode == "and" ? Word::and_ : in().opcode == "or" ? Word::or_ : Word::xor_;
  emit_to(destination(operand(0), 0), table_.predicate(word), {a, b});
}

}  // namespace simgpu
