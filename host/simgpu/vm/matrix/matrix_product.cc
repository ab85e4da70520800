// Executes mma and wmma.mma: d = a * b + c.
//
// PTX does not define the order in which floats are added, nor the rounding. In the simulation each product is exact.
// The sum starts with c, adds the products in the order of k, and is rounded to the nearest single after each addition.
// A result in halves is rounded once more at the end. For doubles, each addition is a fused multiply-add in the order
// of k.
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/simgpu/isa/half.h"
#include "host/simgpu/vm/matrix/matrix_registers.h"
#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/rendezvous.h"

namespace simgpu::matrix {
namespace {

constexpr std::size_t most_multiplicands = 1024;  // elements of the largest matrix, that of m16n8k64
constexpr std::size_t most_sums = 256;

// The operands of a product: their layouts and the places of their registers.
struct Operands {
  Product product;
  Layout d, a, b, c;
  const Place* places_of_d;
  const Place* places_of_a;
  const Place* places_of_b;
  const Place* places_of_c;

  Operands(const Ctx& ctx, const Ins* i)
      : product(std::bit_cast<Product>(i->imm)),
        d(layout_of(product, Role::Accumulator, product.d)),
        a(layout_of(product, Role::A, product.a)),
        b(layout_of(product, Role::B, product.b)),
        c(layout_of(product, Role::Accumulator, product.c)),
        places_of_d(ctx.code->extra.data() + i->index),
        places_of_a(places_of_d + d.registers()),
        places_of_b(places_of_a + a.registers()),
        places_of_c(places_of_b + b.registers()) {}
};

// Computes sums[...] = step(sums[...], a, b) in the order of k. The loop processes one row of sums at a time, so that
// the innermost loop accesses adjacent elements and has a fixed length.
template <unsigned n, class S, class T, class Step>
void multiply_rows(const Operands& o, S* sums, const T* a, const T* b, Step step) {
  const unsigned m = shapes[o.product.shape].m;
  const unsigned inner = o.a.columns;
  for (unsigned row = 0; row < o.a.rows; ++row) {
    const T* const right = b + row / m * n;  // the columns of the product to which this row belongs
    S line[n];
    std::copy_n(sums + row * n, n, line);
    for (unsigned k = 0; k < inner; ++k) {
      const T left = a[row * inner + k];
      const T* const other = right + k * o.b.columns;
      for (unsigned column = 0; column < n; ++column) line[column] = step(line[column], left, other[column]);
    }
    std::copy_n(line, n, sums + row * n);
  }
}

template <class S, class T, class Step>
void multiply(const Operands& o, S* sums, const T* a, const T* b, Step step) {
  switch (shapes[o.product.shape].n) {
    case 8: return multiply_rows<8>(o, sums, a, b, step);
    case 16: return multiply_rows<16>(o, sums, a, b, step);
    default: return multiply_rows<32>(o, sums, a, b, step);
  }
}

// ---- floats

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// e4m3 has no infinities: its largest exponent is an ordinary one, except for the NaN.
double widen_e4m3(std::uint32_t bits) {
  const std::uint32_t fraction = bits & 7;
  const int exponent = static_cast<int>(bits >> 3 & 15);
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  const double size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (bits & 0x80) != 0 ? -size : size;
}

template <class T>
void gather_floats(Ctx& c, const Place* places, const Layout& layout, Element element, T* matrix) {
  const auto with = [&](auto decode) { gather<std::uint32_t>(c, places, layout, matrix, decode); };
  switch (element) {
    case Element::F16:
      return with([](std::uint32_t w) { return isa_base::widen<isa_base::Half>(static_cast<std::uint16_t>(w)); });
    case Element::Bf16: return with([](std::uint32_t w) { return double{as_float(w << 16)}; });
    case Element::Tf32: return with([](std::uint32_t w) { return double{as_float(w & ~0x1fffU)}; });
    case Element::E4m3: return with([](std::uint32_t w) { return widen_e4m3(w); });
    case Element::E5m2:  // an e5m2 value is the upper byte of a half
      return with(
          [](std::uint32_t w) { return isa_base::widen<isa_base::Half>(static_cast<std::uint16_t>((w & 0xff) << 8)); });
    default: return with([](std::uint32_t w) { return double{as_float(w)}; });
  }
}

void scatter_floats(Ctx& c, const Place* places, const Layout& layout, Element element, const float* matrix) {
  if (element == Element::F16) {
    return scatter<std::uint32_t>(c, places, layout, matrix, [](float value) -> std::uint32_t {
      return isa_base::narrow<isa_base::Half>(value, 0);
    });
  }
  scatter<std::uint32_t>(c, places, layout, matrix, [](float value) {
    return value != value ? 0x7fff'ffffU : std::bit_cast<std::uint32_t>(value);
  });
}

const Ins* multiply_floats(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  isa_base::set_mode(c, 0);
  const Operands o(c, i);
  double a[most_multiplicands];
  double b[most_multiplicands];
  float sums[most_sums];
  gather_floats(c, o.places_of_a, o.a, o.product.a, a);
  gather_floats(c, o.places_of_b, o.b, o.product.b, b);
  gather_floats(c, o.places_of_c, o.c, o.product.c, sums);
  multiply(o, sums, a, b, [](float sum, double x, double y) { return static_cast<float>(sum + x * y); });
  scatter_floats(c, o.places_of_d, o.d, o.product.d, sums);
  return i + 1;
}

const Ins* multiply_doubles(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  const Operands o(c, i);
  isa_base::set_mode(c, o.product.round);
  const auto decode = [](std::uint64_t w) { return std::bit_cast<double>(w); };
  double a[most_multiplicands];
  double b[most_multiplicands];
  double sums[most_sums];
  gather<std::uint64_t>(c, o.places_of_a, o.a, a, decode);
  gather<std::uint64_t>(c, o.places_of_b, o.b, b, decode);
  gather<std::uint64_t>(c, o.places_of_c, o.c, sums, decode);
  multiply(o, sums, a, b, [](double sum, double x, double y) { return __builtin_fma(x, y, sum); });
  scatter<std::uint64_t>(c, o.places_of_d, o.d, sums, [](double v) { return std::bit_cast<std::uint64_t>(v); });
  return i + 1;
}

// ---- integers

void gather_integers(Ctx& c, const Place* places, const Layout& layout, Element element, std::int32_t* matrix) {
  const unsigned spare = 32U - layout.unit;
  if (element == Element::U8 || element == Element::U4) {
    return gather<std::uint32_t>(c, places, layout, matrix,
                                 [spare](std::uint32_t w) { return static_cast<std::int32_t>(w << spare >> spare); });
  }
  gather<std::uint32_t>(c, places, layout, matrix,
                        [spare](std::uint32_t w) { return static_cast<std::int32_t>(w << spare) >> spare; });
}

// A 64-bit sum cannot overflow: it adds at most 64 products of 4-bit values or 32 products of 8-bit values.
void finish_integers(Ctx& c, const Operands& o, const std::int64_t* sums) {
  using Limits = std::numeric_limits<std::int32_t>;
  const bool saturates = (o.product.options & product_saturates) != 0;
  scatter<std::uint32_t>(c, o.places_of_d, o.d, sums, [saturates](std::int64_t sum) {
    if (saturates && sum > Limits::max()) sum = Limits::max();
    if (saturates && sum < Limits::min()) sum = Limits::min();
    return static_cast<std::uint32_t>(sum);
  });
}

void gather_sums(Ctx& c, const Operands& o, std::int64_t* sums) {
  gather<std::uint32_t>(c, o.places_of_c, o.c, sums,
                        [](std::uint32_t w) { return std::int64_t{static_cast<std::int32_t>(w)}; });
}

const Ins* multiply_integers(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  const Operands o(c, i);
  std::int32_t a[most_multiplicands];
  std::int32_t b[most_multiplicands];
  std::int64_t sums[most_sums];
  gather_integers(c, o.places_of_a, o.a, o.product.a, a);
  gather_integers(c, o.places_of_b, o.b, o.product.b, b);
  gather_sums(c, o, sums);
  multiply(o, sums, a, b, [](std::int64_t sum, std::int32_t x, std::int32_t y) { return sum + x * y; });
  finish_integers(c, o, sums);
  return i + 1;
}

// An element of a or b is a group of 32 single bits of its line.
const Ins* multiply_bits(Ctx& c, const Ins* i) {
  if (!whole_warp(c, i)) return c.stop;
  const Operands o(c, i);
  const auto decode = [](std::uint32_t w) { return w; };
  std::uint32_t a[most_multiplicands];
  std::uint32_t b[most_multiplicands];
  std::int64_t sums[most_sums];
  gather<std::uint32_t>(c, o.places_of_a, o.a, a, decode);
  gather<std::uint32_t>(c, o.places_of_b, o.b, b, decode);
  gather_sums(c, o, sums);
  const bool both = (o.product.options & product_of_and) != 0;
  multiply(o, sums, a, b, [both](std::int64_t sum, std::uint32_t x, std::uint32_t y) {
    return sum + std::popcount(both ? x & y : x ^ y);
  });
  finish_integers(c, o, sums);
  return i + 1;
}

}  // namespace

Handlers product_handler(Element multiplicand) {
  switch (multiplicand) {
    case Element::F64: return {&multiply_doubles, &multiply_doubles};
    case Element::B1: return {&multiply_bits, &multiply_bits};
    case Element::S8:
    case Element::U8:
    case Element::S4:
    case Element::U4: return {&multiply_integers, &multiply_integers};
    default: return {&multiply_floats, &multiply_floats};
  }
}

}  // namespace simgpu::matrix
