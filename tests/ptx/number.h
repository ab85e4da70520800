// Floating-point numbers of any format as exact fixed-point numbers, and the one rounding back: the arithmetic that the
// forms' references are made of. Slow, and owes nothing to a processor's own arithmetic or to the simulated GPU's.
#pragma once

#include <cstdint>

namespace ptx_forms {

using Bits = std::uint64_t;
using Wide = unsigned __int128;

// A binary interchange format: significant bits with the leading one, and the exponents of normal numbers.
struct Format {
  int size;
  int precision;
  int least;
  int most;
  int fraction() const { return precision - 1; }
  Bits sign() const { return Bits{1} << (size - 1); }
  Bits exponents() const { return (sign() - 1) >> fraction(); }
  Bits infinity() const { return exponents() << fraction(); }
};
inline constexpr Format half{16, 11, -14, 15};
inline constexpr Format brain{16, 8, -126, 127};
inline constexpr Format single{32, 24, -126, 127};
inline constexpr Format twice{64, 53, -1022, 1023};

enum class Round { Nearest, Zero, Down, Up, Away };  // Away: to nearest, ties away from zero

enum class Kind { Finite, Infinite, Nan };

// A number of a format, taken apart: (-1)^negative * significand * 2^exponent.
struct Number {
  Kind kind = Kind::Finite;
  bool negative = false;
  Bits significand = 0;
  int exponent = 0;
  bool zero() const { return kind == Kind::Finite && significand == 0; }
};
Number parts(Bits bits, const Format& format);
bool is_nan(Bits bits, const Format& format);
bool is_subnormal(Bits bits, const Format& format);
// Subnormals become zero and keep their sign.
Bits flushed(Bits bits, const Format& format);

// The canonical NaN of singles and narrower formats, which is also a NaN of doubles' upper word.
Bits canonical_nan(const Format& format);

// A sum of products, exact: wide enough for two doubles multiplied and a third added.
class Exact {
 public:
  Exact() = default;
  Exact(bool negative, Wide magnitude, int exponent);
  explicit Exact(const Number& number) : Exact(number.negative, number.significand, number.exponent) {}

  Exact operator+(const Exact& other) const;
  bool zero() const;
  bool negative() const { return negative_; }
  // Rounded; overflow becomes infinity or the largest number as the mode says. Zero keeps its sign.
  Bits round(const Format& format, Round mode) const;

 private:
  static constexpr int words = 72;
  static constexpr int lowest = -2240;  // exponent of bit 0

  bool bit(int k) const { return k >= 0 && (word_[k / 64] >> (k % 64) & 1) != 0; }
  int top() const;
  bool any_below(int k) const;
  static int compare(const Exact& a, const Exact& b);

  bool negative_ = false;
  Bits word_[words] = {};
};

Bits add(Bits a, Bits b, const Format& format, Round mode);
Bits multiply(Bits a, Bits b, const Format& format, Round mode);
Bits multiply_add(Bits a, Bits b, Bits c, const Format& format, Round mode);
Bits divide(Bits a, Bits b, const Format& format, Round mode);
Bits square_root(Bits a, const Format& format, Round mode);
// Between formats.
Bits converted(Bits a, const Format& from, const Format& to, Round mode);
Bits from_integer(bool negative, Bits magnitude, const Format& to, Round mode);
// To an integer in its own format, as cvt.rni and its like.
Bits integral(Bits a, const Format& format, Round mode);
// To an integer of `size` bits, clamped; NaN is the caller's business.
Bits to_integer(Bits a, const Format& format, Round mode, int size, bool is_signed);

inline Bits negated(Bits a, const Format& format) { return a ^ format.sign(); }

}  // namespace ptx_forms
