// Single and double precision arithmetic: the table rows and the functions for one lane. See ops/lanes.h and
// vm/table.h.
//
// As on a device, arithmetic of singles always yields the NaN 0x7fffffff. Doubles keep the NaN that the processor
// yields, which is also the device's rule: 0xfff8000000000000 for an invalid operation, else the operand's payload as a
// quiet NaN.
#include <limits>

#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/ops/approx.h"
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

SIMGPU_INLINE f32 finish(f32 r) { return r != r ? as<f32>(u32{0x7fff'ffff}) : r; }
SIMGPU_INLINE f64 finish(f64 r) { return r; }

template <class T>
SIMGPU_INLINE void saturate(T* r) {
  SIMGPU_LANES r[l] = r[l] > T{0} ? (r[l] < T{1} ? r[l] : T{1}) : T{0};
}

// Applies Op::run(a...) to floats of type T, in the floating-point mode of the instruction.
template <class Op, class T, unsigned sources>
struct FloatMap {
  SIMGPU_INLINE void loop(Ctx& c, const Ins* i, T* r) {
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, sources > 1 ? i->b : i->a);
    const T* e = at<T>(c, sources > 2 ? i->c : i->a);
    if constexpr (sources == 1) {
      SIMGPU_LANES r[l] = finish(Op::run(a[l]));
    } else if constexpr (sources == 2) {
      SIMGPU_LANES r[l] = finish(Op::run(a[l], b[l]));
    } else {
      SIMGPU_LANES r[l] = finish(Op::run(a[l], b[l], e[l]));
    }
    if ((i->flags & flag_sat) != 0) [[unlikely]]
      saturate(r);
  }
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, i->flags);
    if constexpr (masked) {
      alignas(64) T r[warp_size];
      loop(c, i, r);
      blend(c, at<T>(c, i->d), r);
    } else {
      loop(c, i, at<T>(c, i->d));
    }
    return i + 1;
  }
};

struct Add {
  template <class T>
  static T run(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static T run(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static T run(T a, T b) {
    return a * b;
  }
};
struct Fma {
  static f32 run(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
  static f64 run(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
};
struct Div {
  template <class T>
  static T run(T a, T b) {
    return a / b;
  }
};
// Computes a * (1/b), where the reciprocal of a very large b is flushed to zero.
struct DivApprox {
  static f32 run(f32 a, f32 b) {
    const f32 size = __builtin_fabsf(b);
    const bool flushed = size > 8.507059173023462e37F && size <= 3.4028234663852886e38F;
    const f32 zero = as<f32>(as<u32>(b) & 0x8000'0000U);
    return flushed ? a * zero : a / b;
  }
};
struct Rcp {
  template <class T>
  static T run(T a) {
    return T{1} / a;
  }
};
struct Sqrt {
  static f32 run(f32 a) { return __builtin_sqrtf(a); }
  static f64 run(f64 a) { return __builtin_sqrt(a); }
};
struct Rsqrt {
  static f32 run(f32 a) { return 1.0F / __builtin_sqrtf(a); }
  static f64 run(f64 a) { return 1.0 / __builtin_sqrt(a); }
};
// Only the upper words of argument and result are used, and subnormals on both sides are zero. As on an H200, a NaN
// with a payload only in the lower word becomes an infinity.
SIMGPU_INLINE f64 upper(f64 a) {
  const u64 bits = as<u64>(a);
  const bool tiny = (bits & 0x7ff0'0000'0000'0000) == 0;
  const f64 cut = as<f64>(bits & (tiny ? u64{1} << 63 : 0xffff'ffff'0000'0000));
  return cut != cut ? as<f64>(u64{0x7fff'ffff'0000'0000}) : cut;
}
struct RcpUpper {
  static f64 run(f64 a) { return upper(1.0 / upper(a)); }
};
struct RsqrtUpper {
  static f64 run(f64 a) { return upper(1.0 / __builtin_sqrt(upper(a))); }
};

template <class T>
SIMGPU_INLINE T flushed(T a) {
  constexpr T smallest = std::numeric_limits<T>::min();
  const BitsOf<T> sign = as<BitsOf<T>>(a) & (BitsOf<T>{1} << (8 * sizeof(T) - 1));
  return a < smallest && a > -smallest ? as<T>(sign) : a;
}
template <bool minimum, bool nan, bool ftz>
struct MinMax {
  template <class T>
  static T run(T a, T b) {
    if (ftz) a = flushed(a);
    if (ftz) b = flushed(b);
    const BitsOf<T> x = as<BitsOf<T>>(a);
    const BitsOf<T> y = as<BitsOf<T>>(b);
    // zeros of different sign compare equal, so the sign is chosen here
    const T equal = as<T>(static_cast<BitsOf<T>>(minimum ? x | y : x & y));
    const T picked = a == b ? equal : (minimum ? a < b : a > b) ? a : b;
    if (nan) return a != a ? a : b != b ? b : picked;
    return a != a ? b : b != b ? a : picked;
  }
};
// Returns the extreme of the magnitudes, with the sign of the product.
template <bool minimum, bool nan, bool ftz>
struct ExtremeSize {
  template <class T>
  static T run(T a, T b) {
    constexpr BitsOf<T> sign = BitsOf<T>{1} << (8 * sizeof(T) - 1);
    const T size = MinMax<minimum, nan, ftz>::template run<T>(as<T>(static_cast<BitsOf<T>>(as<BitsOf<T>>(a) & ~sign)),
                                                              as<T>(static_cast<BitsOf<T>>(as<BitsOf<T>>(b) & ~sign)));
    return as<T>(static_cast<BitsOf<T>>(as<BitsOf<T>>(size) | ((as<BitsOf<T>>(a) ^ as<BitsOf<T>>(b)) & sign)));
  }
};
template <bool ftz>
struct Abs {
  template <class T>
  static T run(T a) {
    if (ftz) a = flushed(a);
    return as<T>(static_cast<BitsOf<T>>(as<BitsOf<T>>(a) & ~(BitsOf<T>{1} << (8 * sizeof(T) - 1))));
  }
};
template <bool ftz>
struct Neg {
  template <class T>
  static T run(T a) {
    if (ftz) a = flushed(a);
    return as<T>(static_cast<BitsOf<T>>(as<BitsOf<T>>(a) ^ (BitsOf<T>{1} << (8 * sizeof(T) - 1))));
  }
};
struct CopySign {  // the sign of a and the other bits of b; both may be NaN
  template <class T>
  static T run(T a, T b) {
    constexpr BitsOf<T> sign = BitsOf<T>{1} << (8 * sizeof(T) - 1);
    return as<T>(static_cast<BitsOf<T>>((as<BitsOf<T>>(a) & sign) | (as<BitsOf<T>>(b) & ~sign)));
  }
};

template <class Op>
struct Approx {
  static f32 run(f32 a) { return Op::run(a); }
};

// Operates on two singles in a 64-bit word, as if there were twice as many lanes.
template <class Op, unsigned sources>
struct PairMap {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, i->flags);
    alignas(64) f32 r[2 * warp_size];
    for (unsigned first = 0; first < 2 * warp_size; first += warp_size) {
      const f32* a = reinterpret_cast<const f32*>(at<u64>(c, i->a)) + first;
      const f32* b = reinterpret_cast<const f32*>(at<u64>(c, i->b)) + first;
      const f32* e = reinterpret_cast<const f32*>(at<u64>(c, sources > 2 ? i->c : i->a)) + first;
      if constexpr (sources == 2) {
        SIMGPU_LANES r[first + l] = finish(Op::run(a[l], b[l]));
      } else {
        SIMGPU_LANES r[first + l] = finish(Op::run(a[l], b[l], e[l]));
      }
    }
    blend(c, at<u64>(c, i->d), reinterpret_cast<const u64*>(r));
    return i + 1;
  }
};

template <class T, int test>
struct Test {
  static bool holds(T a) {
    const T size = as<T>(static_cast<BitsOf<T>>(as<BitsOf<T>>(a) & ~(BitsOf<T>{1} << (8 * sizeof(T) - 1))));
    constexpr T smallest = std::numeric_limits<T>::min();
    const T infinity = static_cast<T>(__builtin_inf());
    switch (test) {
      case 0: return size < infinity;
      case 1: return size == infinity;
      case 2: return a == a;
      case 3: return a != a;
      case 4: return (size >= smallest && size < infinity) || size == 0;  // an H200 counts zero as normal
      default: return size < smallest && size > 0;
    }
  }
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, 0);
    const T* a = at<T>(c, i->a);
    u32 bits = 0;
    SIMGPU_LANES bits |= holds(a[l]) ? u32{1} << l : 0U;
    put_predicate(c, i->d, bits, masked);
    return i + 1;
  }
};

template <class Op, unsigned sources>
Handlers pick_any(const Form& form) {
  return by_float(form.type(), [](auto tag) { return both<FloatMap<Op, typename decltype(tag)::type, sources>>(); });
}

template <bool minimum>
Handlers pick_extreme_size(const Form& form) {
  if (!form.has(Word::abs) || form.type() != ptx::Type::F32) return {};
  if (form.has(Word::nan)) {
    return form.has(Word::ftz) ? both<FloatMap<ExtremeSize<minimum, true, true>, f32, 2>>()
                               : both<FloatMap<ExtremeSize<minimum, true, false>, f32, 2>>();
  }
  return form.has(Word::ftz) ? both<FloatMap<ExtremeSize<minimum, false, true>, f32, 2>>()
                             : both<FloatMap<ExtremeSize<minimum, false, false>, f32, 2>>();
}

template <bool minimum>
Handlers pick_min_max(const Form& form) {
  if (form.has(Word::xorsign)) return pick_extreme_size<minimum>(form);
  if (form.has(Word::nan)) {
    return form.has(Word::ftz) ? pick_any<MinMax<minimum, true, true>, 2>(form)
                               : pick_any<MinMax<minimum, true, false>, 2>(form);
  }
  return form.has(Word::ftz) ? pick_any<MinMax<minimum, false, true>, 2>(form)
                             : pick_any<MinMax<minimum, false, false>, 2>(form);
}

template <class Op, unsigned sources>
Handlers pick_pair(const Form&) {
  return both<PairMap<Op, sources>>();
}

bool is_single(const Form& form) { return form.type() == ptx::Type::F32; }

Handlers pick_div(const Form& form) {
  if (form.has(Word::approx)) return is_single(form) ? both<FloatMap<DivApprox, f32, 2>>() : Handlers{};
  return pick_any<Div, 2>(form);
}
Handlers pick_rcp(const Form& form) {
  if (!is_single(form) && form.has(Word::approx)) return both<FloatMap<RcpUpper, f64, 1>>();
  return pick_any<Rcp, 1>(form);
}
Handlers pick_rsqrt(const Form& form) {
  if (!is_single(form) && form.has(Word::ftz)) return both<FloatMap<RsqrtUpper, f64, 1>>();
  return pick_any<Rsqrt, 1>(form);
}
Handlers pick_copy_sign(const Form& form) {
  return by_float(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<CopySign, T, T, T>>();
  });
}
template <class Op>
Handlers pick_single(const Form&) {
  return both<FloatMap<Op, f32, 1>>();
}

template <template <bool> class Op>
Handlers pick_sign(const Form& form) {
  return form.has(Word::ftz) ? pick_any<Op<true>, 1>(form) : pick_any<Op<false>, 1>(form);
}

Handlers pick_test(const Form& form) {
  return by_float(form.type(), [&](auto tag) -> Handlers {
    using T = typename decltype(tag)::type;
    if (form.has(Word::finite)) return both<Test<T, 0>>();
    if (form.has(Word::infinite)) return both<Test<T, 1>>();
    if (form.has(Word::number)) return both<Test<T, 2>>();
    if (form.has(Word::notanumber)) return both<Test<T, 3>>();
    if (form.has(Word::normal)) return both<Test<T, 4>>();
    return form.has(Word::subnormal) ? both<Test<T, 5>>() : Handlers{};
  });
}

constexpr const char* both_types = "f32 f64";
constexpr const char* pair_modes = "rn rz rm rp ftz";
constexpr const char* modes = "rn rz rm rp ftz sat";

constexpr Row rows[] = {
    {"add", "dtt", both_types, modes, &pick_any<Add, 2>},
    {"sub", "dtt", both_types, modes, &pick_any<Sub, 2>},
    {"mul", "dtt", both_types, modes, &pick_any<Mul, 2>},
    {"fma", "dttt", both_types, modes, &pick_any<Fma, 3>},
    {"mad", "dttt", both_types, modes, &pick_any<Fma, 3>},
    {"add", "dtt", "f32x2", pair_modes, &pick_pair<Add, 2>},
    {"sub", "dtt", "f32x2", pair_modes, &pick_pair<Sub, 2>},
    {"mul", "dtt", "f32x2", pair_modes, &pick_pair<Mul, 2>},
    {"fma", "dttt", "f32x2", pair_modes, &pick_pair<Fma, 3>},
    {"div", "dtt", both_types, "rn rz rm rp ftz approx full", &pick_div},
    {"rcp", "dt", both_types, "rn rz rm rp ftz approx", &pick_rcp},
    {"sqrt", "dt", both_types, "rn rz rm rp ftz approx", &pick_any<Sqrt, 1>},
    {"rsqrt", "dt", both_types, "ftz approx", &pick_rsqrt},
    {"min", "dtt", both_types, "ftz NaN xorsign abs", &pick_min_max<true>},
    {"max", "dtt", both_types, "ftz NaN xorsign abs", &pick_min_max<false>},
    {"abs", "dt", both_types, "ftz", &pick_sign<Abs>},
    {"neg", "dt", both_types, "ftz", &pick_sign<Neg>},
    {"copysign", "dtt", both_types, "", &pick_copy_sign},
    {"testp", "Pt", both_types, "finite infinite number notanumber normal subnormal", &pick_test},
    {"ex2", "dt", "f32", "approx ftz", &pick_single<Approx<Exp2>>},
    {"lg2", "dt", "f32", "approx ftz", &pick_single<Approx<Log2>>},
    {"sin", "dt", "f32", "approx ftz", &pick_single<Approx<Sin>>},
    {"cos", "dt", "f32", "approx ftz", &pick_single<Approx<Cos>>},
    {"tanh", "dt", "f32", "approx", &pick_single<Approx<Tanh>>},
};

}  // namespace

Rows float_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
