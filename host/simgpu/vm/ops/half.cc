// Arithmetic of halves (f16) and brain floats (bf16), single and in pairs. Results are computed in wider formats and
// rounded once. Operands are held in integer registers of 16 and 32 bits. See ops/lanes.h and vm/table.h.
#include "host/simgpu/isa/half.h"
#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/ops/approx.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

SIMGPU_INLINE f64 rectified(f64 r) { return r < 0.0 || r == 0.0 ? 0.0 : r; }
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
// The product is exact. An inexact sum is rounded to odd, so that the later rounding to the half is correct.
struct Fma {
  static f64 run(f64 a, f64 b, f64 c) {
    const f64 product = a * b;
    const f64 sum = product + c;
    const f64 from_c = sum - product;
    const f64 error = (product - (sum - from_c)) + (c - from_c);
    const u64 bits = as<u64>(sum);
    const bool inexact = error != 0.0 && sum - sum == 0.0 && (bits & 1) == 0;
    const bool outwards = (error > 0.0) == (sum > 0.0);
    return inexact ? as<f64>(outwards ? bits + 1 : bits - 1) : sum;
  }
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

template <bool minimum, bool nan>
struct ExtremeSize {
  static f64 run(f64 a, f64 b, f64 c) {
    const u64 sign = (as<u64>(a) ^ as<u64>(b)) & u64{1} << 63;
    const f64 x = __builtin_fabs(a);
    const f64 y = __builtin_fabs(b);
    return as<f64>(as<u64>(nan ? MinMaxNan<minimum>::run(x, y, c) : MinMax<minimum>::run(x, y, c)) | sign);
  }
};
struct Size {
  static f64 run(f64 a, f64, f64) { return __builtin_fabs(a); }
};
struct Negative {
  static f64 run(f64 a, f64, f64) { return -a; }
};
struct Exponential {
  static f64 run(f64 a, f64, f64) { return exp2_double(a > 200.0 ? 200.0 : a < -200.0 ? -200.0 : a); }
};
struct Tangent {
  static f64 run(f64 a, f64, f64) { return static_cast<f64>(Tanh::run(static_cast<f32>(a))); }
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
  if ((flags & flag_relu) != 0) r = rectified(r);
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
  if (form.has(Word::xorsign)) {
    return form.has(Word::nan) ? pick_half<ExtremeSize<minimum, true>, 2>(form)
                               : pick_half<ExtremeSize<minimum, false>, 2>(form);
  }
  return form.has(Word::nan) ? pick_half<MinMaxNan<minimum>, 2>(form) : pick_half<MinMax<minimum>, 2>(form);
}

// Without ftz, the sign of a NaN is changed like the sign of any other value.
template <class Op, class Flushing>
Handlers pick_sign(const Form& form) {
  if (form.has(Word::ftz)) return pick_half<Flushing, 1>(form);
  return ptx::size_of(form.type()) == 2 ? both<Map1<Op, u16, u16>>() : both<Map1<Op, u32, u32>>();
}

constexpr const char* half_types = "f16 f16x2 bf16 bf16x2";

constexpr Row rows[] = {
    {"add", "dtt", half_types, "rn ftz sat", &pick_half<Add, 2>},
    {"sub", "dtt", half_types, "rn ftz sat", &pick_half<Sub, 2>},
    {"mul", "dtt", half_types, "rn ftz sat", &pick_half<Mul, 2>},
    {"fma", "dttt", half_types, "rn ftz sat relu", &pick_half<Fma, 3>},
    {"min", "dtt", half_types, "ftz NaN xorsign abs", &pick_min_max<true>},
    {"max", "dtt", half_types, "ftz NaN xorsign abs", &pick_min_max<false>},
    {"abs", "dt", half_types, "ftz", &pick_sign<Abs, Size>},
    {"neg", "dt", half_types, "ftz", &pick_sign<Neg, Negative>},
    {"ex2", "dt", half_types, "approx ftz", &pick_half<Exponential, 1>},
    {"tanh", "dt", half_types, "approx", &pick_half<Tangent, 1>},
};

// ---- conversion -----------------------------------------------------------------------------------------------------

template <class F, class T>
struct Narrow {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const T* a = at<T>(c, i->a);
    alignas(64) u16 r[warp_size];
    for (unsigned l = 0; l < warp_size; ++l) {
      f64 value = static_cast<f64>(a[l]);
      if ((i->flags & flag_sat) != 0) value = clamped(value);
      if ((i->flags & flag_relu) != 0) value = rectified(value);
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

// ---- pairs of 8-bit floats, and tf32 --------------------------------------------------------------------------------

// `infinity` is the code of infinity, or of NaN if the format has no infinity. Larger values become `largest`, the
// largest finite number.
struct E4m3 {
  static constexpr int fraction = 3;
  static constexpr int bias = 7;
  static constexpr u32 largest = 0x7e;
  static constexpr u32 infinity = 0x7f;
};
struct E5m2 {
  static constexpr int fraction = 2;
  static constexpr int bias = 15;
  static constexpr u32 largest = 0x7b;
  static constexpr u32 infinity = 0x7c;
};

// Rounds to the nearest code: the value is scaled to units of the last place and rounded to an integer.
template <class F>
SIMGPU_INLINE u32 narrow_byte(f64 value, u32 flags) {
  if (value != value) return 0x7f;
  if ((flags & flag_relu) != 0) value = rectified(value);
  const u32 sign = static_cast<u32>(as<u64>(value) >> 56) & 0x80;
  const f64 size = __builtin_fabs(value);
  if (!(size < 65536.0)) return sign | F::largest;
  const int exponent = static_cast<int>(as<u64>(size) >> 52) - 1023;
  const int least = 1 - F::bias;
  const int held = exponent < least ? least : exponent;
  const f64 units = size * as<f64>(static_cast<u64>(1023 + F::fraction - held) << 52);
  const u32 code = (static_cast<u32>(held - least) << F::fraction) + static_cast<u32>(__builtin_rint(units));
  return sign | (code > F::largest ? F::largest : code);
}
template <class F>
SIMGPU_INLINE u16 widen_byte(u32 code) {
  const u32 sign = (code & 0x80) << 8;
  const u32 size = code & 0x7f;
  if (size >= F::infinity) return static_cast<u16>(size == F::infinity && F::infinity != 0x7f ? sign | 0x7c00 : 0x7fff);
  const int field = static_cast<int>(size >> F::fraction);
  const u32 kept = (size & ((1U << F::fraction) - 1)) | (field != 0 ? 1U << F::fraction : 0);
  const int exponent = (field != 0 ? field : 1) - F::bias - F::fraction;
  const f64 value = static_cast<f64>(kept) * as<f64>(static_cast<u64>(1023 + exponent) << 52);
  return static_cast<u16>(sign | narrow<Half>(value, 0));
}

template <class F>
struct BytesFromSingles {  // a becomes the upper byte
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, 0);
    const f32* a = at<f32>(c, i->a);
    const f32* b = at<f32>(c, i->b);
    alignas(64) u16 r[warp_size];
    for (unsigned l = 0; l < warp_size; ++l) {
      r[l] = static_cast<u16>(narrow_byte<F>(static_cast<f64>(a[l]), i->flags) << 8 |
                              narrow_byte<F>(static_cast<f64>(b[l]), i->flags));
    }
    blend(c, at<u16>(c, i->d), r);
    return i + 1;
  }
};
template <class F>
struct BytesFromHalves {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, 0);
    const u32* a = at<u32>(c, i->a);
    alignas(64) u16 r[warp_size];
    for (unsigned l = 0; l < warp_size; ++l) {
      r[l] = static_cast<u16>(narrow_byte<F>(widen<Half>(static_cast<u16>(a[l] >> 16)), i->flags) << 8 |
                              narrow_byte<F>(widen<Half>(static_cast<u16>(a[l])), i->flags));
    }
    blend(c, at<u16>(c, i->d), r);
    return i + 1;
  }
};
template <class F>
struct HalvesFromBytes {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const u16* a = at<u16>(c, i->a);
    const bool relu = (i->flags & flag_relu) != 0;
    alignas(64) u32 r[warp_size];
    for (unsigned l = 0; l < warp_size; ++l) {
      u32 high = widen_byte<F>(static_cast<u32>(a[l] >> 8));
      u32 low = widen_byte<F>(static_cast<u32>(a[l] & 0xff));
      if (relu && (high & 0x8000) != 0) high = 0;
      if (relu && (low & 0x8000) != 0) low = 0;
      r[l] = high << 16 | low;
    }
    blend(c, at<u32>(c, i->d), r);
    return i + 1;
  }
};

// Removes 13 bits of a single's fraction: ties are rounded away from zero or to even, or all bits are cut off.
enum class Cut { away, even, zero };
template <Cut cut>
struct CutSingle {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const u32* a = at<u32>(c, i->a);
    const bool relu = (i->flags & flag_relu) != 0;
    alignas(64) u32 r[warp_size];
    SIMGPU_LANES {
      const u32 half = cut == Cut::away ? 0x1000 : cut == Cut::even ? 0xfff + (a[l] >> 13 & 1) : 0;
      const bool special = (a[l] & 0x7fff'ffff) >= 0x7f80'0000;
      const bool nan = (a[l] & 0x7fff'ffff) > 0x7f80'0000;
      const u32 rounded = special ? a[l] : (a[l] + half) & 0xffff'e000;
      const u32 limited = relu && (rounded >> 31) != 0 ? 0 : rounded;
      r[l] = nan ? 0x7fff'ffff : limited;
    }
    blend(c, at<u32>(c, i->d), r);
    return i + 1;
  }
};

template <class F>
Handlers convert_bytes(ptx::Type to, ptx::Type from) {
  if (from == ptx::Type::F16x2) return both<BytesFromHalves<F>>();
  return to == ptx::Type::F16x2 ? both<HalvesFromBytes<F>>() : Handlers{};
}

}  // namespace

Rows half_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

Handlers pick_half_convert(ptx::Type to, ptx::Type from) {
  if (to == ptx::Type::E4m3x2 || from == ptx::Type::E4m3x2) return convert_bytes<E4m3>(to, from);
  if (to == ptx::Type::E5m2x2 || from == ptx::Type::E5m2x2) return convert_bytes<E5m2>(to, from);
  if (from == ptx::Type::F16) return widen_to<Half>(to);
  if (from == ptx::Type::Bf16) return widen_to<Brain>(to);
  if (to == ptx::Type::F16) return narrow_from<Half>(from);
  return to == ptx::Type::Bf16 ? narrow_from<Brain>(from) : Handlers{};
}

Handlers pick_byte_pair(ptx::Type to) {
  return to == ptx::Type::E4m3x2 ? both<BytesFromSingles<E4m3>>() : both<BytesFromSingles<E5m2>>();
}

Handlers pick_cut(const Form& form) {
  if (form.has(Word::rna)) return both<CutSingle<Cut::away>>();
  if (form.has(Word::rn)) return both<CutSingle<Cut::even>>();
  return form.has(Word::rz) ? both<CutSingle<Cut::zero>>() : Handlers{};
}

}  // namespace simgpu::SIMGPU_ISA
