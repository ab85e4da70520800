// Integer arithmetic: the rows and the one-lane functions behind them. See lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

template <class T>
struct WiderOf;
template <>
struct WiderOf<u16> {
  using type = u32;
};
template <>
struct WiderOf<s16> {
  using type = s32;
};
template <>
struct WiderOf<u32> {
  using type = u64;
};
template <>
struct WiderOf<s32> {
  using type = s64;
};
template <>
struct WiderOf<u64> {
  using type = unsigned __int128;
};
template <>
struct WiderOf<s64> {
  using type = __int128;
};
template <class T>
using Wider = typename WiderOf<T>::type;

// Unsigned and at least 32 bits: arithmetic that wraps.
template <class T>
using Work = std::conditional_t<sizeof(T) <= 4, u32, u64>;

struct Add {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(static_cast<Work<D>>(a) + static_cast<Work<D>>(b));
  }
};
struct AddSat {
  template <class D>
  static D run(s32 a, s32 b) {
    const s64 sum = s64{a} + b;
    return static_cast<D>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  }
};
struct Sub {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(static_cast<Work<D>>(a) - static_cast<Work<D>>(b));
  }
};
struct SubSat {
  template <class D>
  static D run(s32 a, s32 b) {
    const s64 sum = s64{a} - b;
    return static_cast<D>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  }
};
struct MulLo {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(static_cast<Work<D>>(a) * static_cast<Work<D>>(b));
  }
};
struct MulHi {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>((static_cast<Wider<D>>(a) * static_cast<Wider<D>>(b)) >> (8 * sizeof(D)));
  }
};
struct MulWide {
  template <class D, class A>
  static D run(A a, A b) {
    return static_cast<D>(static_cast<D>(a) * static_cast<D>(b));
  }
};
struct MadLo {
  template <class D>
  static D run(D a, D b, D c) {
    return Add::run<D>(MulLo::run<D>(a, b), c);
  }
};
struct MadHi {
  template <class D>
  static D run(D a, D b, D c) {
    return Add::run<D>(MulHi::run<D>(a, b), c);
  }
};
struct MadHiSat {
  template <class D>
  static D run(s32 a, s32 b, s32 c) {
    return AddSat::run<D>(MulHi::run<s32>(a, b), c);
  }
};
struct MadWide {
  template <class D, class A>
  static D run(A a, A b, D c) {
    return Add::run<D>(MulWide::run<D, A>(a, b), c);
  }
};

template <class D>
SIMGPU_INLINE s64 product24(D a, D b) {
  if constexpr (std::is_signed_v<D>) {
    return s64{static_cast<s32>(static_cast<u32>(a) << 8) >> 8} * (static_cast<s32>(static_cast<u32>(b) << 8) >> 8);
  } else {
    return static_cast<s64>(u64{a & 0xff'ffffU} * (b & 0xff'ffffU));
  }
}
struct Mul24Lo {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(product24(a, b));
  }
};
struct Mul24Hi {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(product24(a, b) >> 16);
  }
};
struct Mad24Lo {
  template <class D>
  static D run(D a, D b, D c) {
    return Add::run<D>(Mul24Lo::run<D>(a, b), c);
  }
};
struct Mad24Hi {
  template <class D>
  static D run(D a, D b, D c) {
    return Add::run<D>(Mul24Hi::run<D>(a, b), c);
  }
};
struct Mad24HiSat {
  template <class D>
  static D run(s32 a, s32 b, s32 c) {
    return AddSat::run<D>(Mul24Hi::run<s32>(a, b), c);
  }
};

struct Sad {
  template <class D>
  static D run(D a, D b, D c) {
    return Add::run<D>(c, a > b ? Sub::run<D>(a, b) : Sub::run<D>(b, a));
  }
};
struct Min {
  template <class D>
  static D run(D a, D b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class D>
  static D run(D a, D b) {
    return a > b ? a : b;
  }
};
template <class Op>
struct Relu {
  template <class D>
  static D run(D a, D b) {
    return Max::run<D>(Op::template run<D>(a, b), 0);
  }
};
// Two lanes of 16 bits in one of 32.
template <class Op, class T>
struct Pair {
  template <class D>
  static D run(u32 a, u32 b) {
    const u32 low = static_cast<u16>(Op::template run<T>(static_cast<T>(a), static_cast<T>(b)));
    const u32 high = static_cast<u16>(Op::template run<T>(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return static_cast<D>(high << 16 | low);
  }
};
struct Abs {
  template <class D>
  static D run(D a) {
    return a < 0 ? Sub::run<D>(0, a) : a;
  }
};
struct Neg {
  template <class D>
  static D run(D a) {
    return Sub::run<D>(0, a);
  }
};

// Division by zero has no defined value; all ones and the dividend are what these give. Quotients of 32 bits are taken
// in doubles, which vectorise: the quotient's distance from the next integer is at least 1/b and its rounding error is
// far below that in every rounding mode, so that cutting off the fraction gives the exact result. Adding 1.5 * 2^52
// leaves the integer in the low bits.
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

// The carry flag is a predicate that belongs to the frame: Ins::e.
template <class T, bool subtract, bool in, bool out>
SIMGPU_INLINE void carry_loop(Ctx& c, const Ins* i, const T* a, const T* b, T* r) {
  const u32 carry = in ? predicate(c, i->e) : 0;
  u32 result = 0;
  for (unsigned l = 0; l < warp_size; ++l) {
    const T one = static_cast<T>(carry >> l & 1U);
    const T first = static_cast<T>(subtract ? a[l] - b[l] : a[l] + b[l]);
    r[l] = static_cast<T>(subtract ? first - one : first + one);
    const bool lost = subtract ? a[l] < b[l] || first < one : first < a[l] || r[l] < first;
    result |= u32{lost} << l;
  }
  if (out) put_predicate(c, i->e, result, true);
}

template <class T, bool subtract, bool in, bool out>
struct Carry {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    alignas(64) T r[warp_size];
    carry_loop<T, subtract, in, out>(c, i, at<T>(c, i->a), at<T>(c, i->b), r);
    blend(c, at<T>(c, i->d), r);
    return i + 1;
  }
};

template <class T, class S, bool high, bool in, bool out>
struct MadCarry {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    alignas(64) T product[warp_size];
    alignas(64) T r[warp_size];
    const S* a = at<S>(c, i->a);
    const S* b = at<S>(c, i->b);
    for (unsigned l = 0; l < warp_size; ++l) {
      product[l] = static_cast<T>(high ? MulHi::run<S>(a[l], b[l]) : MulLo::run<S>(a[l], b[l]));
    }
    carry_loop<T, false, in, out>(c, i, product, at<T>(c, i->c), r);
    blend(c, at<T>(c, i->d), r);
    return i + 1;
  }
};

template <bool subtract, bool in>
Handlers pick_carry(const Form& form) {
  return by_size(ptx::size_of(form.type()), [&](auto tag) -> Handlers {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) < 4) {
      return {};
    } else {
      if (form.has(Word::cc)) return both<Carry<T, subtract, in, true>>();
      return in ? both<Carry<T, subtract, in, false>>() : Handlers{};
    }
  });
}

template <bool in>
Handlers pick_mad_carry(const Form& form) {
  return by_integer(form.type(), [&](auto tag) -> Handlers {
    using S = typename decltype(tag)::type;
    using T = BitsOf<S>;
    if constexpr (sizeof(S) < 4) {
      return {};
    } else {
      if (form.has(Word::hi)) {
        if (form.has(Word::cc)) return both<MadCarry<T, S, true, in, true>>();
        return in ? both<MadCarry<T, S, true, in, false>>() : Handlers{};
      }
      if (form.has(Word::cc)) return both<MadCarry<T, S, false, in, true>>();
      return in ? both<MadCarry<T, S, false, in, false>>() : Handlers{};
    }
  });
}

template <class Op>
Handlers pick1(const Form& form) {
  return by_integer(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map1<Op, T, T>>();
  });
}
template <class Op>
Handlers pick2(const Form& form) {
  return by_integer(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Op, T, T, T>>();
  });
}
template <class Op>
Handlers pick3(const Form& form) {
  return by_integer(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map3<Op, T, T, T, T>>();
  });
}
// Sign does not matter: one handler for each size.
template <class Op>
Handlers pick2_size(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Op, T, T, T>>();
  });
}
template <class Op>
Handlers pick3_size(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map3<Op, T, T, T, T>>();
  });
}
template <class Op>
Handlers pick2_32(const Form& form) {
  if (form.type() == ptx::Type::S32) return both<Map2<Op, s32, s32, s32>>();
  return both<Map2<Op, u32, u32, u32>>();
}
template <class Op>
Handlers pick3_32(const Form& form) {
  if (form.type() == ptx::Type::S32) return both<Map3<Op, s32, s32, s32, s32>>();
  return both<Map3<Op, u32, u32, u32, u32>>();
}

template <class Narrow>
Handlers pick_wide(const Form&) {
  return both<Map2<MulWide, Wider<Narrow>, Narrow, Narrow>>();
}
template <class Narrow>
Handlers pick_mad_wide(const Form&) {
  return both<Map3<MadWide, Wider<Narrow>, Narrow, Narrow, Wider<Narrow>>>();
}

template <Handlers (*u16_)(const Form&), Handlers (*s16_)(const Form&), Handlers (*u32_)(const Form&),
          Handlers (*s32_)(const Form&)>
Handlers pick_narrow(const Form& form) {
  if (!form.has(Word::wide)) return {};
  switch (form.type()) {
    case ptx::Type::U16: return u16_(form);
    case ptx::Type::S16: return s16_(form);
    case ptx::Type::U32: return u32_(form);
    case ptx::Type::S32: return s32_(form);
    default: return {};
  }
}

Handlers pick_add(const Form& form) {
  if (form.has(Word::cc)) return {};
  if (!form.has(Word::sat)) return pick2_size<Add>(form);
  return form.type() == ptx::Type::S32 ? both<Map2<AddSat, s32, s32, s32>>() : Handlers{};
}
Handlers pick_sub(const Form& form) {
  if (form.has(Word::cc)) return {};
  if (!form.has(Word::sat)) return pick2_size<Sub>(form);
  return form.type() == ptx::Type::S32 ? both<Map2<SubSat, s32, s32, s32>>() : Handlers{};
}
Handlers pick_mul(const Form& form) {
  if (form.has(Word::wide)) return {};
  return form.has(Word::hi) ? pick2<MulHi>(form) : form.has(Word::lo) ? pick2_size<MulLo>(form) : Handlers{};
}
Handlers pick_mad(const Form& form) {
  if (form.has(Word::wide) || form.has(Word::cc)) return {};
  if (form.has(Word::lo)) return pick3_size<MadLo>(form);
  if (!form.has(Word::hi)) return {};
  if (!form.has(Word::sat)) return pick3<MadHi>(form);
  return form.type() == ptx::Type::S32 ? both<Map3<MadHiSat, s32, s32, s32, s32>>() : Handlers{};
}
Handlers pick_mul24(const Form& form) { return form.has(Word::hi) ? pick2_32<Mul24Hi>(form) : pick2_32<Mul24Lo>(form); }
Handlers pick_mad24(const Form& form) {
  if (!form.has(Word::hi)) return pick3_32<Mad24Lo>(form);
  if (!form.has(Word::sat)) return pick3_32<Mad24Hi>(form);
  return form.type() == ptx::Type::S32 ? both<Map3<Mad24HiSat, s32, s32, s32, s32>>() : Handlers{};
}
Handlers pick_neg(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map1<Neg, T, T>>();
  });
}

template <class Op>
Handlers pick_pair(const Form& form) {
  return form.type() == ptx::Type::S16x2 ? both<Map2<Pair<Op, s16>, u32, u32, u32>>()
                                         : both<Map2<Pair<Op, u16>, u32, u32, u32>>();
}
// The larger or smaller of two, or zero.
template <class Op>
Handlers pick_extreme(const Form& form) {
  const bool relu = form.has(Word::relu);
  switch (form.type()) {
    case ptx::Type::U16x2: return relu ? Handlers{} : pick_pair<Op>(form);
    case ptx::Type::S16x2: return relu ? pick_pair<Relu<Op>>(form) : pick_pair<Op>(form);
    case ptx::Type::S32: return relu ? both<Map2<Relu<Op>, s32, s32, s32>>() : pick2<Op>(form);
    default: return relu ? Handlers{} : pick2<Op>(form);
  }
}

constexpr const char* extreme_types = "u16 s16 u32 s32 u64 s64 u16x2 s16x2";
constexpr const char* all_types = "u16 s16 u32 s32 u64 s64 b32 b64";
constexpr const char* narrow_types = "u16 s16 u32 s32";
constexpr const char* carry_types = "u32 s32 b32 u64 s64 b64";

constexpr Row rows[] = {
    {"add", "dtt", all_types, "sat", &pick_add},
    {"sub", "dtt", all_types, "sat", &pick_sub},
    {"mul", "dtt", all_types, "lo hi", &pick_mul},
    {"mul", "Dtt", narrow_types, "wide",
     &pick_narrow<&pick_wide<u16>, &pick_wide<s16>, &pick_wide<u32>, &pick_wide<s32>>},
    {"mad", "dttt", all_types, "lo hi sat", &pick_mad},
    {"mad", "DttT", narrow_types, "wide",
     &pick_narrow<&pick_mad_wide<u16>, &pick_mad_wide<s16>, &pick_mad_wide<u32>, &pick_mad_wide<s32>>},
    {"mul24", "dtt", "u32 s32", "lo hi", &pick_mul24},
    {"mad24", "dttt", "u32 s32", "lo hi sat", &pick_mad24},
    {"sad", "dttt", all_types, "", &pick3<Sad>},
    {"div", "dtt", all_types, "", &pick2<Div>},
    {"rem", "dtt", all_types, "", &pick2<Rem>},
    {"abs", "dt", "s16 s32 s64", "", &pick1<Abs>},
    {"neg", "dt", "s16 s32 s64", "", &pick_neg},
    {"min", "dtt", extreme_types, "relu", &pick_extreme<Min>},
    {"max", "dtt", extreme_types, "relu", &pick_extreme<Max>},
    {"add", "dtt", "u16x2 s16x2", "", &pick_pair<Add>},
    {"add", "dttk", carry_types, "cc", &pick_carry<false, false>},
    {"addc", "dttk", carry_types, "cc", &pick_carry<false, true>},
    {"sub", "dttk", carry_types, "cc", &pick_carry<true, false>},
    {"subc", "dttk", carry_types, "cc", &pick_carry<true, true>},
    {"mad", "dtttk", carry_types, "cc lo hi", &pick_mad_carry<false>},
    {"madc", "dtttk", carry_types, "cc lo hi", &pick_mad_carry<true>},
};

}  // namespace

Rows integer_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
