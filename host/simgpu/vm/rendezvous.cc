// Operations between the lanes of a warp: shuffles, votes, matches, reductions and the warp barrier.
//
// An instruction names the lanes that take part. Lanes that arrive before others wait at the instruction as a path of
// their own. The last lanes to arrive take over these paths, and all lanes execute the operation together.
#include "host/simgpu/vm/rendezvous.h"

#include <bit>

#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/state.h"

namespace simgpu {
namespace {

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

std::uint32_t& predicate(Ctx& c, Place place) {
  return *reinterpret_cast<std::uint32_t*>(c.base[place >> 31] + (place & ~constant_place));
}

void put_predicate(Ctx& c, Place place, std::uint32_t bits) {
  std::uint32_t& word = predicate(c, place);
  word = (word & ~c.mask) | (bits & c.mask);
}

template <class F>
void for_lanes(std::uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

// Returns the lanes of the path whose partners have all arrived.
std::uint32_t complete_lanes(Ctx& c, const Ins* i) {
  const std::uint32_t* members = lanes<std::uint32_t>(c, i->e);
  std::uint32_t complete = 0;
  for_lanes(c.mask, [&](unsigned l) {
    if ((members[l] & c.warp->alive & ~c.mask) == 0) complete |= 1U << l;
  });
  return complete;
}

// Takes over paths that wait at the same instruction in the same call, or in a call that different paths made
// separately.
bool take_waiting(Ctx& c, std::uint32_t pc) {
  bool taken = false;
  Warp& warp = *c.warp;
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    Path& other = warp.paths[k];
    if (&other == c.path || other.state != PathState::Rendezvous || other.pc != pc || other.mask == 0) continue;
    if (!join_frames(*c.block, warp, *c.path->frame, *other.frame)) continue;
    c.path->mask |= other.mask;
    other.mask = 0;
    taken = true;
  }
  return taken;
}

const Ins* wait_here(Ctx& c, std::uint32_t pc) {
  c.path->state = PathState::Rendezvous;
  c.path->pc = pc;
  c.event = Event::Blocked;
  return c.stop;
}

// Returns true if the operation can be executed for all lanes of the path. Otherwise the path has been suspended, split
// or extended.
bool gathered(Ctx& c, const Ins* i) {
  const std::uint32_t complete = complete_lanes(c, i);
  if (complete == c.mask || c.forced) return true;
  const auto pc = static_cast<std::uint32_t>(i - c.code->body.data());
  c.path->pc = pc;
  c.event = Event::Moved;
  if (take_waiting(c, pc)) return false;
  if (complete == 0) {
    wait_here(c, pc);
    return false;
  }
  Path rest = *c.path;
  rest.mask = c.mask & ~complete;
  rest.state = PathState::Rendezvous;
  add_path(*c.warp, rest);
  c.path->mask = complete;
  return false;
}

// ---- shuffle --------------------------------------------------------------------------------------------------------

template <ShuffleMode mode>
const Ins* shuffle(Ctx& c, const Ins* i) {
  if (!gathered(c, i)) return c.stop;
  const std::uint32_t* a = lanes<std::uint32_t>(c, i->a);
  const std::uint32_t* b = lanes<std::uint32_t>(c, i->b);
  const std::uint32_t* clamp = lanes<std::uint32_t>(c, i->c);
  std::uint32_t result[warp_size];
  std::uint32_t found = 0;
  for_lanes(c.mask, [&](unsigned l) {
    const std::uint32_t amount = b[l] & 31;
    const std::uint32_t bound = clamp[l] & 31;
    const std::uint32_t segment = clamp[l] >> 8 & 31;
    const std::uint32_t last = (l & segment) | (bound & ~segment);
    std::uint32_t from = l;
    bool inside = false;
    switch (mode) {
      case ShuffleMode::Up:
        from = l - amount;
        inside = static_cast<std::int32_t>(from) >= static_cast<std::int32_t>(last);
        break;
      case ShuffleMode::Down:
        from = l + amount;
        inside = from <= last;
        break;
      case ShuffleMode::Butterfly:
        from = l ^ amount;
        inside = from <= last;
        break;
      case ShuffleMode::Index:
        from = (l & segment) | (amount & ~segment);
        inside = from <= last;
        break;
    }
    if (!inside) from = l;
    result[l] = a[from & 31];
    found |= inside ? 1U << l : 0;
  });
  std::uint32_t* d = lanes<std::uint32_t>(c, i->d);
  for_lanes(c.mask, [&](unsigned l) { d[l] = result[l]; });
  if ((i->flags & flag_no_result) == 0) put_predicate(c, i->guard, found);
  return i + 1;
}

// ---- vote, match, reduction -----------------------------------------------------------------------------------------

// Lanes with the same member mask form a group. Several groups of a warp may vote in one instruction.
template <class F>
void for_groups(Ctx& c, const Ins* i, F f) {
  const std::uint32_t* members = lanes<std::uint32_t>(c, i->e);
  std::uint32_t left = c.mask;
  while (left != 0) {
    const std::uint32_t wanted = members[std::countr_zero(left)];
    std::uint32_t group = 0;
    for_lanes(left, [&](unsigned l) {
      if (members[l] == wanted) group |= 1U << l;
    });
    f(group);
    left &= ~group;
  }
}

const Ins* vote(Ctx& c, const Ins* i) {
  if (!gathered(c, i)) return c.stop;
  const std::uint32_t value = predicate(c, i->a);
  const auto mode = static_cast<VoteMode>(i->count);
  std::uint32_t bits = 0;
  for_groups(c, i, [&](std::uint32_t group) {
    const std::uint32_t on = value & group;
    if (mode == VoteMode::Ballot) {
      std::uint32_t* d = lanes<std::uint32_t>(c, i->d);
      for_lanes(group, [&](unsigned l) { d[l] = on; });
      return;
    }
    const bool result = mode == VoteMode::All ? on == group : mode == VoteMode::Any ? on != 0 : on == group || on == 0;
    if (result) bits |= group;
  });
  if (mode != VoteMode::Ballot) put_predicate(c, i->d, bits);
  return i + 1;
}

template <class T, bool all>
const Ins* match(Ctx& c, const Ins* i) {
  if (!gathered(c, i)) return c.stop;
  const T* a = lanes<T>(c, i->a);
  std::uint32_t result[warp_size];
  std::uint32_t agreed = 0;
  for_groups(c, i, [&](std::uint32_t group) {
    for_lanes(group, [&](unsigned l) {
      std::uint32_t same = 0;
      for_lanes(group, [&](unsigned other) {
        if (a[other] == a[l]) same |= 1U << other;
      });
      result[l] = all && same != group ? 0 : same;
      if (same == group) agreed |= 1U << l;
    });
  });
  std::uint32_t* d = lanes<std::uint32_t>(c, i->d);
  for_lanes(c.mask, [&](unsigned l) { d[l] = result[l]; });
  if (all && (i->flags & flag_no_result) == 0) put_predicate(c, i->guard, agreed);
  return i + 1;
}

template <class T, Word operation>
T combine(T a, T b) {
  switch (operation) {
    case Word::min: return a < b ? a : b;
    case Word::max: return a > b ? a : b;
    case Word::and_: return static_cast<T>(a & b);
    case Word::or_: return static_cast<T>(a | b);
    case Word::xor_: return static_cast<T>(a ^ b);
    default: return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
}

template <class T, Word operation>
const Ins* reduce(Ctx& c, const Ins* i) {
  if (!gathered(c, i)) return c.stop;
  const T* a = lanes<T>(c, i->a);
  T result[warp_size];
  for_groups(c, i, [&](std::uint32_t group) {
    T sum = a[std::countr_zero(group)];
    for_lanes(group & (group - 1), [&](unsigned l) { sum = combine<T, operation>(sum, a[l]); });
    for_lanes(group, [&](unsigned l) { result[l] = sum; });
  });
  T* d = lanes<T>(c, i->d);
  for_lanes(c.mask, [&](unsigned l) { d[l] = result[l]; });
  return i + 1;
}

const Ins* elect(Ctx& c, const Ins* i) {
  if (!gathered(c, i)) return c.stop;
  std::uint32_t leaders = 0;
  for_groups(c, i, [&](std::uint32_t group) {
    const auto leader = static_cast<std::uint32_t>(std::countr_zero(group));
    leaders |= 1U << leader;
    if ((i->flags & flag_no_result) != 0) return;
    std::uint32_t* d = lanes<std::uint32_t>(c, i->d);
    for_lanes(group, [&](unsigned l) { d[l] = leader; });
  });
  put_predicate(c, i->guard, leaders);
  return i + 1;
}

const Ins* active_mask(Ctx& c, const Ins* i) {
  std::uint32_t* d = lanes<std::uint32_t>(c, i->d);
  for_lanes(c.mask, [&](unsigned l) { d[l] = c.mask; });
  return i + 1;
}

// As on a device, lanes may meet at different instructions of this kind. The lanes that arrive last release the others.
const Ins* warp_barrier(Ctx& c, const Ins* i) {
  if (c.forced) return i + 1;
  Warp& warp = *c.warp;
  std::uint32_t here = c.mask;
  const auto waits_at_barrier = [](const Path& path) {
    return path.state == PathState::Rendezvous && path.frame->code->body[path.pc].run[0] == &warp_barrier;
  };
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    if (waits_at_barrier(warp.paths[k])) here |= warp.paths[k].mask;
  }
  const std::uint32_t* members = lanes<std::uint32_t>(c, i->e);
  std::uint32_t wanted = 0;
  for_lanes(c.mask, [&](unsigned l) { wanted |= members[l]; });
  const auto pc = static_cast<std::uint32_t>(i - c.code->body.data());
  if ((wanted & warp.alive & ~here) != 0) return wait_here(c, pc);
  if (here == c.mask) return i + 1;
  c.path->pc = pc + 1;
  c.event = Event::Moved;
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    Path& path = warp.paths[k];
    if (!waits_at_barrier(path) || (path.mask & wanted) == 0) continue;
    path.state = PathState::Ready;
    path.pc += 1;
  }
  return c.stop;
}

template <const Ins* (*function)(Ctx&, const Ins*)>
Handlers one() {
  return {function, function};
}

template <class T>
Handlers reduce_with(Word operation) {
  switch (operation) {
    case Word::add: return one<&reduce<T, Word::add>>();
    case Word::min: return one<&reduce<T, Word::min>>();
    case Word::max: return one<&reduce<T, Word::max>>();
    case Word::and_: return one<&reduce<T, Word::and_>>();
    case Word::or_: return one<&reduce<T, Word::or_>>();
    case Word::xor_: return one<&reduce<T, Word::xor_>>();
    default: return {};
  }
}

}  // namespace

bool whole_warp(Ctx& c, const Ins* i) {
  constexpr std::uint32_t all = ~std::uint32_t{0};
  if (c.mask == all) return true;
  const auto lane = static_cast<unsigned>(std::countr_zero(c.mask));
  if (c.warp->alive != all) {
    raise_fault(c, i, CUDA_ERROR_LAUNCH_FAILED, lane,
                "a matrix instruction needs all 32 lanes of a warp, and some have exited or never were");
    return false;
  }
  if (c.forced) {
    raise_fault(c, i, CUDA_ERROR_LAUNCH_FAILED, lane,
                "a matrix instruction needs all 32 lanes of a warp, and some wait elsewhere");
    return false;
  }
  return gathered(c, i);
}

Handlers shuffle_handler(ShuffleMode mode) {
  switch (mode) {
    case ShuffleMode::Up: return one<&shuffle<ShuffleMode::Up>>();
    case ShuffleMode::Down: return one<&shuffle<ShuffleMode::Down>>();
    case ShuffleMode::Butterfly: return one<&shuffle<ShuffleMode::Butterfly>>();
    default: return one<&shuffle<ShuffleMode::Index>>();
  }
}

Handlers vote_handler() { return one<&vote>(); }

Handlers match_handler(bool all, bool wide) {
  if (all) return wide ? one<&match<std::uint64_t, true>>() : one<&match<std::uint32_t, true>>();
  return wide ? one<&match<std::uint64_t, false>>() : one<&match<std::uint32_t, false>>();
}

Handlers reduce_handler(Word operation, ptx::Type type) {
  return type == ptx::Type::S32 ? reduce_with<std::int32_t>(operation) : reduce_with<std::uint32_t>(operation);
}

Handlers warp_barrier_handler() { return one<&warp_barrier>(); }
Handlers active_mask_handler() { return one<&active_mask>(); }
Handlers elect_handler() { return one<&elect>(); }

}  // namespace simgpu
