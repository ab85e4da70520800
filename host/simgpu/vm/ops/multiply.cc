// Products of integers: low half, high half, wide, and 24-bit, with or without an addend. See ops/lanes.h and
// vm/table.h.
#include "host/simgpu/vm/ops/integer.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

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

constexpr const char* narrow_types = "u16 s16 u32 s32";

constexpr Row rows[] = {
    {"mul", "dtt", all_types, "lo hi", &pick_mul},
    {"mul", "Dtt", narrow_types, "wide",
     &pick_narrow<&pick_wide<u16>, &pick_wide<s16>, &pick_wide<u32>, &pick_wide<s32>>},
    {"mad", "dttt", all_types, "lo hi sat", &pick_mad},
    {"mad", "DttT", narrow_types, "wide",
     &pick_narrow<&pick_mad_wide<u16>, &pick_mad_wide<s16>, &pick_mad_wide<u32>, &pick_mad_wide<s32>>},
    {"mul24", "dtt", "u32 s32", "lo hi", &pick_mul24},
    {"mad24", "dttt", "u32 s32", "lo hi sat", &pick_mad24},
};

}  // namespace

Rows multiply_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
