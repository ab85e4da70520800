#include "host/simgpu/vm/control.h"

#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {
namespace {

template <const Ins* (*function)(Ctx&, const Ins*)>
Handlers one() {
  return {function, function};
}

std::uint32_t pc_of(const Ctx& c, const Ins* i) { return static_cast<std::uint32_t>(i - c.code->body.data()); }

const Ins* leave(Ctx& c, std::uint32_t pc, Event event) {
  c.path->pc = pc;
  c.event = event;
  return c.stop;
}

std::uint32_t& predicate(Ctx& c, Place place) {
  return *reinterpret_cast<std::uint32_t*>(c.base[place >> 31] + (place & ~constant_place));
}

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

// Moves all lanes of the path to `target`. Backward branches consume fuel. While paths alternate, a path that branches
// back may jump to a point behind a waiting path, so the scheduler selects a path again.
const Ins* go(Ctx& c, const Ins* i, std::uint32_t target) {
  const Ins* const to = c.code->body.data() + target;
  if (to > i) return to;
  if (--c.fuel < 0) return leave(c, target, Event::Slice);
  if (c.warp->rotate) return leave(c, target, Event::Moved);
  return to;
}

const Ins* jump(Ctx& c, const Ins* i) { return go(c, i, i->index); }

const Ins* branch(Ctx& c, const Ins* i) {
  const std::uint32_t value = predicate(c, i->guard) ^ ((i->flags & flag_negated) != 0 ? ~0U : 0U);
  const std::uint32_t taken = value & c.mask;
  if (taken == 0) return i + 1;
  if (taken == c.mask) return go(c, i, i->index);
  if (c.code->body.data() + i->index <= i) --c.fuel;
  Path other = *c.path;
  other.mask = taken;
  other.pc = i->index;
  add_path(*c.warp, other);
  c.path->mask &= ~taken;
  return leave(c, pc_of(c, i) + 1, Event::Moved);
}

const Ins* table_branch(Ctx& c, const Ins* i) {
  const std::vector<std::uint32_t>& targets = c.code->tables[i->index];
  const std::uint32_t* index = lanes<std::uint32_t>(c, i->a);
  --c.fuel;
  Path& path = *c.path;
  std::uint32_t left = c.mask;
  for (bool first = true; left != 0; first = false) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (index[lane] >= targets.size()) {
      return raise_fault(c, i, CUDA_ERROR_INVALID_PC, lane, "the index of a branch is beyond its table");
    }
    std::uint32_t same = 0;
    for (std::uint32_t rest = left; rest != 0; rest &= rest - 1) {
      const int l = std::countr_zero(rest);
      if (index[l] == index[lane]) same |= 1U << l;
    }
    left &= ~same;
    Path other = path;
    other.mask = same;
    other.pc = targets[index[lane]];
    if (first) {
      path.pc = other.pc;
      path.mask = same;
    } else {
      add_path(*c.warp, other);
    }
  }
  return leave(c, path.pc, c.fuel < 0 ? Event::Slice : Event::Moved);
}

const Ins* guarded(Ctx& c, const Ins* i) {
  const std::uint32_t value = predicate(c, i->guard) ^ ((i->flags & flag_negated) != 0 ? ~0U : 0U);
  const std::uint32_t mask = c.mask;
  const std::uint32_t on = value & mask;
  if (on == 0) return i + 2;
  if (on == mask) return i + 1;
  const auto set = [&](std::uint32_t bits) {
    c.mask = bits;
    for (unsigned l = 0; l < warp_size; ++l) c.lanes[l] = -static_cast<std::int32_t>(bits >> l & 1);
  };
  set(on);
  const Ins* const next = i[1].run[1](c, i + 1);
  set(mask);
  return next;
}

// ---- calls ----------------------------------------------------------------------------------------------------------

const Code* callee_at(Ctx& c, std::uint64_t address) {
  const std::uint64_t index = (address - function_window) / 16;
  if (address < function_window || address % 16 != 0 || c.code->functions == nullptr) return nullptr;
  return index < c.code->functions->size() ? (*c.code->functions)[index] : nullptr;
}

void copy_pieces(const Ctx& c, std::uint64_t from_base, const std::vector<Piece>& from, std::uint64_t to_base,
                 const std::vector<Piece>& to) {
  const SpaceView& local = c.spaces[space_local];
  const std::size_t count = std::min(from.size(), to.size());
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    std::byte* const lane = local.base + static_cast<std::uint64_t>(std::countr_zero(left)) * local.stride;
    for (std::size_t k = 0; k < count; ++k) {
      std::memcpy(lane + to_base + to[k].offset, lane + from_base + from[k].offset, std::min(from[k].size, to[k].size));
    }
  }
}

const Ins* enter_function(Ctx& c, const Ins* i, const Code& callee, const CallSite& site) {
  const std::uint64_t base = c.local_base + c.code->local_bytes;
  if (!stack_holds(c, base + callee.local_bytes)) {
    return raise_fault(c, i, CUDA_ERROR_HARDWARE_STACK_ERROR, static_cast<unsigned>(std::countr_zero(c.mask)),
                       "the stack of " + std::to_string(c.spaces[space_local].size) + " bytes is used up");
  }
  Frame* const frame = make_frame(*c.block, callee);
  frame->parent = c.path->frame;
  frame->site = &site;
  frame->return_pc = pc_of(c, i) + 1;
  frame->lanes = c.mask;
  frame->depth = c.path->frame->depth + 1;
  frame->local_base = base;
  if (callee.takes_stack) frame->stack_tops = c.warp->stack_tops;
  fill_specials(*c.block, *c.warp, callee, frame->registers);
  copy_pieces(c, c.local_base, site.args, base, callee.params);
  c.path->frame = frame;
  return leave(c, 0, --c.fuel < 0 ? Event::Slice : Event::Moved);
}

// If the lanes call different functions, the path is split.
const Ins* call_indirect(Ctx& c, const Ins* i, const CallSite& site) {
  const std::uint64_t* addresses = lanes<std::uint64_t>(c, i->a);
  const auto lane = static_cast<unsigned>(std::countr_zero(c.mask));
  std::uint32_t same = 0;
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    if (addresses[l] == addresses[lane]) same |= 1U << l;
  }
  if (same != c.mask) {
    Path other = *c.path;
    other.mask = c.mask & ~same;
    other.pc = pc_of(c, i);
    add_path(*c.warp, other);
    c.path->mask = same;
    c.mask = same;
  }
  const Code* const callee = callee_at(c, addresses[lane]);
  if (callee == nullptr) return raise_fault(c, i, CUDA_ERROR_INVALID_PC, lane, "a call leads to no function");
  return enter_function(c, i, *callee, site);
}

const Ins* call(Ctx& c, const Ins* i) {
  const CallSite& site = c.code->calls[i->index];
  return site.callee != nullptr ? enter_function(c, i, *site.callee, site) : call_indirect(c, i, site);
}

void leave_frames(Ctx& c, std::uint32_t mask) {
  Frame* frame = c.path->frame;
  while (frame->parent != nullptr) {
    Frame* const parent = frame->parent;
    frame->lanes &= ~mask;
    if (frame->lanes == 0) release_frame(*c.block, frame);
    frame = parent;
  }
}

const Ins* exit_lanes(Ctx& c, const Ins* i) {
  const std::uint32_t mask = c.mask;
  leave_frames(c, mask);
  leave(c, pc_of(c, i), Event::Moved);
  c.path->mask = 0;
  end_threads(c, mask);
  return c.stop;
}

const Ins* return_lanes(Ctx& c, const Ins* i) {
  Frame* const frame = c.path->frame;
  if (frame->parent == nullptr) return exit_lanes(c, i);
  copy_pieces(c, frame->local_base, frame->code->results, frame->parent->local_base, frame->site->results);
  c.path->frame = frame->parent;
  leave(c, frame->return_pc, Event::Moved);
  give_back_stack(*c.warp, *frame, c.mask);
  frame->lanes &= ~c.mask;
  if (frame->lanes == 0) release_frame(*c.block, frame);
  return c.stop;
}

const Ins* trap(Ctx& c, const Ins* i) {
  return raise_fault(c, i, CUDA_ERROR_LAUNCH_FAILED, static_cast<unsigned>(std::countr_zero(c.mask)), "trap");
}
const Ins* break_point(Ctx& c, const Ins* i) {
  return raise_fault(c, i, CUDA_ERROR_LAUNCH_FAILED, static_cast<unsigned>(std::countr_zero(c.mask)), "breakpoint");
}

// ---- barriers -------------------------------------------------------------------------------------------------------

const Ins* barrier(Ctx& c, const Ins* i) {
  const auto lane = static_cast<unsigned>(std::countr_zero(c.mask));
  const std::uint32_t id = lanes<std::uint32_t>(c, i->a)[lane];
  if (id >= named_barriers) {
    return raise_fault(c, i, CUDA_ERROR_ILLEGAL_INSTRUCTION, lane, "a barrier's number is above 15");
  }
  Barrier& barrier = c.block->barriers[id];
  if ((i->flags & flag_counted) != 0) {
    barrier.expected = lanes<std::uint32_t>(c, i->b)[lane];
    if (barrier.expected == 0 || barrier.expected % warp_size != 0) {
      return raise_fault(c, i, CUDA_ERROR_ILLEGAL_INSTRUCTION, lane, "a barrier counts threads in warps of 32");
    }
  }
  barrier.arrived += static_cast<std::uint32_t>(std::popcount(c.mask));
  barrier.lanes[c.warp->index] |= c.mask;
  if (i->count >= 2) {
    const std::uint32_t value = predicate(c, i->guard);
    barrier.votes += static_cast<std::uint32_t>(std::popcount(value & c.mask));
    barrier.voters += static_cast<std::uint32_t>(std::popcount(c.mask));
  }
  const bool waits = i->count != 1;
  leave(c, pc_of(c, i) + 1, waits ? Event::Blocked : Event::Moved);
  if (waits) {
    c.path->state = PathState::Barrier;
    c.path->barrier = static_cast<std::uint8_t>(id);
  }
  check_barriers(*c.block);
  return c.stop;
}

// A lane's accesses are plain loads and stores of the processor. The processor may only reorder a store with a later
// load, which mfence prevents.
const Ins* fence(Ctx&, const Ins* i) {
  asm volatile("mfence" ::: "memory");
  return i + 1;
}

const Ins* sleep(Ctx& c, const Ins* i) {
  const auto lane = static_cast<unsigned>(std::countr_zero(c.mask));
  const std::uint32_t wanted = lanes<std::uint32_t>(c, i->a)[lane];
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(wanted, 100'000U)));
  ++c.sync_uses;
  return leave(c, pc_of(c, i) + 1, Event::Slice);
}

const Ins* nothing(Ctx&, const Ins* i) { return i + 1; }

}  // namespace

Handlers jump_handler() { return one<&jump>(); }
Handlers branch_handler() { return one<&branch>(); }
Handlers table_handler() { return one<&table_branch>(); }
Handlers guarded_handler() { return one<&guarded>(); }
Handlers call_handler() { return one<&call>(); }
Handlers return_handler() { return one<&return_lanes>(); }
Handlers exit_handler() { return one<&exit_lanes>(); }
Handlers trap_handler() { return one<&trap>(); }
Handlers break_handler() { return one<&break_point>(); }
Handlers barrier_handler() { return one<&barrier>(); }
Handlers fence_handler() { return one<&fence>(); }
Handlers sleep_handler() { return one<&sleep>(); }
Handlers nothing_handler() { return one<&nothing>(); }

}  // namespace simgpu
