// Forms of arithmetic on halves and brain floats, single and in pairs. Each result is rounded once from the exact
// value.
#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

struct Modifiers {
  const char* suffix = "";
  bool ftz = false;
  bool sat = false;
  bool relu = false;
};
constexpr Modifiers plain{};
constexpr Modifiers flushing{".ftz", true, false, false};
constexpr Modifiers clamping{".sat", false, true, false};
constexpr Modifiers flushing_clamping{".ftz.sat", true, true, false};
constexpr Modifiers rectifying{".relu", false, false, true};
constexpr Modifiers flushing_rectifying{".ftz.relu", true, false, true};

Bits finish(Bits bits, const Modifiers& m, const Format& format) {
  const Bits one = static_cast<Bits>(format.most) << format.fraction();
  if (m.ftz) bits = flushed(bits, format);
  const bool negative = (bits & format.sign()) != 0;
  if (m.sat) return is_nan(bits, format) || negative ? 0 : std::min(bits, one);
  return m.relu && negative && !is_nan(bits, format) ? 0 : bits;
}

// Applies f to each half of the operands, or to the whole operand if it is a single half.
template <class T, class F>
auto halves(const Modifiers& m, F f) {
  return [m, f](auto... values) {
    const Format& format = format_of<T>();
    Bits all = 0;
    for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); shift += 16) {
      const auto part = [&](Bits bits) {
        bits = bits >> shift & 0xffff;
        return m.ftz ? flushed(bits, format) : bits;
      };
      all |= finish(f(part(values.bits)...), m, format) << shift;
    }
    return value_of<T>(all);
  };
}

template <class T>
Accept rule(const Modifiers& m) {
  return m.ftz ? flushed_least(format_of<T>(), 8 * sizeof(T)) : nullptr;
}

template <class T>
unsigned target_of(unsigned of_brain) {
  return format_of<T>().precision == brain.precision ? of_brain : 75;
}

template <class T>
void sums(Forms& forms, const Modifiers& m) {
  const Format& format = format_of<T>();
  const std::string type = std::string(m.suffix) + "." + type_name<T>();
  for (const std::string rounding : {"", ".rn"}) {
    const unsigned target = target_of<T>(90);
    add_op<T, T, T>(forms, "add" + rounding + type,
                    halves<T>(m, [=](Bits a, Bits b) { return add(a, b, format, Round::Nearest); }), rule<T>(m))
        .target = target;
    add_op<T, T, T>(forms, "sub" + rounding + type,
                    halves<T>(m,
                              [=](Bits a, Bits b) {
                                return add(a, is_nan(b, format) ? b : negated(b, format), format, Round::Nearest);
                              }))
        .target = target;
    add_op<T, T, T>(forms, "mul" + rounding + type,
                    halves<T>(m, [=](Bits a, Bits b) { return multiply(a, b, format, Round::Nearest); }), rule<T>(m))
        .target = target;
  }
}

template <class T>
void fused(Forms& forms, const Modifiers& m) {
  const Format& format = format_of<T>();
  Form& form = add_op<T, T, T, T>(
      forms, std::string("fma.rn") + m.suffix + "." + type_name<T>(),
      halves<T>(m, [=](Bits a, Bits b, Bits c) { return multiply_add(a, b, c, format, Round::Nearest); }), rule<T>(m));
  form.target = m.relu ? std::max(80U, target_of<T>(80)) : target_of<T>(80);
  // Adds rows whose product lies halfway between two numbers. The addend is so small that it only decides the rounding.
  const Bits one = static_cast<Bits>(format.most) << format.fraction();
  const Bits pair = is_pair<T> ? 0x1'0001 : 1;
  for (Bits k = 0; k < 300; ++k) {
    const Bits tiny =
        (1 + k % 7) << (k % static_cast<Bits>(format.fraction() + 3)) | (k % 2 != 0 ? format.sign() : Bits{0});
    const Bits a = one + 1 + k % 61;
    const Bits b = one + (Bits{1} << (format.fraction() - 1)) * (k % 2) + k % 5;
    form.rows.push_back({{a * pair, b * pair, tiny * pair}});
  }
}

Bits extreme(Bits a, Bits b, bool larger, bool nan, const Format& format) {
  if (is_nan(a, format) || is_nan(b, format)) {
    if (nan || (is_nan(a, format) && is_nan(b, format))) return canonical_nan(format);
    return is_nan(a, format) ? b : a;
  }
  const auto key = [&](Bits bits) {
    const s64 size = static_cast<s64>(bits & (format.sign() - 1));
    return (bits & format.sign()) != 0 ? -size - 1 : size;
  };
  return (key(a) < key(b)) != larger ? a : b;
}

template <class T>
void extremes(Forms& forms, const Modifiers& m) {
  const Format& format = format_of<T>();
  for (const bool larger : {false, true}) {
    for (const bool nan : {false, true}) {
      const std::string opcode = std::string(larger ? "max" : "min") + m.suffix + (nan ? ".NaN" : "");
      const std::string type = std::string(".") + type_name<T>();
      add_op<T, T, T>(forms, opcode + type,
                      halves<T>(m, [=](Bits a, Bits b) { return extreme(a, b, larger, nan, format); }))
          .target = 80;
      add_op<T, T, T>(forms, opcode + ".xorsign.abs" + type,
                      halves<T>(m,
                                [=](Bits a, Bits b) {
                                  const Bits sign = (a ^ b) & format.sign();
                                  const Bits size =
                                      extreme(a & ~format.sign(), b & ~format.sign(), larger, nan, format);
                                  return is_nan(size, format) ? size : size | sign;
                                }))
          .target = 86;
    }
  }
}

// For each half of a pair, accepts any NaN if a NaN is expected.
template <class T>
Accept nan_in_halves() {
  return [](Result wanted, Result got, const Row&) {
    const Format& format = format_of<T>();
    for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); shift += 16) {
      const Bits a = wanted.d >> shift & 0xffff;
      const Bits b = got.d >> shift & 0xffff;
      if (a != b && !(is_nan(a, format) && is_nan(b, format))) return false;
    }
    return true;
  };
}

template <class T>
void signs(Forms& forms, const Modifiers& m) {
  const Format& format = format_of<T>();
  const std::string type = std::string(m.suffix) + "." + type_name<T>();
  add_op<T, T>(forms, "abs" + type, halves<T>(m, [=](Bits a) { return a & ~format.sign(); }), nan_in_halves<T>())
      .target = target_of<T>(80);
  add_op<T, T>(forms, "neg" + type, halves<T>(m, [=](Bits a) { return negated(a, format); }), nan_in_halves<T>())
      .target = target_of<T>(80);
}

template <class T>
void all_of(Forms& forms) {
  constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, f16x2>;
  for (const Modifiers& m : {plain, flushing, clamping, flushing_clamping}) {
    if (!is_half && m.suffix[0] != '\0') continue;
    sums<T>(forms, m);
    fused<T>(forms, m);
    if (m.sat) continue;
    extremes<T>(forms, m);
    signs<T>(forms, m);
  }
  fused<T>(forms, rectifying);
  if (is_half) fused<T>(forms, flushing_rectifying);
}

// ---- comparison

struct Comparison {
  const char* name;
  bool less, equal, greater, none;
};
constexpr Comparison comparisons[] = {
    {"eq", false, true, false, false}, {"ne", true, false, true, false},   {"lt", true, false, false, false},
    {"le", true, true, false, false},  {"gt", false, false, true, false},  {"ge", false, true, true, false},
    {"equ", false, true, false, true}, {"neu", true, false, true, true},   {"ltu", true, false, false, true},
    {"leu", true, true, false, true},  {"gtu", false, false, true, true},  {"geu", false, true, true, true},
    {"num", true, true, true, false},  {"nan", false, false, false, true},
};

bool holds(const Comparison& comparison, Bits a, Bits b, const Format& format) {
  if (is_nan(a, format) || is_nan(b, format)) return comparison.none;
  const float x = as_float(converted(a, format, single, Round::Nearest));
  const float y = as_float(converted(b, format, single, Round::Nearest));
  return x < y ? comparison.less : x > y ? comparison.greater : comparison.equal;
}

template <class T>
void compared(Forms& forms, const Comparison& comparison) {
  const Format& format = format_of<T>();
  const unsigned target = target_of<T>(90);
  const Bits one = static_cast<Bits>(format.most) << format.fraction();
  const std::string type = type_name<T>();
  const std::string head = std::string(comparison.name) + ".";
  const auto truth = [=](Bits yes) {
    return halves<T>(plain, [=](Bits a, Bits b) { return holds(comparison, a, b, format) ? yes : 0; });
  };
  if constexpr (is_pair<T>) {
    add_text<u32, T, T>(forms, "setp." + head + type,
                        "setp." + head + type +
                            " %p1|%p2, %a, %b; selp.u32 %d, 1, 0, %p1; selp.u32 %r1, 2, 0, %p2; "
                            "or.b32 %d, %d, %r1;",
                        [=](T a, T b) {
                          return u32{holds(comparison, a.bits & 0xffff, b.bits & 0xffff, format)} |
                                 u32{holds(comparison, a.bits >> 16, b.bits >> 16, format)} << 1;
                        })
        .target = target;
    add_op<T, T, T>(forms, "set." + head + type + "." + type, truth(one)).target = target;
    add_op<T, T, T>(forms, "set." + head + "u32." + type, truth(0xffff)).target = target;
  } else {
    add_test<T, T>(forms, "setp." + head + type, [=](T a, T b) {
      return holds(comparison, a.bits, b.bits, format);
    }).target = target;
    add_op<T, T, T>(forms, "set." + head + type + "." + type, truth(one)).target = target;
    add_op<u16, T, T>(forms, "set." + head + "u16." + type, [=](T a, T b) {
      return static_cast<u16>(holds(comparison, a.bits, b.bits, format) ? 0xffff : 0);
    }).target = target;
    add_op<u32, T, T>(forms, "set." + head + "u32." + type, [=](T a, T b) {
      return holds(comparison, a.bits, b.bits, format) ? ~u32{0} : 0;
    }).target = target;
  }
}

// ---- functions with an error bound

template <class T>
void approximate(Forms& forms, const std::string& opcode, long double (*f)(long double), long double bound, bool ftz,
                 unsigned target) {
  const Format& format = format_of<T>();
  const Modifiers m{"", ftz, false, false};
  const auto exact = [=](Bits a) {
    return f(static_cast<long double>(as_float(converted(a, format, single, Round::Nearest))));
  };
  const auto one = [=](Bits a) {
    return is_nan(a, format) ? canonical_nan(format)
                             : converted(from_float(static_cast<float>(exact(a))), single, format, Round::Nearest);
  };
  const Accept close = [=](Result, Result got, const Row& row) {
    for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); shift += 16) {
      const Bits from = row.in[0] >> shift & 0xffff;
      const Bits a = ftz ? flushed(from, format) : from;
      const Bits given = got.d >> shift & 0xffff;
      const long double wanted = is_nan(a, format) ? 0 : exact(a);
      if (is_nan(a, format) != is_nan(given, format)) return false;
      if (is_nan(a, format)) continue;
      const long double value = static_cast<long double>(as_float(converted(given, format, single, Round::Nearest)));
      const long double least = std::ldexp(1.0L, ftz ? format.least : format.least - format.fraction());
      if (std::isinf(value) || std::isinf(wanted)) {
        if (!std::isinf(value) || std::abs(wanted) < std::ldexp(0.99L, format.most + 1)) return false;
        continue;
      }
      if (std::abs(value - wanted) > std::max(bound * std::abs(wanted), 1.01L * least)) return false;
    }
    return true;
  };
  add_op<T, T>(forms, opcode + "." + type_name<T>(), halves<T>(m, one), close).target = target;
}

void functions(Forms& forms) {
  const auto power = [](long double a) { return std::exp2(a); };
  const auto tangent = [](long double a) { return std::tanh(a); };
  approximate<f16>(forms, "ex2.approx", power, 0x1p-9L, false, 75);
  approximate<f16x2>(forms, "ex2.approx", power, 0x1p-9L, false, 75);
  approximate<bf16>(forms, "ex2.approx.ftz", power, 0x1p-7L, true, 90);
  approximate<bf16x2>(forms, "ex2.approx.ftz", power, 0x1p-7L, true, 90);
  approximate<f16>(forms, "tanh.approx", tangent, 0x1p-10L, false, 75);
  approximate<f16x2>(forms, "tanh.approx", tangent, 0x1p-10L, false, 75);
  approximate<bf16>(forms, "tanh.approx", tangent, 0x1p-7L, false, 90);
  approximate<bf16x2>(forms, "tanh.approx", tangent, 0x1p-7L, false, 90);
}

}  // namespace

void half_forms(Forms& forms) {
  all_of<f16>(forms);
  all_of<f16x2>(forms);
  all_of<bf16>(forms);
  all_of<bf16x2>(forms);
  for (const Comparison& comparison : comparisons) {
    compared<f16>(forms, comparison);
    compared<f16x2>(forms, comparison);
    compared<bf16>(forms, comparison);
    compared<bf16x2>(forms, comparison);
  }
  functions(forms);
}

}  // namespace ptx_forms
