// Arithmetic of halves (f16) and brain floats (bf16), alone and in pairs, carried out in wider formats and rounded
// once. Their bits travel in integer registers of 16 and 32 bits. See lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/mode.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

// A format of 16 bits: how wide its exponent and fraction are.
struct Half {
  static constexpr int fraction = 10;
  static constexpr int bias = 15;
};
struct Brain {
  static constexpr int fraction = 7;
  static constexpr int bias = 127;
};

template <class F>
SIMGPU_INLINE f64 widen(u16 bits) {
  constexpr int exponents = (1 << (15 - F::fraction)) - 1;
  const u64 sign = u64{bits} >> 15 << 63;
  const int exponent = bits >> F::fraction & exponents;
  const u64 rest = bits & ((1U << F::fraction) - 1);
  if (exponent == exponents) return as<f64>(sign | u64{0x7ff} << 52 | rest << (52 - F::fraction));
  if (exponent == 0) {
    const f64 unit = as<f64>(static_cast<u64>(1023 + 1 - F::bias - F::fraction) << 52);
    return as<f64>(as<u64>(static_cast<f64>(rest) * unit) | sign);
  }
  return as<f64>(sign | static_cast<u64>(exponent - F::bias + 1023) << 52 | rest << (52 - F::fraction));
}

// Rounds a double as `round` says: 0 nearest even, 1 down, 2 up, 3 toward zero.
template <class F>
SIMGPU_INLINE u16 narrow(f64 value, u32 round) {
  constexpr int exponents = (1 << (15 - F::fraction)) - 1;
  constexpr u32 infinity = static_cast<u32>(exponents) << F::fraction;
  const u64 bits = as<u64>(value);
  const u32 sign = static_cast<u32>(bits >> 63);
  const u64 size = bits & ~(u64{1} << 63);
  if (size > u64{0x7ff} << 52) return 0x7fff;
  if (size == u64{0x7ff} << 52) return static_cast<u16>(sign << 15 | infinity);
  int exponent = static_cast<int>(size >> 52) - 1023;
  const u64 fraction = (size & ((u64{1} << 52) - 1)) | (size >> 52 != 0 ? u64{1} << 52 : 0);
  const int least = 1 - F::bias;
  int shift = 52 - F::fraction;
  if (exponent < least) {
    shift += least - exponent;
    exponent = least - 1;
  }
  if (shift > 62) shift = 62;
  u64 kept = fraction >> shift;
  const u64 lost = fraction & ((u64{1} << shift) - 1);
  const u64 tie = u64{1} << (shift - 1);
  const bool up = round == 0   ? lost > tie || (lost == tie && (kept & 1) != 0)
                  : round == 1 ? sign != 0 && lost != 0
                  : round == 2 ? sign == 0 && lost != 0
                               : false;
  kept += up;
  // The leading one of a normal number carries into the exponent by itself.
  const s64 field = exponent < least ? 0 : exponent + F::bias - 1;
  u64 result = (static_cast<u64>(field) << F::fraction) + kept;
  if (result >= infinity) {
    const bool to_infinity = round == 0 || (round == 1 && sign != 0) || (round == 2 && sign == 0);
    result = to_infinity ? infinity : infinity - 1;
  }
  return static_cast<u16>(sign << 15 | static_cast<u32>(result));
}

SIMGPU_INLINE f64 clamped(f64 r) { return r > 0.0 ? (r < 1.0 ? r : 1.0) : 0.0; }
template <class F>
SIMGPU_INLINE f64 without_subnormal(f64 v) {
  const f64 least = as<f64>(static_cast<u64>(1023 + 1 - F::bias) << 52);
  return v < least && v > -least ? as<f64>(as<u64>(v) & u64{1} << 63) : v;
}

struct Add {
  static f64 run(f64 a, f64 b, f64) { return a + b; }
};
struct Sub {
  static f64 run(f64 a, f64 b, f64) { return a - b; }
};
struct Mul {
  static f64 run(f64 a, f64 b, f64) { return a * b; }
};
struct Fma {
  static f64 run(f64 a, f64 b, f64 c) { return a * b + c; }
};
template <bool minimum>
struct MinMax {
  static f64 run(f64 a, f64 b, f64) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return as<f64>(minimum ? as<u64>(a) | as<u64>(b) : as<u64>(a) & as<u64>(b));
    return (minimum ? a < b : a > b) ? a : b;
  }
};
template <bool minimum>
struct MinMaxNan {
  static f64 run(f64 a, f64 b, f64 c) { return a != a ? a : b != b ? b : MinMax<minimum>::run(a, b, c); }
};

template <class F, class Op>
SIMGPU_INLINE u16 apply(u16 a, u16 b, u16 c, u32 flags) {
  f64 x = widen<F>(a);
  f64 y = widen<F>(b);
  f64 z = widen<F>(c);
  if ((flags & flag_ftz) != 0) {
    x = without_subnormal<F>(x);
    y = without_subnormal<F>(y);
    z = without_subnormal<F>(z);
  }
  f64 r = Op::run(x, y, z);
  if ((flags & flag_sat) != 0) r = clamped(r);
  if ((flags & flag_ftz) != 0) r = without_subnormal<F>(r);
  return narrow<F>(r, flags & round_mask);
}

template <class F, class Op, class T, unsigned sources>
struct HalfMap {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, 0);
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, sources > 1 ? i->b : i->a);
    const T* e = at<T>(c, sources > 2 ? i->c : i->a);
    alignas(64) T r[warp_size];
    for (unsigned l = 0; l < warp_size; ++l) {
      u32 all = 0;
      for (unsigned k = 0; k < 8 * sizeof(T); k += 16) {
        all |= u32{apply<F, Op>(static_cast<u16>(a[l] >> k), static_cast<u16>(b[l] >> k), static_cast<u16>(e[l] >> k),
                                i->flags)}
               << k;
      }
      r[l] = static_cast<T>(all);
    }
    blend(c, at<T>(c, i->d), r);
    return i + 1;
  }
};

struct Abs {
  template <class D>
  static D run(D a) {
    return static_cast<D>(a & 0x7fff'7fffU);
  }
};
struct Neg {
  template <class D>
  static D run(D a) {
    return static_cast<D>(a ^ 0x8000'8000U);
  }
};

template <class Op, unsigned sources>
Handlers pick_half(const Form& form) {
  switch (form.type()) {
    case ptx::Type::F16: return both<HalfMap<Half, Op, u16, sources>>();
    case ptx::Type::F16x2: return both<HalfMap<Half, Op, u32, sources>>();
    case ptx::Type::Bf16: return both<HalfMap<Brain, Op, u16, sources>>();
    case ptx::Type::Bf16x2: return both<HalfMap<Brain, Op, u32, sources>>();
    default: return {};
  }
}

template <bool minimum>
Handlers pick_min_max(const Form& form) {
  return form.has(Word::nan) ? pick_half<MinMaxNan<minimum>, 2>(form) : pick_half<MinMax<minimum>, 2>(form);
}

template <class Op>
Handlers pick_sign(const Form& form) {
  return ptx::size_of(form.type()) == 2 ? both<Map1<Op, u16, u16>>() : both<Map1<Op, u32, u32>>();
}

constexpr const char* half_types = "f16 f16x2 bf16 bf16x2";

constexpr Row rows[] = {
    {"add", "dtt", half_types, "rn ftz sat", &pick_half<Add, 2>},
    {"sub", "dtt", half_types, "rn ftz sat", &pick_half<Sub, 2>},
    {"mul", "dtt", half_types, "rn ftz sat", &pick_half<Mul, 2>},
    {"fma", "dttt", half_types, "rn ftz sat", &pick_half<Fma, 3>},
    {"min", "dtt", half_types, "ftz NaN", &pick_min_max<true>},
    {"max", "dtt", half_types, "ftz NaN", &pick_min_max<false>},
    {"abs", "dt", half_types, "", &pick_sign<Abs>},
    {"neg", "dt", half_types, "", &pick_sign<Neg>},
};

// ---- conversion
// ----------------------------------------------------------------------------------------------------------

template <class F, class T>
struct Narrow {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const T* a = at<T>(c, i->a);
    alignas(64) u16 r[warp_size];
    for (unsigned l = 0; l < warp_size; ++l) {
      f64 value = static_cast<f64>(a[l]);
      if ((i->flags & flag_sat) != 0) value = clamped(value);
      r[l] = narrow<F>(value, i->flags & round_mask);
    }
    blend(c, at<u16>(c, i->d), r);
    return i + 1;
  }
};

template <class F, class T>
struct Widen {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, 0);
    const u16* a = at<u16>(c, i->a);
    alignas(64) T r[warp_size];
    for (unsigned l = 0; l < warp_size; ++l) {
      const T value = static_cast<T>(widen<F>(a[l]));
      const T whole = value != value && sizeof(T) == 4 ? static_cast<T>(as<f32>(u32{0x7fff'ffff})) : value;
      r[l] = (i->flags & flag_sat) != 0 ? static_cast<T>(clamped(static_cast<f64>(whole))) : whole;
    }
    blend(c, at<T>(c, i->d), r);
    return i + 1;
  }
};

template <class F>
Handlers narrow_from(ptx::Type from) {
  if (from == ptx::Type::F32) return both<Narrow<F, f32>>();
  return from == ptx::Type::F64 ? both<Narrow<F, f64>>() : Handlers{};
}
template <class F>
Handlers widen_to(ptx::Type to) {
  if (to == ptx::Type::F32) return both<Widen<F, f32>>();
  return to == ptx::Type::F64 ? both<Widen<F, f64>>() : Handlers{};
}

}  // namespace

Rows half_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

Handlers pick_half_convert(ptx::Type to, ptx::Type from) {
  if (from == ptx::Type::F16) return widen_to<Half>(to);
  if (from == ptx::Type::Bf16) return widen_to<Brain>(to);
  if (to == ptx::Type::F16) return narrow_from<Half>(from);
  return to == ptx::Type::Bf16 ? narrow_from<Brain>(from) : Handlers{};
}

}  // namespace simgpu::SIMGPU_ISA
