// Generates the values to try, and accepts results within the error bound where PTX does not define every bit.
#include "tests/ptx/form.h"

namespace ptx_forms {

Bits next_random() {
  static Bits state = 0x2545'f491'4f6c'dd1d;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x9e37'79b9'7f4a'7c15;
}

std::vector<Bits> integer_edges(int size, bool few) {
  const Bits top = Bits{1} << (size - 1);
  const Bits mask = top | (top - 1);
  std::vector<Bits> values = {0, 1, 2, 5, top, top - 1, mask, mask - 1, 0x0123'4567'89ab'cdef & mask};
  if (!few) {
    for (const Bits value :
         {Bits{3}, Bits{7}, Bits{8}, Bits{31}, Bits{32}, Bits{33}, Bits{63}, Bits{64}, Bits{100}, Bits{0xff}, top + 1,
          mask - 99, Bits{0x5555'5555'5555'55aa}, Bits{0xfedc'ba98'7654'3210}}) {
      values.push_back(value & mask);
    }
  }
  return values;
}

std::vector<Bits> float_edges(const Format& format, bool few) {
  const Bits one = static_cast<Bits>(format.most) << format.fraction();
  const Bits unit = Bits{1} << format.fraction();  // one exponent step, which is also the smallest normal number
  const Bits infinity = format.infinity();
  const Bits sign = format.sign();
  const Bits third = one - 2 * unit + unit / 3;
  std::vector<Bits> values = {
      0, sign, 1, unit, one, one | sign, one + 1, third, infinity - 1, infinity, infinity + unit / 2};
  if (few) return values;
  for (const Bits value :
       {unit - 1, unit + 1, one - 1, one - unit, one + unit, one + unit / 2, one + unit + unit / 4, infinity, one + 1,
        infinity - 1, Bits{1}, unit, infinity + unit / 2, infinity - 2 * unit, one + 4 * unit + unit / 16}) {
    values.push_back(value | sign);
  }
  for (const Bits value : {unit - 1, unit / 2, one - 1, one - 2, one - unit, one + unit, one + unit / 2,
                           one + unit + unit / 4, infinity + 1, infinity - unit, one + 5 * unit + 5 * (unit / 64)}) {
    values.push_back(value);
  }
  return values;
}

std::vector<Bits> pair_edges(const Format& format, bool few) {
  const std::vector<Bits> low = float_edges(format, few);
  std::vector<Bits> values;
  for (std::size_t k = 0; k < low.size(); ++k) values.push_back(low[(k * 7 + 3) % low.size()] << format.size | low[k]);
  return values;
}

std::vector<Row> combinations(const std::vector<std::vector<Bits>>& values) {
  std::vector<Row> rows(1);
  for (std::size_t k = 0; k < values.size(); ++k) {
    std::vector<Row> longer;
    for (const Row& row : rows) {
      for (const Bits value : values[k]) {
        longer.push_back(row);
        longer.back().in[k] = value;
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

Accept any_nan(const Format& format) {
  return [format](Result wanted, Result got, const Row&) {
    return wanted == got || (is_nan(wanted.d, format) && is_nan(got.d, format));
  };
}

Accept flushed_least(const Format& format, int size) {
  return [format, size](Result wanted, Result got, const Row&) {
    const Bits least = Bits{1} << format.fraction();
    const Bits mask = format.sign() | (format.sign() - 1);
    for (int shift = 0; shift < size; shift += format.size) {
      const Bits a = wanted.d >> shift & mask;
      const Bits b = got.d >> shift & mask;
      if (a != b && !((a & ~format.sign()) == least && b == (a & format.sign()))) return false;
    }
    return true;
  };
}

}  // namespace ptx_forms
