// Barriers in shared memory (mbarrier) and asynchronous copies (cp.async). A copy completes within its instruction, so
// no lane ever waits for a copy.
//
// An mbarrier is one 64-bit word:
//   bits 0 to 19   pending arrivals
//   bits 20 to 39  expected arrivals of the next phase
//   bits 40 to 61  outstanding bytes plus 2^20
//   bit 63         parity of the phase
// A cluster runs on one thread, so no other thread writes the word at the same time. The token of an arrival is the
// word before the arrival.
#include <algorithm>
#include <bit>
#include <cstring>

#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/rights.h"
#include "host/simgpu/vm/state.h"

namespace simgpu {
namespace {

constexpr std::uint64_t count_mask = 0xf'ffff;
constexpr std::int64_t bytes_bias = std::int64_t{1} << 20;

struct Mbarrier {
  std::uint64_t pending = 0;
  std::uint64_t expected = 0;
  std::int64_t bytes = 0;
  bool phase = false;
};

Mbarrier unpacked(std::uint64_t word) {
  return {word & count_mask, word >> 20 & count_mask, static_cast<std::int64_t>(word >> 40 & 0x3f'ffff) - bytes_bias,
          word >> 63 != 0};
}
std::uint64_t packed(const Mbarrier& b) {
  return (b.pending & count_mask) | (b.expected & count_mask) << 20 |
         (static_cast<std::uint64_t>(b.bytes + bytes_bias) & 0x3f'ffff) << 40 | std::uint64_t{b.phase} << 63;
}

// Ends the phase if neither arrivals nor bytes are outstanding.
void settle(Mbarrier& b) {
  if (b.pending != 0 || b.bytes != 0) return;
  b.phase = !b.phase;
  b.pending = b.expected;
}

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

template <class F>
void for_lanes(std::uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

std::uint64_t load(std::uint64_t host) {
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const void*>(host), sizeof word);
  return word;
}
void store(std::uint64_t host, std::uint64_t word) { std::memcpy(reinterpret_cast<void*>(host), &word, sizeof word); }

bool arrive(Mbarrier& b, std::uint64_t count, bool drop) {
  if (count > b.pending) return false;
  b.pending -= count;
  if (drop) b.expected -= count;
  settle(b);
  return true;
}

// Returns false if more threads arrive than the barrier expects.
bool change(Mbarrier& b, MbarrierStep step, std::uint32_t value) {
  switch (step) {
    case MbarrierStep::Init: b = {value, value, 0, false}; return true;
    case MbarrierStep::Arrive: return arrive(b, value, false);
    case MbarrierStep::Drop: return arrive(b, value, true);
    case MbarrierStep::ExpectAndArrive: b.bytes += value; return arrive(b, 1, false);
    case MbarrierStep::Expect: b.bytes += value; return true;
    case MbarrierStep::Complete:
      b.bytes -= value;
      settle(b);
      return true;
  }
  return true;
}

const Ins* mbarrier_step(Ctx& c, const Ins* i) {
  std::uint64_t host[warp_size];
  if (!resolve_global(c, i, lanes<std::uint64_t>(c, i->a), sizeof(std::uint64_t), host)) return c.stop;
  const std::uint32_t* value = lanes<std::uint32_t>(c, i->b);
  std::uint64_t* token = (i->flags & flag_no_result) != 0 ? nullptr : lanes<std::uint64_t>(c, i->d);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t before = load(host[l]);
    Mbarrier b = unpacked(before);
    if (!change(b, static_cast<MbarrierStep>(i->count), value[l])) {
      return raise_fault(c, i, CUDA_ERROR_LAUNCH_FAILED, l, "more threads arrive at an mbarrier than it waits for");
    }
    store(host[l], packed(b));
    if (token != nullptr) token[l] = before;
  }
  return i + 1;
}

// Ins::b holds the token or the phase's parity. The high fuel cost makes the warp switch soon from a lane that polls in
// a loop.
template <bool parity>
const Ins* mbarrier_test(Ctx& c, const Ins* i) {
  ++c.sync_uses;
  c.fuel -= 64;
  std::uint64_t host[warp_size];
  if (!resolve_global(c, i, lanes<std::uint64_t>(c, i->a), sizeof(std::uint64_t), host)) return c.stop;
  std::uint32_t done = 0;
  for_lanes(c.mask, [&](unsigned l) {
    const bool asked =
        parity ? (lanes<std::uint32_t>(c, i->b)[l] & 1) != 0 : unpacked(lanes<std::uint64_t>(c, i->b)[l]).phase;
    done |= std::uint32_t{unpacked(load(host[l])).phase != asked} << l;
  });
  std::uint32_t& word = *lanes<std::uint32_t>(c, i->d);
  word = (word & ~c.mask) | done;
  return i + 1;
}

const Ins* pending_count(Ctx& c, const Ins* i) {
  for_lanes(c.mask, [&](unsigned l) {
    const Mbarrier b = unpacked(lanes<std::uint64_t>(c, i->a)[l]);
    lanes<std::uint32_t>(c, i->d)[l] = static_cast<std::uint32_t>(b.pending);
  });
  return i + 1;
}

const Ins* nowhere(Ctx& c, const Ins* i, unsigned lane) {
  return raise_fault(c, i, CUDA_ERROR_ILLEGAL_ADDRESS, lane, "an asynchronous copy leaves its memory");
}

// Copies Ins::imm bytes from b to a. The first c bytes come from b, the rest is zero.
const Ins* copy(Ctx& c, const Ins* i) {
  const auto size = static_cast<std::uint32_t>(i->imm);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t into = lanes<std::uint64_t>(c, i->a)[l];
    const std::uint64_t from = lanes<std::uint64_t>(c, i->b)[l];
    const std::uint32_t given = std::min(lanes<std::uint32_t>(c, i->c)[l], size);
    if (((into | from) & (size - 1)) != 0) {
      return raise_fault(c, i, CUDA_ERROR_MISALIGNED_ADDRESS, l, "an asynchronous copy is not aligned to its size");
    }
    const std::uint64_t to = resolve_one(c, l, into, size);
    const std::uint64_t source = given == 0 ? to : resolve_one(c, l, from, given);
    if (to == 0 || source == 0) return nowhere(c, i, l);
    std::byte bytes[16] = {};
    std::memcpy(bytes, reinterpret_cast<const void*>(source), given);
    std::memcpy(reinterpret_cast<void*>(to), bytes, size);
  }
  return i + 1;
}

// Copies Ins::c bytes, a multiple of 16, from b to a. Unless flag_no_result is set, Ins::e is the mbarrier to notify.
const Ins* bulk_copy(Ctx& c, const Ins* i) {
  constexpr std::uint32_t piece = 16;
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t into = lanes<std::uint64_t>(c, i->a)[l];
    const std::uint64_t from = lanes<std::uint64_t>(c, i->b)[l];
    const std::uint32_t size = lanes<std::uint32_t>(c, i->c)[l];
    if (((into | from | size) & (piece - 1)) != 0) {
      return raise_fault(c, i, CUDA_ERROR_MISALIGNED_ADDRESS, l, "a bulk copy is not aligned to sixteen bytes");
    }
    for (std::uint32_t at = 0; at < size; at += piece) {
      const std::uint64_t to = resolve_one_to_write(c, l, into + at, piece);
      const std::uint64_t source = resolve_one(c, l, from + at, piece);
      if (to == 0 || source == 0) return nowhere(c, i, l);
      std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(source), piece);
    }
    if ((i->flags & flag_no_result) != 0) continue;
    const std::uint64_t barrier = resolve_one(c, l, lanes<std::uint64_t>(c, i->e)[l], sizeof(std::uint64_t));
    if (barrier == 0) return nowhere(c, i, l);
    complete_bytes(barrier, size);
  }
  return i + 1;
}

template <const Ins* (*function)(Ctx&, const Ins*)>
Handlers one() {
  return {function, function};
}

}  // namespace

void complete_bytes(std::uint64_t barrier, std::uint32_t bytes) {
  Mbarrier b = unpacked(load(barrier));
  change(b, MbarrierStep::Complete, bytes);
  store(barrier, packed(b));
}

Handlers mbarrier_handler() { return one<&mbarrier_step>(); }
Handlers mbarrier_test_handler(bool parity) {
  return parity ? one<&mbarrier_test<true>>() : one<&mbarrier_test<false>>();
}
Handlers pending_count_handler() { return one<&pending_count>(); }
Handlers copy_handler() { return one<&copy>(); }
Handlers bulk_copy_handler() { return one<&bulk_copy>(); }

}  // namespace simgpu
