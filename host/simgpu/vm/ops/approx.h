// The approximate float functions, computed in doubles with short series. The errors are well within PTX's bounds: ex2
// 2 ulp, lg2 2^-22, sin and cos 2^-20.5 near zero, tanh 2^-11. The functions have neither branches nor tables, so
// compilers can vectorise them.
#pragma once

#include "host/simgpu/vm/ops/lanes.h"

namespace simgpu::SIMGPU_ISA {

inline constexpr f64 to_integer =
    6755399441055744.0;  // 1.5 * 2^52: adding this moves the nearest integer into the low bits

// Computes 2^x for |x| <= 200 as 2^n * 2^f with |f| <= 1/2.
SIMGPU_INLINE f64 exp2_double(f64 x) {
  const f64 shifted = x + to_integer;
  const f64 f = x - (shifted - to_integer);
  const u64 scale = (as<u64>(shifted) << 52) + (u64{1023} << 52);
  f64 p = 1.525273380405984e-5;
  p = p * f + 1.540353039338161e-4;
  p = p * f + 1.333355814642844e-3;
  p = p * f + 9.618129107628477e-3;
  p = p * f + 5.550410866482158e-2;
  p = p * f + 2.402265069591007e-1;
  p = p * f + 6.931471805599453e-1;
  p = p * f + 1.0;
  return p * as<f64>(scale);
}

struct Exp2 {
  static f32 run(f32 a) {
    f64 x = static_cast<f64>(a);
    x = x > 200.0 ? 200.0 : x;
    x = x < -200.0 ? -200.0 : x;
    return static_cast<f32>(exp2_double(x));
  }
};

struct Log2 {
  static f32 run(f32 a) {
    const f64 x = static_cast<f64>(a);
    const u64 bits = as<u64>(x);
    // The exponent is chosen such that the remaining factor lies in [sqrt(1/2), sqrt(2)). The bias keeps it positive.
    const u64 biased = (bits - 0x3fe6'a09e'667f'3bcd + (u64{1024} << 52)) >> 52;
    const f64 exponent = as<f64>(u64{0x4330'0000'0000'0000} | biased) - (4503599627370496.0 + 1024.0);
    const f64 m = as<f64>(bits - (biased << 52) + (u64{1024} << 52));
    const f64 t = (m - 1.0) / (m + 1.0);
    const f64 s = t * t;
    f64 p = 0.2623081892525388;  // coefficients 2 / (11 ln 2), 2 / (9 ln 2), and so on
    p = p * s + 0.3205988979753252;
    p = p * s + 0.4121985831111324;
    p = p * s + 0.5770780163555853;
    p = p * s + 0.9617966939259756;
    p = p * s + 2.885390081777927;
    const f32 r = static_cast<f32>(exponent + p * t);
    const f32 special = x == 0.0 ? -__builtin_inff() : x > 0.0 ? a : __builtin_nanf("");
    return x > 0.0 && x < __builtin_inf() ? r : special;
  }
};

// Computes sin(r + quarter * pi/2) for |r| <= pi/4. Finite arguments beyond 1e9 count as zero, since PTX gives no error
// bound there.
SIMGPU_INLINE f32 sine(f32 a, u64 quarter) {
  const f64 given = static_cast<f64>(a);
  const f64 x = (given > 1e9 || given < -1e9) && given - given == 0.0 ? 0.0 : given;
  const f64 shifted = x * 0.6366197723675814 + to_integer;
  const f64 k = shifted - to_integer;
  const f64 r = (x - k * 1.5707963267948966) - k * 6.123233995736766e-17;
  const u64 turn = as<u64>(shifted) + quarter;
  const f64 s = r * r;
  f64 odd = -2.50521083854417e-8;
  odd = odd * s + 2.755731922398589e-6;
  odd = odd * s - 1.984126984126984e-4;
  odd = odd * s + 8.333333333333333e-3;
  odd = odd * s - 1.6666666666666666e-1;
  odd = (odd * s + 1.0) * r;
  f64 even = 2.08767569878681e-9;
  even = even * s - 2.755731922398589e-7;
  even = even * s + 2.48015873015873e-5;
  even = even * s - 1.388888888888889e-3;
  even = even * s + 4.1666666666666664e-2;
  even = even * s - 0.5;
  even = even * s + 1.0;
  const f64 value = (turn & 1) != 0 ? even : odd;
  return static_cast<f32>((turn & 2) != 0 ? -value : value);
}

struct Sin {
  static f32 run(f32 a) { return sine(a, 0); }
};
struct Cos {
  static f32 run(f32 a) { return sine(a, 1); }
};

struct Tanh {
  static f32 run(f32 a) {
    const f64 x = static_cast<f64>(a);
    const f64 bounded = x > 20.0 ? 20.0 : x < -20.0 ? -20.0 : x;
    const f64 e = exp2_double(bounded * 2.8853900817779268);
    const f64 s = x * x;
    const f64 small = x * (1.0 + s * (-0.3333333333333333 + s * 0.13333333333333333));
    return static_cast<f32>(s < 0.01 ? small : (e - 1.0) / (e + 1.0));
  }
};

}  // namespace simgpu::SIMGPU_ISA
