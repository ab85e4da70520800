// Floating-point opcodes: arithmetic bit for bit against the processor in the same rounding mode, approximations
// against their bounds, conversions against the rules of the PTX document.
#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/unit/simgpu_ops_fixture.h"

namespace simgpu {
namespace {

template <class T>
std::vector<T> float_edges() {
  using L = std::numeric_limits<T>;
  const T one = 1;
  std::vector<T> values = {0,
                           one,
                           T(1.5),
                           T(2),
                           T(3),
                           T(0.1),
                           T(1e-5),
                           T(1e10),
                           L::min(),
                           L::max(),
                           L::denorm_min(),
                           L::epsilon(),
                           L::infinity(),
                           T(0.49999997),
                           L::min() / 2,
                           one + L::epsilon(),
                           T(12345.678)};
  const std::size_t positive = values.size();
  for (std::size_t k = 0; k < positive; ++k) values.push_back(-values[k]);
  values.push_back(L::quiet_NaN());
  return values;
}

float canonical(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7fff'ffffU) : value; }
double canonical(double value) { return value; }

template <class T>
T flush(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T(0), value) : value;
}

class Rounding {
 public:
  explicit Rounding(int mode) { std::fesetround(mode); }
  ~Rounding() { std::fesetround(FE_TONEAREST); }
};

struct Mode {
  const char* word;
  int rounding;
};
constexpr Mode modes[] = {
    {"", FE_TONEAREST}, {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};

template <class T>
class Floats : public Ops {
 protected:
  static constexpr bool single = sizeof(T) == 4;
  static std::string type() { return single ? ".f32" : ".f64"; }

  // Volatile: the compiler must not compute in a mode of its own.
  template <class F>
  static T in_mode(int rounding, F f, T a, T b, T c = 0) {
    const Rounding guard(rounding);
    volatile T x = a;
    volatile T y = b;
    volatile T z = c;
    volatile T result = f(x, y, z);
    return result;
  }
};

using FloatTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Floats, FloatTypes);

TYPED_TEST(Floats, ArithmeticInEveryRoundingMode) {
  using T = TypeParam;
  const auto check = [&](const std::string& opcode, const Mode& mode, auto f) {
    this->template check2<T, T, T>(opcode + mode.word + this->type() + " %d, %a, %b;", float_edges<T>(),
                                   float_edges<T>(),
                                   [&](T a, T b) { return canonical(this->in_mode(mode.rounding, f, a, b)); });
  };
  for (const Mode& mode : modes) {
    check("add", mode, [](T a, T b, T) { return a + b; });
    check("sub", mode, [](T a, T b, T) { return a - b; });
    check("mul", mode, [](T a, T b, T) { return a * b; });
    if (mode.word[0] == '\0') continue;
    check("div", mode, [](T a, T b, T) { return a / b; });
  }
}

TYPED_TEST(Floats, FusedMultiplyAddRoundsOnce) {
  using T = TypeParam;
  const std::vector<T> few = {T(1.1),
                              T(-3.7),
                              std::numeric_limits<T>::max(),
                              std::numeric_limits<T>::denorm_min(),
                              T(0),
                              std::numeric_limits<T>::infinity(),
                              T(1) + std::numeric_limits<T>::epsilon()};
  for (const Mode& mode : modes) {
    if (mode.word[0] == '\0') continue;
    this->template check3<T, T, T, T>(std::string("fma") + mode.word + this->type() + " %d, %a, %b, %c;", few, few,
                                      float_edges<T>(), [&](T a, T b, T c) {
                                        return canonical(this->in_mode(
                                            mode.rounding, [](T x, T y, T z) { return std::fma(x, y, z); }, a, b, c));
                                      });
  }
}

TYPED_TEST(Floats, RootsAndReciprocals) {
  using T = TypeParam;
  for (const Mode& mode : modes) {
    if (mode.word[0] == '\0') continue;
    this->template check1<T, T>(std::string("sqrt") + mode.word + this->type() + " %d, %a;", float_edges<T>(),
                                [&](T a) {
                                  return canonical(this->in_mode(
                                      mode.rounding, [](T x, T, T) { return std::sqrt(x); }, a, 0));
                                });
    this->template check1<T, T>(std::string("rcp") + mode.word + this->type() + " %d, %a;", float_edges<T>(), [&](T a) {
      return canonical(this->in_mode(
          mode.rounding, [](T x, T, T) { return T(1) / x; }, a, 0));
    });
  }
}

TYPED_TEST(Floats, MinimumAndMaximumPreferNumbers) {
  using T = TypeParam;
  const auto lower = [](T a, T b) { return a == b ? std::signbit(a) : a < b; };
  const auto pick = [&](T a, T b, bool minimum) {
    if (std::isnan(a)) return canonical(b);
    if (std::isnan(b)) return a;
    return lower(a, b) == minimum ? a : b;
  };
  this->template check2<T, T, T>("min" + this->type() + " %d, %a, %b;", float_edges<T>(), float_edges<T>(),
                                 [&](T a, T b) { return pick(a, b, true); });
  this->template check2<T, T, T>("max" + this->type() + " %d, %a, %b;", float_edges<T>(), float_edges<T>(),
                                 [&](T a, T b) { return pick(a, b, false); });
}

TYPED_TEST(Floats, ComparisonsOrderedAndUnordered) {
  using T = TypeParam;
  const auto check = [&](const std::string& word, std::function<bool(T, T)> reference) {
    this->template check2<std::uint32_t, T, T>("setp." + word + this->type() + " %p1, %a, %b; selp.u32 %d, 1, 0, %p1;",
                                               float_edges<T>(), float_edges<T>(),
                                               [&](T a, T b) { return std::uint32_t{reference(a, b)}; });
  };
  const auto nan = [](T a, T b) { return std::isnan(a) || std::isnan(b); };
  check("eq", [](T a, T b) { return a == b; });
  check("ne", [&](T a, T b) { return !nan(a, b) && a != b; });
  check("lt", [](T a, T b) { return a < b; });
  check("le", [](T a, T b) { return a <= b; });
  check("gt", [](T a, T b) { return a > b; });
  check("ge", [](T a, T b) { return a >= b; });
  check("equ", [&](T a, T b) { return nan(a, b) || a == b; });
  check("neu", [&](T a, T b) { return nan(a, b) || a != b; });
  check("ltu", [&](T a, T b) { return nan(a, b) || a < b; });
  check("leu", [&](T a, T b) { return nan(a, b) || a <= b; });
  check("gtu", [&](T a, T b) { return nan(a, b) || a > b; });
  check("geu", [&](T a, T b) { return nan(a, b) || a >= b; });
  check("num", [&](T a, T b) { return !nan(a, b); });
  check("nan", nan);
}

TYPED_TEST(Floats, SignsAndTests) {
  using T = TypeParam;
  std::vector<T> numbers = float_edges<T>();
  numbers.pop_back();  // a NaN's sign is nobody's business
  this->template check1<T, T>("abs" + this->type() + " %d, %a;", numbers, [](T a) { return std::fabs(a); });
  this->template check1<T, T>("neg" + this->type() + " %d, %a;", numbers, [](T a) { return -a; });
  this->template check2<T, T, T>("copysign" + this->type() + " %d, %a, %b;", numbers, numbers,
                                 [](T a, T b) { return std::copysign(b, a); });
  const auto check = [&](const std::string& word, std::function<bool(T)> reference) {
    this->template check1<std::uint32_t, T>("testp." + word + this->type() + " %p1, %a; selp.u32 %d, 1, 0, %p1;",
                                            float_edges<T>(), [&](T a) { return std::uint32_t{reference(a)}; });
  };
  check("finite", [](T a) { return std::isfinite(a); });
  check("infinite", [](T a) { return std::isinf(a); });
  check("notanumber", [](T a) { return std::isnan(a); });
  check("number", [](T a) { return !std::isnan(a); });
  check("normal", [](T a) { return a == 0 || std::isnormal(a); });
  check("subnormal", [](T a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

class FloatOps : public Ops {};

TEST_F(FloatOps, FlushingTakesSubnormalsForZeros) {
  const std::vector<float> values = float_edges<float>();
  check2<float, float, float>("add.ftz.f32 %d, %a, %b;", values, values,
                              [](float a, float b) { return canonical(flush(flush(a) + flush(b))); });
  check2<float, float, float>("mul.ftz.f32 %d, %a, %b;", values, values,
                              [](float a, float b) { return canonical(flush(flush(a) * flush(b))); });
  check2<std::uint32_t, float, float>("setp.gt.ftz.f32 %p1, %a, %b; selp.u32 %d, 1, 0, %p1;", values, values,
                                      [](float a, float b) { return std::uint32_t{flush(a) > flush(b)}; });
  check1<float, float>("abs.ftz.f32 %d, %a;", {FLT_MIN / 2, -FLT_MIN / 2, -2.0F},
                       [](float a) { return std::fabs(flush(a)); });
  check2<float, float, float>("max.ftz.f32 %d, %a, %b;", {FLT_MIN / 2, FLT_MIN}, {-FLT_MIN / 4, 0.0F},
                              [](float a, float) { return flush(a); });
  // The mode of one instruction is gone with the next.
  check2<float, float, float>("add.ftz.f32 %f1, %a, %b; add.f32 %d, %a, %b;", values, values,
                              [](float a, float b) { return canonical(a + b); });
}

TEST_F(FloatOps, SaturationClampsAndTurnsNanIntoZero) {
  const auto clamp = [](float v) { return v > 0 ? (v < 1 ? v : 1.0F) : 0.0F; };
  const std::vector<float> values = float_edges<float>();
  check2<float, float, float>("add.sat.f32 %d, %a, %b;", values, values,
                              [&](float a, float b) { return clamp(a + b); });
  check2<float, float, float>("mul.sat.f32 %d, %a, %b;", values, values,
                              [&](float a, float b) { return clamp(a * b); });
  check1<float, float>("cvt.sat.f32.f32 %d, %a;", values, clamp);
}

TEST_F(FloatOps, InvalidDoublesAreTheDevicesNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto got =
      eval<std::uint64_t, double, double>("sub.f64 %fd1, %a, %b; mov.b64 %d, %fd1;", {{infinity, infinity}});
  EXPECT_EQ(got[0], 0xfff8'0000'0000'0000U);
}

// ---- approximations -------------------------------------------------------------------------------------------------

std::vector<float> spread(float from, float to, int count) {
  std::vector<float> values;
  for (int k = 0; k <= count; ++k) {
    values.push_back(from + (to - from) * (static_cast<float>(k) / static_cast<float>(count)));
  }
  return values;
}

class Bounds : public Ops {
 protected:
  std::vector<float> run_one(const std::string& opcode, const std::vector<float>& values) {
    std::vector<std::tuple<float>> rows;
    for (const float v : values) rows.emplace_back(v);
    return eval<float>(opcode + " %d, %a;", rows);
  }
  void relative(const std::string& opcode, const std::vector<float>& values, double bound,
                double (*reference)(double)) {
    const std::vector<float> got = run_one(opcode, values);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double wanted = reference(static_cast<double>(values[k]));
      EXPECT_LE(std::abs(static_cast<double>(got[k]) - wanted), bound * std::abs(wanted))
          << opcode << " of " << values[k];
    }
  }
  void absolute(const std::string& opcode, const std::vector<float>& values, double bound,
                double (*reference)(double)) {
    const std::vector<float> got = run_one(opcode, values);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double wanted = reference(static_cast<double>(values[k]));
      EXPECT_NEAR(static_cast<double>(got[k]), wanted, bound) << opcode << " of " << values[k];
    }
  }
  void exactly(const std::string& opcode, const std::vector<std::pair<float, float>>& cases) {
    std::vector<float> values;
    for (const auto& one : cases) values.push_back(one.first);
    const std::vector<float> got = run_one(opcode, values);
    for (std::size_t k = 0; k < cases.size(); ++k) {
      const float wanted = canonical(cases[k].second);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got[k]), std::bit_cast<std::uint32_t>(wanted))
          << opcode << " of " << values[k];
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
};

TEST_F(Bounds, PowersOfTwo) {
  relative("ex2.approx.f32", spread(-126, 127.9F, 9973), 0x1p-22, [](double x) { return std::exp2(x); });
  absolute("ex2.approx.f32", spread(-160, -126, 997), 0x1p-148, [](double x) { return std::exp2(x); });
  exactly("ex2.approx.f32",
          {{-infinity, 0.0F}, {infinity, infinity}, {0.0F, 1.0F}, {-0.0F, 1.0F}, {nan, nan}, {200, infinity}, {3, 8}});
  exactly("ex2.approx.ftz.f32", {{-127.0F, 0.0F}, {FLT_MIN / 2, 1.0F}, {-126.0F, FLT_MIN}});
}

TEST_F(Bounds, Logarithms) {
  absolute("lg2.approx.f32", spread(0.5F, 2.0F, 9973), 0x1p-22, [](double x) { return std::log2(x); });
  relative("lg2.approx.f32", spread(2.0F, 3e38F, 997), 0x1p-22, [](double x) { return std::log2(x); });
  relative("lg2.approx.f32", spread(FLT_MIN / 8, 1e-20F, 997), 0x1p-22, [](double x) { return std::log2(x); });
  exactly("lg2.approx.f32", {{0.0F, -infinity},
                             {-0.0F, -infinity},
                             {infinity, infinity},
                             {-1.0F, nan},
                             {-infinity, nan},
                             {nan, nan},
                             {8.0F, 3.0F},
                             {1.0F, 0.0F}});
  exactly("lg2.approx.ftz.f32", {{FLT_MIN / 2, -infinity}});
}

TEST_F(Bounds, SinesAndCosines) {
  const auto sine = [](double x) { return std::sin(x); };
  const auto cosine = [](double x) { return std::cos(x); };
  absolute("sin.approx.f32", spread(-6.3F, 6.3F, 9973), 0x1p-20, sine);
  absolute("cos.approx.f32", spread(-6.3F, 6.3F, 9973), 0x1p-20, cosine);
  absolute("sin.approx.f32", spread(-314, 314, 9973), 0x1p-14, sine);
  absolute("cos.approx.f32", spread(-314, 314, 9973), 0x1p-14, cosine);
  exactly("sin.approx.f32", {{0.0F, 0.0F}, {-0.0F, -0.0F}, {infinity, nan}, {-infinity, nan}, {nan, nan}});
  exactly("cos.approx.f32", {{0.0F, 1.0F}, {infinity, nan}});
}

TEST_F(Bounds, RootsReciprocalsAndTanh) {
  relative("rsqrt.approx.f32", spread(1e-30F, 1e30F, 9973), std::exp2(-22.9),
           [](double x) { return 1 / std::sqrt(x); });
  relative("sqrt.approx.f32", spread(1e-30F, 1e30F, 9973), 0x1p-23, [](double x) { return std::sqrt(x); });
  relative("rcp.approx.f32", spread(0.001F, 1e30F, 9973), 0x1p-23, [](double x) { return 1 / x; });
  relative("tanh.approx.f32", spread(-12, 12, 9973), 0x1p-11, [](double x) { return std::tanh(x); });
  exactly("rsqrt.approx.f32", {{0.0F, infinity}, {-0.0F, -infinity}, {infinity, 0.0F}, {-1.0F, nan}});
  exactly("sqrt.approx.f32", {{-0.0F, -0.0F}, {-1.0F, nan}, {infinity, infinity}});
  exactly("rcp.approx.f32", {{-infinity, -0.0F}, {-0.0F, -infinity}, {0.0F, infinity}, {infinity, 0.0F}});
  exactly("tanh.approx.f32", {{infinity, 1.0F}, {-infinity, -1.0F}, {0x1p-140F, 0x1p-140F}});
}

TEST_F(Bounds, ApproximateDivisionFlushesHugeDivisors) {
  const auto got = eval<float, float, float>(
      "div.approx.f32 %d, %a, %b;", {{10.0F, 4.0F}, {1.0F, -0x1p127F}, {infinity, 0x1.8p126F}, {3.0F, infinity}});
  EXPECT_EQ(got[0], 2.5F);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(got[1]), 0x8000'0000U);
  EXPECT_TRUE(std::isnan(got[2]));
  EXPECT_EQ(got[3], 0.0F);
  const auto full = eval<float, float, float>("div.full.f32 %d, %a, %b;", {{1.0F, 0x1p127F}, {7.0F, 2.0F}});
  EXPECT_EQ(full[0], 0x1p-127F);
  EXPECT_EQ(full[1], 3.5F);
}

TEST_F(FloatOps, ReciprocalSeedsOfDoublesUseTheUpperWord) {
  const std::vector<double> values = {3.0, 0.1, 1e300, -7.7, 0x1.fffffffffffffp0};
  for (const double x : values) {
    const double got = eval<double, double>("rcp.approx.ftz.f64 %d, %a;", {{x}})[0];
    EXPECT_EQ(std::bit_cast<std::uint64_t>(got) & 0xffff'ffff, 0u);
    EXPECT_NEAR(got * x, 1.0, 0x1p-18);
    if (x < 0) continue;
    const double root = eval<double, double>("rsqrt.approx.ftz.f64 %d, %a;", {{x}})[0];
    EXPECT_EQ(std::bit_cast<std::uint64_t>(root) & 0xffff'ffff, 0u);
    EXPECT_NEAR(root * root * x, 1.0, 0x1p-17);
  }
  const auto special = eval<double, double>("rcp.approx.ftz.f64 %d, %a;", {{1e-310}, {-1e-310}, {NAN}, {-INFINITY}});
  EXPECT_EQ(special[0], INFINITY);
  EXPECT_EQ(special[1], -INFINITY);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(special[2]), 0x7fff'ffff'0000'0000U);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(special[3]), 0x8000'0000'0000'0000U);
}

// ---- conversions ----------------------------------------------------------------------------------------------------

template <class To, class From>
To to_integer(From value, int rounding) {
  if (std::isnan(value)) {
    const bool wide = sizeof(From) == 8 || sizeof(To) == 8;
    return wide ? static_cast<To>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1)) : To{0};
  }
  const Rounding guard(rounding);
  volatile From source = value;
  const long double whole = std::nearbyint(static_cast<long double>(source));
  if (whole < static_cast<long double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (whole > static_cast<long double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(whole);
}

TEST_F(FloatOps, FloatsBecomeIntegersAndClamp) {
  static constexpr Mode integral[] = {
      {"rni", FE_TONEAREST}, {"rzi", FE_TOWARDZERO}, {"rmi", FE_DOWNWARD}, {"rpi", FE_UPWARD}};
  const auto check = [&](auto to_tag, auto from_tag) {
    using To = decltype(to_tag);
    using From = decltype(from_tag);
    std::vector<From> values = float_edges<From>();
    for (const double v : {0.5, 1.5, 2.5, -0.5, -1.5, 255.5, 32767.5, 65535.5, 2147483647.0, 2147483648.0, 4294967295.5,
                           9.2e18, 1.8446744073709552e19, -2147483648.5}) {
      values.push_back(static_cast<From>(v));
    }
    for (const Mode& mode : integral) {
      const std::string body = std::string("cvt.") + mode.word + (std::is_signed_v<To> ? ".s" : ".u") +
                               std::to_string(8 * sizeof(To)) + (sizeof(From) == 4 ? ".f32" : ".f64") + " %d, %a;";
      check1<To, From>(body, values, [&](From a) { return to_integer<To>(a, mode.rounding); });
    }
  };
  check(std::uint16_t{}, float{});
  check(std::int16_t{}, double{});
  check(std::uint32_t{}, float{});
  check(std::int32_t{}, float{});
  check(std::uint32_t{}, double{});
  check(std::int32_t{}, double{});
  check(std::uint64_t{}, float{});
  check(std::int64_t{}, float{});
  check(std::uint64_t{}, double{});
  check(std::int64_t{}, double{});
}

TEST_F(FloatOps, IntegersBecomeFloatsInEveryMode) {
  const auto check = [&](auto to_tag, auto from_tag) {
    using To = decltype(to_tag);
    using From = decltype(from_tag);
    for (const Mode& mode : modes) {
      if (mode.word[0] == '\0') continue;
      const std::string body = std::string("cvt") + mode.word + (sizeof(To) == 4 ? ".f32" : ".f64") +
                               (std::is_signed_v<From> ? ".s" : ".u") + std::to_string(8 * sizeof(From)) + " %d, %a;";
      check1<To, From>(body, edges<From>(), [&](From a) {
        const Rounding guard(mode.rounding);
        volatile From source = a;
        volatile To result = static_cast<To>(source);
        return To{result};
      });
    }
  };
  check(float{}, std::uint16_t{});
  check(float{}, std::int16_t{});
  check(float{}, std::uint32_t{});
  check(float{}, std::int32_t{});
  check(float{}, std::uint64_t{});
  check(float{}, std::int64_t{});
  check(double{}, std::uint32_t{});
  check(double{}, std::int32_t{});
  check(double{}, std::uint64_t{});
  check(double{}, std::int64_t{});
}

TEST_F(FloatOps, BetweenSinglesAndDoubles) {
  std::vector<double> values = float_edges<double>();
  for (const double v : {1.0000000596046448, 1e-40, 3.5e38, 1e-46, -1.00000017881393433}) values.push_back(v);
  for (const Mode& mode : modes) {
    if (mode.word[0] == '\0') continue;
    check1<float, double>(std::string("cvt") + mode.word + ".f32.f64 %d, %a;", values, [&](double a) {
      const Rounding guard(mode.rounding);
      volatile double source = a;
      volatile float result = static_cast<float>(source);
      return canonical(float{result});
    });
  }
  std::vector<float> singles = float_edges<float>();
  singles.pop_back();
  check1<double, float>("cvt.f64.f32 %d, %a;", singles, [](float a) { return double{a}; });
  check1<double, float>("cvt.ftz.f64.f32 %d, %a;", singles, [](float a) { return double{flush(a)}; });
  check1<float, float>("cvt.rni.f32.f32 %d, %a;", singles, [](float a) { return std::nearbyint(a); });
  check1<float, float>("cvt.rmi.f32.f32 %d, %a;", singles, [](float a) { return std::floor(a); });
  check1<double, double>("cvt.rpi.f64.f64 %d, %a;", {1.2, -1.2, -0.2, 1e300}, [](double a) { return std::ceil(a); });
  check1<double, double>("cvt.rzi.f64.f64 %d, %a;", {1.7, -1.7, -0.2, 1e300}, [](double a) { return std::trunc(a); });
}

// ---- halves ---------------------------------------------------------------------------------------------------------

double half_value(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST_F(FloatOps, EveryHalfSurvivesTheWayThroughASingle) {
  std::vector<std::tuple<std::uint16_t>> all;
  for (std::uint32_t k = 0; k < 65536; ++k) all.emplace_back(static_cast<std::uint16_t>(k));
  const auto wide = eval<float>("cvt.f32.f16 %d, %a;", all);
  const auto back = eval<std::uint16_t>("cvt.f32.f16 %f1, %a; cvt.rn.f16.f32 %d, %f1;", all);
  for (std::uint32_t k = 0; k < 65536; ++k) {
    const double wanted = half_value(static_cast<std::uint16_t>(k));
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(wide[k])) << k;
      ASSERT_EQ(back[k], 0x7fff) << k;
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide[k]), wanted) << k;
    ASSERT_EQ(back[k], k);
  }
}

TEST_F(FloatOps, SinglesRoundToTheNearestHalf) {
  std::vector<std::tuple<float>> rows;
  for (int k = 0; k < 20'000; ++k) {
    rows.emplace_back(std::ldexp(1.0F + static_cast<float>(k * 7919 % 8192) / 8192.0F, k % 42 - 26) *
                      (k % 2 == 0 ? 1.0F : -1.0F));
  }
  const auto got = eval<std::uint16_t>("cvt.rn.f16.f32 %d, %a;", rows);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double x = static_cast<double>(std::get<0>(rows[k]));
    const std::uint16_t bits = got[k];
    if (std::abs(x) >= 65520) {
      ASSERT_EQ(bits & 0x7fff, 0x7c00) << x;
      continue;
    }
    const double error = std::abs(half_value(bits) - x);
    const double above = std::abs(half_value(static_cast<std::uint16_t>(bits + 1)) - x);
    ASSERT_LE(error, above) << x;
    if ((bits & 0x7fff) != 0) {
      const double below = std::abs(half_value(static_cast<std::uint16_t>(bits - 1)) - x);
      ASSERT_LE(error, below) << x;
      if (error == below || error == above) {
        ASSERT_EQ(bits & 1, 0) << "ties go to even: " << x;
      }
    }
  }
}

TEST_F(FloatOps, PairsOfHalves) {
  // 1.5 and -2 packed; products and sums of both at once.
  const auto got =
      eval<std::uint32_t, std::uint32_t, std::uint32_t>("fma.rn.f16x2 %d, %a, %b, %a;", {{0xc000'3e00, 0x4000'3800}});
  EXPECT_EQ(half_value(static_cast<std::uint16_t>(got[0])), 1.5 * 0.5 + 1.5);
  EXPECT_EQ(half_value(static_cast<std::uint16_t>(got[0] >> 16)), -2.0 * 2 - 2);
  const auto packed = eval<std::uint32_t, float, float>("cvt.rn.f16x2.f32 %d, %a, %b;", {{1.0F, -2.0F}});
  EXPECT_EQ(packed[0], 0x3c00'c000U);
  const auto brain = eval<std::uint16_t, float>("cvt.rn.bf16.f32 %d, %a;", {{1.0F}, {3.14159F}, {-INFINITY}});
  EXPECT_EQ(brain[0], 0x3f80);
  EXPECT_EQ(brain[1], 0x4049);
  EXPECT_EQ(brain[2], 0xff80);
}

}  // namespace
}  // namespace simgpu
