#include "tests/ptx/number.h"

#include <bit>

namespace ptx_forms {

Number parts(Bits bits, const Format& format) {
  Number number;
  const Bits field = (bits & (format.sign() - 1)) >> format.fraction();
  const Bits fraction = bits & ((Bits{1} << format.fraction()) - 1);
  number.negative = (bits & format.sign()) != 0;
  if (field == format.exponents()) {
    number.kind = fraction == 0 ? Kind::Infinite : Kind::Nan;
    return number;
  }
  const bool normal = field != 0;
  number.significand = fraction | (normal ? Bits{1} << format.fraction() : 0);
  number.exponent = format.least - format.fraction() + (normal ? static_cast<int>(field) - 1 : 0);
  return number;
}

bool is_nan(Bits bits, const Format& format) { return (bits & (format.sign() - 1)) > format.infinity(); }

bool is_subnormal(Bits bits, const Format& format) {
  const Bits size = bits & (format.sign() - 1);
  return size != 0 && size < Bits{1} << format.fraction();
}

Bits flushed(Bits bits, const Format& format) { return is_subnormal(bits, format) ? bits & format.sign() : bits; }

Bits canonical_nan(const Format& format) {
  if (format.size == 64) return 0xfff8'0000'0000'0000;
  return format.sign() - 1;
}

// ---- exact numbers

Exact::Exact(bool negative, Wide magnitude, int exponent) : negative_(negative) {
  const int shift = exponent - lowest;
  for (int k = 0; k < 128; ++k) {
    if ((magnitude >> k & 1) == 0) continue;
    word_[(shift + k) / 64] |= Bits{1} << ((shift + k) % 64);
  }
}

int Exact::compare(const Exact& a, const Exact& b) {
  for (int k = words; k-- > 0;) {
    if (a.word_[k] != b.word_[k]) return a.word_[k] < b.word_[k] ? -1 : 1;
  }
  return 0;
}

Exact Exact::operator+(const Exact& other) const {
  const bool subtracts = negative_ != other.negative_;
  const bool swapped = subtracts && compare(*this, other) < 0;
  const Exact& big = swapped ? other : *this;
  const Exact& small = swapped ? *this : other;
  Exact sum;
  sum.negative_ = big.negative_;
  Wide carry = 0;
  for (int k = 0; k < words; ++k) {
    const Wide total =
        subtracts ? Wide{big.word_[k]} - small.word_[k] - carry : Wide{big.word_[k]} + small.word_[k] + carry;
    sum.word_[k] = static_cast<Bits>(total);
    carry = total >> 64 & 1;
  }
  return sum;
}

bool Exact::zero() const { return top() < 0; }

int Exact::top() const {
  for (int k = words; k-- > 0;) {
    if (word_[k] != 0) return 64 * k + 63 - std::countl_zero(word_[k]);
  }
  return -1;
}

bool Exact::any_below(int k) const {
  for (int w = 0; w < k / 64; ++w) {
    if (word_[w] != 0) return true;
  }
  return k > 0 && k % 64 != 0 && (word_[k / 64] & ((Bits{1} << (k % 64)) - 1)) != 0;
}

namespace {

bool away_from_zero(Round mode, bool negative, bool odd, bool half_lost, bool more_lost) {
  switch (mode) {
    case Round::Nearest: return half_lost && (more_lost || odd);
    case Round::Away: return half_lost;
    case Round::Down: return negative && (half_lost || more_lost);
    case Round::Up: return !negative && (half_lost || more_lost);
    case Round::Zero: break;
  }
  return false;
}

bool overflows_to_infinity(Round mode, bool negative) {
  return mode == Round::Nearest || mode == Round::Away || mode == (negative ? Round::Down : Round::Up);
}

}  // namespace

Bits Exact::round(const Format& format, Round mode) const {
  const Bits sign = negative_ ? format.sign() : 0;
  const int leading = top();
  if (leading < 0) return sign;
  int exponent = leading + lowest;  // exponent of the leading bit
  if (exponent < format.least) exponent = format.least;
  const int unit = exponent - format.fraction() - lowest;  // position of the last bit that is kept
  Bits kept = 0;
  for (int k = unit + format.fraction(); k >= unit; --k) kept = kept << 1 | static_cast<Bits>(bit(k));
  if (away_from_zero(mode, negative_, (kept & 1) != 0, bit(unit - 1), any_below(unit - 1))) ++kept;
  // A carry out of the significand increments the exponent. A carry out of a subnormal yields the smallest normal
  // number.
  const Bits field = static_cast<Bits>(exponent - format.least);
  const Bits size = (field << format.fraction()) + kept;
  if (size < format.infinity()) return sign | size;
  return sign | (overflows_to_infinity(mode, negative_) ? format.infinity() : format.infinity() - 1);
}

// ---- arithmetic

namespace {

// Returns the signed zero for a sum that is exactly zero.
Bits zero_sum(bool a, bool b, const Format& format, Round mode) {
  const bool negative = a == b ? a : mode == Round::Down;
  return negative ? format.sign() : 0;
}

Bits infinity_of(bool negative, const Format& format) { return (negative ? format.sign() : 0) | format.infinity(); }

}  // namespace

Bits add(Bits a, Bits b, const Format& format, Round mode) {
  const Number x = parts(a, format);
  const Number y = parts(b, format);
  if (x.kind == Kind::Nan || y.kind == Kind::Nan) return canonical_nan(format);
  if (x.kind == Kind::Infinite) return y.kind == Kind::Infinite && x.negative != y.negative ? canonical_nan(format) : a;
  if (y.kind == Kind::Infinite) return b;
  const Exact sum = Exact(x) + Exact(y);
  return sum.zero() ? zero_sum(x.negative, y.negative, format, mode) : sum.round(format, mode);
}

Bits multiply(Bits a, Bits b, const Format& format, Round mode) {
  const Number x = parts(a, format);
  const Number y = parts(b, format);
  const bool negative = x.negative != y.negative;
  if (x.kind == Kind::Nan || y.kind == Kind::Nan) return canonical_nan(format);
  if (x.kind == Kind::Infinite || y.kind == Kind::Infinite) {
    return x.zero() || y.zero() ? canonical_nan(format) : infinity_of(negative, format);
  }
  return Exact(negative, Wide{x.significand} * y.significand, x.exponent + y.exponent).round(format, mode);
}

Bits multiply_add(Bits a, Bits b, Bits c, const Format& format, Round mode) {
  const Number x = parts(a, format);
  const Number y = parts(b, format);
  const Number z = parts(c, format);
  const bool negative = x.negative != y.negative;
  if (x.kind == Kind::Nan || y.kind == Kind::Nan || z.kind == Kind::Nan) return canonical_nan(format);
  if (x.kind == Kind::Infinite || y.kind == Kind::Infinite) {
    const bool wrong = x.zero() || y.zero() || (z.kind == Kind::Infinite && z.negative != negative);
    return wrong ? canonical_nan(format) : infinity_of(negative, format);
  }
  if (z.kind == Kind::Infinite) return c;
  const Exact product(negative, Wide{x.significand} * y.significand, x.exponent + y.exponent);
  const Exact sum = product + Exact(z);
  return sum.zero() ? zero_sum(negative, z.negative, format, mode) : sum.round(format, mode);
}

Bits divide(Bits a, Bits b, const Format& format, Round mode) {
  const Number x = parts(a, format);
  const Number y = parts(b, format);
  const bool negative = x.negative != y.negative;
  const Bits zero = negative ? format.sign() : 0;
  if (x.kind == Kind::Nan || y.kind == Kind::Nan) return canonical_nan(format);
  if (x.kind == Kind::Infinite) return y.kind == Kind::Infinite ? canonical_nan(format) : infinity_of(negative, format);
  if (y.kind == Kind::Infinite) return zero;
  if (y.zero()) return x.zero() ? canonical_nan(format) : infinity_of(negative, format);
  if (x.zero()) return zero;
  // Both significands are shifted so that the leading one is bit 63. The quotient then has 64 or 65 bits, and an
  // additional lowest bit is set if there is a remainder.
  const int up_x = std::countl_zero(x.significand);
  const int up_y = std::countl_zero(y.significand);
  const Wide dividend = Wide{x.significand << up_x} << 64;
  const Bits divisor = y.significand << up_y;
  const Wide quotient = dividend / divisor;
  const Wide sticky = dividend % divisor != 0 ? 1 : 0;
  const int exponent = (x.exponent - up_x) - (y.exponent - up_y) - 64 - 1;
  return Exact(negative, quotient << 1 | sticky, exponent).round(format, mode);
}

Bits square_root(Bits a, const Format& format, Round mode) {
  const Number x = parts(a, format);
  if (x.kind == Kind::Nan) return canonical_nan(format);
  if (x.zero()) return a;
  if (x.negative) return canonical_nan(format);
  if (x.kind == Kind::Infinite) return a;
  int up = std::countl_zero(x.significand);
  if ((x.exponent - up) % 2 != 0) --up;
  // shifted by an even number of bits, so that the root's exponent is an integer
  const Wide square = Wide{x.significand << up} << 62;
  Wide root = 0;
  for (int k = 63; k >= 0; --k) {
    const Wide next = root | Wide{1} << k;
    if (next <= square / next) root = next;
  }
  const Wide sticky = root * root != square ? 1 : 0;
  return Exact(false, root << 1 | sticky, (x.exponent - up - 62) / 2 - 1).round(format, mode);
}

// ---- conversion

Bits converted(Bits a, const Format& from, const Format& to, Round mode) {
  const Number x = parts(a, from);
  if (x.kind == Kind::Nan) return canonical_nan(to);
  if (x.kind == Kind::Infinite) return infinity_of(x.negative, to);
  return Exact(x).round(to, mode);
}

Bits from_integer(bool negative, Bits magnitude, const Format& to, Round mode) {
  return Exact(negative && magnitude != 0, magnitude, 0).round(to, mode);
}

namespace {

// Returns the magnitude rounded to an integer, limited to 2^127.
Wide rounded(const Number& x, Round mode) {
  if (x.exponent >= 0) return x.exponent > 64 ? Wide{1} << 126 : Wide{x.significand} << x.exponent;
  const int down = -x.exponent;
  if (down > 64) return away_from_zero(mode, x.negative, false, false, x.significand != 0) ? 1 : 0;
  const Wide kept = Wide{x.significand} >> down;
  const bool half_lost = (x.significand >> (down - 1) & 1) != 0;
  const bool more_lost = (x.significand & ((Bits{1} << (down - 1)) - 1)) != 0;
  return kept + (away_from_zero(mode, x.negative, (kept & 1) != 0, half_lost, more_lost) ? 1 : 0);
}

}  // namespace

Bits integral(Bits a, const Format& format, Round mode) {
  const Number x = parts(a, format);
  if (x.kind == Kind::Nan) return canonical_nan(format);
  if (x.kind == Kind::Infinite || x.exponent >= 0) return a;
  return Exact(x.negative, rounded(x, mode), 0).round(format, Round::Nearest);
}

Bits to_integer(Bits a, const Format& format, Round mode, int size, bool is_signed) {
  const Number x = parts(a, format);
  const Wide size_limit = Wide{1} << (is_signed ? size - 1 : size);
  const Bits mask = size == 64 ? ~Bits{0} : (Bits{1} << size) - 1;
  const Wide magnitude = x.kind == Kind::Infinite ? Wide{1} << 126 : rounded(x, mode);
  if (x.negative) {
    if (!is_signed) return 0;
    return (magnitude >= size_limit ? ~static_cast<Bits>(size_limit) + 1 : ~static_cast<Bits>(magnitude) + 1) & mask;
  }
  return static_cast<Bits>(magnitude >= size_limit ? size_limit - 1 : magnitude) & mask;
}

}  // namespace ptx_forms
