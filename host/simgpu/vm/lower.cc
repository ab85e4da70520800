// The frame of the lowering: operands, emission, opcodes that a row of the table describes. See lower.h.
#include "host/simgpu/vm/lower.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace simgpu {
namespace {

constexpr std::size_t max_instructions = 4'000'000;

bool in_list(const char* list, std::string_view word) {
  const std::string_view all(list);
  for (std::size_t at = all.find(word); at != std::string_view::npos; at = all.find(word, at + 1)) {
    const bool begins = at == 0 || all[at - 1] == ' ';
    const bool ends = at + word.size() == all.size() || all[at + word.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

constexpr const char* spellings[] = {
#define X(name, spelling) spelling,
    SIMGPU_WORDS(X)
#undef X
};

bool allowed(const Words& words, const char* list) {
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (words[k] && !in_list(list, spellings[k])) return false;
  }
  return true;
}

struct SpecialName {
  std::string_view name;
  Special which;
  bool wide;
};
constexpr SpecialName special_names[] = {
    {"%tid.x", Special::TidX, false},
    {"%tid.y", Special::TidY, false},
    {"%tid.z", Special::TidZ, false},
    {"%ntid.x", Special::NtidX, false},
    {"%ntid.y", Special::NtidY, false},
    {"%ntid.z", Special::NtidZ, false},
    {"%ctaid.x", Special::CtaidX, false},
    {"%ctaid.y", Special::CtaidY, false},
    {"%ctaid.z", Special::CtaidZ, false},
    {"%nctaid.x", Special::NctaidX, false},
    {"%nctaid.y", Special::NctaidY, false},
    {"%nctaid.z", Special::NctaidZ, false},
    {"%laneid", Special::LaneId, false},
    {"%warpid", Special::WarpId, false},
    {"%nwarpid", Special::NwarpId, false},
    {"%smid", Special::SmId, false},
    {"%nsmid", Special::NsmId, false},
    {"%gridid", Special::GridId, true},
    {"%lanemask_eq", Special::MaskEq, false},
    {"%lanemask_lt", Special::MaskLt, false},
    {"%lanemask_le", Special::MaskLe, false},
    {"%lanemask_gt", Special::MaskGt, false},
    {"%lanemask_ge", Special::MaskGe, false},
    {"%dynamic_smem_size", Special::DynamicShared, false},
    {"%total_smem_size", Special::TotalShared, false},
    {"%aggr_smem_size", Special::TotalShared, false},
    {"%envreg0", Special::Zero, false},
    {"%envreg1", Special::EnvReg1, false},
    {"%envreg2", Special::EnvReg2, false},
    {"%is_explicit_cluster", Special::Zero, false},
    {"%clusterid.x", Special::CtaidX, false},
    {"%clusterid.y", Special::CtaidY, false},
    {"%clusterid.z", Special::CtaidZ, false},
    {"%nclusterid.x", Special::NctaidX, false},
    {"%nclusterid.y", Special::NctaidY, false},
    {"%nclusterid.z", Special::NctaidZ, false},
    {"%cluster_ctaid.x", Special::Zero, false},
    {"%cluster_ctaid.y", Special::Zero, false},
    {"%cluster_ctaid.z", Special::Zero, false},
    {"%cluster_nctaid.x", Special::One, false},
    {"%cluster_nctaid.y", Special::One, false},
    {"%cluster_nctaid.z", Special::One, false},
    {"%cluster_ctarank", Special::Zero, false},
    {"%cluster_nctarank", Special::One, false},
    {"%reserved_smem_offset_begin", Special::Zero, false},
    {"%reserved_smem_offset_end", Special::Zero, false},
    {"%reserved_smem_offset_cap", Special::Zero, false},
    {"%reserved_smem_offset_0", Special::Zero, false},
    {"%reserved_smem_offset_1", Special::Zero, false},
    {"%clock", Special::Clock, false},
    {"%clock_hi", Special::ClockHigh, false},
    {"%clock64", Special::Clock64, true},
    {"%globaltimer", Special::GlobalTimer, true},
    {"%globaltimer_lo", Special::GlobalTimerLow, false},
    {"%globaltimer_hi", Special::GlobalTimerHigh, false},
};

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
  form_ = form_of(instruction);
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
  // Branches over a guarded instruction at the very end lead to a return that the body has, because a label or a guard
  // there makes the parser add one.
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

void Lowering::allow(const char* words) const {
  if (!allowed(form_.words, words)) not_served();
}

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

Handlers Lowering::row(const char* name, ptx::Type type, std::initializer_list<Word> words) const {
  Form form;
  form.types[0] = type;
  form.type_count = 1;
  for (const Word word : words) form.words.set(static_cast<std::size_t>(word));
  for (const Rows& rows : {table_.integer, table_.bits, table_.floating, table_.half}) {
    for (const Row* row = rows.begin; row != rows.end; ++row) {
      if (std::strcmp(row->name, name) != 0 || !in_list(row->types, ptx::name_of(type))) continue;
      if (!allowed(form.words, row->words)) continue;
      if (const Handlers handlers = row->pick(form)) return handlers;
    }
  }
  return {};
}

// ---- operands -------------------------------------------------------------------------------------------------------

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

Value Lowering::fixed_special(Special which, bool wide) {
  const auto [found, added] = fixed_specials_.try_emplace(which, 0);
  if (added) {
    found->second = temp(wide ? 8 : 4);
    registers_[found->second].pinned = true;
  }
  return reg_value(found->second);
}

Value Lowering::special(std::string_view name, unsigned size) {
  const auto* found = std::find_if(std::begin(special_names), std::end(special_names),
                                   [&](const SpecialName& row) { return row.name == name; });
  if (found == std::end(special_names)) fail("'" + std::string(name) + "' is no register that is served");
  if (size == 0) fail("a special register is no predicate");
  if (found->which < Special::Clock) return resized(fixed_special(found->which, found->wide), size, false);
  const std::uint32_t reg = temp(found->wide ? 8 : 4);
  const std::uint32_t at = emit(special_handler(found->wide));
  ins(at).count = static_cast<std::uint16_t>(found->which);
  write(at, Field::D, reg);
  return resized(reg_value(reg), size, false);
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

// ---- opcodes with a row ---------------------------------------------------------------------------------------------

std::uint32_t Lowering::mode_flags() const {
  std::uint32_t flags = form_.has(Word::rm) ? 1 : form_.has(Word::rp) ? 2 : form_.has(Word::rz) ? 3 : 0;
  if (form_.has(Word::ftz)) flags |= flag_ftz;
  if (form_.has(Word::sat)) flags |= flag_sat;
  if (form_.has(Word::relu)) flags |= flag_relu;
  return flags;
}

bool Lowering::try_row(const Row& row) {
  if (in().opcode != row.name || !in_list(row.types, ptx::name_of(form_.type()))) return false;
  if (!allowed(form_.words, row.words)) return false;
  const Handlers handlers = row.pick(form_);
  if (!handlers) return false;
  with_row(row, handlers);
  return true;
}

void Lowering::with_row(const Row& row, Handlers handlers) {
  static constexpr Field fields[] = {Field::A, Field::B, Field::C, Field::E};
  const ptx::Type type = form_.type();
  const unsigned size = ptx::size_of(type);
  std::vector<Value> sources;
  std::uint32_t result = 0;
  std::int64_t immediate = 0;
  bool carry = false;
  std::size_t next = 0;
  for (const char* letter = row.signature; *letter != '\0'; ++letter) {
    switch (*letter) {
      case 'd': result = destination(operand(next++), size); break;
      case 'D': result = destination(operand(next++), 2 * size); break;
      case 'U': result = destination(operand(next++), 4); break;
      case 'P': result = destination(operand(next++), 0); break;
      case 't': sources.push_back(source(operand(next++), type)); break;
      case 'T': sources.push_back(source_bits(operand(next++), 2 * size, ptx::Type::None)); break;
      case 'u': sources.push_back(source_bits(operand(next++), 4, ptx::Type::None)); break;
      case 'p': sources.push_back(predicate(operand(next++))); break;
      case 'i': immediate = operand(next++).value; break;
      default: carry = true; break;
    }
  }
  expect_operands(next, next);
  const std::uint32_t at = emit(handlers);
  ins(at).flags |= mode_flags();
  ins(at).imm = immediate;
  for (std::size_t k = 0; k < sources.size(); ++k) read(at, fields[k], sources[k]);
  write(at, Field::D, result);
  if (!carry) return;
  if (carry_ == ~0U) carry_ = temp(0);
  references_.push_back({at, carry_, 0, Field::E, true, true, true});
}

void Lowering::generic() {
  for (const Opcode* entry = opcodes; entry->name != nullptr; ++entry) {
    if (in().opcode != entry->name) continue;
    if (!allowed(form_.words, entry->words)) continue;
    return (this->*entry->method)();
  }
  for (const Rows& rows : {table_.integer, table_.floating, table_.bits, table_.half}) {
    for (const Row* row = rows.begin; row != rows.end; ++row) {
      if (try_row(*row)) return;
    }
  }
  not_served();
}

void lower(const Unit& unit, Plan& plan) { Lowering(unit, plan).run(); }

}  // namespace simgpu
