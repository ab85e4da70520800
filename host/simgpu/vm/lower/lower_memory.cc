// Lowers loads, stores and atomics: separates the parts of an address and determines its state space.
#include "host/simgpu/vm/ctx.h"
#include "host/simgpu/vm/lower/lower.h"
#include "host/simgpu/vm/rights.h"

namespace simgpu {

using ptx::Space;
using ptx::Type;
using Kind = ptx::Operand::Kind;

Space Lowering::form_space() const {
  if (form_.has(Word::global) || form_.has(Word::const_)) return Space::Global;
  if (form_.has(Word::shared)) return Space::Shared;
  if (form_.has(Word::local)) return Space::Local;
  if (form_.has(Word::param)) return Space::Param;
  return in().opcode == "ldu" ? Space::Global : Space::Generic;
}

unsigned Lowering::vector_count() const {
  return form_.has(Word::v2) ? 2 : form_.has(Word::v4) ? 4 : form_.has(Word::v8) ? 8 : 1;
}

Lowering::Target Lowering::register_target(const Value& base, std::int64_t offset, Space space) {
  Target target;
  target.base = base;
  target.offset = offset;
  if (space == Space::Generic || space == Space::Global) {
    target.base = resized(base, 8, false);
    return target;
  }
  if (base.size != 4 && base.size != 8) fail("an address needs a register of 32 or 64 bits");
  target.windowed = true;
  // The parameters of a .func are in its frame, which is local memory.
  const bool local = space == Space::Local || (space == Space::Param && !function_.entry);
  target.space = space == Space::Shared ? space_shared : local ? space_local : space_param;
  return target;
}

Lowering::Target Lowering::symbol_target(const Symbol& symbol, std::int64_t offset, Space space) {
  if (symbol.kind != Symbol::Kind::Variable) fail("a function is no memory");
  const bool absolute = symbol.space == Space::Global || symbol.space == Space::Const;
  if (symbol.dynamic) return register_target(fixed_special(Special::DynamicBase, false), offset, Space::Shared);
  Target target;
  target.offset = offset;
  if (absolute) {
    target.base = constant_value(symbol.address, 8);
    return target;
  }
  const bool wrong = space == Space::Global || (symbol.space == Space::Shared) != (space == Space::Shared);
  if (wrong && space != Space::Generic) fail("a variable is in another space than opcode " + shown(in()) + " says");
  target.windowed = true;
  target.base = constant_value(symbol.address, 4);
  target.frame = symbol.in_frame;
  target.space = symbol.space == Space::Shared ? space_shared : symbol.in_frame ? space_local : space_param;
  target.fixed_param = target.space == space_param;
  target.param_size = symbol.size;
  return target;
}

Lowering::Target Lowering::target(const ptx::Operand& address, Space space) {
  if (address.kind != Kind::Address || address.parts.size() != 1) fail("an address is missing");
  const ptx::Operand& base = address.parts.front();
  switch (base.kind) {
    case Kind::Register: return register_target(any_register(base), address.value, space);
    case Kind::Local:
    case Kind::Symbol: return symbol_target(symbol_of(base), address.value, space);
    case Kind::Integer:
      return register_target(constant_value(static_cast<std::uint64_t>(base.value), 8), address.value, space);
    default: fail("an address is malformed");
  }
}

void Lowering::access_flags(std::uint32_t at, const Target& target, unsigned count) {
  static constexpr Word ordered[] = {Word::volatile_, Word::relaxed, Word::acquire, Word::release, Word::mmio};
  Ins& ins = code_.body[at];
  ins.imm = target.offset;
  ins.count = static_cast<std::uint16_t>(count);
  ins.space = target.space;
  if (target.frame) ins.flags |= flag_frame;
  for (const Word word : ordered) {
    if (form_.has(word)) ins.flags |= flag_sync;
  }
  if (!target.windowed) ins.window = code_.windows++;
}

// 128 bits are loaded and stored as a vector of two 64-bit words, in one access like every vector of that size.
Type Lowering::element_type() const {
  if (form_.type() != Type::B128) return form_.type();
  if (vector_count() != 1) not_served();
  return Type::B64;
}

std::vector<std::uint32_t> Lowering::loaded_registers(Type type) {
  const ptx::Operand& into = operand(0);
  if (form_.type() == Type::B128) {
    const std::array<std::uint32_t, 2> both = halves(into);
    return {both[0], both[1]};
  }
  const unsigned count = vector_count();
  if ((into.kind == Kind::List) != (count > 1) || (count > 1 && into.parts.size() != count)) {
    fail("opcode " + shown(in()) + " has the wrong number of destinations");
  }
  std::vector<std::uint32_t> registers;
  for (unsigned k = 0; k < count; ++k) {
    const ptx::Operand& part = count == 1 ? into : into.parts[k];
    const unsigned size = std::max(2U, ptx::size_of(type));
    registers.push_back(part.kind == Kind::Sink ? temp(size) : any_register(part).reg);
    if (registers_[registers.back()].size != registers_[registers.front()].size) {
      fail("the destinations of opcode " + shown(in()) + " differ in size");
    }
  }
  return registers;
}

std::vector<Value> Lowering::stored_values(Type type) {
  const ptx::Operand& from = operand(1);
  if (form_.type() == Type::B128) {
    const std::array<std::uint32_t, 2> both = halves(from);
    return {reg_value(both[0]), reg_value(both[1])};
  }
  const unsigned count = vector_count();
  if ((from.kind == Kind::List) != (count > 1) || (count > 1 && from.parts.size() != count)) {
    fail("opcode " + shown(in()) + " has the wrong number of sources");
  }
  std::vector<Value> values;
  unsigned lane = std::max(2U, ptx::size_of(type));
  for (unsigned k = 0; k < count; ++k) {
    const ptx::Operand& part = count == 1 ? from : from.parts[k];
    values.push_back(part.kind == Kind::Register ? any_register(part) : source_bits(part, lane, type));
    lane = std::max<unsigned>(lane, values.back().size);
  }
  for (Value& value : values) value = resized(value, lane, false);
  return values;
}

void Lowering::ld() {
  if (in().operands.size() < 2) expect_operands(2, 2);  // a cache policy may follow; it has no effect
  const Type type = element_type();
  const Target from = target(operand(1), form_space());
  const std::vector<std::uint32_t> registers = loaded_registers(type);
  const auto count = static_cast<unsigned>(registers.size());
  const unsigned lane = registers_[registers.front()].size;
  const bool fixed =
      from.fixed_param && from.offset >= 0 &&
      static_cast<std::uint64_t>(from.offset) + std::uint64_t{count} * ptx::size_of(type) <= from.param_size;
  const unsigned address_size = from.base.size;
  const std::uint32_t at =
      emit(fixed ? table_.load_param(type, lane) : table_.load(type, lane, from.windowed, address_size));
  access_flags(at, from, count);
  if (fixed) {
    ins(at).imm = from.offset + static_cast<std::int64_t>(from.base.bits);
  } else {
    read(at, Field::A, from.base);
  }
  if (count == 1) return write(at, Field::D, registers.front());
  ins(at).index = static_cast<std::uint32_t>(code_.extra.size());
  for (const std::uint32_t reg : registers) extra(at, reg_value(reg), true);
}

void Lowering::st() {
  if (form_.has(Word::async)) return st_async();
  if (form_.has(Word::mbarrier)) not_served();
  if (in().operands.size() < 2) expect_operands(2, 2);
  const Type type = element_type();
  const Target into = target(operand(0), form_space());
  if (into.space == space_param && into.windowed) fail("the parameters of a kernel cannot be written");
  const std::vector<Value> values = stored_values(type);
  const auto count = static_cast<unsigned>(values.size());
  const std::uint32_t at = emit(table_.store(type, values.front().size, into.windowed, into.base.size));
  access_flags(at, into, count);
  ins(at).flags |= flag_writes;
  read(at, Field::A, into.base);
  if (count == 1) return read(at, Field::B, values.front());
  ins(at).index = static_cast<std::uint32_t>(code_.extra.size());
  for (const Value& value : values) extra(at, value, false);
}

void Lowering::atom() { atomic(true); }
void Lowering::red() { form_.has(Word::async) ? red_async() : atomic(false); }

Word Lowering::atomic_operation() const {
  static constexpr Word operations[] = {Word::add,  Word::min, Word::max,  Word::inc, Word::dec,
                                        Word::exch, Word::cas, Word::and_, Word::or_, Word::xor_};
  Word operation = Word::none;
  for (const Word word : operations) {
    if (form_.has(word)) operation = word;
  }
  return operation;
}

// Atomic handlers take only generic addresses, so addresses of shared memory are converted. A vector becomes several
// atomics.
void Lowering::atomic(bool result) {
  if (form_.has(Word::async) || form_.has(Word::mbarrier)) not_served();
  const Word operation = atomic_operation();
  const std::size_t first = result ? 1 : 0;
  const bool swap = operation == Word::cas;
  expect_operands(first + (swap ? 3 : 2), first + (swap ? 4 : 3));
  const Value address = generic_address(operand(first), form_space());
  if (form_.type() == Type::B128) return atomic_wide(operation, address, result);
  const unsigned count = vector_count();
  if (count == 1) {
    const Value b = source(operand(first + 1), form_.type());
    const Value c = swap ? source(operand(first + 2), form_.type()) : b;
    return one_atomic(operation, address, result ? &operand(0) : nullptr, b, c, 0);
  }
  const ptx::Operand& from = operand(first + 1);
  if (swap || from.parts.size() != count || (result && operand(0).parts.size() != count)) not_served();
  std::vector<Value> values;
  for (const ptx::Operand& part : from.parts) values.push_back(source(part, form_.type()));
  for (unsigned k = 0; k < count; ++k) {
    one_atomic(operation, address, result ? &operand(0).parts[k] : nullptr, values[k], values[k],
               std::uint64_t{k} * ptx::size_of(form_.type()));
  }
}

void Lowering::one_atomic(Word operation, const Value& address, const ptx::Operand* into, const Value& b,
                          const Value& c, std::uint64_t offset) {
  const bool wanted = into != nullptr && into->kind != Kind::Sink;
  const std::uint32_t d = wanted ? destination(*into, ptx::size_of(form_.type())) : 0;
  const std::uint32_t at = emit(atomic_handler(operation, form_.type()));
  ins(at).imm = static_cast<std::int64_t>(offset);
  ins(at).flags |= flag_writes;
  ins(at).window = code_.windows++;
  read(at, Field::A, address);
  read(at, Field::B, b);
  read(at, Field::C, c);
  if (wanted) {
    write(at, Field::D, d);
  } else {
    ins(at).flags |= flag_no_result;
  }
}

void Lowering::nothing() {}

// The simulation has no cache, so every policy has the same opaque value, and accesses ignore it.
void Lowering::createpolicy() {
  constexpr std::uint64_t policy = 1;
  if (form_.type() != Type::B64) not_served();
  const bool range = form_.has(Word::range), fraction = form_.has(Word::fractional);
  if (range + fraction + form_.has(Word::cvt) != 1) not_served();
  expect_operands(range ? 4 : fraction ? 1 : 2, range ? 4 : 2);
  const std::uint32_t d = destination(operand(0), 8);
  if (range) {
    target(operand(1), form_space());
    source_bits(operand(2), 4, Type::U32);
    source_bits(operand(3), 4, Type::U32);
  } else if (in().operands.size() == 2) {
    fraction ? source(operand(1), Type::F32) : source_bits(operand(1), 8, Type::None);
  }
  emit_to(d, table_.move(8), {constant_value(policy, 8)});
}

// Hints for a cache line have no effect. `discard` leaves the memory undefined, so the memory may keep its contents.
void Lowering::cache_line() {
  constexpr std::int64_t line = 128;  // the only size in bytes that PTX allows
  expect_operands(2, 2);
  target(operand(0), form_space());
  if (operand(1).kind != Kind::Integer || operand(1).value != line) fail("the size of a cache line is 128");
}

// ---- alloca, stacksave, stackrestore

unsigned Lowering::stack_word() const {
  if (form_.type() != Type::U32 && form_.type() != Type::U64) not_served();
  return ptx::size_of(form_.type());
}

void Lowering::take_stack() {
  constexpr std::int64_t most_alignment = 1 << 23;
  expect_operands(2, 3);
  const unsigned word = stack_word();
  std::int64_t alignment = 8;
  if (in().operands.size() == 3) {
    alignment = operand(2).kind == Kind::Integer ? operand(2).value : 0;
    if (alignment < 1 || alignment > most_alignment || (alignment & (alignment - 1)) != 0) {
      fail("the alignment of alloca is a power of two up to 2^23");
    }
  }
  plan_.takes_stack = code_.takes_stack = true;
  const Value size = resized(source(operand(1), form_.type()), 8, false);
  const Value address = emit_temp(8, alloca_handler(), {size});
  code_.body.back().imm = alignment;
  const std::uint32_t d = destination(operand(0), word);
  emit_to(d, word == 8 ? table_.move(8) : table_.resize(4, 8, false), {address});
}

void Lowering::save_stack() {
  expect_operands(1, 1);
  const unsigned word = stack_word();
  plan_.takes_stack = code_.takes_stack = true;
  const Value top = emit_temp(8, stack_save_handler(), {});
  emit_to(destination(operand(0), word), word == 8 ? table_.move(8) : table_.resize(4, 8, false), {top});
}

void Lowering::restore_stack() {
  expect_operands(1, 1);
  stack_word();
  plan_.takes_stack = code_.takes_stack = true;
  const Value top = resized(source(operand(0), form_.type()), 8, false);
  read(emit(stack_restore_handler()), Field::A, top);
}

}  // namespace simgpu
