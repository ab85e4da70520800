// Shifts, funnel shifts of two words, and bit reversal. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

struct Shl {
  template <class D>
  static D run(D a, u32 b) {
    return b >= width<D> ? D{0} : static_cast<D>(a << b);
  }
};
struct Shr {
  template <class D>
  static D run(D a, u32 b) {
    if constexpr (std::is_signed_v<D>) {
      return static_cast<D>(a >> (b >= width<D> ? width<D> - 1 : b));
    } else {
      return b >= width<D> ? D{0} : static_cast<D>(a >> b);
    }
  }
};
template <bool left, bool wrap>
struct Funnel {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    const u32 amount = wrap ? c & 31 : c > 32 ? 32 : c;
    const u64 both = u64{b} << 32 | a;
    return static_cast<D>(left ? (both << amount) >> 32 : both >> amount);
  }
};

struct Brev {
  template <class D>
  static D run(D a) {
    u64 v = a;
    v = (v >> 1 & 0x5555'5555'5555'5555) | (v & 0x5555'5555'5555'5555) << 1;
    v = (v >> 2 & 0x3333'3333'3333'3333) | (v & 0x3333'3333'3333'3333) << 2;
    v = (v >> 4 & 0x0f0f'0f0f'0f0f'0f0f) | (v & 0x0f0f'0f0f'0f0f'0f0f) << 4;
    return static_cast<D>(__builtin_bswap64(v) >> (64 - width<D>));
  }
};

Handlers pick_shift_left(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Shl, T, T, u32>>();
  });
}
Handlers pick_shift_right(const Form& form) {
  return by_integer(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Shr, T, T, u32>>();
  });
}
Handlers pick_funnel(const Form& form) {
  const bool wrap = form.has(Word::wrap);
  if (wrap == form.has(Word::clamp)) return {};
  if (form.has(Word::l)) {
    return wrap ? both<Map3<Funnel<true, true>, u32, u32, u32, u32>>()
                : both<Map3<Funnel<true, false>, u32, u32, u32, u32>>();
  }
  return wrap ? both<Map3<Funnel<false, true>, u32, u32, u32, u32>>()
              : both<Map3<Funnel<false, false>, u32, u32, u32, u32>>();
}
Handlers pick_reversal(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map1<Brev, T, T>>();
  });
}

constexpr Row rows[] = {
    {"shl", "dtu", "b16 b32 b64", "", &pick_shift_left},
    {"shr", "dtu", "b16 b32 b64 u16 u32 u64 s16 s32 s64", "", &pick_shift_right},
    {"shf", "dttu", "b32", "l r wrap clamp", &pick_funnel},
    {"brev", "dt", "b32 b64", "", &pick_reversal},
};

}  // namespace

Rows shift_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
