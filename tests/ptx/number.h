// Floating-point numbers of any format as exact fixed-point numbers, and one rounding back to a format. The references
// of the forms use this arithmetic. It is slow, and independent of the processor's floating-point unit and of the
// simulated GPU.
#pragma once

#include <cstdint>

namespace ptx_forms {

using Bits = std::uint64_t;
using Wide = unsigned __int128;

// A binary interchange format: the number of bits, the significant bits including the leading one, and the exponent
// range of normal numbers.
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

enum class Round { Nearest, Zero, Down, Up, Away };  // Away: to nearest, with ties away from zero

enum class Kind { Finite, Infinite, Nan };

// The parts of a number: (-1)^negative * significand * 2^exponent.
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
// Replaces subnormals by zeros of the same sign.
Bits flushed(Bits bits, const Format& format);

// Returns the canonical NaN of singles and narrower formats. For doubles, its bits are the upper word of a NaN.
Bits canonical_nan(const Format& format);

// An exact sum of products. It is wide enough for the product of two doubles plus a third double.
class Exact {
 public:
  Exact() = default;
  Exact(bool negative, Wide magnitude, int exponent);
  explicit Exact(const Number& number) : Exact(number.negative, number.significand, number.exponent) {}

  Exact operator+(const Exact& other) const;
  bool zero() const;
  bool negative() const { return negative_; }
  // Rounds the sum. On overflow the result is infinity or the largest number, as the mode requires. Zero keeps its
  // sign.
  Bits round(const Format& format, Round mode) const;

 private:
  static constexpr int words = 72;
  static constexpr int lowest = -2240;  // exponent of bit 0 of the sum

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
// Converts between formats.
Bits converted(Bits a, const Format& from, const Format& to, Round mode);
Bits from_integer(bool negative, Bits magnitude, const Format& to, Round mode);
// Rounds to an integer in the same format, as cvt.rni and similar instructions do.
Bits integral(Bits a, const Format& format, Round mode);
// Converts to an integer of `size` bits, clamped to the integer's range. The caller handles NaN.
Bits to_integer(Bits a, const Format& format, Round mode, int size, bool is_signed);

inline Bits negated(Bits a, const Format& format) { return a ^ format.sign(); }

}  // namespace ptx_forms
