// Forms of integer arithmetic for every type, including values that wrap, saturate or have no defined result.
#include <algorithm>
#include <limits>

#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

using Signed = __int128;
template <class T>
using Double = std::conditional_t<std::is_signed_v<T>, Signed, Wide>;

template <class T>
T saturated(Signed value) {
  const Signed low = std::numeric_limits<T>::min();
  const Signed high = std::numeric_limits<T>::max();
  return static_cast<T>(std::clamp(value, low, high));
}

// Returns the product in twice the width; the product of 64-bit numbers needs 128 bits.
template <class T>
Double<T> product(T a, T b) {
  return static_cast<Double<T>>(a) * static_cast<Double<T>>(b);
}
template <class T>
T high(T a, T b) {
  return static_cast<T>(product(a, b) >> (8 * sizeof(T)));
}

template <class T>
std::string named(const std::string& opcode) {
  return opcode + "." + type_name<T>();
}

// Accepts any result of a division by zero, which PTX does not define.
template <class T>
Accept unless_divided_by_zero() {
  return [](Result wanted, Result got, const Row& row) { return wanted == got || value_of<T>(row.in[1]) == 0; };
}

template <class T>
void basic(Forms& forms) {
  add_op<T, T, T>(forms, named<T>("add"), [](T a, T b) { return static_cast<T>(Signed{a} + b); });
  add_op<T, T, T>(forms, named<T>("sub"), [](T a, T b) { return static_cast<T>(Signed{a} - b); });
  add_op<T, T, T>(forms, named<T>("mul.lo"), [](T a, T b) { return static_cast<T>(product(a, b)); });
  add_op<T, T, T>(forms, named<T>("mul.hi"), [](T a, T b) { return high(a, b); });
  add_op<T, T, T, T>(forms, named<T>("mad.lo"), [](T a, T b, T c) {
    return static_cast<T>(static_cast<u64>(product(a, b)) + static_cast<u64>(c));
  });
  add_op<T, T, T, T>(forms, named<T>("mad.hi"),
                     [](T a, T b, T c) { return static_cast<T>(static_cast<u64>(high(a, b)) + static_cast<u64>(c)); });
  add_op<T, T, T, T>(forms, named<T>("sad"),
                     [](T a, T b, T c) { return static_cast<T>((a < b ? Signed{b} - a : Signed{a} - b) + Signed{c}); });
  add_op<T, T, T>(forms, named<T>("min"), [](T a, T b) { return std::min(a, b); });
  add_op<T, T, T>(forms, named<T>("max"), [](T a, T b) { return std::max(a, b); });
  // The quotient of the smallest number and -1 does not fit and wraps around.
  add_op<T, T, T>(
      forms, named<T>("div"), [](T a, T b) { return b == 0 ? T{0} : static_cast<T>(Signed{a} / b); },
      unless_divided_by_zero<T>());
  add_op<T, T, T>(
      forms, named<T>("rem"), [](T a, T b) { return b == 0 ? T{0} : static_cast<T>(Signed{a} % b); },
      unless_divided_by_zero<T>());
}

template <class T>
void signs(Forms& forms) {
  add_op<T, T>(forms, named<T>("abs"), [](T a) { return static_cast<T>(a < 0 ? -Signed{a} : Signed{a}); });
  add_op<T, T>(forms, named<T>("neg"), [](T a) { return static_cast<T>(-Signed{a}); });
}

template <class T, class W>
void wide(Forms& forms) {
  add_op<W, T, T>(forms, named<T>("mul.wide"), [](T a, T b) { return static_cast<W>(product(a, b)); });
  add_op<W, T, T, W>(forms, named<T>("mad.wide"), [](T a, T b, W c) {
    return static_cast<W>(static_cast<u64>(product(a, b)) + static_cast<u64>(c));
  });
}

template <class T>
Signed product24(T a, T b) {
  const auto narrow = [](T value) {
    const Signed low = static_cast<u32>(value) & 0xff'ffffU;
    return std::is_signed_v<T> && low >= 0x80'0000 ? low - 0x100'0000 : low;
  };
  return narrow(a) * narrow(b);
}

template <class T>
void short_products(Forms& forms) {
  const auto low = [](T a, T b) { return static_cast<T>(product24(a, b)); };
  const auto upper = [](T a, T b) { return static_cast<T>(product24(a, b) >> 16); };
  add_op<T, T, T>(forms, named<T>("mul24.lo"), low);
  add_op<T, T, T>(forms, named<T>("mul24.hi"), upper);
  add_op<T, T, T, T>(forms, named<T>("mad24.lo"), [=](T a, T b, T c) { return static_cast<T>(Signed{low(a, b)} + c); });
  add_op<T, T, T, T>(forms, named<T>("mad24.hi"),
                     [=](T a, T b, T c) { return static_cast<T>(Signed{upper(a, b)} + c); });
}

void saturating(Forms& forms) {
  add_op<s32, s32, s32>(forms, "add.sat.s32", [](s32 a, s32 b) { return saturated<s32>(Signed{a} + b); });
  add_op<s32, s32, s32>(forms, "sub.sat.s32", [](s32 a, s32 b) { return saturated<s32>(Signed{a} - b); });
  add_op<s32, s32, s32, s32>(forms, "mad.hi.sat.s32",
                             [](s32 a, s32 b, s32 c) { return saturated<s32>(Signed{high(a, b)} + c); });
  add_op<s32, s32, s32, s32>(forms, "mad24.hi.sat.s32", [](s32 a, s32 b, s32 c) {
    return saturated<s32>(static_cast<s32>(product24(a, b) >> 16) + Signed{c});
  });
}

// Applies f to both 16-bit halves of a word separately. The forms need compute capability 9.0.
template <class Lane, class F>
u32 pairwise(u32 a, u32 b, F f) {
  const u32 low = static_cast<u16>(f(static_cast<Lane>(a), static_cast<Lane>(b)));
  const u32 upper = static_cast<u16>(f(static_cast<Lane>(a >> 16), static_cast<Lane>(b >> 16)));
  return upper << 16 | low;
}

void pairs(Forms& forms) {
  const auto add = [&](const char* opcode, auto reference) {
    add_op<u32, u32, u32>(forms, opcode, reference).target = 90;
  };
  add("add.u16x2", [](u32 a, u32 b) { return pairwise<u16>(a, b, [](u16 x, u16 y) { return x + y; }); });
  add("add.s16x2", [](u32 a, u32 b) { return pairwise<s16>(a, b, [](s16 x, s16 y) { return x + y; }); });
  add("min.u16x2", [](u32 a, u32 b) { return pairwise<u16>(a, b, [](u16 x, u16 y) { return x < y ? x : y; }); });
  add("min.s16x2", [](u32 a, u32 b) { return pairwise<s16>(a, b, [](s16 x, s16 y) { return x < y ? x : y; }); });
  add("max.u16x2", [](u32 a, u32 b) { return pairwise<u16>(a, b, [](u16 x, u16 y) { return x < y ? y : x; }); });
  add("max.s16x2", [](u32 a, u32 b) { return pairwise<s16>(a, b, [](s16 x, s16 y) { return x < y ? y : x; }); });
  add("min.relu.s16x2",
      [](u32 a, u32 b) { return pairwise<s16>(a, b, [](s16 x, s16 y) { return std::max<s16>(0, x < y ? x : y); }); });
  add("max.relu.s16x2",
      [](u32 a, u32 b) { return pairwise<s16>(a, b, [](s16 x, s16 y) { return std::max<s16>(0, x < y ? y : x); }); });
  add_op<s32, s32, s32>(forms, "min.relu.s32", [](s32 a, s32 b) { return std::max(0, std::min(a, b)); }).target = 90;
  add_op<s32, s32, s32>(forms, "max.relu.s32", [](s32 a, s32 b) { return std::max(0, std::max(a, b)); }).target = 90;
}

// ---- dot products

s32 piece(u32 value, int size, int number, bool is_signed) {
  const u32 raw = value >> (size * number) & ((1U << size) - 1);
  const bool negative = is_signed && (raw >> (size - 1) & 1) != 0;
  return static_cast<s32>(raw) - (negative ? s32{1} << size : 0);
}

template <class A, class B>
void dot_products(Forms& forms) {
  constexpr bool sign_a = std::is_signed_v<A>;
  constexpr bool sign_b = std::is_signed_v<B>;
  const std::string types = std::string(".") + type_name<A>() + "." + type_name<B>();
  add_op<u32, u32, u32, u32>(forms, "dp4a" + types, [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k) c += static_cast<u32>(piece(a, 8, k, sign_a) * piece(b, 8, k, sign_b));
    return c;
  });
  for (const int upper : {0, 1}) {
    add_op<u32, u32, u32, u32>(forms, (upper != 0 ? "dp2a.hi" : "dp2a.lo") + types, [upper](u32 a, u32 b, u32 c) {
      for (int k = 0; k < 2; ++k) {
        c += static_cast<u32>(piece(a, 16, k, sign_a) * piece(b, 8, 2 * upper + k, sign_b));
      }
      return c;
    });
  }
}

// The distances of the bytes of two words, either separately or all added to the third operand.
template <class T>
void distances(Forms& forms) {
  const std::string type = type_name<T>();
  const std::string opcode = "vabsdiff4." + type + "." + type + "." + type;
  for (const bool sums : {false, true}) {
    add_op<u32, u32, u32, u32>(forms, opcode + (sums ? ".add" : ""), [sums](u32 a, u32 b, u32 c) {
      u32 bytes = 0;
      for (int k = 0; k < 4; ++k) {
        const s32 x = piece(a, 8, k, std::is_signed_v<T>);
        const s32 y = piece(b, 8, k, std::is_signed_v<T>);
        const u32 distance = static_cast<u32>(x < y ? y - x : x - y);
        c += distance;
        bytes |= distance << (8 * k);
      }
      return sums ? c : bytes;
    });
  }
}

}  // namespace

void integer_forms(Forms& forms) {
  distances<u32>(forms);
  basic<u16>(forms);
  basic<s16>(forms);
  basic<u32>(forms);
  basic<s32>(forms);
  basic<u64>(forms);
  basic<s64>(forms);
  signs<s16>(forms);
  signs<s32>(forms);
  signs<s64>(forms);
  wide<u16, u32>(forms);
  wide<s16, s32>(forms);
  wide<u32, u64>(forms);
  wide<s32, s64>(forms);
  short_products<u32>(forms);
  short_products<s32>(forms);
  saturating(forms);
  pairs(forms);
  dot_products<u32, u32>(forms);
  dot_products<u32, s32>(forms);
  dot_products<s32, u32>(forms);
  dot_products<s32, s32>(forms);
}

// ---- the carry flag

namespace {

// Computes with two words, low and high, through the carry flag. The expected result is that of a type with twice the
// width.
template <class T>
void chains(Forms& forms, const std::string& type) {
  constexpr int size = 8 * sizeof(T);
  const auto joined = [](T upper, T lower) { return Wide{upper} << size | lower; };
  const auto named = [&](std::string text) {
    for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) text.replace(at, 1, type);
    return text;
  };
  // b and c are the low words of the operands, and a is the high word of both. %d is the high word of the result.
  add_text<T, T, T, T>(forms, "addc." + type, named("add.cc.@ %d, %b, %c; addc.@ %d, %a, %a;"),
                       [=](T a, T b, T c) { return static_cast<T>((joined(a, b) + joined(a, c)) >> size); });
  add_text<T, T, T, T>(forms, "subc." + type, named("sub.cc.@ %d, %b, %c; subc.@ %d, %a, 1;"),
                       [=](T a, T b, T c) { return static_cast<T>((joined(a, b) - joined(1, c)) >> size); });
  add_text<T, T, T, T>(forms, "addc.cc." + type, named("add.cc.@ %d, %b, %c; addc.cc.@ %d, %a, %b; addc.@ %d, 0, 0;"),
                       [=](T a, T b, T c) {
                         const Wide carry = (Wide{b} + c) >> size;
                         return static_cast<T>((Wide{a} + b + carry) >> size);
                       });
  add_text<T, T, T, T>(forms, "subc.cc." + type, named("sub.cc.@ %d, %b, %c; subc.cc.@ %d, %a, %b; subc.@ %d, 0, 0;"),
                       [=](T a, T b, T c) {
                         const bool borrow = b < c;
                         return Wide{a} < Wide{b} + borrow ? static_cast<T>(-1) : T{0};
                       });
  add_text<T, T, T, T>(forms, "mad.lo.cc." + type, named("mad.lo.cc.@ %d, %a, %b, %c; madc.hi.@ %d, %a, %b, %c;"),
                       [=](T a, T b, T c) {
                         const Wide low = Wide{a} * b;
                         const Wide carry = (Wide{static_cast<T>(low)} + c) >> size;
                         return static_cast<T>((low >> size) + c + carry);
                       });
  add_text<T, T, T, T>(forms, "madc.lo.cc." + type,
                       named("add.cc.@ %d, %a, %b; madc.lo.cc.@ %d, %a, %b, %c; addc.@ %d, 0, 0;"), [=](T a, T b, T c) {
                         const Wide carry = (Wide{a} + b) >> size;
                         return static_cast<T>((Wide{static_cast<T>(Wide{a} * b)} + c + carry) >> size);
                       });
  add_text<T, T, T, T>(forms, "mad.hi.cc." + type, named("mad.hi.cc.@ %d, %a, %b, %c; addc.@ %d, %d, 0;"),
                       [=](T a, T b, T c) {
                         const Wide sum = (Wide{a} * b >> size) + c;
                         return static_cast<T>(static_cast<T>(sum) + static_cast<T>(sum >> size));
                       });
}

}  // namespace

void carry_forms(Forms& forms) {
  chains<u32>(forms, "u32");
  chains<u64>(forms, "u64");
}

}  // namespace ptx_forms
