// Moves, conversions, comparisons, selection, and which opcodes are lowered by functions. See lower.h.
#include <bit>

#include "host/simgpu/vm/lower.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

#define SIMGPU_SPACES "global shared local const param "
#define SIMGPU_ORDER "weak relaxed acquire release acq_rel volatile sc mmio cta cluster gpu sys "
#define SIMGPU_CACHE "ca cg cs lu cv wb wt nc cache hint "
#define SIMGPU_COMPARE "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz "

const Lowering::Opcode Lowering::opcodes[] = {
    {"mov", "", &Lowering::mov},
    {"cvt", "rn rz rm rp rni rzi rmi rpi rna ftz sat satfinite relu", &Lowering::cvt},
    {"cvta", SIMGPU_SPACES "to", &Lowering::cvta},
    {"isspacep", SIMGPU_SPACES, &Lowering::isspacep},
    {"setp", SIMGPU_COMPARE, &Lowering::setp},
    {"set", SIMGPU_COMPARE, &Lowering::set},
    {"selp", "", &Lowering::selp},
    {"slct", "ftz", &Lowering::slct},
    {"and", "", &Lowering::logic},
    {"or", "", &Lowering::logic},
    {"xor", "", &Lowering::logic},
    {"not", "", &Lowering::logic},
    {"ld", SIMGPU_SPACES SIMGPU_ORDER SIMGPU_CACHE "v2 v4 v8", &Lowering::ld},
    {"ldu", "global v2 v4", &Lowering::ld},
    {"st", SIMGPU_SPACES SIMGPU_ORDER SIMGPU_CACHE "v2 v4 v8", &Lowering::st},
    {"atom", SIMGPU_SPACES SIMGPU_ORDER "v2 v4 v8 add min max inc dec exch cas and or xor noftz", &Lowering::atom},
    {"red", SIMGPU_SPACES SIMGPU_ORDER "v2 v4 v8 add min max inc dec and or xor noftz", &Lowering::red},
    {"alloca", "", &Lowering::take_stack},
    {"stacksave", "", &Lowering::save_stack},
    {"stackrestore", "", &Lowering::restore_stack},
    {"prefetch", SIMGPU_SPACES "cache hint", &Lowering::nothing},
    {"prefetchu", "cache hint", &Lowering::nothing},
    {"pmevent", "", &Lowering::nothing},
    {"griddepcontrol", "wait launch_dependents", &Lowering::nothing},
    {"mbarrier",
     "init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait parity pending_count noComplete "
     "release relaxed acquire shared cta cluster",
     &Lowering::mbarrier},
    {"cp",
     "async ca cg shared global cache hint commit_group wait_group wait_all mbarrier arrive noinc bulk bulk_group read "
     "cta cluster",
     &Lowering::cp},
    {"mapa", "shared cluster", &Lowering::mapa},
    {"getctarank", "shared cluster", &Lowering::getctarank},
    {"bra", "uni", &Lowering::bra},
    {"brx", "idx uni", &Lowering::brx},
    {"call", "uni", &Lowering::call},
    {"ret", "uni", &Lowering::ret},
    {"exit", "", &Lowering::exit},
    {"trap", "", &Lowering::trap},
    {"brkpt", "", &Lowering::break_point},
    {"bar", "warp sync arrive red cta popc and or", &Lowering::barrier},
    {"barrier", "sync arrive wait red cta cluster popc and or aligned acquire release relaxed", &Lowering::barrier},
    {"membar", "cta gl sys", &Lowering::fence},
    {"fence", "sc acq_rel acquire release cta cluster gpu sys proxy async alias global shared mbarrier_init",
     &Lowering::fence},
    {"nanosleep", "", &Lowering::nanosleep},
    {"shfl", "sync up down bfly idx", &Lowering::shfl},
    {"vote", "sync all any uni ballot", &Lowering::vote},
    {"match", "sync all any", &Lowering::match},
    {"redux", "sync add min max and or xor", &Lowering::redux},
    {"activemask", "", &Lowering::activemask},
    {"elect", "sync", &Lowering::elect},
    {nullptr, nullptr, nullptr},
};

// ---- mov ------------------------------------------------------------------------------------------------------------

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

// mov.b64 %rd, {%r1, %r2}: the first part is the lowest.
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

// ---- cvt ------------------------------------------------------------------------------------------------------------

namespace {

unsigned carrier(Type type) { return std::max(2U, ptx::size_of(type)); }

}  // namespace

// The source as a register of its own type's size; bytes extended to sixteen bits.
Value Lowering::natural(const Value& value, Type type) {
  const Value fitted = resized(value, carrier(type), ptx::is_signed(type));
  if (ptx::size_of(type) != 1) return fitted;
  const Type extension = ptx::is_signed(type) ? Type::S8 : Type::U8;
  return emit_temp(2, table_.convert(Type::B8, extension, form_), {fitted});
}

// Into the destination, whose register may be wider than the type.
void Lowering::put_converted(const Value& value, Type type) {
  const Value target = any_register(operand(0));
  if (target.size < value.size) fail("register " + std::string(operand(0).name) + " is too narrow for " + shown(in()));
  const Handlers handlers = target.size == value.size ? table_.move(value.size)
                                                      : table_.resize(target.size, value.size, ptx::is_signed(type));
  emit_to(target.reg, handlers, {value});
}

namespace {

bool is_half(Type type) { return type == Type::F16 || type == Type::Bf16; }
bool is_pair(Type type) { return type == Type::F16x2 || type == Type::Bf16x2; }

}  // namespace

// Between halves and anything but floats of 32 and 64 bits there is a step: doubles hold every half and every integer
// that can become one.
Value Lowering::through_double(const Value& value, Type from) {
  Form form;
  form.words.set(static_cast<std::size_t>(Word::rn));
  return emit_temp(8, table_.convert(Type::F64, from, form), {value});
}

// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
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

// Pairs of floats of eight bits: from and to pairs of halves, and from two singles as above.
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
  if (is_half(from) && !ptx::is_float(to)) {
    // What a NaN becomes is a single's rule.
    value = emit_temp(4, table_.convert(Type::F32, from, Form{}), {value});
    from = Type::F32;
  } else if (is_half(from) && is_half(to)) {
    value = through_double(value, from);
    from = Type::F64;
    if (form_.has(Word::rni) || form_.has(Word::rzi) || form_.has(Word::rmi) || form_.has(Word::rpi)) {
      value = emit_temp(8, table_.convert(Type::F64, Type::F64, form_), {value});
    }
  } else if (is_half(to) && !ptx::is_float(from)) {
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
  // A parameter of a .func lies in local memory, and its address was taken there.
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
  emit_to(d, table_.compare(Word::lt, Type::U64), {offset, constant_value(window_size, 8)});
}

// ---- comparison and selection ---------------------------------------------------------------------------------------

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
  if (is_half(type)) {
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

// The lower halves' predicate and the upper's.
std::array<Value, 2> Lowering::compared_pairs(Word word, Type type, std::size_t first) {
  const Type part = type == Type::F16x2 ? Type::F16 : Type::Bf16;
  const Value a = source(operand(first), type);
  const Value b = source(operand(first + 1), type);
  const Value low = compared_values(word, part, half_of(a, false), half_of(b, false));
  return {low, compared_values(word, part, half_of(a, true), half_of(b, true))};
}

// .and/.or/.xor with a third operand.
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
  if (is_pair(form_.type())) {
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
  if (is_half(form_.type())) {
    return emit_to(destination(target, 0), table_.move(0), {compared(comparison(), form_.type(), 1)});
  }
  const Value a = source(operand(1), form_.type());
  const Value b = source(operand(2), form_.type());
  emit_to(destination(target, 0), table_.compare(comparison(), form_.type()), {a, b});
  code_.body.back().flags |= mode_flags();
}

namespace {

// What `set` writes for true: one in a float's format, all ones in an integer's.
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
  if (is_pair(form_.type(1))) return set_pair();
  const Value bits = combined(compared(comparison(), form_.type(1), 1), 3);
  const Type to = form_.type(0);
  const unsigned size = ptx::size_of(to);
  if (size != 4 && size != 2) not_served();
  emit_to(destination(operand(0), size), table_.select(size),
          {constant_value(truth(to), size), constant_value(0, size), bits});
}

// Each half's answer stands in its half, whatever type the result is said to have.
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

// Logic of predicates; of numbers it has rows.
void Lowering::logic() {
  const bool unary = in().opcode == "not";
  if (form_.type() != Type::Pred) {
    const Rows rows = table_.bits;
    for (const Row* row = rows.begin; row != rows.end; ++row) {
      if (try_row(*row)) return;
    }
    not_served();
  }
  expect_operands(unary ? 2 : 3, unary ? 2 : 3);
  const Value a = predicate(operand(1));
  if (unary) return emit_to(destination(operand(0), 0), table_.predicate(Word::none), {a});
  const Value b = predicate(operand(2));
  const Word word = in().opcode == "and" ? Word::and_ : in().opcode == "or" ? Word::or_ : Word::xor_;
  emit_to(destination(operand(0), 0), table_.predicate(word), {a, b});
}

}  // namespace simgpu
