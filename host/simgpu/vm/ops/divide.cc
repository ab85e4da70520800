// Quotients and remainders of integers. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/integer.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

// PTX does not define division by zero; here the quotient is all ones and the remainder is the dividend. 32-bit
// quotients are computed in doubles, which vectorise, and then truncated. The result is exact: a quotient that is not
// an integer is at least 1/b below the next integer, and the rounding error is far smaller. Adding 1.5 * 2^52 moves the
// integer into the low bits.
constexpr f64 integer_shift = 6755399441055744.0;

template <class D>
SIMGPU_INLINE f64 to_double(D a) {
  if constexpr (std::is_signed_v<D>) {
    return static_cast<f64>(a);
  } else {
    return as<f64>(u64{0x4330'0000'0000'0000} | u64{a}) - 4503599627370496.0;
  }
}

struct Div {
  template <class D>
  static D run(D a, D b) {
    if constexpr (sizeof(D) == 2) {
      const f32 quotient = static_cast<f32>(a) / static_cast<f32>(b == 0 ? D{1} : b);
      return b == 0 ? static_cast<D>(-1) : static_cast<D>(static_cast<s32>(quotient));
    } else if constexpr (sizeof(D) == 4) {
      const f64 quotient = __builtin_trunc(to_double(a) / to_double(b == 0 ? D{1} : b));
      const u64 bits = as<u64>(quotient + integer_shift);
      return b == 0 ? static_cast<D>(-1) : static_cast<D>(static_cast<u32>(bits));
    } else {
      if (b == 0) return static_cast<D>(-1);
      if constexpr (std::is_signed_v<D>) {
        if (b == -1) return Sub::run<D>(0, a);
      }
      return a / b;
    }
  }
};
struct Rem {
  template <class D>
  static D run(D a, D b) {
    const D quotient = Div::run<D>(a, b);
    return b == 0 ? a : Sub::run<D>(a, MulLo::run<D>(quotient, b));
  }
};

constexpr Row rows[] = {
    {"div", "dtt", all_types, "", &pick2<Div>},
    {"rem", "dtt", all_types, "", &pick2<Rem>},
};

}  // namespace

Rows divide_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
