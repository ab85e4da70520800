// The framework of the lowering: processes the body of a function instruction by instruction, resolves guards and
// branch targets, and emits instructions for the interpreter.
#include "host/simgpu/vm/lower/lower.h"

#include <atomic>
#include <cstring>

#include "host/simgpu/vm/matrix/matrix_forms.h"

namespace simgpu {
namespace {

constexpr std::size_t max_instructions = 4'000'000;

std::uint64_t next_code_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Lowering::Lowering(const Unit& unit, Plan& plan)
    : unit_(unit), plan_(plan), function_(*plan.function), code_(*plan.code), table_(table()) {
  for (const ptx::Type type : function_.registers) {
    const unsigned size = ptx::size_of(type);
    registers_.push_back({static_cast<std::uint8_t>(size == 1 ? 2 : size), false});
  }
  split_wide_registers();
}

void Lowering::run() {
  code_.id = next_code_id();
  for (const ptx::Instruction& instruction : function_.body) {
    starts_.push_back(static_cast<std::uint32_t>(code_.body.size()));
    one_instruction(instruction);
    code_.lines.resize(code_.body.size(), instruction.line);
    if (code_.body.size() > max_instructions) fail("a function is too long");
  }
  patch_targets();
  std::vector<Place> places;
  place_registers(code_, registers_, references_, places);
  for (const auto& [which, reg] : fixed_specials_) {
    code_.specials.push_back({which, registers_[reg].size == 8, places[reg]});
  }
  if (code_.constants.empty()) code_.constants.emplace_back();
}

void Lowering::one_instruction(const ptx::Instruction& instruction) {
  in_ = &instruction;
  form_ = matrix::has_own_suffixes(instruction.opcode) ? Form{} : form_of(instruction);
  control_ = false;
  guard_used_ = false;
  const auto guard = static_cast<std::uint32_t>(code_.body.size());
  const std::size_t first_reference = references_.size();
  const bool native = instruction.opcode == "bra";
  if (instruction.guard && !native) {
    emit(guarded_handler());
    read(guard, Field::Guard, reg_value(instruction.guard->reg));
    if (instruction.guard->negated) ins(guard).flags |= flag_negated;
  }
  generic();
  if (!instruction.guard || native) return;
  const auto end = static_cast<std::uint32_t>(code_.body.size());
  if (end == guard + 2 && !control_) {
    for (std::size_t k = first_reference; k < references_.size(); ++k) references_[k].partial |= references_[k].def;
    return;
  }
  ins(guard).run[0] = branch_handler().full;
  ins(guard).run[1] = branch_handler().masked;
  ins(guard).flags ^= flag_negated;
  ins(guard).index = end;
}

void Lowering::patch_targets() {
  // A branch past a guarded last instruction has a valid target: if a label or a guard ends the body, the parser adds a
  // return.
  for (const Patch& patch : patches_) {
    if (patch.target >= starts_.size()) throw ptx::Error(function_.line, "a label stands behind the last instruction");
    ins(patch.ins).index = starts_[patch.target];
  }
  for (std::vector<std::uint32_t>& targets : code_.tables) {
    for (std::uint32_t& target : targets) target = starts_.at(target);
  }
}

// ---- the current instruction ----------------------------------------------------------------------------------------

const ptx::Operand& Lowering::operand(std::size_t k) const {
  if (k >= in().operands.size()) fail("opcode " + shown(in()) + " has too few operands");
  return in().operands[k];
}

void Lowering::expect_operands(std::size_t least, std::size_t most) const {
  const std::size_t count = in().operands.size();
  if (count < least || count > most) {
    fail("opcode " + shown(in()) + " takes " + std::to_string(least) + " operands and has " + std::to_string(count));
  }
}

void Lowering::fail(const std::string& what) const { throw ptx::Error(in().line, what); }

void Lowering::not_served() const { fail("opcode " + shown(in()) + " is not served"); }

// ---- emission -------------------------------------------------------------------------------------------------------

std::uint32_t Lowering::emit(Handlers handlers) {
  if (!handlers) not_served();
  Ins& added = code_.body.emplace_back();
  added.run[0] = handlers.full;
  added.run[1] = handlers.masked;
  return static_cast<std::uint32_t>(code_.body.size() - 1);
}

void Lowering::read(std::uint32_t at, Field field, const Value& value) {
  if (!value.constant) {
    references_.push_back({at, value.reg, 0, field, false, false, true});
    return;
  }
  const Place place = constant(value.bits, value.size);
  switch (field) {
    case Field::A: ins(at).a = place; break;
    case Field::B: ins(at).b = place; break;
    case Field::C: ins(at).c = place; break;
    case Field::E: ins(at).e = place; break;
    case Field::Guard: ins(at).guard = place; break;
    default: fail("a constant stands where a register must");
  }
}

void Lowering::write(std::uint32_t at, Field field, std::uint32_t reg, bool partial) {
  references_.push_back({at, reg, 0, field, true, partial, false});
}

std::uint32_t Lowering::extra(std::uint32_t at, const Value& value, bool destination) {
  const auto index = static_cast<std::uint32_t>(code_.extra.size());
  if (value.constant) {
    code_.extra.push_back(constant(value.bits, value.size));
  } else {
    code_.extra.push_back(0);
    references_.push_back({at, value.reg, index, Field::Extra, destination, false, !destination});
  }
  return index;
}

std::uint32_t Lowering::temp(unsigned size) {
  registers_.push_back({static_cast<std::uint8_t>(size), false});
  return static_cast<std::uint32_t>(registers_.size() - 1);
}

Place Lowering::constant(std::uint64_t bits, unsigned size) {
  if (size < 8) bits &= size == 0 ? 0xffff'ffff : (std::uint64_t{1} << (8 * size)) - 1;
  const auto [found, added] = constants_.try_emplace({bits, size}, 0);
  if (!added) return found->second;
  const std::size_t bytes = size == 0 ? 64 : size * warp_size;
  const std::size_t offset = code_.constants.size() * sizeof(Lanes64);
  code_.constants.resize(code_.constants.size() + bytes / sizeof(Lanes64));
  std::byte* const start = code_.constants[offset / sizeof(Lanes64)].bytes;
  const unsigned step = size == 0 ? 4 : size;
  for (std::size_t at = 0; at < bytes; at += step) std::memcpy(start + at, &bits, step);
  if (offset >= constant_place) fail("a function has too many constants");
  return found->second = constant_place | static_cast<Place>(offset);
}

Value Lowering::constant_value(std::uint64_t bits, unsigned size) const {
  return {true, static_cast<std::uint8_t>(size), 0, bits};
}

Value Lowering::reg_value(std::uint32_t reg) const { return {false, registers_[reg].size, reg, 0}; }

void Lowering::emit_to(std::uint32_t reg, Handlers handlers, std::initializer_list<Value> sources) {
  static constexpr Field fields[] = {Field::A, Field::B, Field::C, Field::E};
  const std::uint32_t at = emit(handlers);
  std::size_t k = 0;
  for (const Value& value : sources) read(at, fields[k++], value);
  write(at, Field::D, reg);
}

Value Lowering::emit_temp(unsigned size, Handlers handlers, std::initializer_list<Value> sources) {
  const std::uint32_t reg = temp(size);
  emit_to(reg, handlers, sources);
  return reg_value(reg);
}

void lower(const Unit& unit, Plan& plan) { Lowering(unit, plan).run(); }

}  // namespace simgpu
