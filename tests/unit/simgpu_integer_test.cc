// Integer opcodes against plain arithmetic in wider types or bit by bit.
#include <bit>
#include <limits>

#include "tests/unit/simgpu_ops_fixture.h"

namespace simgpu {
namespace {

using Wide = __int128;
// Wide enough for a product of two, of the same signedness: 64 bits unsigned squared do not fit Wide.
template <class T>
using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

template <class T>
class Integers : public Ops {
 protected:
  // "add" -> "add.s32 %d, %a, %b;"
  static std::string two(const std::string& opcode) { return opcode + "." + name() + " %d, %a, %b;"; }
  static std::string one(const std::string& opcode) { return opcode + "." + name() + " %d, %a;"; }
  static std::string three(const std::string& opcode) { return opcode + "." + name() + " %d, %a, %b, %c;"; }
  static std::string name() { return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T)); }
  void check(const std::string& opcode, std::function<T(T, T)> reference) {
    this->template check2<T, T, T>(two(opcode), edges<T>(), edges<T>(), reference);
  }
};

using Types = ::testing::Types<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>;
TYPED_TEST_SUITE(Integers, Types);

TYPED_TEST(Integers, SumsAndProductsWrap) {
  using T = TypeParam;
  this->check("add", [](T a, T b) { return static_cast<T>(Wide{a} + b); });
  this->check("sub", [](T a, T b) { return static_cast<T>(Wide{a} - b); });
  this->check("mul.lo",
              [](T a, T b) { return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); });
  this->check("mul.hi", [](T a, T b) {
    return static_cast<T>((static_cast<Product<T>>(a) * static_cast<Product<T>>(b)) >> (8 * sizeof(T)));
  });
}

TYPED_TEST(Integers, MultiplyAddTakesLowOrHighHalf) {
  using T = TypeParam;
  const std::vector<T> few = {
      0, 1, 77, static_cast<T>(-5), std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
  this->template check3<T, T, T, T>(this->three("mad.lo"), few, few, few, [](T a, T b, T c) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) +
                          static_cast<std::uint64_t>(c));
  });
  this->template check3<T, T, T, T>(this->three("mad.hi"), few, few, few, [](T a, T b, T c) {
    return static_cast<T>(((static_cast<Product<T>>(a) * static_cast<Product<T>>(b)) >> (8 * sizeof(T))) +
                          static_cast<Product<T>>(c));
  });
  this->template check3<T, T, T, T>(this->three("sad"), few, few, few, [](T a, T b, T c) {
    return static_cast<T>((a > b ? Wide{a} - b : Wide{b} - a) + c);
  });
}

TYPED_TEST(Integers, QuotientsAndRemaindersFollowTheDividend) {
  using T = TypeParam;
  std::vector<T> divisors;
  for (const T b : edges<T>()) {
    if (b != 0) divisors.push_back(b);
  }
  this->template check2<T, T, T>(this->two("div"), edges<T>(), divisors,
                                 [](T a, T b) { return static_cast<T>(Wide{a} / Wide{b}); });
  this->template check2<T, T, T>(this->two("rem"), edges<T>(), divisors,
                                 [](T a, T b) { return static_cast<T>(Wide{a} % Wide{b}); });
}

TYPED_TEST(Integers, DivisionByZeroIsNoFault) {
  using T = TypeParam;
  EXPECT_EQ(this->template eval<T>(this->two("div"), std::vector<std::tuple<T, T>>{{T{5}, T{0}}}).size(), 1u);
}

TYPED_TEST(Integers, MinimumMaximumSign) {
  using T = TypeParam;
  this->check("min", [](T a, T b) { return a < b ? a : b; });
  this->check("max", [](T a, T b) { return a < b ? b : a; });
  if constexpr (std::is_signed_v<T>) {
    this->template check1<T, T>(this->one("abs"), edges<T>(),
                                [](T a) { return static_cast<T>(a < 0 ? -Wide{a} : Wide{a}); });
    this->template check1<T, T>(this->one("neg"), edges<T>(), [](T a) { return static_cast<T>(-Wide{a}); });
  }
}

TYPED_TEST(Integers, ShiftsSaturateTheirAmount) {
  using T = TypeParam;
  constexpr std::uint32_t bits = 8 * sizeof(T);
  const std::vector<std::uint32_t> amounts = {0, 1, 5, bits - 1, bits, bits + 1, 200, 0xffff'ffff};
  this->template check2<T, T, std::uint32_t>(this->two("shr"), edges<T>(), amounts, [](T a, std::uint32_t b) {
    return static_cast<T>(b >= bits ? (a < 0 ? -1 : 0) : a >> b);
  });
  const std::string left = "shl.b" + std::to_string(bits) + " %d, %a, %b;";
  this->template check2<T, T, std::uint32_t>(left, edges<T>(), amounts, [](T a, std::uint32_t b) {
    return static_cast<T>(b >= bits ? 0 : static_cast<std::uint64_t>(a) << b);
  });
}

TYPED_TEST(Integers, ComparisonsBecomePredicates) {
  using T = TypeParam;
  const auto body = [&](const std::string& comparison) {
    return "setp." + comparison + "." + this->name() + " %p1, %a, %b; selp.u32 %d, 1, 0, %p1;";
  };
  const auto check = [&](const std::string& comparison, std::function<bool(T, T)> reference) {
    this->template check2<std::uint32_t, T, T>(body(comparison), edges<T>(), edges<T>(),
                                               [&](T a, T b) { return std::uint32_t{reference(a, b)}; });
  };
  check("eq", [](T a, T b) { return a == b; });
  check("ne", [](T a, T b) { return a != b; });
  check("lt", [](T a, T b) { return a < b; });
  check("le", [](T a, T b) { return a <= b; });
  check("gt", [](T a, T b) { return a > b; });
  check("ge", [](T a, T b) { return a >= b; });
}

class IntegerOps : public Ops {};

template <class To, class From>
To clamped(From value) {
  const Wide v = value;
  const Wide low = std::numeric_limits<To>::min();
  const Wide high = std::numeric_limits<To>::max();
  return static_cast<To>(v < low ? low : v > high ? high : v);
}

TEST_F(IntegerOps, WideProducts) {
  using std::int32_t;
  using std::int64_t;
  using std::uint32_t;
  using std::uint64_t;
  check2<uint32_t, uint16_t, uint16_t>("mul.wide.u16 %d, %a, %b;", edges<uint16_t>(), edges<uint16_t>(),
                                       [](uint16_t a, uint16_t b) { return uint32_t{a} * b; });
  check2<int32_t, int16_t, int16_t>("mul.wide.s16 %d, %a, %b;", edges<int16_t>(), edges<int16_t>(),
                                    [](int16_t a, int16_t b) { return a * b; });
  check2<uint64_t, uint32_t, uint32_t>("mul.wide.u32 %d, %a, %b;", edges<uint32_t>(), edges<uint32_t>(),
                                       [](uint32_t a, uint32_t b) { return uint64_t{a} * b; });
  check2<int64_t, int32_t, int32_t>("mul.wide.s32 %d, %a, %b;", edges<int32_t>(), edges<int32_t>(),
                                    [](int32_t a, int32_t b) { return int64_t{a} * b; });
  check3<uint64_t, uint32_t, uint32_t, uint64_t>(
      "mad.wide.u32 %d, %a, %b, %c;", {0, 7, 0xffff'ffff}, {1, 0xffff'ffff}, edges<uint64_t>(),
      [](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; });
}

TEST_F(IntegerOps, SaturatingSums) {
  using std::int32_t;
  check2<int32_t, int32_t, int32_t>("add.sat.s32 %d, %a, %b;", edges<int32_t>(), edges<int32_t>(),
                                    [](int32_t a, int32_t b) { return clamped<int32_t>(Wide{a} + b); });
  check2<int32_t, int32_t, int32_t>("sub.sat.s32 %d, %a, %b;", edges<int32_t>(), edges<int32_t>(),
                                    [](int32_t a, int32_t b) { return clamped<int32_t>(Wide{a} - b); });
}

TEST_F(IntegerOps, ProductsOf24Bits) {
  using std::int32_t;
  using std::int64_t;
  const auto low24 = [](int32_t v) { return int64_t{static_cast<int32_t>(static_cast<std::uint32_t>(v) << 8) >> 8}; };
  check2<int32_t, int32_t, int32_t>("mul24.lo.s32 %d, %a, %b;", edges<int32_t>(), edges<int32_t>(),
                                    [&](int32_t a, int32_t b) { return static_cast<int32_t>(low24(a) * low24(b)); });
  check2<int32_t, int32_t, int32_t>(
      "mul24.hi.s32 %d, %a, %b;", edges<int32_t>(), edges<int32_t>(),
      [&](int32_t a, int32_t b) { return static_cast<int32_t>((low24(a) * low24(b)) >> 16); });
}

TEST_F(IntegerOps, CarriesRunThroughWords) {
  using std::uint64_t;
  const std::string split = "mov.b64 {%r1, %r2}, %a; mov.b64 {%r3, %r4}, %b; ";
  const std::string join = " mov.b64 %d, {%r5, %r6};";
  check2<uint64_t, uint64_t, uint64_t>(split + "add.cc.u32 %r5, %r1, %r3; addc.u32 %r6, %r2, %r4;" + join,
                                       edges<uint64_t>(), edges<uint64_t>(),
                                       [](uint64_t a, uint64_t b) { return a + b; });
  check2<uint64_t, uint64_t, uint64_t>(split + "sub.cc.u32 %r5, %r1, %r3; subc.u32 %r6, %r2, %r4;" + join,
                                       edges<uint64_t>(), edges<uint64_t>(),
                                       [](uint64_t a, uint64_t b) { return a - b; });
  const std::string product =
      "mul.lo.u32 %r5, %r1, %r3; mul.hi.u32 %r6, %r1, %r3; mad.lo.cc.u32 %r6, %r1, %r4, %r6; "
      "madc.hi.u32 %r7, %r1, %r4, 0; mad.lo.u32 %r6, %r2, %r3, %r6;";
  check2<uint64_t, uint64_t, uint64_t>(split + product + join, edges<uint64_t>(), edges<uint64_t>(),
                                       [](uint64_t a, uint64_t b) { return a * b; });
}

TEST_F(IntegerOps, MadCarriesOut) {
  using std::uint32_t;
  check3<uint32_t, uint32_t, uint32_t, uint32_t>(
      "mad.lo.cc.u32 %r1, %a, %b, %c; addc.u32 %d, 0, 0;", edges<uint32_t>(), {1, 3, 0xffff'ffff}, edges<uint32_t>(),
      [](uint32_t a, uint32_t b, uint32_t c) { return static_cast<uint32_t>((std::uint64_t{a * b} + c) >> 32); });
}

TEST_F(IntegerOps, LogicOfThree) {
  using std::uint32_t;
  for (const int table : {0x80, 0x96, 0xe8, 0x1b, 0xca}) {
    check3<uint32_t, uint32_t, uint32_t, uint32_t>(
        "lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";", edges<uint32_t>(), {0x0f0f'1234, 0xffff'0000},
        {0x3333'5555, 0x8000'0001}, [&](uint32_t a, uint32_t b, uint32_t c) {
          uint32_t result = 0;
          for (int k = 0; k < 32; ++k) {
            const uint32_t index = (a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1);
            result |= (static_cast<uint32_t>(table) >> index & 1) << k;
          }
          return result;
        });
  }
}

TEST_F(IntegerOps, CountingBits) {
  using std::int32_t;
  using std::uint32_t;
  using std::uint64_t;
  check1<uint32_t, uint32_t>("popc.b32 %d, %a;", edges<uint32_t>(),
                             [](uint32_t a) { return uint32_t(std::popcount(a)); });
  check1<uint32_t, uint64_t>("popc.b64 %d, %a;", edges<uint64_t>(),
                             [](uint64_t a) { return uint32_t(std::popcount(a)); });
  check1<uint32_t, uint32_t>("clz.b32 %d, %a;", edges<uint32_t>(),
                             [](uint32_t a) { return uint32_t(std::countl_zero(a)); });
  check1<uint32_t, uint64_t>("clz.b64 %d, %a;", edges<uint64_t>(),
                             [](uint64_t a) { return uint32_t(std::countl_zero(a)); });
  check1<uint32_t, uint32_t>("brev.b32 %d, %a;", edges<uint32_t>(), [](uint32_t a) {
    uint32_t r = 0;
    for (int k = 0; k < 32; ++k) r |= (a >> k & 1) << (31 - k);
    return r;
  });
  check1<uint64_t, uint64_t>("brev.b64 %d, %a;", edges<uint64_t>(), [](uint64_t a) {
    uint64_t r = 0;
    for (int k = 0; k < 64; ++k) r |= (a >> k & 1) << (63 - k);
    return r;
  });
  check1<uint32_t, uint32_t>("bfind.u32 %d, %a;", edges<uint32_t>(),
                             [](uint32_t a) { return uint32_t(31 - std::countl_zero(a)); });
  check1<uint32_t, int32_t>("bfind.s32 %d, %a;", edges<int32_t>(), [](int32_t a) {
    return uint32_t(31 - std::countl_zero(static_cast<uint32_t>(a < 0 ? ~a : a)));
  });
  check1<uint32_t, uint64_t>("bfind.shiftamt.u64 %d, %a;", edges<uint64_t>(),
                             [](uint64_t a) { return a == 0 ? ~0U : uint32_t(std::countl_zero(a)); });
}

// A field is copied bit by bit; what lies beyond the top is zero or the sign.
template <class T>
T field_of(T a, std::uint32_t b, std::uint32_t c) {
  constexpr std::uint32_t bits = 8 * sizeof(T);
  const std::uint32_t position = b & 255;
  const std::uint32_t length = c & 255;
  const std::uint32_t top = std::min(position + length - 1, bits - 1);
  const bool sign = std::is_signed_v<T> && length != 0 && (static_cast<std::make_unsigned_t<T>>(a) >> top & 1) != 0;
  std::make_unsigned_t<T> result = 0;
  for (std::uint32_t k = 0; k < bits; ++k) {
    const bool bit =
        k < length && position + k < bits ? (static_cast<std::make_unsigned_t<T>>(a) >> (position + k) & 1) != 0 : sign;
    if (length != 0 && bit) result |= std::make_unsigned_t<T>{1} << k;
  }
  return static_cast<T>(result);
}

TEST_F(IntegerOps, BitFields) {
  using std::int32_t;
  using std::int64_t;
  using std::uint32_t;
  using std::uint64_t;
  const std::vector<uint32_t> positions = {0, 1, 7, 31, 32, 63, 64, 255, 256 + 3};
  check3<uint32_t, uint32_t, uint32_t, uint32_t>("bfe.u32 %d, %a, %b, %c;", edges<uint32_t>(), positions, positions,
                                                 field_of<uint32_t>);
  check3<int32_t, int32_t, uint32_t, uint32_t>("bfe.s32 %d, %a, %b, %c;", edges<int32_t>(), positions, positions,
                                               field_of<int32_t>);
  check3<uint64_t, uint64_t, uint32_t, uint32_t>("bfe.u64 %d, %a, %b, %c;", edges<uint64_t>(), positions, positions,
                                                 field_of<uint64_t>);
  check3<int64_t, int64_t, uint32_t, uint32_t>("bfe.s64 %d, %a, %b, %c;", edges<int64_t>(), positions, positions,
                                               field_of<int64_t>);
  check3<uint32_t, uint32_t, uint32_t, uint32_t>("bfi.b32 %d, %a, 0x5555aaaa, %b, %c;", edges<uint32_t>(), positions,
                                                 positions, [](uint32_t a, uint32_t b, uint32_t c) {
                                                   uint32_t r = 0x5555'aaaa;
                                                   for (uint32_t k = 0; k < (c & 255) && (b & 255) + k < 32; ++k) {
                                                     const uint32_t at = (b & 255) + k;
                                                     r = (r & ~(1U << at)) | (a >> k & 1) << at;
                                                   }
                                                   return r;
                                                 });
}

TEST_F(IntegerOps, BytesArePermuted) {
  using std::uint32_t;
  check3<uint32_t, uint32_t, uint32_t, uint32_t>(
      "prmt.b32 %d, %a, %b, %c;", {0x8182'8384, 0x0102'0304}, {0x7574'7372, 0xf5f4'f3f2},
      {0x3210, 0x7654, 0x0123, 0xfedc, 0x8888, 0x5410}, [](uint32_t a, uint32_t b, uint32_t c) {
        uint32_t r = 0;
        for (int k = 0; k < 4; ++k) {
          const uint32_t s = c >> (4 * k) & 15;
          const uint32_t byte = ((s & 4) != 0 ? b : a) >> (8 * (s & 3)) & 255;
          r |= ((s & 8) != 0 ? ((byte & 128) != 0 ? 255U : 0U) : byte) << (8 * k);
        }
        return r;
      });
  // The special modes, from the table of the PTX document: bytes a = 0..3, b = 4..7.
  const uint32_t a = 0x0302'0100;
  const uint32_t b = 0x0706'0504;
  struct Case {
    const char* mode;
    uint32_t results[4];
  };
  const Case cases[] = {{"f4e", {0x0302'0100, 0x0403'0201, 0x0504'0302, 0x0605'0403}},
                        {"b4e", {0x0506'0700, 0x0607'0001, 0x0700'0102, 0x0001'0203}},
                        {"rc8", {0x0000'0000, 0x0101'0101, 0x0202'0202, 0x0303'0303}},
                        {"ecl", {0x0302'0100, 0x0302'0101, 0x0302'0202, 0x0303'0303}},
                        {"ecr", {0x0000'0000, 0x0101'0100, 0x0202'0100, 0x0302'0100}},
                        {"rc16", {0x0100'0100, 0x0302'0302, 0x0100'0100, 0x0302'0302}}};
  for (const Case& one : cases) {
    check3<uint32_t, uint32_t, uint32_t, uint32_t>(std::string("prmt.b32.") + one.mode + " %d, %a, %b, %c;", {a}, {b},
                                                   {0, 1, 2, 3, 7},
                                                   [&](uint32_t, uint32_t, uint32_t c) { return one.results[c & 3]; });
  }
}

TEST_F(IntegerOps, FunnelShifts) {
  using std::uint32_t;
  const std::vector<uint32_t> amounts = {0, 1, 9, 31, 32, 33, 63, 64, 0xffff'ffff};
  const auto both = [](uint32_t a, uint32_t b) { return std::uint64_t{b} << 32 | a; };
  check3<uint32_t, uint32_t, uint32_t, uint32_t>(
      "shf.l.wrap.b32 %d, %a, %b, %c;", edges<uint32_t>(), {0x1234'5678}, amounts,
      [&](uint32_t a, uint32_t b, uint32_t c) { return uint32_t((both(a, b) << (c & 31)) >> 32); });
  check3<uint32_t, uint32_t, uint32_t, uint32_t>(
      "shf.r.wrap.b32 %d, %a, %b, %c;", edges<uint32_t>(), {0x1234'5678}, amounts,
      [&](uint32_t a, uint32_t b, uint32_t c) { return uint32_t(both(a, b) >> (c & 31)); });
  check3<uint32_t, uint32_t, uint32_t, uint32_t>(
      "shf.l.clamp.b32 %d, %a, %b, %c;", edges<uint32_t>(), {0x1234'5678}, amounts,
      [&](uint32_t a, uint32_t b, uint32_t c) { return c >= 32 ? a : uint32_t((both(a, b) << c) >> 32); });
  check3<uint32_t, uint32_t, uint32_t, uint32_t>(
      "shf.r.clamp.b32 %d, %a, %b, %c;", edges<uint32_t>(), {0x1234'5678}, amounts,
      [&](uint32_t a, uint32_t b, uint32_t c) { return c >= 32 ? b : uint32_t(both(a, b) >> c); });
}

TEST_F(IntegerOps, DotProducts) {
  using std::uint32_t;
  check3<uint32_t, uint32_t, uint32_t, uint32_t>(
      "dp4a.s32.u32 %d, %a, %b, %c;", edges<uint32_t>(), {0x80ff'017f, 0xffff'ffff}, {0, 0xffff'fff0},
      [](uint32_t a, uint32_t b, uint32_t c) {
        for (int k = 0; k < 32; k += 8) {
          c += static_cast<uint32_t>(static_cast<std::int8_t>(a >> k) * static_cast<std::uint8_t>(b >> k));
        }
        return c;
      });
}

TEST_F(IntegerOps, ConversionsTruncateExtendOrSaturate) {
  const auto all = [&](auto to_tag, auto from_tag) {
    using To = decltype(to_tag);
    using From = decltype(from_tag);
    // Bytes travel in registers of 16 bits, results in one of their carrier's size.
    using Source = std::conditional_t<sizeof(From) == 1,
                                      std::conditional_t<std::is_signed_v<From>, std::int16_t, std::uint16_t>, From>;
    using Result =
        std::conditional_t<sizeof(To) == 1, std::conditional_t<std::is_signed_v<To>, std::int16_t, std::uint16_t>, To>;
    const auto name = [](auto tag) {
      using T = decltype(tag);
      return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
    };
    const std::string types = name(to_tag) + "." + name(from_tag) + " %d, %a;";
    check1<Result, Source>("cvt." + types, edges<Source>(),
                           [](Source a) { return static_cast<Result>(static_cast<To>(static_cast<From>(a))); });
    check1<Result, Source>("cvt.sat." + types, edges<Source>(),
                           [](Source a) { return static_cast<Result>(clamped<To>(static_cast<From>(a))); });
  };
  const auto from_all = [&](auto to) {
    all(to, std::uint8_t{});
    all(to, std::int8_t{});
    all(to, std::uint16_t{});
    all(to, std::int16_t{});
    all(to, std::uint32_t{});
    all(to, std::int32_t{});
    all(to, std::uint64_t{});
    all(to, std::int64_t{});
  };
  from_all(std::uint8_t{});
  from_all(std::int8_t{});
  from_all(std::uint16_t{});
  from_all(std::int16_t{});
  from_all(std::uint32_t{});
  from_all(std::int32_t{});
  from_all(std::uint64_t{});
  from_all(std::int64_t{});
}

TEST_F(IntegerOps, ConversionsIntoWiderRegisters) {
  using std::uint32_t;
  check1<uint32_t, uint32_t>("cvt.s8.s32 %d, %a;", edges<uint32_t>(),
                             [](uint32_t a) { return static_cast<uint32_t>(static_cast<std::int8_t>(a)); });
  check1<uint32_t, uint32_t>("cvt.u16.u32 %d, %a;", edges<uint32_t>(), [](uint32_t a) { return a & 0xffff; });
  check1<std::uint64_t, std::uint64_t>("cvt.s16.s8 %d, %a;", edges<std::uint64_t>(), [](std::uint64_t a) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(a)});
  });
}

}  // namespace
}  // namespace simgpu
