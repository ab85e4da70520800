// Converts halves (f16) and brain floats (bf16) to doubles, and rounds doubles to halves and brain floats.
#pragma once

#include "host/simgpu/isa/scalar.h"

namespace simgpu::SIMGPU_ISA {

// A 16-bit format: the number of fraction bits and the exponent's bias.
struct Half {
  static constexpr int fraction = 10;
  static constexpr int bias = 15;
};
struct Brain {
  static constexpr int fraction = 7;
  static constexpr int bias = 127;
};

template <class F>
SIMGPU_INLINE f64 widen(u16 bits) {
  constexpr int exponents = (1 << (15 - F::fraction)) - 1;
  const u64 sign = u64{bits} >> 15 << 63;
  const int exponent = bits >> F::fraction & exponents;
  const u64 rest = bits & ((1U << F::fraction) - 1);
  if (exponent == exponents) return as<f64>(sign | u64{0x7ff} << 52 | rest << (52 - F::fraction));
  if (exponent == 0) {
    const f64 unit = as<f64>(static_cast<u64>(1023 + 1 - F::bias - F::fraction) << 52);
    return as<f64>(as<u64>(static_cast<f64>(rest) * unit) | sign);
  }
  return as<f64>(sign | static_cast<u64>(exponent - F::bias + 1023) << 52 | rest << (52 - F::fraction));
}

// Rounds a double as `round` selects: 0 to nearest even, 1 down, 2 up, 3 toward zero.
template <class F>
SIMGPU_INLINE u16 narrow(f64 value, u32 round) {
  constexpr int exponents = (1 << (15 - F::fraction)) - 1;
  constexpr u32 infinity = static_cast<u32>(exponents) << F::fraction;
  const u64 bits = as<u64>(value);
  const u32 sign = static_cast<u32>(bits >> 63);
  const u64 size = bits & ~(u64{1} << 63);
  if (size > u64{0x7ff} << 52) return 0x7fff;
  if (size == u64{0x7ff} << 52) return static_cast<u16>(sign << 15 | infinity);
  int exponent = static_cast<int>(size >> 52) - 1023;
  const u64 fraction = (size & ((u64{1} << 52) - 1)) | (size >> 52 != 0 ? u64{1} << 52 : 0);
  const int least = 1 - F::bias;
  int shift = 52 - F::fraction;
  if (exponent < least) {
    shift += least - exponent;
    exponent = least - 1;
  }
  if (shift > 62) shift = 62;
  u64 kept = fraction >> shift;
  const u64 lost = fraction & ((u64{1} << shift) - 1);
  const u64 tie = u64{1} << (shift - 1);
  const bool up = round == 0   ? lost > tie || (lost == tie && (kept & 1) != 0)
                  : round == 1 ? sign != 0 && lost != 0
                  : round == 2 ? sign == 0 && lost != 0
                               : false;
  kept += up;
  // The sum lets the leading one of a normal number carry into the exponent.
  const s64 field = exponent < least ? 0 : exponent + F::bias - 1;
  u64 result = (static_cast<u64>(field) << F::fraction) + kept;
  if (result >= infinity) {
    const bool to_infinity = round == 0 || (round == 1 && sign != 0) || (round == 2 && sign == 0);
    result = to_infinity ? infinity : infinity - 1;
  }
  return static_cast<u16>(sign << 15 | static_cast<u32>(result));
}

}  // namespace simgpu::SIMGPU_ISA
