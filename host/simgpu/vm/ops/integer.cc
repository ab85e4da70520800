// Sums, differences, extremes and signs of integers, and of pairs of 16-bit integers. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/integer.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

struct SubSat {
  template <class D>
  static D run(s32 a, s32 b) {
    const s64 sum = s64{a} - b;
    return static_cast<D>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
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
// Applies Op to both 16-bit halves of a 32-bit lane.
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
// Returns the larger or smaller of two values; with .relu, a negative result becomes zero.
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

constexpr Row rows[] = {
    {"add", "dtt", all_types, "sat", &pick_add},
    {"sub", "dtt", all_types, "sat", &pick_sub},
    {"sad", "dttt", all_types, "", &pick3<Sad>},
    {"abs", "dt", "s16 s32 s64", "", &pick1<Abs>},
    {"neg", "dt", "s16 s32 s64", "", &pick_neg},
    {"min", "dtt", extreme_types, "relu", &pick_extreme<Min>},
    {"max", "dtt", extreme_types, "relu", &pick_extreme<Max>},
    {"add", "dtt", "u16x2 s16x2", "", &pick_pair<Add>},
};

}  // namespace

Rows integer_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
