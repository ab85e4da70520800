// The operands of an instruction: sources, literals, predicates, destinations, symbols and labels.
#include <bit>

#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {

Value Lowering::source(const ptx::Operand& operand, ptx::Type type) {
  return source_bits(operand, type == ptx::Type::Pred ? 0 : ptx::size_of(type), type);
}

Value Lowering::source_bits(const ptx::Operand& operand, unsigned size, ptx::Type type) {
  using Kind = ptx::Operand::Kind;
  switch (operand.kind) {
    case Kind::Register: {
      if (operand.negated) {
        if (size != 0) fail("only a predicate can be negated");
        return predicate(operand);
      }
      const Value value = reg_value(operand.index);
      if (value.size != (size == 1 ? 2 : size)) {
        fail("register " + std::string(operand.name) + " does not fit opcode " + shown(in()));
      }
      return value;
    }
    case Kind::Integer:
    case Kind::Float32:
    case Kind::Float64: return literal(operand, size, type);
    case Kind::Special: return special(operand.name, size);
    case Kind::Local:
    case Kind::Symbol: return address_of(symbol_of(operand), operand.value, size);
    default: fail("an operand of opcode " + shown(in()) + " is malformed");
  }
}

Value Lowering::literal(const ptx::Operand& operand, unsigned size, ptx::Type type) const {
  using Kind = ptx::Operand::Kind;
  const auto bits = static_cast<std::uint64_t>(operand.value);
  if (size == 0) return constant_value(bits != 0 ? 0xffff'ffff : 0, 0);
  if (operand.kind == Kind::Float64 && size == 4) {
    return constant_value(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits))), size);
  }
  if (operand.kind == Kind::Float32 && size == 8) {
    const float single = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return constant_value(std::bit_cast<std::uint64_t>(double{single}), size);
  }
  if (operand.kind == Kind::Integer && (type == ptx::Type::F32 || type == ptx::Type::F64)) {
    fail("an integer stands where a floating-point constant must");
  }
  return constant_value(bits, size == 1 ? 2 : size);
}

Value Lowering::predicate(const ptx::Operand& operand) {
  if (operand.kind == ptx::Operand::Kind::Integer) return literal(operand, 0, ptx::Type::Pred);
  if (operand.kind == ptx::Operand::Kind::Special) return special(operand.name, 0);
  if (operand.kind != ptx::Operand::Kind::Register || registers_[operand.index].size != 0) {
    fail("a predicate is missing");
  }
  const Value value = reg_value(operand.index);
  return operand.negated ? emit_temp(0, table_.predicate(Word::none), {value}) : value;
}

Value Lowering::any_register(const ptx::Operand& operand) {
  if (operand.kind != ptx::Operand::Kind::Register || registers_[operand.index].size == 0 ||
      registers_[operand.index].size == wide_size) {
    fail("a register is missing");
  }
  return reg_value(operand.index);
}

std::uint32_t Lowering::destination(const ptx::Operand& operand, unsigned size) {
  if (operand.kind == ptx::Operand::Kind::Sink) return temp(size == 1 ? 2 : size);
  if (operand.kind != ptx::Operand::Kind::Register)
    fail("the destination of opcode " + shown(in()) + " is no register");
  if (registers_[operand.index].size != (size == 1 ? 2 : size)) {
    fail("register " + std::string(operand.name) + " does not fit opcode " + shown(in()));
  }
  return operand.index;
}

Value Lowering::resized(const Value& value, unsigned size, bool sign) {
  if (value.size == size) return value;
  if (value.size == 0 || size == 0) fail("a predicate stands where a number must");
  if (value.constant) {
    std::uint64_t bits = value.bits;
    const unsigned unused = 64 - 8 * value.size;
    bits = sign ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused)
                : bits << unused >> unused;
    return constant_value(bits, size);
  }
  return emit_temp(size, table_.resize(size, value.size, sign), {value});
}

const Symbol& Lowering::symbol_of(const ptx::Operand& operand) const {
  if (operand.kind == ptx::Operand::Kind::Local) {
    const Symbol& symbol = plan_.variables[operand.index];
    if (symbol.space == ptx::Space::Shared && !function_.entry) plan_.uses_shared = true;
    return symbol;
  }
  const auto found = unit_.names.find(operand.name);
  if (found == unit_.names.end()) fail("'" + std::string(operand.name) + "' is not declared");
  const Symbol& symbol = *found->second;
  if (symbol.elsewhere) plan_.needs.push_back(found->first);
  if (symbol.space == ptx::Space::Shared && !symbol.dynamic) plan_.uses_shared = true;
  return symbol;
}

Value Lowering::address_of(const Symbol& symbol, std::int64_t offset, unsigned size) {
  if (size != 4 && size != 8) fail("an address needs four or eight bytes");
  if (symbol.kind == Symbol::Kind::Host) fail("the address of a function that the driver supplies is not served");
  const std::uint64_t address = symbol.address + static_cast<std::uint64_t>(offset);
  if (symbol.dynamic) {
    const Value base = resized(fixed_special(Special::DynamicBase, false), size, false);
    if (offset == 0) return base;
    const ptx::Type type = size == 8 ? ptx::Type::U64 : ptx::Type::U32;
    return emit_temp(size, row("add", type), {base, constant_value(static_cast<std::uint64_t>(offset), size)});
  }
  if (!symbol.in_frame) return constant_value(address, size);
  const std::uint32_t reg = temp(8);
  const std::uint32_t at = emit(frame_address_handler());
  ins(at).imm = static_cast<std::int64_t>(address);
  write(at, Field::D, reg);
  return resized(reg_value(reg), size, false);
}

std::uint32_t Lowering::find_label(std::string_view name) const {
  const std::uint32_t* found = find_scoped(function_.labels, name);
  if (found == nullptr) fail("the label '" + std::string(name) + "' does not exist");
  return *found;
}

}  // namespace simgpu
