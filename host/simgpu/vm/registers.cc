// Assigns registers by liveness over basic blocks. Each register has one live interval, and places are assigned in the
// order in which intervals begin. The lanes of a warp may be at different points of the function, but each lane
// executes its own path in order.
#include "host/simgpu/vm/registers.h"

#include <algorithm>

#include "host/simgpu/vm/control.h"

namespace simgpu {
namespace {

// Above this number of liveness bits, registers share no places: no compiler produces such large functions.
constexpr std::size_t max_bits = std::size_t{1} << 31;

struct BasicBlock {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t first_reference = 0;
  std::uint32_t last_reference = 0;
  std::vector<std::uint32_t> next;
};

struct Interval {
  std::uint32_t begin = ~0U;
  std::uint32_t end = 0;
  void add(std::uint32_t at) {
    begin = std::min(begin, at);
    end = std::max(end, at);
  }
};

class Bitset {
 public:
  explicit Bitset(std::size_t bits) : words_((bits + 63) / 64) {}
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  bool merge(const Bitset& other) {
    bool changed = false;
    for (std::size_t k = 0; k < words_.size(); ++k) {
      const std::uint64_t merged = words_[k] | other.words_[k];
      changed |= merged != words_[k];
      words_[k] = merged;
    }
    return changed;
  }
  template <class F>
  void each(F f) const {
    for (std::size_t k = 0; k < words_.size(); ++k) {
      for (std::uint64_t word = words_[k]; word != 0; word &= word - 1) {
        f(static_cast<std::uint32_t>(k * 64 + static_cast<std::size_t>(__builtin_ctzll(word))));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

class Liveness {
 public:
  Liveness(const Code& code, std::size_t registers, const std::vector<Reference>& references)
      : code_(code), references_(references), intervals_(registers) {}

  std::vector<Interval> run() {
    find_blocks();
    for (const Reference& reference : references_) intervals_[reference.reg].add(reference.ins);
    if (blocks_.size() > 1) flow();
    return std::move(intervals_);
  }

 private:
  bool is(const Ins& ins, Handlers handlers) const { return ins.run[0] == handlers.full; }

  void find_blocks() {
    const std::vector<Ins>& body = code_.body;
    std::vector<bool> starts(body.size() + 1, false);
    starts[0] = true;
    for (std::uint32_t i = 0; i < body.size(); ++i) {
      if (is(body[i], jump_handler()) || is(body[i], branch_handler())) {
        starts[body[i].index] = true;
        starts[i + 1] = true;
      } else if (is(body[i], table_handler())) {
        for (const std::uint32_t target : code_.tables[body[i].index]) starts[target] = true;
        starts[i + 1] = true;
      } else if (ends(body[i])) {
        starts[i + 1] = true;
      }
    }
    number_of_.resize(body.size() + 1);
    std::uint32_t reference = 0;
    for (std::uint32_t i = 0; i < body.size(); ++i) {
      if (starts[i]) blocks_.emplace_back().begin = i;
      number_of_[i] = static_cast<std::uint32_t>(blocks_.size() - 1);
      blocks_.back().end = i + 1;
    }
    for (BasicBlock& block : blocks_) {
      block.first_reference = reference;
      while (reference < references_.size() && references_[reference].ins < block.end) ++reference;
      block.last_reference = reference;
      link(block);
    }
  }

  bool ends(const Ins& ins) const {
    return is(ins, return_handler()) || is(ins, exit_handler()) || is(ins, trap_handler());
  }

  void link(BasicBlock& block) {
    const Ins& last = code_.body[block.end - 1];
    if (is(last, jump_handler()) || is(last, branch_handler())) block.next.push_back(number_of_[last.index]);
    if (is(last, table_handler())) {
      for (const std::uint32_t target : code_.tables[last.index]) block.next.push_back(number_of_[target]);
    } else if (!is(last, jump_handler()) && !ends(last) && block.end < code_.body.size()) {
      block.next.push_back(number_of_[block.end]);
    }
  }

  // Extends the interval of a register to the beginning of each block where the register is live on entry, and to the
  // end of each block where it is live on exit.
  void flow() {
    const std::size_t count = intervals_.size();
    if (blocks_.size() * count > max_bits) {
      for (Interval& interval : intervals_) interval = {0, static_cast<std::uint32_t>(code_.body.size())};
      return;
    }
    std::vector<Bitset> in(blocks_.size(), Bitset(count));
    std::vector<Bitset> out(blocks_.size(), Bitset(count));
    std::vector<bool> pending(blocks_.size(), true);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = blocks_.size(); b-- > 0;) {
        bool grew = pending[b];
        for (const std::uint32_t next : blocks_[b].next) grew |= out[b].merge(in[next]);
        pending[b] = false;
        if (grew) changed |= in[b].merge(through(blocks_[b], out[b]));
      }
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      in[b].each([&](std::uint32_t reg) { intervals_[reg].add(blocks_[b].begin); });
      out[b].each([&](std::uint32_t reg) { intervals_[reg].add(blocks_[b].end); });
    }
  }

  Bitset through(const BasicBlock& block, const Bitset& out) const {
    Bitset live = out;
    for (std::uint32_t k = block.last_reference; k > block.first_reference;) {
      const std::uint32_t ins = references_[k - 1].ins;
      const std::uint32_t end = k;
      while (k > block.first_reference && references_[k - 1].ins == ins) --k;
      for (std::uint32_t j = k; j < end; ++j) {
        if (references_[j].def && !references_[j].partial) live.reset(references_[j].reg);
      }
      for (std::uint32_t j = k; j < end; ++j) {
        if (references_[j].use || references_[j].partial) live.set(references_[j].reg);
      }
    }
    return live;
  }

  const Code& code_;
  const std::vector<Reference>& references_;
  std::vector<Interval> intervals_;
  std::vector<BasicBlock> blocks_;
  std::vector<std::uint32_t> number_of_;
};

unsigned part_of(const VirtualRegister& reg) { return reg.size == 0 ? 0 : reg.size == 2 ? 1 : reg.size == 4 ? 2 : 3; }
constexpr std::uint32_t bytes_of_part[4] = {4, 64, 128, 256};

// Assigns numbers to registers within each size group, and returns how many numbers each group needs.
class Dealer {
 public:
  Dealer(const std::vector<VirtualRegister>& registers, const std::vector<Interval>& intervals)
      : registers_(registers), intervals_(intervals) {}

  std::array<std::uint32_t, 4> run(std::vector<std::uint32_t>& numbers) {
    const auto later = [this](std::uint32_t a, std::uint32_t b) { return end(a) > end(b); };
    std::vector<std::uint32_t> order;
    for (std::uint32_t r = 0; r < registers_.size(); ++r) {
      if (intervals_[r].begin != ~0U || registers_[r].pinned) order.push_back(r);
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return begin(a) < begin(b); });
    for (const std::uint32_t reg : order) {
      // A register may not share a place with a register that is written by its last use: some handlers read operands
      // after they have begun to write.
      while (!active_.empty() && end(active_.front()) < begin(reg)) {
        const std::uint32_t gone = active_.front();
        std::pop_heap(active_.begin(), active_.end(), later);
        active_.pop_back();
        free_[part_of(registers_[gone])].push_back(numbers[gone]);
      }
      const unsigned part = part_of(registers_[reg]);
      if (free_[part].empty()) free_[part].push_back(count_[part]++);
      numbers[reg] = free_[part].back();
      free_[part].pop_back();
      active_.push_back(reg);
      std::push_heap(active_.begin(), active_.end(), later);
    }
    return count_;
  }

 private:
  std::uint32_t begin(std::uint32_t reg) const { return registers_[reg].pinned ? 0 : intervals_[reg].begin; }
  std::uint32_t end(std::uint32_t reg) const { return registers_[reg].pinned ? ~0U : intervals_[reg].end; }

  const std::vector<VirtualRegister>& registers_;
  const std::vector<Interval>& intervals_;
  std::array<std::uint32_t, 4> count_{};
  std::array<std::vector<std::uint32_t>, 4> free_;
  std::vector<std::uint32_t> active_;
};

Place& field_of(Code& code, const Reference& reference) {
  Ins& ins = code.body[reference.ins];
  switch (reference.field) {
    case Field::D: return ins.d;
    case Field::A: return ins.a;
    case Field::B: return ins.b;
    case Field::C: return ins.c;
    case Field::E: return ins.e;
    case Field::Guard: return ins.guard;
    case Field::Extra: break;
  }
  return code.extra[reference.extra];
}

}  // namespace

void place_registers(Code& code, const std::vector<VirtualRegister>& registers,
                     const std::vector<Reference>& references, std::vector<Place>& places) {
  const std::vector<Interval> intervals = Liveness(code, registers.size(), references).run();
  std::vector<std::uint32_t> numbers(registers.size(), 0);
  const std::array<std::uint32_t, 4> counts = Dealer(registers, intervals).run(numbers);
  for (unsigned part = 0; part < 4; ++part) {
    const std::uint32_t bytes = (counts[part] * bytes_of_part[part] + 63) / 64 * 64;
    code.parts[part + 1] = code.parts[part] + bytes;
  }
  places.resize(registers.size());
  for (std::size_t r = 0; r < registers.size(); ++r) {
    const unsigned part = part_of(registers[r]);
    places[r] = code.parts[part] + numbers[r] * bytes_of_part[part];
  }
  for (const Reference& reference : references) field_of(code, reference) = places[reference.reg];
  code.live_registers = counts[1] + counts[2] + 2 * counts[3];
}

}  // namespace simgpu
