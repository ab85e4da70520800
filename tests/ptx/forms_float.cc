// Forms of single and double precision arithmetic in every rounding mode, with and without flushing and saturation, and
// of the functions with an error bound.
#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

struct Mode {
  const char* suffix;
  Round round;
};
constexpr Mode modes[] = {{".rn", Round::Nearest}, {".rz", Round::Zero}, {".rm", Round::Down}, {".rp", Round::Up}};

// The effect of PTX's modifiers on operands and result.
struct Modifiers {
  bool ftz = false;
  bool sat = false;
  std::string suffix() const { return std::string(ftz ? ".ftz" : "") + (sat ? ".sat" : ""); }
};

template <class T>
Bits clamped(Bits bits) {
  const Format& format = format_of<T>();
  const Bits one = static_cast<Bits>(format.most) << format.fraction();
  if (is_nan(bits, format) || (bits & format.sign()) != 0) return 0;
  return bits > one ? one : bits;
}

// Double precision may yield any NaN, single precision yields the canonical NaN.
template <class T>
Accept nan_rule() {
  return std::is_same_v<T, f64> ? any_nan(twice) : nullptr;
}
template <class T>
Accept rule(Modifiers m) {
  return m.ftz ? flushed_least(format_of<T>(), 8 * sizeof(T)) : nan_rule<T>();
}

template <class T, class F>
auto modified(Modifiers m, F f) {
  return [m, f](auto... values) {
    const Format& format = format_of<T>();
    Bits result = m.ftz ? f(flushed(values.bits, format)...) : f(Bits{values.bits}...);
    if (m.ftz) result = flushed(result, format);
    if (m.sat) result = clamped<T>(result);
    return value_of<T>(result);
  };
}

template <class T>
std::vector<Modifiers> modifiers(bool with_sat) {
  if (std::is_same_v<T, f64>) return {{}};
  if (!with_sat) return {{}, {true, false}};
  return {{}, {true, false}, {false, true}, {true, true}};
}

template <class T>
void sums(Forms& forms, const Mode& mode, const std::string& rounding) {
  const Format& format = format_of<T>();
  const Round round = mode.round;
  const std::string type = std::string(".") + type_name<T>();
  for (const Modifiers m : modifiers<T>(true)) {
    const std::string rest = rounding + m.suffix() + type;
    add_op<T, T, T>(forms, "add" + rest, modified<T>(m, [=](Bits a, Bits b) { return add(a, b, format, round); }),
                    rule<T>(m));
    add_op<T, T, T>(forms, "sub" + rest,
                    modified<T>(m, [=](Bits a, Bits b) { return add(a, negated(b, format), format, round); }),
                    rule<T>(m));
    add_op<T, T, T>(forms, "mul" + rest, modified<T>(m, [=](Bits a, Bits b) { return multiply(a, b, format, round); }),
                    rule<T>(m));
    if (rounding.empty()) continue;
    add_op<T, T, T, T>(forms, "fma" + rest,
                       modified<T>(m, [=](Bits a, Bits b, Bits c) { return multiply_add(a, b, c, format, round); }),
                       rule<T>(m));
  }
}

template <class T>
void quotients(Forms& forms, const Mode& mode) {
  const Format& format = format_of<T>();
  const Round round = mode.round;
  const Bits one = static_cast<Bits>(format.most) << format.fraction();
  for (const Modifiers m : modifiers<T>(false)) {
    const std::string rest = mode.suffix + m.suffix() + "." + type_name<T>();
    add_op<T, T, T>(forms, "div" + rest, modified<T>(m, [=](Bits a, Bits b) { return divide(a, b, format, round); }),
                    rule<T>(m));
    add_op<T, T>(forms, "rcp" + rest, modified<T>(m, [=](Bits a) { return divide(one, a, format, round); }),
                 rule<T>(m));
    add_op<T, T>(forms, "sqrt" + rest, modified<T>(m, [=](Bits a) { return square_root(a, format, round); }),
                 rule<T>(m));
  }
}

// -0 is less than +0. If one operand is a NaN, the result is the other operand unless `nan` is set.
template <class T>
Bits smaller(Bits a, Bits b, bool larger, bool nan) {
  const Format& format = format_of<T>();
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
void extremes(Forms& forms) {
  for (const bool larger : {false, true}) {
    for (const bool nan : {false, true}) {
      if (nan && std::is_same_v<T, f64>) continue;
      for (const Modifiers m : modifiers<T>(false)) {
        const std::string opcode =
            std::string(larger ? "max" : "min") + m.suffix() + (nan ? ".NaN." : ".") + type_name<T>();
        add_op<T, T, T>(forms, opcode, modified<T>(m, [=](Bits a, Bits b) { return smaller<T>(a, b, larger, nan); }),
                        nan_rule<T>())
            .target = nan ? 80 : 75;
      }
    }
  }
}

// The result is the extreme of the magnitudes, with the sign of the product.
void extreme_sizes(Forms& forms) {
  for (const bool larger : {false, true}) {
    for (const bool nan : {false, true}) {
      for (const Modifiers m : modifiers<f32>(false)) {
        const std::string opcode =
            std::string(larger ? "max" : "min") + m.suffix() + (nan ? ".NaN" : "") + ".xorsign.abs.f32";
        add_op<f32, f32, f32>(forms, opcode,
                              modified<f32>(m,
                                            [=](Bits a, Bits b) {
                                              const Bits size =
                                                  smaller<f32>(a & 0x7fff'ffff, b & 0x7fff'ffff, larger, nan);
                                              return is_nan(size, single) ? size : size | ((a ^ b) & single.sign());
                                            }))
            .target = 86;
      }
    }
  }
}

template <class T>
void signs(Forms& forms) {
  const Format& format = format_of<T>();
  for (const Modifiers m : modifiers<T>(false)) {
    const std::string rest = m.suffix() + "." + type_name<T>();
    add_op<T, T>(forms, "abs" + rest, modified<T>(m, [=](Bits a) { return a & ~format.sign(); }), any_nan(format));
    add_op<T, T>(forms, "neg" + rest, modified<T>(m, [=](Bits a) { return negated(a, format); }), any_nan(format));
  }
  add_op<T, T, T>(forms, std::string("copysign.") + type_name<T>(),
                  [=](T a, T b) { return value_of<T>((a.bits & format.sign()) | (b.bits & ~format.sign())); });
}

template <class T>
void tests(Forms& forms) {
  const Format& format = format_of<T>();
  const auto test = [&](const std::string& what, auto f) {
    add_test<T>(forms, "testp." + what + "." + type_name<T>(),
                [=](T a) { return f(Bits{a.bits & (format.sign() - 1)}); });
  };
  test("finite", [=](Bits a) { return a < format.infinity(); });
  test("infinite", [=](Bits a) { return a == format.infinity(); });
  test("number", [=](Bits a) { return a <= format.infinity(); });
  test("notanumber", [=](Bits a) { return a > format.infinity(); });
  // On an H200 zero is normal. PTX does not define this.
  test("normal", [=](Bits a) { return a == 0 || (a < format.infinity() && a >= Bits{1} << format.fraction()); });
  test("subnormal", [=](Bits a) { return a != 0 && a < Bits{1} << format.fraction(); });
}

// Each single of a pair is computed separately. The forms need compute capability 10.0.
void pairs(Forms& forms, const Mode& mode) {
  const Round round = mode.round;
  for (const bool ftz : {false, true}) {
    const std::string rest = std::string(mode.suffix) + (ftz ? ".ftz" : "") + ".f32x2";
    const Accept accept = ftz ? flushed_least(single, 64) : nullptr;
    const auto both = [ftz](auto f) {
      return [ftz, f](auto... values) {
        const Modifiers m{ftz, false};
        const Bits low = modified<f32>(m, f)(f32{static_cast<u32>(values.bits)}...).bits;
        const Bits high = modified<f32>(m, f)(f32{static_cast<u32>(values.bits >> 32)}...).bits;
        return f32x2{high << 32 | low};
      };
    };
    using P = f32x2;
    add_op<P, P, P>(forms, "add" + rest, both([=](Bits a, Bits b) { return add(a, b, single, round); }), accept)
        .target = 100;
    add_op<P, P, P>(forms, "mul" + rest, both([=](Bits a, Bits b) { return multiply(a, b, single, round); }), accept)
        .target = 100;
    add_op<P, P, P, P>(forms, "fma" + rest,
                       both([=](Bits a, Bits b, Bits c) { return multiply_add(a, b, c, single, round); }), accept)
        .target = 100;
  }
}

// Each instruction uses its own rounding mode and flushing, independent of the previous instruction's.
void mode_changes(Forms& forms) {
  const auto sum = [](Round round, bool ftz) {
    return modified<f32>({ftz, false}, [=](Bits a, Bits b) { return add(a, b, single, round); });
  };
  add_text<f32, f32, f32>(forms, "add.f32", "add.rp.ftz.f32 %f1, %a, %b; add.f32 %d, %a, %b;",
                          sum(Round::Nearest, false));
  add_text<f32, f32, f32>(forms, "add.rz.f32", "add.rp.ftz.f32 %f1, %a, %b; add.rz.f32 %d, %a, %b;",
                          sum(Round::Zero, false));
}

template <class T>
void all_of(Forms& forms) {
  for (const Mode& mode : modes) {
    sums<T>(forms, mode, mode.suffix);
    quotients<T>(forms, mode);
  }
  sums<T>(forms, modes[0], "");
  extremes<T>(forms);
  signs<T>(forms);
  tests<T>(forms);
}

}  // namespace

void float_forms(Forms& forms) {
  all_of<f32>(forms);
  all_of<f64>(forms);
  extreme_sizes(forms);
  mode_changes(forms);
  for (const Mode& mode : modes) pairs(forms, mode);
}

// ---- functions with an error bound

namespace {

using Function = std::function<long double(long double)>;

struct Bound {
  long double relative = 0;
  long double absolute = 0;
  long double least = 0;  // smallest magnitude of arguments to which the bounds apply
  long double most = std::numeric_limits<long double>::infinity();
};

// Results for zeros and infinities must be equal in every bit. All other results must be within the bound around the
// exact value. For subnormal results, the unit in the last place is the smallest subnormal number.
Accept near(Function f, std::vector<Bound> bounds, bool ftz) {
  return [=](Result wanted, Result got, const Row& row) {
    if (any_nan(single)(wanted, got, row)) return true;
    const float a = as_float(ftz ? flushed(row.in[0], single) : row.in[0]);
    const float given = as_float(got.d);
    if (std::isnan(a) || std::isnan(given) || a == 0 || std::isinf(a)) return false;
    if (ftz && is_subnormal(got.d, single)) return false;
    const long double exact = f(static_cast<long double>(a));
    if (std::isnan(exact) || (std::isinf(given) && std::isfinite(exact))) return false;
    const long double size = std::abs(static_cast<long double>(a));
    const long double tiny = std::abs(exact) < 0x1p-126L ? (ftz ? 0x1p-126L : 0x1p-148L) : 0;
    for (const Bound& bound : bounds) {
      if (size < bound.least || size > bound.most) continue;
      const long double limit = std::max({bound.relative * std::abs(exact), bound.absolute, tiny});
      return std::abs(static_cast<long double>(given) - exact) <= limit;
    }
    return true;
  };
}

void approximate(Forms& forms, const std::string& opcode, const Function& f, const std::vector<Bound>& bounds,
                 bool ftz) {
  const auto reference = [=](f32 a) {
    const Bits from = ftz ? flushed(a.bits, single) : a.bits;
    if (is_nan(from, single)) return f32{0x7fff'ffff};
    const auto value = static_cast<float>(f(static_cast<long double>(as_float(from))));
    if (std::isnan(value)) return f32{0x7fff'ffff};
    return f32{static_cast<u32>(ftz ? flushed(from_float(value), single) : from_float(value))};
  };
  Form& form = add_op<f32, f32>(forms, opcode, reference, near(f, bounds, ftz));
  // Adds arguments between 2^-20 and 2^8 of both signs, the range in which the function is not constant.
  for (int k = 0; k < 2000; ++k) {
    const Bits random = next_random();
    form.rows.push_back({{(random & 0x807f'ffff) | (127 - 20 + (random >> 40) % 28) << 23, 0, 0}});
  }
}

void unary(Forms& forms) {
  const long double ulp = 0x1p-23L;
  const auto each = [&](const std::string& name, const Function& f, const std::vector<Bound>& bounds) {
    approximate(forms, name + ".approx.f32", f, bounds, false);
    approximate(forms, name + ".approx.ftz.f32", f, bounds, true);
  };
  const auto log2 = [](long double a) { return std::log2(a); };
  each("ex2", [](long double a) { return std::exp2(a); }, {{2.5L * ulp}});
  each("lg2", log2, {{0, 0x1p-22L, 0.5L, 2}, {0x1.1p-22L, 0}});
  each("sin", [](long double a) { return std::sin(a); }, {{0, 0x1p-20L, 0, 6.283185L}, {0, 0x1p-14L, 0, 314.159L}});
  each("cos", [](long double a) { return std::cos(a); }, {{0, 0x1p-20L, 0, 6.283185L}, {0, 0x1p-14L, 0, 314.159L}});
  each("rcp", [](long double a) { return 1 / a; }, {{1.5L * ulp}});
  each("sqrt", [](long double a) { return std::sqrt(a); }, {{1.5L * ulp}});
  each("rsqrt", [](long double a) { return 1 / std::sqrt(a); }, {{1.5L * ulp}});
  approximate(
      forms, "tanh.approx.f32", [](long double a) { return std::tanh(a); }, {{0x1p-11L * 1.1L}}, false);
}

bool in_full_range(Bits b) {
  const float size = std::abs(as_float(b));
  return size >= 0x1p-126F && size <= 0x1p126F;
}

// Accepts an error of two units in the last place if the divisor is neither tiny nor huge. A huge divisor yields zero,
// or NaN for an infinite dividend.
Accept near_quotient(bool full, bool ftz) {
  return [=](Result wanted, Result got, const Row& row) {
    if (any_nan(single)(wanted, got, row)) return true;
    const Bits a = ftz ? flushed(row.in[0], single) : row.in[0];
    const Bits b = ftz ? flushed(row.in[1], single) : row.in[1];
    const float divisor = as_float(b);
    const bool huge = std::abs(divisor) > 0x1p126F && !std::isinf(divisor);
    if (!full && huge) {
      return std::isinf(as_float(a)) ? is_nan(got.d, single) : (got.d & 0x7fff'ffff) == 0;
    }
    if (!full && !in_full_range(b)) return divisor != 0 && !std::isinf(divisor);  // PTX gives no bound here
    const long double exact = static_cast<long double>(as_float(a)) / static_cast<long double>(divisor);
    const long double given = static_cast<long double>(as_float(got.d));
    if (std::isinf(given) && std::abs(exact) < 0x1.fffffap127L) return false;
    const long double tiny = std::abs(exact) < 0x1p-125L ? (ftz ? 0x1p-126L : 0x1p-147L) : 0;
    return std::isinf(given) || std::abs(given - exact) <= std::max(2.5L * 0x1p-23L * std::abs(exact), tiny);
  };
}

void quotient(Forms& forms, const std::string& opcode, bool full, bool ftz) {
  add_op<f32, f32, f32>(
      forms, opcode,
      [=](f32 a, f32 b) {
        Modifiers m{ftz, false};
        return modified<f32>(m, [](Bits x, Bits y) { return divide(x, y, single, Round::Nearest); })(a, b);
      },
      near_quotient(full, ftz));
}

// These instructions give the seed of a Newton iteration. They use only the upper words of argument and result, so the
// upper word alone determines whether the argument is a NaN.
void seeds(Forms& forms) {
  const auto seed = [](bool root) {
    return [root](f64 a) {
      const Bits from = flushed(a.bits & 0xffff'ffff'0000'0000, twice);
      if (is_nan(from, twice)) return f64{0x7fff'ffff'0000'0000};
      const Bits x = root ? square_root(from, twice, Round::Nearest) : from;
      const Bits result = divide(0x3ff0'0000'0000'0000, x, twice, Round::Nearest);
      if (is_nan(result, twice)) return f64{0x7fff'ffff'0000'0000};
      return f64{flushed(result & 0xffff'ffff'0000'0000, twice)};
    };
  };
  const Accept close = [](Result wanted, Result got, const Row&) {
    if (any_nan(twice)(wanted, got, {})) return true;
    const s64 apart = static_cast<s64>(wanted.d >> 32) - static_cast<s64>(got.d >> 32);
    return (got.d & 0xffff'ffff) == 0 && std::abs(apart) <= 2;
  };
  add_op<f64, f64>(forms, "rcp.approx.ftz.f64", seed(false), close);
  add_op<f64, f64>(forms, "rsqrt.approx.ftz.f64", seed(true), close);
}

}  // namespace

void approximate_forms(Forms& forms) {
  unary(forms);
  seeds(forms);
  quotient(forms, "div.approx.f32", false, false);
  quotient(forms, "div.approx.ftz.f32", false, true);
  quotient(forms, "div.full.f32", true, false);
  quotient(forms, "div.full.ftz.f32", true, true);
}

}  // namespace ptx_forms
