// Operations on the bytes of words: permutation, dot products, sums of distances. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

SIMGPU_INLINE u32 pick_byte(u32 a, u32 b, u32 selector) {
  const u64 all = u64{b} << 32 | a;
  const u32 byte = static_cast<u32>(all >> (8 * (selector & 7))) & 0xff;
  return (selector & 8) != 0 ? ((byte & 0x80) != 0 ? 0xffU : 0U) : byte;
}
struct Prmt {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    return static_cast<D>(pick_byte(a, b, c & 15) | pick_byte(a, b, c >> 4 & 15) << 8 |
                          pick_byte(a, b, c >> 8 & 15) << 16 | pick_byte(a, b, c >> 12 & 15) << 24);
  }
};
// The special modes are a table of selectors. The two low bits of c select a column.
constexpr u16 prmt_modes[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                  {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                  {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
template <int mode>
struct PrmtMode {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    return Prmt::run<D>(a, b, prmt_modes[mode][c & 3]);
  }
};

SIMGPU_INLINE s32 byte_at(u32 value, unsigned k, bool sign) {
  const u32 raw = value >> (8 * k);
  return sign ? s32{static_cast<s8>(raw)} : s32{static_cast<u8>(raw)};
}
SIMGPU_INLINE s32 half_at(u32 value, unsigned k, bool sign) {
  const u32 raw = value >> (16 * k);
  return sign ? s32{static_cast<s16>(raw)} : s32{static_cast<u16>(raw)};
}
template <bool sign_a, bool sign_b>
struct Dot4 {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    for (unsigned k = 0; k < 4; ++k) c += static_cast<u32>(byte_at(a, k, sign_a) * byte_at(b, k, sign_b));
    return static_cast<D>(c);
  }
};
template <bool sign_a, bool sign_b, unsigned first>  // first: the first of the two bytes of b
struct Dot2 {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    for (unsigned k = 0; k < 2; ++k) c += static_cast<u32>(half_at(a, k, sign_a) * byte_at(b, first + k, sign_b));
    return static_cast<D>(c);
  }
};
template <bool sign_a, bool sign_b>
using Dot2Low = Dot2<sign_a, sign_b, 0>;
template <bool sign_a, bool sign_b>
using Dot2High = Dot2<sign_a, sign_b, 2>;

// The distances between the bytes of two words, either separately or summed up and added to a third operand.
template <bool sign, bool sum>
struct ByteDistance {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    u32 bytes = 0;
    for (unsigned k = 0; k < 4; ++k) {
      const s32 difference = byte_at(a, k, sign) - byte_at(b, k, sign);
      const u32 distance = static_cast<u32>(difference < 0 ? -difference : difference);
      if (sum) {
        c += distance;
      } else {
        bytes |= distance << (8 * k);
      }
    }
    return static_cast<D>(sum ? c : bytes);
  }
};

Handlers pick_prmt(const Form& form) {
  if (form.has(Word::f4e)) return both<Map3<PrmtMode<0>, u32, u32, u32, u32>>();
  if (form.has(Word::b4e)) return both<Map3<PrmtMode<1>, u32, u32, u32, u32>>();
  if (form.has(Word::rc8)) return both<Map3<PrmtMode<2>, u32, u32, u32, u32>>();
  if (form.has(Word::ecl)) return both<Map3<PrmtMode<3>, u32, u32, u32, u32>>();
  if (form.has(Word::ecr)) return both<Map3<PrmtMode<4>, u32, u32, u32, u32>>();
  if (form.has(Word::rc16)) return both<Map3<PrmtMode<5>, u32, u32, u32, u32>>();
  return both<Map3<Prmt, u32, u32, u32, u32>>();
}
template <template <bool, bool> class Op>
Handlers pick_dot(const Form& form) {
  const bool a = form.type(0) == ptx::Type::S32;
  const bool b = form.type(1) == ptx::Type::S32;
  if (a && b) return both<Map3<Op<true, true>, u32, u32, u32, u32>>();
  if (a) return both<Map3<Op<true, false>, u32, u32, u32, u32>>();
  if (b) return both<Map3<Op<false, true>, u32, u32, u32, u32>>();
  return both<Map3<Op<false, false>, u32, u32, u32, u32>>();
}
Handlers pick_dp2a(const Form& form) {
  if (form.has(Word::lo) == form.has(Word::hi)) return {};
  return form.has(Word::hi) ? pick_dot<Dot2High>(form) : pick_dot<Dot2Low>(form);
}
Handlers pick_byte_distance(const Form& form) {
  if (form.type(1) != form.type(2)) return {};
  const bool sign = form.type(1) == ptx::Type::S32;
  if (form.has(Word::add)) {
    return sign ? both<Map3<ByteDistance<true, true>, u32, u32, u32, u32>>()
                : both<Map3<ByteDistance<false, true>, u32, u32, u32, u32>>();
  }
  return sign ? both<Map3<ByteDistance<true, false>, u32, u32, u32, u32>>()
              : both<Map3<ByteDistance<false, false>, u32, u32, u32, u32>>();
}

constexpr Row rows[] = {
    {"prmt", "dttt", "b32", "f4e b4e rc8 ecl ecr rc16", &pick_prmt},
    {"dp4a", "dttt", "u32 s32", "", &pick_dot<Dot4>},
    {"dp2a", "dttt", "u32 s32", "lo hi", &pick_dp2a},
    {"vabsdiff4", "dttt", "u32 s32", "add", &pick_byte_distance},
};

}  // namespace

Rows byte_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
