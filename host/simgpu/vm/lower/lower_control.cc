// Lowers branches, calls, barriers and operations between lanes.
#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

void Lowering::bra() {
  expect_operands(1, 1);
  if (operand(0).kind != Kind::Symbol) fail("a branch needs a label");
  const std::uint32_t target = find_label(operand(0).name);
  const std::uint32_t at = emit(in().guard ? branch_handler() : jump_handler());
  if (in().guard) {
    read(at, Field::Guard, reg_value(in().guard->reg));
    if (in().guard->negated) ins(at).flags |= flag_negated;
  }
  patches_.push_back({at, target});
}

void Lowering::brx() {
  control_ = true;
  expect_operands(2, 2);
  const std::vector<std::string_view>* names = find_scoped(function_.branch_targets, operand(1).name);
  if (names == nullptr || names->empty()) fail("a branch needs a list of targets");
  const Value index = source_bits(operand(0), 4, Type::U32);
  const std::uint32_t at = emit(table_handler());
  ins(at).index = static_cast<std::uint32_t>(code_.tables.size());
  read(at, Field::A, index);
  std::vector<std::uint32_t>& table = code_.tables.emplace_back();
  for (const std::string_view name : *names) table.push_back(find_label(name));
}

// ---- calls ----------------------------------------------------------------------------------------------------------

// Arguments and results are variables of the param space in the caller's frame.
std::vector<Piece> Lowering::pieces(const ptx::Operand& list, bool results) {
  std::vector<Piece> all;
  for (const ptx::Operand& part : list.parts) {
    if (part.kind != Kind::Local || !plan_.variables[part.index].in_frame) {
      fail(results ? "a result must go to a .param variable" : "an argument must be a .param variable");
    }
    const Symbol& symbol = plan_.variables[part.index];
    all.push_back({static_cast<std::uint32_t>(symbol.address), static_cast<std::uint32_t>(symbol.size)});
  }
  return all;
}

void Lowering::call() {
  control_ = true;
  std::size_t next = 0;
  CallSite site;
  if (operand(0).kind == Kind::List) site.results = pieces(operand(next++), true);
  const ptx::Operand& callee = operand(next++);
  if (next < in().operands.size() && operand(next).kind == Kind::List) site.args = pieces(operand(next++), false);
  if (callee.kind == Kind::Symbol) {
    const Symbol& symbol = symbol_of(callee);
    if (symbol.kind == Symbol::Kind::Host) return call_host(symbol, std::move(site));
    if (symbol.kind != Symbol::Kind::Function || symbol.code == nullptr || symbol.code->entry) {
      fail("'" + std::string(callee.name) + "' cannot be called");
    }
    site.callee = symbol.code;
    plan_.callees.push_back(symbol.code);
  }
  const Value address = site.callee == nullptr ? source(callee, Type::U64) : constant_value(0, 8);
  plan_.calls_unknown |= site.callee == nullptr;
  const std::uint32_t at = emit(call_handler());
  ins(at).index = static_cast<std::uint32_t>(code_.calls.size());
  if (site.callee == nullptr) read(at, Field::A, address);
  code_.calls.push_back(std::move(site));
}

void Lowering::call_host(const Symbol& symbol, CallSite site) {
  plan_.prints |= symbol.host == HostCall::Print;
  plan_.allocates |= symbol.host == HostCall::Malloc || symbol.host == HostCall::Free;
  const std::uint32_t at = emit(host_call_handler());
  ins(at).count = static_cast<std::uint16_t>(symbol.host);
  ins(at).index = static_cast<std::uint32_t>(code_.calls.size());
  code_.calls.push_back(std::move(site));
}

void Lowering::ret() {
  control_ = true;
  expect_operands(0, 0);
  emit(return_handler());
}

void Lowering::exit() {
  control_ = true;
  expect_operands(0, 0);
  emit(exit_handler());
}

void Lowering::trap() {
  control_ = true;
  emit(trap_handler());
}

void Lowering::break_point() {
  control_ = true;
  emit(break_handler());
}

// ---- barriers -------------------------------------------------------------------------------------------------------

void Lowering::warp_barrier() {
  control_ = true;
  expect_operands(1, 1);
  const Value members = source_bits(operand(0), 4, Type::U32);
  read(emit(warp_barrier_handler()), Field::E, members);
}

void Lowering::barrier() {
  if (form_.has(Word::warp)) return warp_barrier();
  control_ = true;
  if (form_.has(Word::cluster)) {
    expect_operands(0, 0);
    if (form_.has(Word::arrive) == form_.has(Word::wait)) not_served();
    emit(form_.has(Word::arrive) ? cluster_arrive_handler() : cluster_wait_handler());
    return;
  }
  const bool reduces = form_.has(Word::red);
  if (!reduces && !form_.has(Word::sync) && !form_.has(Word::arrive)) not_served();
  const std::uint16_t kind = reduces ? (form_.has(Word::popc)   ? 2
                                        : form_.has(Word::and_) ? 3
                                                                : 4)
                                     : static_cast<std::uint16_t>(form_.has(Word::arrive));
  const std::size_t first = reduces ? 1 : 0;
  // index of the operand after the barrier's number and thread count
  const std::size_t last = in().operands.size() - (reduces ? 1 : 0);
  expect_operands(first + 1 + (reduces ? 1 : 0), first + 2 + (reduces ? 1 : 0));
  const Value id = source_bits(operand(first), 4, Type::U32);
  const bool counted = last - first == 2;
  if (kind == 1 && !counted) fail("bar.arrive needs the number of threads");
  const Value threads = counted ? source_bits(operand(first + 1), 4, Type::U32) : constant_value(0, 4);
  const Value vote = reduces ? predicate(operand(last)) : constant_value(0, 0);
  const std::uint32_t at = emit(barrier_handler());
  ins(at).count = kind;
  if (counted) ins(at).flags |= flag_counted;
  read(at, Field::A, id);
  read(at, Field::B, threads);
  read(at, Field::Guard, vote);
  if (reduces) write(at, Field::D, destination(operand(0), kind == 2 ? 4 : 0));
}

void Lowering::fence() { emit(fence_handler()); }

void Lowering::nanosleep() {
  control_ = true;
  expect_operands(1, 1);
  const Value time = source_bits(operand(0), 4, Type::U32);
  read(emit(sleep_handler()), Field::A, time);
}

// ---- operations between lanes ---------------------------------------------------------------------------------------

void Lowering::shfl() {
  control_ = true;
  expect_operands(5, 5);
  if (form_.type() != Type::B32 || !form_.has(Word::sync)) not_served();
  const ShuffleMode mode = form_.has(Word::up)     ? ShuffleMode::Up
                           : form_.has(Word::down) ? ShuffleMode::Down
                           : form_.has(Word::bfly) ? ShuffleMode::Butterfly
                                                   : ShuffleMode::Index;
  const ptx::Operand& target = operand(0);
  const bool pair = target.kind == Kind::Pair;
  const Value a = source(operand(1), Type::B32);
  const Value b = source_bits(operand(2), 4, Type::U32);
  const Value clamp = source_bits(operand(3), 4, Type::U32);
  const Value members = source_bits(operand(4), 4, Type::U32);
  const std::uint32_t at = emit(shuffle_handler(mode));
  read(at, Field::A, a);
  read(at, Field::B, b);
  read(at, Field::C, clamp);
  read(at, Field::E, members);
  write(at, Field::D, destination(pair ? target.parts[0] : target, 4));
  if (pair) {
    write(at, Field::Guard, destination(target.parts[1], 0));
  } else {
    ins(at).flags |= flag_no_result;
  }
}

void Lowering::vote() {
  control_ = true;
  expect_operands(3, 3);
  if (!form_.has(Word::sync)) not_served();
  const bool ballot = form_.has(Word::ballot);
  const VoteMode mode = ballot                 ? VoteMode::Ballot
                        : form_.has(Word::all) ? VoteMode::All
                        : form_.has(Word::any) ? VoteMode::Any
                                               : VoteMode::Uniform;
  const Value value = predicate(operand(1));
  const Value members = source_bits(operand(2), 4, Type::U32);
  const std::uint32_t at = emit(vote_handler());
  ins(at).count = static_cast<std::uint16_t>(mode);
  read(at, Field::A, value);
  read(at, Field::E, members);
  write(at, Field::D, destination(operand(0), ballot ? 4 : 0));
}

void Lowering::match() {
  control_ = true;
  expect_operands(3, 3);
  const bool all = form_.has(Word::all);
  const ptx::Operand& target = operand(0);
  const bool pair = target.kind == Kind::Pair;
  if (pair && !all) not_served();
  const unsigned size = ptx::size_of(form_.type());
  if (size != 4 && size != 8) not_served();
  const Value a = source(operand(1), form_.type());
  const Value members = source_bits(operand(2), 4, Type::U32);
  const std::uint32_t at = emit(match_handler(all, size == 8));
  read(at, Field::A, a);
  read(at, Field::E, members);
  write(at, Field::D, destination(pair ? target.parts[0] : target, 4));
  if (pair) {
    write(at, Field::Guard, destination(target.parts[1], 0));
  } else {
    ins(at).flags |= flag_no_result;
  }
}

void Lowering::redux() {
  control_ = true;
  expect_operands(3, 3);
  if (ptx::size_of(form_.type()) != 4 || ptx::is_float(form_.type())) not_served();
  Word operation = Word::none;
  for (const Word word : {Word::add, Word::min, Word::max, Word::and_, Word::or_, Word::xor_}) {
    if (form_.has(word)) operation = word;
  }
  const Value a = source(operand(1), form_.type());
  const Value members = source_bits(operand(2), 4, Type::U32);
  const std::uint32_t at = emit(reduce_handler(operation, form_.type()));
  read(at, Field::A, a);
  read(at, Field::E, members);
  write(at, Field::D, destination(operand(0), 4));
}

void Lowering::activemask() {
  control_ = true;
  expect_operands(1, 1);
  write(emit(active_mask_handler()), Field::D, destination(operand(0), 4));
}

void Lowering::elect() {
  control_ = true;
  expect_operands(2, 2);
  const ptx::Operand& target = operand(0);
  if (target.kind != Kind::Pair) not_served();
  const Value members = source_bits(operand(1), 4, Type::U32);
  const std::uint32_t at = emit(elect_handler());
  read(at, Field::E, members);
  if (target.parts[0].kind == Kind::Sink) {
    ins(at).flags |= flag_no_result;
  } else {
    write(at, Field::D, destination(target.parts[0], 4));
  }
  write(at, Field::Guard, destination(target.parts[1], 0));
}

}  // namespace simgpu
