// Counts the set bits of a word and finds their positions. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

struct Popc {
  template <class D, class A>
  static D run(A a) {
    return static_cast<D>(__builtin_popcountll(a));
  }
};
struct Clz {
  template <class D, class A>
  static D run(A a) {
    return static_cast<D>(a == 0 ? width<A> : static_cast<u32>(__builtin_clzll(a)) - (64 - width<A>));
  }
};
template <bool shift_amount>
struct Bfind {
  template <class D, class A>
  static D run(A a) {
    BitsOf<A> bits = static_cast<BitsOf<A>>(a);
    if constexpr (std::is_signed_v<A>) bits = a < 0 ? static_cast<BitsOf<A>>(~bits) : bits;
    if (bits == 0) return static_cast<D>(-1);
    const u32 position = 63 - static_cast<u32>(__builtin_clzll(bits));
    return static_cast<D>(shift_amount ? width<A> - 1 - position : position);
  }
};

struct Fns {  // finds the n-th set bit from a position on
  template <class D>
  static D run(u32 mask, u32 base, s32 offset) {
    if (base > 31) return static_cast<D>(-1);
    s32 left = offset == 0 ? 1 : offset < 0 ? -offset : offset;
    const s32 step = offset < 0 ? -1 : 1;
    if (offset == 0) return (mask >> base & 1) != 0 ? static_cast<D>(base) : static_cast<D>(-1);
    for (s32 at = static_cast<s32>(base); at >= 0 && at < 32; at += step) {
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<D>(at);
    }
    return static_cast<D>(-1);
  }
};

template <class Op>
Handlers pick_count(const Form& form) {
  return form.type() == ptx::Type::B64 ? both<Map1<Op, u32, u64>>() : both<Map1<Op, u32, u32>>();
}
Handlers pick_bfind(const Form& form) {
  return by_integer(form.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return form.has(Word::shiftamt) ? both<Map1<Bfind<true>, u32, T>>() : both<Map1<Bfind<false>, u32, T>>();
  });
}

constexpr Row rows[] = {
    {"popc", "Ut", "b32 b64", "", &pick_count<Popc>},
    {"clz", "Ut", "b32 b64", "", &pick_count<Clz>},
    {"bfind", "Ut", "u32 s32 u64 s64", "shiftamt", &pick_bfind},
    {"fns", "dttt", "b32", "", [](const Form&) { return both<Map3<Fns, u32, u32, u32, s32>>(); }},
};

}  // namespace

Rows count_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
