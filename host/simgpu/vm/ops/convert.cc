// cvt between integers and floats of 32 and 64 bits. 8-bit integers are held in 16-bit registers. The lowering
// implements conversions between integers without saturation by resizing registers.
#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

template <class T>
struct CarrierOf {
  using type = T;
};
template <>
struct CarrierOf<u8> {
  using type = u16;
};
template <>
struct CarrierOf<s8> {
  using type = s16;
};
template <class T>
using Carrier = typename CarrierOf<T>::type;

template <class T>
constexpr T lowest = std::is_signed_v<T> ? static_cast<T>(BitsOf<T>{1} << (8 * sizeof(T) - 1)) : T{0};
template <class T>
constexpr T highest = static_cast<T>(~lowest<T>);

// Converts integers to integers, clamped to the range of To.
template <class To, class From>
struct Clamp {
  template <class D>
  static D run(Carrier<From> raw) {
    const From a = static_cast<From>(raw);
    if constexpr (std::is_signed_v<From>) {
      if (a < 0 && !std::is_signed_v<To>) return 0;
      if (a < 0 && sizeof(To) < sizeof(From) && a < static_cast<From>(lowest<To>)) return static_cast<D>(lowest<To>);
    }
    if (a > 0 && static_cast<u64>(a) > static_cast<u64>(highest<To>)) return static_cast<D>(highest<To>);
    return static_cast<D>(static_cast<To>(a));
  }
};

template <class To>
struct Narrow {  // keeps the low eight bits and extends them within the register
  template <class D>
  static D run(Carrier<To> a) {
    return static_cast<D>(static_cast<To>(a));
  }
};

enum class Integral { nearest, zero, down, up };

template <Integral mode, class T>
SIMGPU_INLINE T to_integral(T a) {
  if constexpr (sizeof(T) == 4) {
    switch (mode) {
      case Integral::nearest: return __builtin_rintf(a);
      case Integral::zero: return __builtin_truncf(a);
      case Integral::down: return __builtin_floorf(a);
      default: return __builtin_ceilf(a);
    }
  } else {
    switch (mode) {
      case Integral::nearest: return __builtin_rint(a);
      case Integral::zero: return __builtin_trunc(a);
      case Integral::down: return __builtin_floor(a);
      default: return __builtin_ceil(a);
    }
  }
}

// Converts a float to an integer. Values out of range are clamped. NaN becomes 0; if the source or the result has 64
// bits, NaN becomes the value with only the top bit set.
template <class To, class From, Integral mode>
struct ToInteger {
  static constexpr BitsOf<To> nan = sizeof(From) == 8 || sizeof(To) == 8
                                        ? static_cast<BitsOf<To>>(BitsOf<To>{1} << (8 * sizeof(To) - 1))
                                        : BitsOf<To>{0};
  template <class D>
  static D run(From a) {
    // The upper bound is a power of two, so it is exact. The lower bound is -bound or zero.
    constexpr u64 half = static_cast<u64>(highest<To>) / 2 + 1;
    constexpr From bound = static_cast<From>(half) * From{2};
    constexpr From below = std::is_signed_v<To> ? -bound : From{0};
    const From whole = to_integral<mode>(a);
    const bool fits = whole < bound && whole >= below;
    const To inside = convert(fits ? whole : From{0});
    const To outside = whole >= bound ? highest<To> : whole < below ? lowest<To> : static_cast<To>(nan);
    return static_cast<D>(fits ? inside : outside);
  }
  SIMGPU_INLINE To convert(From value) {
    if constexpr (sizeof(To) < 4) {
      return static_cast<To>(static_cast<s32>(value));
    } else {
      return static_cast<To>(value);
    }
  }
};

template <class Op, class D, class A>
struct ModeMap {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    set_mode(c, i->flags);
    return Map1<Op, D, A>::template run<masked>(c, i);
  }
};

template <class T>
SIMGPU_INLINE T finish(T r) {
  if constexpr (sizeof(T) == 4) return r != r ? as<f32>(u32{0x7fff'ffff}) : r;
  return r;
}

template <bool sat>
struct ToFloat {
  template <class D, class A>
  static D run(A a) {
    D r = static_cast<D>(a);
    // Compilers implement the 64-bit unsigned conversion with a difference. When rounding down, x - x is -0, but
    // compilers assume that the result is never -0 and would remove this correction. The empty asm statement hides the
    // value from them.
    if constexpr (std::is_unsigned_v<A> && sizeof(A) == 8) {
      asm("" : "+x"(r));
      r = r < D{0} || r > D{0} ? r : D{0};
    }
    if (sat) return r > D{0} ? (r < D{1} ? r : D{1}) : D{0};
    return finish(r);
  }
};
template <Integral mode, bool sat>
struct Round {
  template <class D>
  static D run(D a) {
    return ToFloat<sat>::template run<D>(to_integral<mode>(a));
  }
};
// The processor flushes subnormal results of arithmetic, but not of copies.
template <bool sat>
struct Copy {
  template <class D>
  static D run(D a) {
    return ToFloat<sat>::template run<D>(a * D{1});
  }
};

template <class To, class From>
Handlers integer_from_float(const Form& form) {
  using C = Carrier<To>;
  if (form.has(Word::rni)) return both<ModeMap<ToInteger<To, From, Integral::nearest>, C, From>>();
  if (form.has(Word::rzi)) return both<ModeMap<ToInteger<To, From, Integral::zero>, C, From>>();
  if (form.has(Word::rmi)) return both<ModeMap<ToInteger<To, From, Integral::down>, C, From>>();
  if (form.has(Word::rpi)) return both<ModeMap<ToInteger<To, From, Integral::up>, C, From>>();
  return {};
}

template <class T>
Handlers same_float(const Form& form) {
  const bool sat = form.has(Word::sat);
  if (form.has(Word::rni)) {
    return sat ? both<ModeMap<Round<Integral::nearest, true>, T, T>>()
               : both<ModeMap<Round<Integral::nearest, false>, T, T>>();
  }
  if (form.has(Word::rzi)) {
    return sat ? both<ModeMap<Round<Integral::zero, true>, T, T>>()
               : both<ModeMap<Round<Integral::zero, false>, T, T>>();
  }
  if (form.has(Word::rmi)) {
    return sat ? both<ModeMap<Round<Integral::down, true>, T, T>>()
               : both<ModeMap<Round<Integral::down, false>, T, T>>();
  }
  if (form.has(Word::rpi)) {
    return sat ? both<ModeMap<Round<Integral::up, true>, T, T>>() : both<ModeMap<Round<Integral::up, false>, T, T>>();
  }
  return sat ? both<ModeMap<Copy<true>, T, T>>() : both<ModeMap<Copy<false>, T, T>>();
}

template <class D, class A>
Handlers to_float(const Form& form) {
  return form.has(Word::sat) ? both<ModeMap<ToFloat<true>, D, A>>() : both<ModeMap<ToFloat<false>, D, A>>();
}

template <class To>
Handlers clamp_from(ptx::Type from) {
  using C = Carrier<To>;
  switch (from) {
    case ptx::Type::U8: return both<Map1<Clamp<To, u8>, C, u16>>();
    case ptx::Type::S8: return both<Map1<Clamp<To, s8>, C, s16>>();
    case ptx::Type::U16: return both<Map1<Clamp<To, u16>, C, u16>>();
    case ptx::Type::S16: return both<Map1<Clamp<To, s16>, C, s16>>();
    case ptx::Type::U32: return both<Map1<Clamp<To, u32>, C, u32>>();
    case ptx::Type::S32: return both<Map1<Clamp<To, s32>, C, s32>>();
    case ptx::Type::U64: return both<Map1<Clamp<To, u64>, C, u64>>();
    case ptx::Type::S64: return both<Map1<Clamp<To, s64>, C, s64>>();
    default: return {};
  }
}

template <class To>
Handlers to_integer(ptx::Type from, const Form& form) {
  if (from == ptx::Type::F32) return integer_from_float<To, f32>(form);
  if (from == ptx::Type::F64) return integer_from_float<To, f64>(form);
  return clamp_from<To>(from);
}

template <class D>
Handlers float_from(ptx::Type from, const Form& form) {
  switch (from) {
    case ptx::Type::U8:
    case ptx::Type::U16: return to_float<D, u16>(form);
    case ptx::Type::S8:
    case ptx::Type::S16: return to_float<D, s16>(form);
    case ptx::Type::U32: return to_float<D, u32>(form);
    case ptx::Type::S32: return to_float<D, s32>(form);
    case ptx::Type::U64: return to_float<D, u64>(form);
    case ptx::Type::S64: return to_float<D, s64>(form);
    case ptx::Type::F32: return sizeof(D) == 4 ? same_float<D>(form) : to_float<D, f32>(form);
    case ptx::Type::F64: return sizeof(D) == 8 ? same_float<D>(form) : to_float<D, f64>(form);
    default: return {};
  }
}

}  // namespace

// Returns the handler of a conversion. With B8 as `to` and U8 or S8 as `from`, the handler extends the byte within 16
// bits.
Handlers pick_convert(ptx::Type to, ptx::Type from, const Form& form) {
  if (const Handlers half = pick_half_convert(to, from)) return half;
  switch (to) {
    case ptx::Type::B8:
      return from == ptx::Type::S8 ? both<Map1<Narrow<s8>, s16, s16>>() : both<Map1<Narrow<u8>, u16, u16>>();
    case ptx::Type::U8: return to_integer<u8>(from, form);
    case ptx::Type::S8: return to_integer<s8>(from, form);
    case ptx::Type::U16: return to_integer<u16>(from, form);
    case ptx::Type::S16: return to_integer<s16>(from, form);
    case ptx::Type::U32: return to_integer<u32>(from, form);
    case ptx::Type::S32: return to_integer<s32>(from, form);
    case ptx::Type::U64: return to_integer<u64>(from, form);
    case ptx::Type::S64: return to_integer<s64>(from, form);
    case ptx::Type::F32: return float_from<f32>(from, form);
    case ptx::Type::F64: return float_from<f64>(from, form);
    default: return {};
  }
}

}  // namespace simgpu::SIMGPU_ISA
