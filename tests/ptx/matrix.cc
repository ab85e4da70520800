#include "tests/ptx/matrix.h"

#include <bit>
#include <cstdlib>

namespace ptx_forms {
namespace {

constexpr Format e4m3{8, 4, -6, 7};
constexpr Format e5m2{8, 3, -14, 15};

ElementType floats(const char* name, const Format& format) { return {name, format.size, Sort::Float, format}; }
ElementType integers(const char* name, int bits) { return {name, bits, Sort::Integer, {}, name[0] == 's'}; }

// e4m3 uses its largest exponent for ordinary numbers.
Number number_of(const ElementType& type, Bits bits) {
  if (type.infinities) return parts(bits, type.format);
  Number number;
  number.negative = (bits & 0x80) != 0;
  if ((bits & 0x7f) == 0x7f) number.kind = Kind::Nan;
  const bool normal = (bits & 0x78) != 0;
  number.significand = (bits & 7) | (normal ? 8 : 0);
  number.exponent = normal ? static_cast<int>(bits >> 3 & 15) - 10 : -9;
  return number;
}

s64 integer_of(const ElementType& type, Bits bits) {
  const int spare = 64 - type.bits;
  return type.is_signed ? static_cast<s64>(bits << spare) >> spare : static_cast<s64>(bits);
}

// ---- sums

Bits float_sum(const Rule& rule, const std::vector<Bits>& row, const std::vector<Bits>& column, Bits c) {
  bool nan = false;
  bool infinite[2] = {false, false};
  const auto note = [&](bool negative) { infinite[negative] = true; };
  const Number before = number_of(rule.c, c);
  nan |= before.kind == Kind::Nan;
  if (before.kind == Kind::Infinite) note(before.negative);
  Exact sum = before.kind == Kind::Finite ? Exact(before) : Exact();
  for (std::size_t k = 0; k < row.size(); ++k) {
    const Number a = number_of(rule.a, row[k]);
    const Number b = number_of(rule.b, column[k]);
    const bool negative = a.negative != b.negative;
    if (a.kind == Kind::Finite && b.kind == Kind::Finite) {
      sum = sum + Exact(negative, Wide{a.significand} * b.significand, a.exponent + b.exponent);
    } else if (a.kind == Kind::Nan || b.kind == Kind::Nan || a.zero() || b.zero()) {
      nan = true;
    } else {
      note(negative);
    }
  }
  const Format& format = rule.d.format;
  if (nan || (infinite[0] && infinite[1])) return canonical_nan(format);
  if (infinite[0] || infinite[1]) return format.infinity() | (infinite[1] ? format.sign() : 0);
  // A sum that cancels is +0. Sums of negative zeros only are compared by distance, not by bits.
  return sum.zero() ? 0 : sum.round(format, Round::Nearest);
}

Bits integer_sum(const Rule& rule, const std::vector<Bits>& row, const std::vector<Bits>& column, Bits c) {
  s64 sum = integer_of(rule.c, c);
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (rule.a.sort == Sort::Bit) {
      sum += rule.both ? row[k] != 0 && column[k] != 0 : row[k] != column[k];
    } else {
      sum += integer_of(rule.a, row[k]) * integer_of(rule.b, column[k]);
    }
  }
  constexpr s64 most = 0x7fff'ffff;
  if (rule.saturates && sum > most) sum = most;
  if (rule.saturates && sum < -most - 1) sum = -most - 1;
  return static_cast<u32>(sum);
}

// ---- values

Bits small_value(const ElementType& type) {
  const bool negative = (next_random() >> 40 & 1) != 0;
  const Bits size = next_random() >> 40 & 3;
  if (type.sort == Sort::Integer) {
    const auto value = static_cast<s64>(size);
    return static_cast<Bits>(negative && type.is_signed ? -value : value) & type.mask();
  }
  return from_integer(negative && size != 0, size, type.format, Round::Nearest);
}

Bits any_value(const ElementType& type) {
  const Bits random = next_random() >> 3;
  if (type.sort == Sort::Integer || type.sort == Sort::Bit) return random & type.mask();
  const Bits field = static_cast<Bits>(type.format.most) - (random >> 55 & 3);
  const Bits fraction = random & ((Bits{1} << type.format.fraction()) - 1);
  // A single that holds a tf32 value has only 19 significant bits. Elements of C get the same restriction.
  const Bits kept = type.format.size == 32 ? fraction & ~Bits{0x1fff} : fraction;
  return (random >> 54 & 1 ? type.format.sign() : 0) | field << type.format.fraction() | kept;
}

Bits edge_value(const ElementType& type) {
  const Bits choice = next_random() >> 40;
  if (type.sort == Sort::Bit) return choice & 1;
  if (type.sort == Sort::Integer) {
    const Bits top = Bits{1} << (type.bits - 1);
    const Bits ends[] = {0, 1, top, top - 1, type.mask(), type.mask() - 1};
    return ends[choice % 6];
  }
  if (choice % 24 != 0) return small_value(type);
  const Bits sign = choice >> 8 & 1 ? type.format.sign() : 0;
  // The NaN has a bit among the upper bits, so that it stays a NaN in tf32, which drops the lower bits.
  const Bits nan = type.infinities ? type.format.infinity() | Bits{1} << (type.format.fraction() - 1) : 0x7f;
  const Bits least = type.name == "tf32" ? Bits{1} << 13 : 1;  // tf32 ignores the lower bits
  const Bits edges[] = {0, least, Bits{1} << type.format.fraction(), type.infinities ? type.format.infinity() : nan,
                        nan};
  return edges[(choice >> 9) % 5] | sign;
}

double double_of(const ElementType& type, Bits bits) {
  const Bits wide = converted(bits, type.format, twice, Round::Nearest);
  return std::bit_cast<double>(wide);
}

}  // namespace

const ElementType& element_type(const std::string& name) {
  static const std::vector<ElementType> all = {
      floats("f16", half),
      floats("bf16", brain),
      floats("tf32", single),
      floats("f32", single),
      {"f64", 64, Sort::Double, twice},
      {"e4m3", 8, Sort::Float, e4m3, false, false},
      floats("e5m2", e5m2),
      integers("s8", 8),
      integers("u8", 8),
      integers("s4", 4),
      integers("u4", 4),
      integers("s32", 32),
      {"b1", 1, Sort::Bit, {}},
  };
  for (const ElementType& type : all) {
    if (type.name == name) return type;
  }
  std::abort();
}

Bits random_element(const ElementType& type, Values values) {
  switch (values) {
    case Values::Small: return type.sort == Sort::Bit ? next_random() >> 40 & 1 : small_value(type);
    case Values::Any: return any_value(type);
    default: return edge_value(type);
  }
}

Bits dot(const Rule& rule, const std::vector<Bits>& row, const std::vector<Bits>& column, Bits c) {
  if (rule.d.sort == Sort::Integer) return integer_sum(rule, row, column, c);
  if (rule.d.sort == Sort::Float) return float_sum(rule, row, column, c);
  for (std::size_t k = 0; k < row.size(); ++k) c = multiply_add(row[k], column[k], c, twice, rule.round);
  return c;
}

Accept within(const ElementType& type, double distance) {
  return [type, distance](Result wanted, Result got, const Row&) {
    for (const auto& [w, g] : {std::pair(wanted.d, got.d), std::pair(wanted.e, got.e)}) {
      for (int shift = 0; shift < 64; shift += type.bits) {
        const Bits a = w >> shift & type.mask();
        const Bits b = g >> shift & type.mask();
        if (a == b) continue;
        if (is_nan(a, type.format) && is_nan(b, type.format)) continue;
        // The comparison also fails if either value is NaN or infinite.
        if (!(std::fabs(double_of(type, a) - double_of(type, b)) <= distance)) return false;
      }
    }
    return true;
  };
}

double distance_of_sums(const Rule& rule, int count) {
  const bool bytes = rule.a.bits == 8;  // PTX gives no bound for 8-bit floats; devices keep 13 fraction bits
  const double unit = rule.d.format.size == 16 ? 0x1p-10 : bytes ? 0x1p-13 : 0x1p-23;
  return unit * 2 * (count + 1) * (4 * count + 4);
}

u32 word_of(const Row& row, unsigned number) {
  const Bits both = number < 6 ? row.in[number / 2] : row.more[number / 2 - 3];
  return static_cast<u32>(both >> (number % 2 * 32));
}

void set_word(Row& row, unsigned number, u32 word) {
  Bits& both = number < 6 ? row.in[number / 2] : row.more[number / 2 - 3];
  const unsigned shift = number % 2 * 32;
  both = (both & ~(Bits{0xffff'ffff} << shift)) | Bits{word} << shift;
}

}  // namespace ptx_forms
