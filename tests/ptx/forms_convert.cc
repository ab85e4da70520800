// Forms of cvt between all types, with every rounding mode and every saturation.
#include <limits>
#include <utility>

#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

struct Mode {
  const char* suffix;
  Round round;
};
constexpr Mode modes[] = {{".rn", Round::Nearest}, {".rz", Round::Zero}, {".rm", Round::Down}, {".rp", Round::Up}};
constexpr Mode integral_modes[] = {
    {".rni", Round::Nearest}, {".rzi", Round::Zero}, {".rmi", Round::Down}, {".rpi", Round::Up}};

template <class T>
std::string name() {
  return std::string(".") + type_name<T>();
}

// Bytes are held in 16-bit registers, extended by the sign of their type.
template <class T>
using Carrier = std::conditional_t<sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, s16, u16>, T>;

template <class T>
T limited(__int128 value) {
  const __int128 low = std::numeric_limits<T>::min();
  const __int128 high = std::numeric_limits<T>::max();
  return static_cast<T>(value < low ? low : value > high ? high : value);
}

template <class To, class From>
void between_integers(Forms& forms) {
  // The upper half of the register must not influence the byte.
  add_op<Carrier<To>, Carrier<From>>(forms, "cvt" + name<To>() + name<From>(), [](Carrier<From> a) {
    return static_cast<Carrier<To>>(static_cast<To>(static_cast<From>(a)));
  });
  // If the target type holds all values of the source type, PTX has no saturating form.
  if (std::in_range<To>(std::numeric_limits<From>::max()) && std::in_range<To>(std::numeric_limits<From>::min())) {
    return;
  }
  add_op<Carrier<To>, Carrier<From>>(forms, "cvt.sat" + name<To>() + name<From>(), [](Carrier<From> a) {
    return static_cast<Carrier<To>>(limited<To>(static_cast<From>(a)));
  });
}

template <class To>
void integers_to(Forms& forms) {
  between_integers<To, u8>(forms);
  between_integers<To, s8>(forms);
  between_integers<To, u16>(forms);
  between_integers<To, s16>(forms);
  between_integers<To, u32>(forms);
  between_integers<To, s32>(forms);
  between_integers<To, u64>(forms);
  between_integers<To, s64>(forms);
}

// A NaN becomes zero. If the source or the target has 64 bits, only the top bit is set.
template <class To, class From>
Bits nan_as_integer() {
  return sizeof(From) == 8 || sizeof(To) == 8 ? Bits{1} << (8 * sizeof(To) - 1) : 0;
}

// Adds rows near the limits of all integer types.
void add_limits(Form& form, const Format& format) {
  const Bits half_one = static_cast<Bits>(format.most - 1) << format.fraction();
  for (const int power : {7, 8, 15, 16, 31, 32, 63, 64}) {
    if (power > format.most) continue;
    const Bits limit = static_cast<Bits>(format.most + power) << format.fraction();
    const Bits above = add(limit, half_one, format, Round::Nearest);
    const Bits below = add(limit, negated(half_one, format), format, Round::Nearest);
    for (const Bits value : {limit - 1, limit, limit + 1, above, below}) {
      form.rows.push_back({{value, 0, 0}});
      form.rows.push_back({{negated(value, format), 0, 0}});
    }
  }
}

template <class To, class From>
void float_to_integer(Forms& forms) {
  const Format& format = format_of<From>();
  for (const Mode& mode : integral_modes) {
    for (const char* const extra : {"", ".ftz", ".sat"}) {
      const bool ftz = std::string(extra) == ".ftz";
      if (ftz && !std::is_same_v<From, f32>) continue;
      const Round round = mode.round;
      Form& form = add_op<Carrier<To>, From>(
          forms, std::string("cvt") + mode.suffix + extra + name<To>() + name<From>(), [=](From a) {
            const Bits bits = ftz ? flushed(a.bits, format) : a.bits;
            const Bits result = is_nan(bits, format)
                                    ? nan_as_integer<To, From>()
                                    : to_integer(bits, format, round, 8 * sizeof(To), std::is_signed_v<To>);
            return static_cast<Carrier<To>>(static_cast<To>(result));
          });
      add_limits(form, format);
    }
  }
}

template <class From>
void float_from(Forms& forms) {
  float_to_integer<u8, From>(forms);
  float_to_integer<s8, From>(forms);
  float_to_integer<u16, From>(forms);
  float_to_integer<s16, From>(forms);
  float_to_integer<u32, From>(forms);
  float_to_integer<s32, From>(forms);
  float_to_integer<u64, From>(forms);
  float_to_integer<s64, From>(forms);
}

template <class To, class From>
void integer_to_float(Forms& forms) {
  const Format& format = format_of<To>();
  for (const Mode& mode : modes) {
    const Round round = mode.round;
    add_op<To,
           Carrier<From>>(forms, std::string("cvt") + mode.suffix + name<To>() + name<From>(), [=](Carrier<From> a) {
      const __int128 value = static_cast<From>(a);
      return value_of<To>(from_integer(value < 0, static_cast<Bits>(value < 0 ? -value : value), format, round));
    }).target = std::is_same_v<To, bf16> ? 90 : 75;
  }
}

template <class To>
void float_to(Forms& forms) {
  integer_to_float<To, u8>(forms);
  integer_to_float<To, s8>(forms);
  integer_to_float<To, u16>(forms);
  integer_to_float<To, s16>(forms);
  integer_to_float<To, u32>(forms);
  integer_to_float<To, s32>(forms);
  integer_to_float<To, u64>(forms);
  integer_to_float<To, s64>(forms);
}

// ---- conversions between floats

Bits clamped(Bits bits, const Format& format) {
  const Bits one = static_cast<Bits>(format.most) << format.fraction();
  return is_nan(bits, format) || (bits & format.sign()) != 0 ? 0 : std::min(bits, one);
}
Bits rectified(Bits bits, const Format& format) {
  return is_nan(bits, format) || (bits & format.sign()) == 0 ? bits : 0;
}
// PTX has one canonical NaN for results narrower than a double. An H200 follows this for conversions from singles and
// halves; for conversions from doubles and bf16 it keeps the sign and upper bits of the argument.
template <class To, class From>
Accept nan_rule() {
  const bool any = std::is_same_v<To, f64> || std::is_same_v<From, f64> || std::is_same_v<From, bf16>;
  return any ? any_nan(format_of<To>()) : nullptr;
}

// Adds the midpoints between adjacent numbers of the narrower format, and the values next to each midpoint.
void add_ties(Form& form, const Format& from, const Format& to) {
  const Bits half_one = static_cast<Bits>(from.most - 1) << from.fraction();
  const auto halved = [&](Bits size) {
    if (size == to.infinity()) return static_cast<Bits>(from.most + to.most) << from.fraction();
    return multiply(converted(size, to, from, Round::Nearest), half_one, from, Round::Nearest);
  };
  for (const Bits edge : float_edges(to, false)) {
    const Bits size = edge & (to.sign() - 1);
    if (size >= to.infinity()) continue;
    const Bits sign = size == edge ? 0 : from.sign();
    const Bits tie = add(halved(size), halved(size + 1), from, Round::Nearest) | sign;
    for (const Bits value : {tie - 1, tie, tie + 1}) form.rows.push_back({{value, 0, 0}});
  }
}

template <class To, class From>
Form& between(Forms& forms, const std::string& words, Round round, bool ftz, bool sat, bool relu) {
  const Format& from = format_of<From>();
  const Format& to = format_of<To>();
  Form& form = add_op<To, From>(
      forms, "cvt" + words + name<To>() + name<From>(),
      [=](From a) {
        const bool flush_from = ftz && from.size == 32;
        const bool flush_to = ftz && to.size == 32;
        Bits result = converted(flush_from ? flushed(a.bits, from) : a.bits, from, to, round);
        if (flush_to) result = flushed(result, to);
        if (sat) result = clamped(result, to);
        return value_of<To>(relu ? rectified(result, to) : result);
      },
      nan_rule<To, From>());
  if (!ftz && to.precision < from.precision) add_ties(form, from, to);
  return form;
}

template <class To, class From>
void narrowing(Forms& forms) {
  for (const Mode& mode : modes) {
    between<To, From>(forms, mode.suffix, mode.round, false, false, false);
    between<To, From>(forms, std::string(mode.suffix) + ".sat", mode.round, false, true, false);
  }
}
template <class To, class From>
void widening(Forms& forms) {
  between<To, From>(forms, "", Round::Nearest, false, false, false);
  between<To, From>(forms, ".sat", Round::Nearest, false, true, false);
}

void every_half(Forms& forms) {
  Form& form = between<f32, f16>(forms, "", Round::Nearest, false, false, false);
  form.rows.clear();
  for (Bits bits = 0; bits <= 0xffff; ++bits) form.rows.push_back({{bits, 0, 0}});
}

template <class T>
void same(Forms& forms) {
  const Format& format = format_of<T>();
  const auto convert = [&](const std::string& words, bool ftz, bool sat, auto f) {
    add_op<T, T>(
        forms, "cvt" + words + name<T>() + name<T>(),
        [=](T a) {
          Bits result = f(ftz ? flushed(a.bits, format) : Bits{a.bits});
          if (is_nan(result, format)) result = canonical_nan(format);
          return value_of<T>(sat ? clamped(result, format) : result);
        },
        any_nan(format));
  };
  for (const Mode& mode : integral_modes) {
    const Round round = mode.round;
    const auto f = [=](Bits a) { return integral(a, format, round); };
    convert(mode.suffix, false, false, f);
    convert(std::string(mode.suffix) + ".sat", false, true, f);
    if (format.size == 32) convert(std::string(mode.suffix) + ".ftz", true, false, f);
  }
  convert(".sat", false, true, [](Bits a) { return a; });
  if (format.size == 32) convert(".ftz.sat", true, true, [](Bits a) { return a; });
}

void brains(Forms& forms) {
  for (const Mode& mode : {modes[0], modes[1]}) {
    between<bf16, f32>(forms, mode.suffix, mode.round, false, false, false).target = 80;
    between<bf16, f32>(forms, std::string(mode.suffix) + ".relu", mode.round, false, false, true).target = 80;
    between<f16, f32>(forms, std::string(mode.suffix) + ".relu", mode.round, false, false, true).target = 80;
  }
  between<f32, bf16>(forms, "", Round::Nearest, false, false, false).target = 90;
  for (const Mode& mode : integral_modes) {
    const Round round = mode.round;
    add_op<s32, bf16>(forms, std::string("cvt") + mode.suffix + ".s32.bf16", [=](bf16 a) {
      return is_nan(a.bits, brain) ? 0 : static_cast<s32>(to_integer(a.bits, brain, round, 32, true));
    }).target = 90;
  }
}

// Two singles are converted to a pair. The first single becomes the upper half.
template <class Pair>
void pairs(Forms& forms) {
  const Format& to = format_of<Pair>();
  for (const Mode& mode : {modes[0], modes[1]}) {
    for (const bool relu : {false, true}) {
      const Round round = mode.round;
      add_op<Pair, f32, f32>(forms, std::string("cvt") + mode.suffix + (relu ? ".relu" : "") + name<Pair>() + ".f32",
                             [=](f32 a, f32 b) {
                               const auto part = [&](f32 value) {
                                 const Bits bits = converted(value.bits, single, to, round);
                                 return relu ? rectified(bits, to) : bits;
                               };
                               return value_of<Pair>(part(a) << 16 | part(b));
                             })
          .target = 80;
    }
  }
}

// ---- 8-bit floats, and tf32 in a word

inline constexpr Format e4m3{8, 4, -6, 8};
inline constexpr Format e5m2{8, 3, -14, 15};

// Larger values become the largest finite number. e4m3 uses the code of infinity for ordinary numbers.
Bits to_byte(f32 a, const Format& format) {
  const Bits largest = format.precision == e4m3.precision ? 0x7e : 0x7b;
  if (is_nan(a.bits, single)) return 0x7f;
  // the exponent range is wide enough that no value overflows
  const Format wide{16, format.precision, format.least, 127};
  const Bits sign = (a.bits >> 24) & 0x80;
  const Bits size = converted(a.bits & 0x7fff'ffff, single, wide, Round::Nearest);
  return sign | std::min(size, largest);
}
Bits from_byte(Bits byte, const Format& format) {
  if (format.precision == e5m2.precision) return is_nan(byte, format) ? 0x7fff : byte << 8;
  const Bits size = byte & 0x7f;
  if (size == 0x7f) return 0x7fff;
  const Format wide{16, format.precision, format.least, 127};
  return (byte & 0x80) << 8 | converted(size, wide, half, Round::Nearest);
}

void bytes(Forms& forms, const Format& format, const std::string& type) {
  for (const bool relu : {false, true}) {
    const std::string words = std::string(".rn.satfinite") + (relu ? ".relu." : ".");
    const auto limited = [relu](f32 a) { return relu && (a.bits >> 31) != 0 && !is_nan(a.bits, single) ? f32{0} : a; };
    add_op<u16, f32, f32>(forms, "cvt" + words + type + ".f32", [=](f32 a, f32 b) {
      return static_cast<u16>(to_byte(limited(a), format) << 8 | to_byte(limited(b), format));
    }).target = 89;
    add_op<u16, f16x2>(forms, "cvt" + words + type + ".f16x2", [=](f16x2 a) {
      const auto part = [&](Bits bits) {
        return to_byte(limited(value_of<f32>(converted(bits & 0xffff, half, single, Round::Nearest))), format);
      };
      return static_cast<u16>(part(a.bits >> 16) << 8 | part(a.bits));
    }).target = 89;
    add_op<u32, u16>(forms, std::string("cvt.rn") + (relu ? ".relu" : "") + ".f16x2." + type, [=](u16 a) {
      const auto part = [&](Bits byte) {
        const Bits result = from_byte(byte & 0xff, format);
        return relu && (result & 0x8000) != 0 ? 0 : result;
      };
      return static_cast<u32>(part(a >> 8) << 16 | part(a));
    }).target = 89;
  }
}

// The lower thirteen bits are undefined. If a NaN has bits only there, .rna on an H200 yields an infinity.
void shortened(Forms& forms) {
  const Format tf32{32, 11, -126, 127};
  const auto add = [&](const std::string& words, Round round, bool relu, unsigned target) {
    const Accept upper = [round](Result wanted, Result got, const Row& row) {
      if (wanted.d >> 13 == got.d >> 13) return true;
      const bool as_it_stands = round == Round::Away && got.d >> 13 == row.in[0] >> 13;
      return is_nan(wanted.d, single) && (is_nan(got.d, single) || as_it_stands);
    };
    add_op<u32, f32>(
        forms, "cvt" + words + ".tf32.f32",
        [=](f32 a) {
          if (is_nan(a.bits, single)) return 0x7fff'ffffU;
          // The bits of tf32 are the upper bits of a single.
          const Format wide{19, tf32.precision, tf32.least, tf32.most};
          const Bits result = converted(a.bits, single, wide, round) << 13;
          return static_cast<u32>(relu && (result >> 31) != 0 ? 0 : result);
        },
        upper)
        .target = target;
  };
  add(".rna", Round::Away, false, 80);
  for (const bool relu : {false, true}) {
    add(std::string(".rn") + (relu ? ".relu" : ""), Round::Nearest, relu, 90);
    add(std::string(".rz") + (relu ? ".relu" : ""), Round::Zero, relu, 90);
  }
}

// A result in a wider register is extended. From a wider register, only the lower bits are used.
void registers(Forms& forms) {
  add_text<u32, u32>(forms, "cvt.u8.u32", "cvt.u8.u32 %d, %a;", [](u32 a) { return a & 0xff; });
  add_text<s32, u32>(forms, "cvt.s8.u32", "cvt.s8.u32 %d, %a;", [](u32 a) { return s32{static_cast<s8>(a)}; });
  add_text<u32, u32>(forms, "cvt.u16.u32", "cvt.u16.u32 %d, %a;", [](u32 a) { return a & 0xffff; });
  add_text<s64, u64>(forms, "cvt.s16.s8", "cvt.s16.s8 %d, %a;", [](u64 a) { return s64{static_cast<s8>(a)}; });
  add_text<s64, u32>(forms, "cvt.s16.u32", "cvt.s16.u32 %d, %a;", [](u32 a) { return s64{static_cast<s16>(a)}; });
  add_text<s32, u64>(forms, "cvt.s32.s8", "cvt.s32.s8 %d, %a;", [](u64 a) { return s32{static_cast<s8>(a)}; });
  add_text<u32, f32>(forms, "cvt.rzi.u8.f32", "cvt.rzi.u8.f32 %d, %a;", [](f32 a) {
    return is_nan(a.bits, single) ? 0 : static_cast<u32>(to_integer(a.bits, single, Round::Zero, 8, false));
  });
}

}  // namespace

void convert_forms(Forms& forms) {
  integers_to<u8>(forms);
  integers_to<s8>(forms);
  integers_to<u16>(forms);
  integers_to<s16>(forms);
  integers_to<u32>(forms);
  integers_to<s32>(forms);
  integers_to<u64>(forms);
  integers_to<s64>(forms);
  float_from<f16>(forms);
  float_from<f32>(forms);
  float_from<f64>(forms);
  float_to<f16>(forms);
  float_to<f32>(forms);
  float_to<f64>(forms);
  narrowing<f32, f64>(forms);
  narrowing<f16, f32>(forms);
  narrowing<f16, f64>(forms);
  widening<f64, f32>(forms);
  widening<f32, f16>(forms);
  widening<f64, f16>(forms);
  every_half(forms);
  same<f16>(forms);
  same<f32>(forms);
  same<f64>(forms);
  between<f64, f32>(forms, ".ftz", Round::Nearest, true, false, false);
  between<f32, f64>(forms, ".rn.ftz", Round::Nearest, true, false, false);
  between<f32, f16>(forms, ".ftz", Round::Nearest, true, false, false);
  between<f16, f32>(forms, ".rn.ftz", Round::Nearest, true, false, false);
  brains(forms);
  pairs<f16x2>(forms);
  pairs<bf16x2>(forms);
  bytes(forms, e4m3, "e4m3x2");
  bytes(forms, e5m2, "e5m2x2");
  shortened(forms);
  registers(forms);
}

}  // namespace ptx_forms
