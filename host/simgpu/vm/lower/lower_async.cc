// Lowers barriers in shared memory, asynchronous copies, and addresses within a cluster.
#include "host/simgpu/vm/ctx.h"
#include "host/simgpu/vm/lower/lower.h"
#include "host/simgpu/vm/rights.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {

using ptx::Space;
using ptx::Type;
using Kind = ptx::Operand::Kind;

// Returns the generic address of an operand in global or shared memory, including the operand's offset.
Value Lowering::generic_address(const ptx::Operand& operand, Space space) {
  const Target at = target(operand, space);
  if (at.windowed && at.space != space_shared) not_served();
  const std::uint64_t more = static_cast<std::uint64_t>(at.offset) + (at.windowed ? shared_window : 0);
  const Value base = resized(at.base, 8, false);
  if (base.constant) return constant_value(base.bits + more, 8);
  return more == 0 ? base : emit_temp(8, row("add", Type::U64), {base, constant_value(more, 8)});
}

void Lowering::mbarrier() {
  control_ = true;
  const Space space = form_.has(Word::shared) ? Space::Shared : Space::Generic;
  if (form_.has(Word::pending_count)) {
    expect_operands(2, 2);
    const Value token = source(operand(1), Type::B64);
    return emit_to(destination(operand(0), 4), pending_count_handler(), {token});
  }
  if (form_.has(Word::test_wait) || form_.has(Word::try_wait)) return mbarrier_test(space);
  if (form_.has(Word::inval)) return;
  if (form_.has(Word::init)) return mbarrier_step(MbarrierStep::Init, space, 0);
  if (form_.has(Word::complete_tx)) return mbarrier_step(MbarrierStep::Complete, space, 0);
  const bool expects = form_.has(Word::expect_tx);
  if (form_.has(Word::arrive_drop) && expects) not_served();
  if (form_.has(Word::arrive_drop)) return mbarrier_step(MbarrierStep::Drop, space, 1);
  if (form_.has(Word::arrive)) {
    return mbarrier_step(expects ? MbarrierStep::ExpectAndArrive : MbarrierStep::Arrive, space, 1);
  }
  if (!expects) not_served();
  mbarrier_step(MbarrierStep::Expect, space, 0);
}

// `first` is the number of operands before the address.
void Lowering::mbarrier_step(MbarrierStep step, Space space, std::size_t first) {
  expect_operands(first + 1, first + 2);
  const Value address = generic_address(operand(first), space);
  const bool counted = in().operands.size() == first + 2;
  const Value value = counted ? source_bits(operand(first + 1), 4, Type::U32) : constant_value(1, 4);
  const bool wanted = first != 0 && operand(0).kind != Kind::Sink;
  const std::uint32_t d = wanted ? destination(operand(0), 8) : 0;
  const std::uint32_t at = emit(mbarrier_handler());
  ins(at).count = static_cast<std::uint16_t>(step);
  ins(at).window = code_.windows++;
  read(at, Field::A, address);
  read(at, Field::B, value);
  if (wanted) {
    write(at, Field::D, d);
  } else {
    ins(at).flags |= flag_no_result;
  }
}

// PTX allows try_wait to wait before it returns. In the simulation it returns at once.
void Lowering::mbarrier_test(Space space) {
  expect_operands(3, 4);
  const bool parity = form_.has(Word::parity);
  const Value address = generic_address(operand(1), space);
  const Value asked = source_bits(operand(2), parity ? 4 : 8, Type::None);
  const std::uint32_t d = destination(operand(0), 0);
  const std::uint32_t at = emit(mbarrier_test_handler(parity));
  ins(at).window = code_.windows++;
  read(at, Field::A, address);
  read(at, Field::B, asked);
  write(at, Field::D, d, true);
}

void Lowering::cp() {
  control_ = true;
  if (!form_.has(Word::async)) not_served();
  if (form_.has(Word::reduce)) return bulk_reduction();
  if (atomic_operation() != Word::none || form_.has(Word::noftz)) not_served();
  if (form_.has(Word::prefetch)) return form_.has(Word::bulk) ? expect_operands(2, 3) : not_served();
  if (form_.has(Word::commit_group) || form_.has(Word::wait_group) || form_.has(Word::wait_all)) return;
  if (form_.has(Word::bulk)) return bulk_copy();
  // The instruction arrives at the barrier when earlier copies are done, and copies are always done here. Without
  // .noinc, it also raises the expected arrivals by one, which cancels the arrival.
  if (form_.has(Word::mbarrier)) {
    if (!form_.has(Word::noinc)) return expect_operands(1, 1);
    return mbarrier_step(MbarrierStep::Arrive, form_.has(Word::shared) ? Space::Shared : Space::Generic, 0);
  }
  if (!form_.has(Word::shared) || !form_.has(Word::global)) not_served();
  if (in().operands.size() < 3) expect_operands(3, 5);
  const std::int64_t size = operand(2).value;
  if (operand(2).kind != Kind::Integer || (size != 4 && size != 8 && size != 16)) fail("a copy has 4, 8 or 16 bytes");
  const Value into = generic_address(operand(0), Space::Shared);
  const Value from = generic_address(operand(1), Space::Global);
  const Value given = copied_bytes(static_cast<std::uint64_t>(size));
  const std::uint32_t at = emit(copy_handler());
  ins(at).imm = size;
  read(at, Field::A, into);
  read(at, Field::B, from);
  read(at, Field::C, given);
}

// The fourth operand is the number of source bytes to copy, or a predicate that skips the source.
Value Lowering::copied_bytes(std::uint64_t size) {
  const Value all = constant_value(size, 4);
  if (in().operands.size() < 4) return all;
  const ptx::Operand& limit = operand(3);
  if (limit.kind == Kind::Register && registers_[limit.index].size == 0) {
    return emit_temp(4, table_.select(4), {constant_value(0, 4), all, predicate(limit)});
  }
  const bool policy = limit.kind == Kind::Register && registers_[limit.index].size == 8;
  return policy ? all : source_bits(limit, 4, Type::U32);
}

void Lowering::bulk_copy() {
  const bool outwards = form_.has(Word::bulk_group);
  if (outwards == form_.has(Word::mbarrier)) not_served();
  add_bulk_operands(bulk_copy_handler(), outwards);
}

// Bulk reductions go from shared memory to shared memory of another block or to global memory, never in the other
// direction.
void Lowering::bulk_reduction() {
  const bool outwards = form_.has(Word::bulk_group);
  if (!form_.has(Word::bulk) || !form_.has(Word::shared) || outwards == form_.has(Word::mbarrier)) not_served();
  if (outwards != form_.has(Word::global)) not_served();
  add_bulk_operands(bulk_reduction_handler(atomic_operation(), form_.type()), outwards);
}

// A copy to global memory completes a group, which is not an operand. Any other copy completes bytes at an mbarrier.
void Lowering::add_bulk_operands(Handlers handlers, bool outwards) {
  if (in().operands.size() < (outwards ? 3U : 4U)) expect_operands(outwards ? 3 : 4, 5);
  const bool inside = !form_.has(Word::global);  // both operands are in shared memory
  const Value into = generic_address(operand(0), outwards ? Space::Global : Space::Shared);
  const Value from = generic_address(operand(1), outwards || inside ? Space::Shared : Space::Global);
  const Value size = source_bits(operand(2), 4, Type::U32);
  const Value barrier = outwards ? constant_value(0, 8) : generic_address(operand(3), Space::Shared);
  const std::uint32_t at = emit(handlers);
  read(at, Field::A, into);
  read(at, Field::B, from);
  read(at, Field::C, size);
  read(at, Field::E, barrier);
  if (outwards) ins(at).flags |= flag_no_result;
}

// ---- stores and reductions that complete at an mbarrier

void Lowering::complete_bytes(const ptx::Operand& barrier, Space space, std::uint64_t bytes) {
  const Value address = generic_address(barrier, space);
  const std::uint32_t at = emit(mbarrier_handler());
  ins(at).count = static_cast<std::uint16_t>(MbarrierStep::Complete);
  ins(at).window = code_.windows++;
  ins(at).flags |= flag_no_result;
  read(at, Field::A, address);
  read(at, Field::B, constant_value(bytes, 4));
}

void Lowering::st_async() {
  control_ = true;
  const unsigned size = ptx::size_of(form_.type());
  if (!form_.has(Word::mbarrier) || vector_count() > 4 || (size != 4 && size != 8)) not_served();
  expect_operands(3, 3);
  const Space space = form_.has(Word::shared) ? Space::Shared : Space::Generic;
  const Value address = generic_address(operand(0), space);
  const std::vector<Value> values = stored_values(form_.type());
  const std::uint32_t at = emit(table_.store(form_.type(), values.front().size, false, 8));
  ins(at).count = static_cast<std::uint16_t>(values.size());
  ins(at).flags |= flag_writes;
  ins(at).window = code_.windows++;
  read(at, Field::A, address);
  if (values.size() == 1) {
    read(at, Field::B, values.front());
  } else {
    ins(at).index = static_cast<std::uint32_t>(code_.extra.size());
    for (const Value& value : values) extra(at, value, false);
  }
  complete_bytes(operand(2), space, values.size() * size);
}

void Lowering::red_async() {
  control_ = true;
  if (!form_.has(Word::mbarrier) || vector_count() != 1 || ptx::is_float(form_.type())) not_served();
  expect_operands(3, 3);
  const Space space = form_.has(Word::shared) ? Space::Shared : Space::Generic;
  const Value address = generic_address(operand(0), space);
  const Value b = source(operand(1), form_.type());
  one_atomic(atomic_operation(), address, nullptr, b, b, 0);
  complete_bytes(operand(2), space, ptx::size_of(form_.type()));
}

// ---- clusters -------------------------------------------------------------------------------------------------------

// Computes the address of the same variable in another block of the cluster. Offsets in shared memory and generic
// addresses hold the rank in the same bits.
void Lowering::mapa() {
  expect_operands(3, 3);
  const unsigned size = ptx::size_of(form_.type());
  if (size != 4 && size != 8) not_served();
  const Value address = source_bits(operand(1), size, Type::None);
  const Value rank = source_bits(operand(2), 4, Type::U32);
  emit_to(destination(operand(0), size), map_address_handler(size == 8), {address, rank});
}

void Lowering::getctarank() {
  expect_operands(2, 2);
  const unsigned size = ptx::size_of(form_.type());
  if (size != 4 && size != 8) not_served();
  const Value address = source_bits(operand(1), size, Type::None);
  emit_to(destination(operand(0), 4), rank_of_handler(size == 8), {address});
}

}  // namespace simgpu
