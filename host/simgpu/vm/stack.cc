// Memory that a function allocates on the stacks of its threads: alloca, stacksave, stackrestore. Lanes allocate
// different amounts, but all lanes of a call have the same frame. Therefore frames and allocations grow towards each
// other (Warp::stack_tops).
#include <bit>

#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/state.h"

namespace simgpu {
namespace {

std::uint64_t* lanes(Ctx& c, Place place) {
  return reinterpret_cast<std::uint64_t*>(c.base[place >> 31] + (place & ~constant_place));
}

std::uint64_t frame_end(const Ctx& c) { return c.local_base + c.code->local_bytes; }

const Ins* used_up(Ctx& c, const Ins* i, unsigned lane) {
  return raise_fault(c, i, CUDA_ERROR_HARDWARE_STACK_ERROR, lane,
                     "the stack of " + std::to_string(c.spaces[space_local].size) + " bytes is used up");
}

// Ins::imm is the alignment, a power of two.
const Ins* take(Ctx& c, const Ins* i) {
  const std::uint64_t* sizes = lanes(c, i->a);
  std::uint64_t* d = lanes(c, i->d);
  const std::uint64_t end = frame_end(c);
  const auto mask = ~(static_cast<std::uint64_t>(i->imm) - 1);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::uint32_t& top = c.warp->stack_tops[lane];
    if (sizes[lane] > top - end || ((top - sizes[lane]) & mask) < end) return used_up(c, i, lane);
    top = static_cast<std::uint32_t>((top - sizes[lane]) & mask);
    d[lane] = top;
  }
  return i + 1;
}

const Ins* save(Ctx& c, const Ins* i) {
  std::uint64_t* d = lanes(c, i->d);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    d[lane] = c.warp->stack_tops[static_cast<unsigned>(lane)];
  }
  return i + 1;
}

const Ins* restore(Ctx& c, const Ins* i) {
  const std::uint64_t* tops = lanes(c, i->a);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (tops[lane] < frame_end(c) || tops[lane] > c.spaces[space_local].size) return used_up(c, i, lane);
    c.warp->stack_tops[lane] = static_cast<std::uint32_t>(tops[lane]);
  }
  return i + 1;
}

}  // namespace

Handlers alloca_handler() { return {&take, &take}; }
Handlers stack_save_handler() { return {&save, &save}; }
Handlers stack_restore_handler() { return {&restore, &restore}; }

bool stack_holds(const Ctx& c, std::uint64_t end) {
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    if (end > c.warp->stack_tops[static_cast<unsigned>(std::countr_zero(left))]) return false;
  }
  return true;
}

void give_back_stack(Warp& warp, const Frame& frame, std::uint32_t mask) {
  if (!frame.code->takes_stack) return;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    warp.stack_tops[lane] = frame.stack_tops[lane];
  }
}

}  // namespace simgpu
