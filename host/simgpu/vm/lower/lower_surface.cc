// Lowers the surface instructions suld, sust and sured.
#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

// Returns the effect of an access outside the surface. Every instruction must have exactly one such suffix.
Bounds Lowering::bounds() const {
  const bool trap = form_.has(Word::trap), clamp = form_.has(Word::clamp), zero = form_.has(Word::zero);
  if (trap + clamp + zero != 1) not_served();
  return trap ? Bounds::Trap : clamp ? Bounds::Clamp : Bounds::Zero;
}

// `values` is a list or a single value.
void Lowering::surface(SurfaceForm form, std::size_t address, const ptx::Operand& values) {
  form.geometry = geometry();
  form.bounds = bounds();
  form.formatted = form_.has(Word::p);
  form.bytes = static_cast<std::uint8_t>(ptx::size_of(form_.type()));
  if (form_.has(Word::b) == form.formatted || form_.type_count != 1) not_served();
  const bool loads = form.step == SurfaceStep::Load;
  const std::size_t count = values.kind == Kind::List ? values.parts.size() : 1;
  if (count != vector_count()) fail("opcode " + shown(in()) + " has the wrong number of values");
  if (count * form.bytes > 16) not_served();
  form.count = static_cast<std::uint8_t>(count);

  const std::vector<Value> operands = coordinates(operand(address), Type::S32);
  std::vector<Value> moved;
  unsigned lane = std::max<unsigned>(2, form.bytes);
  for (std::size_t k = 0; k < count; ++k) {
    const ptx::Operand& part = values.kind == Kind::List ? values.parts[k] : values;
    if (loads && part.kind == Kind::Sink) {
      moved.push_back(reg_value(temp(lane)));
    } else {
      moved.push_back(loads || part.kind == Kind::Register ? any_register(part)
                                                           : source_bits(part, lane, form_.type()));
    }
    lane = std::max<unsigned>(lane, moved.back().size);
  }
  for (Value& value : moved) {
    if (value.size == lane) continue;
    if (loads) fail("the destinations of opcode " + shown(in()) + " differ in size");
    value = resized(value, lane, false);
  }
  form.lane_bytes = static_cast<std::uint8_t>(lane);
  const std::uint32_t at = emit(surface_handler());
  ins(at).imm = packed_form(form);
  texture_operands(at, operands);
  for (const Value& value : moved) extra(at, value, loads);
}

void Lowering::suld() {
  expect_operands(2, 2);
  if (form_.type() < Type::B8 || form_.type() > Type::B64) not_served();
  SurfaceForm form;
  form.step = SurfaceStep::Load;
  surface(form, 1, operand(0));
}

void Lowering::sust() {
  expect_operands(2, 2);
  const bool formatted = form_.has(Word::p);
  if (form_.type() < Type::B8 || form_.type() > Type::B64 || (formatted && form_.type() != Type::B32)) not_served();
  SurfaceForm form;
  form.step = SurfaceStep::Store;
  surface(form, 0, operand(1));
}

// For a formatted reduction, the format of the surface determines whether values are signed.
void Lowering::sured() {
  static constexpr std::pair<Word, SurfaceStep> steps[] = {{Word::add, SurfaceStep::Add},
                                                           {Word::min, SurfaceStep::Min},
                                                           {Word::max, SurfaceStep::Max},
                                                           {Word::and_, SurfaceStep::And},
                                                           {Word::or_, SurfaceStep::Or}};
  expect_operands(2, 2);
  SurfaceForm form;
  unsigned found = 0;
  for (const auto& [word, step] : steps) {
    if (!form_.has(word)) continue;
    form.step = step;
    ++found;
  }
  const Type type = form_.type();
  const bool logical = form.step == SurfaceStep::And || form.step == SurfaceStep::Or;
  const bool bits = type == Type::B32 || (type == Type::B64 && !logical);
  const bool number = type == Type::U32 || type == Type::S32 || type == Type::U64 || type == Type::S64;
  const bool fits = form_.has(Word::p) ? bits : logical ? type == Type::B32 : number;
  if (found != 1 || !fits || operand(1).kind == Kind::List) not_served();
  form.is_signed = ptx::is_signed(type);
  surface(form, 0, operand(1));
}

}  // namespace simgpu
