// Helpers for integer arithmetic: wider and narrower types, sums and products of one lane, and selection of handlers by
// type.
#pragma once

#include "host/simgpu/vm/ops/lanes.h"

namespace simgpu::SIMGPU_ISA {

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

// An unsigned type of at least 32 bits, for arithmetic that wraps around.
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

// Selects a handler by size, for operations that ignore the sign.
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

constexpr const char* all_types = "u16 s16 u32 s32 u64 s64 b32 b64";

}  // namespace simgpu::SIMGPU_ISA
