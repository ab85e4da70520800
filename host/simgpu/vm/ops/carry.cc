// Multi-word integer arithmetic: the operations that read or write a carry. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/integer.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

// The carry flag is a predicate in the frame, at Ins::e.
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

constexpr const char* carry_types = "u32 s32 b32 u64 s64 b64";

constexpr Row rows[] = {
    {"add", "dttk", carry_types, "cc", &pick_carry<false, false>},
    {"addc", "dttk", carry_types, "cc", &pick_carry<false, true>},
    {"sub", "dttk", carry_types, "cc", &pick_carry<true, false>},
    {"subc", "dttk", carry_types, "cc", &pick_carry<true, true>},
    {"mad", "dtttk", carry_types, "cc lo hi", &pick_mad_carry<false>},
    {"madc", "dtttk", carry_types, "cc lo hi", &pick_mad_carry<true>},
};

}  // namespace

Rows carry_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
