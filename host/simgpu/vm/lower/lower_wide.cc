// Lowers instructions on 128-bit registers, which PTX only moves, loads, stores and exchanges. Each of these registers
// becomes two 64-bit registers, the lower half first.
#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/lower/lower.h"
#include "host/simgpu/vm/rights.h"

namespace simgpu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

void Lowering::split_wide_registers() {
  const std::size_t count = registers_.size();
  for (std::uint32_t reg = 0; reg < count; ++reg) {
    if (registers_[reg].size == wide_size) halves_[reg] = {temp(8), temp(8)};
  }
}

std::array<std::uint32_t, 2> Lowering::halves(const ptx::Operand& operand) {
  if (operand.kind == Kind::Sink) return {temp(8), temp(8)};
  const auto found = operand.kind == Kind::Register ? halves_.find(operand.index) : halves_.end();
  if (found == halves_.end()) fail("a register of 128 bits is missing");
  return found->second;
}

// Moves one 128-bit register to another, or from or to two 64-bit registers.
void Lowering::mov_wide() {
  const ptx::Operand& to = operand(0);
  const ptx::Operand& from = operand(1);
  if (to.kind == Kind::List && from.kind == Kind::List) not_served();
  for (const ptx::Operand* list : {&to, &from}) {
    if (list->kind == Kind::List && list->parts.size() != 2) not_served();
  }
  std::array<Value, 2> values;
  for (std::size_t k = 0; k < 2; ++k) {
    values[k] = from.kind == Kind::List ? source_bits(from.parts[k], 8, Type::B64) : reg_value(halves(from)[k]);
  }
  for (std::size_t k = 0; k < 2; ++k) {
    if (to.kind == Kind::List && to.parts[k].kind == Kind::Sink) continue;
    emit_to(to.kind == Kind::List ? destination(to.parts[k], 8) : halves(to)[k], table_.move(8), {values[k]});
  }
}

// The extra places are the two halves of b, of c and of the old value.
void Lowering::atomic_wide(Word operation, const Value& address, bool result) {
  const bool swap = operation == Word::cas;
  if (!result || (!swap && operation != Word::exch) || vector_count() != 1) not_served();
  const std::array<std::uint32_t, 2> b = halves(operand(2));
  const std::array<std::uint32_t, 2> c = swap ? halves(operand(3)) : b;
  const std::array<std::uint32_t, 2> d = halves(operand(0));
  const std::uint32_t at = emit(wide_atomic_handler(swap));
  ins(at).flags |= flag_writes;
  ins(at).window = code_.windows++;
  ins(at).index = static_cast<std::uint32_t>(code_.extra.size());
  read(at, Field::A, address);
  for (const auto& pair : {b, c}) {
    for (const std::uint32_t reg : pair) extra(at, reg_value(reg), false);
  }
  for (const std::uint32_t reg : d) extra(at, reg_value(reg), true);
}

}  // namespace simgpu
