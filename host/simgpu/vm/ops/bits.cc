// Logic, shifts, fields, predicates, moves, selection and comparison of integers and floats. See lanes.h and
// vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/mode.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

template <class T>
constexpr u32 width = 8 * sizeof(T);

struct And {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(a & b);
  }
};
struct Or {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(a | b);
  }
};
struct Xor {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(a ^ b);
  }
};
struct Not {
  template <class D>
  static D run(D a) {
    return static_cast<D>(~a);
  }
};
struct Cnot {
  template <class D>
  static D run(D a) {
    return static_cast<D>(a == 0);
  }
};
struct Shl {
  template <class D>
  static D run(D a, u32 b) {
    return b >= width<D> ? D{0} : static_cast<D>(a << b);
  }
};
struct Shr {
  template <class D>
  static D run(D a, u32 b) {
    if constexpr (std::is_signed_v<D>) {
      return static_cast<D>(a >> (b >= width<D> ? width<D> - 1 : b));
    } else {
      return b >= width<D> ? D{0} : static_cast<D>(a >> b);
    }
  }
};
template <bool left, bool wrap>
struct Funnel {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    const u32 amount = wrap ? c & 31 : c > 32 ? 32 : c;
    const u64 both = u64{b} << 32 | a;
    return static_cast<D>(left ? (both << amount) >> 32 : both >> amount);
  }
};

struct Popc {
  template <class D, class A>
  static D run(A a) {
    return static_cast<D>(__builtin_popcountll(a));
  }
};
struct Clz {
  template <class D, class A>
  static D run(A a) {
    return static_cast<D>(a == 0 ? width<A> : static_cast<u32>(__builtin_clzll(a)) - (64 - width<A>));
  }
};
struct Brev {
  template <class D>
  static D run(D a) {
    u64 v = a;
    v = (v >> 1 & 0x5555'5555'5555'5555) | (v & 0x5555'5555'5555'5555) << 1;
    v = (v >> 2 & 0x3333'3333'3333'3333) | (v & 0x3333'3333'3333'3333) << 2;
    v = (v >> 4 & 0x0f0f'0f0f'0f0f'0f0f) | (v & 0x0f0f'0f0f'0f0f'0f0f) << 4;
    return static_cast<D>(__builtin_bswap64(v) >> (64 - width<D>));
  }
};
template <bool shift_amount>
struct Bfind {
  template <class D, class A>
  static D run(A a) {
    BitsOf<A> bits = static_cast<BitsOf<A>>(a);
    if constexpr (std::is_signed_v<A>) bits = a < 0 ? static_cast<BitsOf<A>>(~bits) : bits;
    if (bits == 0) return static_cast<D>(-1);
    const u32 position = 63 - static_cast<u32>(__builtin_clzll(bits));
    return static_cast<D>(shift_amount ? width<A> - 1 - position : position);
  }
};

// Both fields of a bit-field's description are bytes; what lies beyond the width is sign or zero.
struct Bfe {
  template <class D>
  static D run(D a, u32 b, u32 c) {
    const u32 position = b & 0xff;
    const u32 length = c & 0xff;
    if (length == 0) return 0;
    const u32 last = position + length - 1 < width<D> - 1 ? position + length - 1 : width<D> - 1;
    const bool sign = std::is_signed_v<D> && (static_cast<BitsOf<D>>(a) >> last & 1) != 0;
    const u64 field = position >= width<D> ? 0 : static_cast<u64>(static_cast<BitsOf<D>>(a)) >> position;
    const u32 valid = position >= width<D> ? 0 : last - position + 1;
    const u64 mask = valid >= 64 ? ~u64{0} : (u64{1} << valid) - 1;
    return static_cast<D>(sign ? field | ~mask : field & mask);
  }
};
struct Bfi {
  template <class D>
  static D run(D a, D b, u32 c, u32 e) {
    const u32 position = c & 0xff;
    const u32 length = e & 0xff;
    if (position >= width<D> || length == 0) return b;
    const u64 mask = (length >= 64 ? ~u64{0} : (u64{1} << length) - 1) << position;
    return static_cast<D>((u64{b} & ~mask) | (u64{a} << position & mask));
  }
};
template <class T>
struct MapBfi {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, i->b);
    const u32* position = at<u32>(c, i->c);
    const u32* length = at<u32>(c, i->e);
    alignas(64) T r[warp_size];
    SIMGPU_LANES r[l] = Bfi::run<T>(a[l], b[l], position[l], length[l]);
    blend(c, at<T>(c, i->d), r);
    return i + 1;
  }
};
template <bool wrap>
struct Bmsk {
  template <class D>
  static D run(u32 a, u32 b) {
    const u32 start = wrap ? a & 31 : a;
    const u32 length = wrap ? b & 31 : b;
    if (start >= 32 || length == 0) return 0;
    const u32 ones = length >= 32 ? ~u32{0} : (u32{1} << length) - 1;
    return static_cast<D>(ones << start);
  }
};
template <bool wrap>
struct Szext {
  template <class D>
  static D run(D a, u32 b) {
    const u32 size = wrap ? b & 31 : b > 32 ? 32 : b;
    if (size == 0) return 0;
    const u32 unused = 32 - size;
    return static_cast<D>(static_cast<D>(static_cast<u32>(a) << unused) >> unused);
  }
};

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
// The special modes are a table of selectors, by the two low bits of c.
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

// The table's bit for inputs abc is bit abc of the constant.
struct Lop3 {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const u32* x = at<u32>(c, i->a);
    const u32* y = at<u32>(c, i->b);
    const u32* z = at<u32>(c, i->c);
    alignas(64) u32 r[warp_size];
    u32 m[8];
    for (unsigned k = 0; k < 8; ++k) m[k] = (i->imm >> k & 1) != 0 ? ~u32{0} : 0;
    SIMGPU_LANES {
      const u32 high = (((m[7] & z[l]) | (m[6] & ~z[l])) & y[l]) | (((m[5] & z[l]) | (m[4] & ~z[l])) & ~y[l]);
      const u32 low = (((m[3] & z[l]) | (m[2] & ~z[l])) & y[l]) | (((m[1] & z[l]) | (m[0] & ~z[l])) & ~y[l]);
      r[l] = (high & x[l]) | (low & ~x[l]);
    }
    blend(c, at<u32>(c, i->d), r);
    return i + 1;
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
template <bool sign_a, bool sign_b, unsigned first>  // of the two bytes of b
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

// The distance of bytes from bytes, each by itself or summed up and added.
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

struct Fns {  // the n-th set bit from a place on
  template <class D>
  static D run(u32 mask, u32 base, s32 offset) {
    if (base > 31) return static_cast<D>(-1);
    s32 left = offset == 0 ? 1 : offset < 0 ? -offset : offset;
    const s32 step = offset < 0 ? -1 : 1;
    if (offset == 0) return (mask >> base & 1) != 0 ? static_cast<D>(base) : static_cast<D>(-1);
    for (s32 at = static_cast<s32>(base); at >= 0 && at < 32; at += step) {
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<D>(at);
    }
    return static_cast<D>(-1);
  }
};

template <class Op>
Handlers pick_bits1(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map1<Op, T, T>>();
  });
}
template <class Op>
Handlers pick_bits2(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Op, T, T, T>>();
  });
}
template <class Op>
Handlers pick_count(const Form& form) {
  return form.type() == ptx::Type::B64 ? both<Map1<Op, u32, u64>>() : both<Map1<Op, u32, u32>>();
}
Handlers pick_shift_left(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Shl, T, T, u32>>();
  });
}
Handlers pick_shift_right(const Form& form) {
  return by_integer(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Shr, T, T, u32>>();
  });
}
Handlers pick_funnel(const Form& form) {
  const bool wrap = form.has(Word::wrap);
  if (wrap == form.has(Word::clamp)) return {};
  if (form.has(Word::l)) {
    return wrap ? both<Map3<Funnel<true, true>, u32, u32, u32, u32>>()
                : both<Map3<Funnel<true, false>, u32, u32, u32, u32>>();
  }
  return wrap ? both<Map3<Funnel<false, true>, u32, u32, u32, u32>>()
              : both<Map3<Funnel<false, false>, u32, u32, u32, u32>>();
}
Handlers pick_bfind(const Form& form) {
  return by_integer(form.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return form.has(Word::shiftamt) ? both<Map1<Bfind<true>, u32, T>>() : both<Map1<Bfind<false>, u32, T>>();
  });
}
Handlers pick_bfe(const Form& form) {
  return by_integer(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map3<Bfe, T, T, u32, u32>>();
  });
}
Handlers pick_bfi(const Form& form) {
  return form.type() == ptx::Type::B64 ? both<MapBfi<u64>>() : both<MapBfi<u32>>();
}
Handlers pick_bmsk(const Form& form) {
  return form.has(Word::wrap) ? both<Map2<Bmsk<true>, u32, u32, u32>>() : both<Map2<Bmsk<false>, u32, u32, u32>>();
}
Handlers pick_szext(const Form& form) {
  if (form.type() == ptx::Type::S32) {
    return form.has(Word::wrap) ? both<Map2<Szext<true>, s32, s32, u32>>() : both<Map2<Szext<false>, s32, s32, u32>>();
  }
  return form.has(Word::wrap) ? both<Map2<Szext<true>, u32, u32, u32>>() : both<Map2<Szext<false>, u32, u32, u32>>();
}
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

constexpr const char* bit_types = "b16 b32 b64";

constexpr Row rows[] = {
    {"and", "dtt", bit_types, "", &pick_bits2<And>},
    {"or", "dtt", bit_types, "", &pick_bits2<Or>},
    {"xor", "dtt", bit_types, "", &pick_bits2<Xor>},
    {"not", "dt", bit_types, "", &pick_bits1<Not>},
    {"cnot", "dt", bit_types, "", &pick_bits1<Cnot>},
    {"shl", "dtu", bit_types, "", &pick_shift_left},
    {"shr", "dtu", "b16 b32 b64 u16 u32 u64 s16 s32 s64", "", &pick_shift_right},
    {"shf", "dttu", "b32", "l r wrap clamp", &pick_funnel},
    {"popc", "Ut", "b32 b64", "", &pick_count<Popc>},
    {"clz", "Ut", "b32 b64", "", &pick_count<Clz>},
    {"brev", "dt", "b32 b64", "", &pick_bits1<Brev>},
    {"bfind", "Ut", "u32 s32 u64 s64", "shiftamt", &pick_bfind},
    {"bfe", "dtuu", "u32 s32 u64 s64", "", &pick_bfe},
    {"bfi", "dttuu", "b32 b64", "", &pick_bfi},
    {"bmsk", "dtt", "b32", "wrap clamp", &pick_bmsk},
    {"szext", "dtu", "u32 s32", "wrap clamp", &pick_szext},
    {"prmt", "dttt", "b32", "f4e b4e rc8 ecl ecr rc16", &pick_prmt},
    {"lop3", "dttti", "b32", "", [](const Form&) { return both<Lop3>(); }},
    {"dp4a", "dttt", "u32 s32", "", &pick_dot<Dot4>},
    {"dp2a", "dttt", "u32 s32", "lo hi", &pick_dp2a},
    {"vabsdiff4", "dttt", "u32 s32", "add", &pick_byte_distance},
    {"fns", "dttt", "b32", "", [](const Form&) { return both<Map3<Fns, u32, u32, u32, s32>>(); }},
};

// ---- predicates, moves, selection -----------------------------------------------------------------------------------

template <class Op>
struct PredicateOp {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    put_predicate(c, i->d, Op::template run<u32>(predicate(c, i->a), predicate(c, i->b)), masked);
    return i + 1;
  }
};
struct PredicateNot {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    put_predicate(c, i->d, ~predicate(c, i->a), masked);
    return i + 1;
  }
};
struct PredicateMove {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    put_predicate(c, i->d, predicate(c, i->a), masked);
    return i + 1;
  }
};

struct Same {
  template <class D>
  static D run(D a) {
    return a;
  }
};
struct Resize {
  template <class D, class A>
  static D run(A a) {
    return static_cast<D>(a);
  }
};

// Ins::c is the predicate.
template <class T>
struct Select {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, i->b);
    T* d = at<T>(c, i->d);
    const u32 p = predicate(c, i->c);
    alignas(64) u32 pick[warp_size];
    SIMGPU_LANES pick[l] = (p & (u32{1} << l)) != 0 ? ~u32{0} : 0;
    alignas(64) T r[warp_size];
    SIMGPU_LANES {
      const T take = static_cast<T>(static_cast<SignedOf<T>>(static_cast<s32>(pick[l])));
      r[l] = static_cast<T>((a[l] & take) | (b[l] & static_cast<T>(~take)));
    }
    if constexpr (masked) {
      blend(c, d, r);
    } else {
      SIMGPU_LANES d[l] = r[l];
    }
    return i + 1;
  }
};

// ---- comparison -----------------------------------------------------------------------------------------------------

#define SIMGPU_COMPARISON(Name, expression) \
  struct Name {                             \
    template <class T>                      \
    static bool run(T a, T b) {             \
      return expression;                    \
    }                                       \
  };
SIMGPU_COMPARISON(Eq, a == b)
SIMGPU_COMPARISON(Ne, a != b)
SIMGPU_COMPARISON(Lt, a < b)
SIMGPU_COMPARISON(Le, a <= b)
SIMGPU_COMPARISON(Gt, a > b)
SIMGPU_COMPARISON(Ge, a >= b)
SIMGPU_COMPARISON(NeOrdered, (a < b) | (a > b))
SIMGPU_COMPARISON(Equ, !((a < b) | (a > b)))
SIMGPU_COMPARISON(Ltu, !(a >= b))
SIMGPU_COMPARISON(Leu, !(a > b))
SIMGPU_COMPARISON(Gtu, !(a <= b))
SIMGPU_COMPARISON(Geu, !(a < b))
SIMGPU_COMPARISON(Num, (a == a) & (b == b))
SIMGPU_COMPARISON(Nan, (a != a) | (b != b))
#undef SIMGPU_COMPARISON

template <class Op, class T>
struct Compare {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    if constexpr (std::is_floating_point_v<T>) set_mode(c, i->flags);
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, i->b);
    u32 bits = 0;
    SIMGPU_LANES bits |= Op::template run<T>(a[l], b[l]) ? u32{1} << l : 0U;
    put_predicate(c, i->d, bits, masked);
    return i + 1;
  }
};

template <class T>
Handlers compare_integer(Word word) {
  switch (word) {
    case Word::eq: return both<Compare<Eq, T>>();
    case Word::ne: return both<Compare<Ne, T>>();
    case Word::lt:
    case Word::lo: return both<Compare<Lt, T>>();
    case Word::le:
    case Word::ls: return both<Compare<Le, T>>();
    case Word::gt:
    case Word::hi: return both<Compare<Gt, T>>();
    case Word::ge:
    case Word::hs: return both<Compare<Ge, T>>();
    default: return {};
  }
}

template <class T>
Handlers compare_float(Word word) {
  switch (word) {
    case Word::eq: return both<Compare<Eq, T>>();
    case Word::ne: return both<Compare<NeOrdered, T>>();
    case Word::lt: return both<Compare<Lt, T>>();
    case Word::le: return both<Compare<Le, T>>();
    case Word::gt: return both<Compare<Gt, T>>();
    case Word::ge: return both<Compare<Ge, T>>();
    case Word::equ: return both<Compare<Equ, T>>();
    case Word::neu: return both<Compare<Ne, T>>();
    case Word::ltu: return both<Compare<Ltu, T>>();
    case Word::leu: return both<Compare<Leu, T>>();
    case Word::gtu: return both<Compare<Gtu, T>>();
    case Word::geu: return both<Compare<Geu, T>>();
    case Word::num: return both<Compare<Num, T>>();
    case Word::isnan: return both<Compare<Nan, T>>();
    default: return {};
  }
}

template <class To>
Handlers resize_to(unsigned from, bool sign) {
  switch (from) {
    case 2: return sign ? both<Map1<Resize, To, s16>>() : both<Map1<Resize, To, u16>>();
    case 4: return sign ? both<Map1<Resize, To, s32>>() : both<Map1<Resize, To, u32>>();
    case 8: return both<Map1<Resize, To, u64>>();
    default: return {};
  }
}

}  // namespace

Rows bit_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

Handlers pick_move(unsigned size) {
  if (size == 0) return both<PredicateMove>();
  return by_size(size, [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map1<Same, T, T>>();
  });
}

Handlers pick_resize(unsigned to, unsigned from, bool sign) {
  return by_size(to, [&](auto tag) { return resize_to<typename decltype(tag)::type>(from, sign); });
}

Handlers pick_select(unsigned size) {
  return by_size(size, [](auto tag) { return both<Select<typename decltype(tag)::type>>(); });
}

Handlers pick_predicate(Word operation) {
  switch (operation) {
    case Word::and_: return both<PredicateOp<And>>();
    case Word::or_: return both<PredicateOp<Or>>();
    case Word::xor_: return both<PredicateOp<Xor>>();
    default: return both<PredicateNot>();
  }
}

Handlers pick_compare(Word comparison, ptx::Type type) {
  if (type == ptx::Type::F32) return compare_float<f32>(comparison);
  if (type == ptx::Type::F64) return compare_float<f64>(comparison);
  return by_integer(type, [&](auto tag) { return compare_integer<typename decltype(tag)::type>(comparison); });
}

}  // namespace simgpu::SIMGPU_ISA
