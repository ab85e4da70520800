// The loops over 32 lanes for all handlers in ops/. They are compiled once per instruction set, in a namespace of their
// own (SIMGPU_ISA). Otherwise the linker could use a function for a newer processor on an older one. For the same
// reason this file uses no standard templates that the compiler may emit out of line.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "host/simgpu/isa/scalar.h"
#include "host/simgpu/vm/ctx.h"
#include "host/simgpu/vm/table.h"

// The lanes are independent: registers never overlap partially, and each lane is read before it is written.
#if defined(__clang__)
#define SIMGPU_LANES _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < warp_size; ++l)
#else
#define SIMGPU_LANES _Pragma("GCC ivdep") for (unsigned l = 0; l < warp_size; ++l)
#endif

namespace simgpu::SIMGPU_ISA {

template <class T>
SIMGPU_INLINE T* at(Ctx& c, Place place) {
  std::byte* const start = c.base[place >> 31] + (place & ~constant_place);
  return reinterpret_cast<T*>(__builtin_assume_aligned(start, sizeof(T) * warp_size < 64 ? sizeof(T) * warp_size : 64));
}

SIMGPU_INLINE u32& predicate(Ctx& c, Place place) {
  return *reinterpret_cast<u32*>(c.base[place >> 31] + (place & ~constant_place));
}

// Writes the results of the masked lanes only.
template <class T>
SIMGPU_INLINE void blend(Ctx& c, T* d, const T* r) {
  using B = BitsOf<T>;
  B* to = reinterpret_cast<B*>(d);
  const B* from = reinterpret_cast<const B*>(r);
  SIMGPU_LANES {
    const B keep = static_cast<B>(~static_cast<B>(static_cast<SignedOf<T>>(c.lanes[l])));
    to[l] = static_cast<B>((from[l] & static_cast<B>(~keep)) | (to[l] & keep));
  }
}

SIMGPU_INLINE void put_predicate(Ctx& c, Place place, u32 bits, bool masked) {
  u32& word = predicate(c, place);
  word = masked ? (word & ~c.mask) | (bits & c.mask) : bits;
}

// Applies Op::run(const Ins*, a...) -> D to each lane.
template <class Op, class D, class A>
struct Map1 {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const A* a = at<A>(c, i->a);
    D* d = at<D>(c, i->d);
    if constexpr (!masked) {
      SIMGPU_LANES d[l] = Op::template run<D>(a[l]);
    } else {
      alignas(64) D r[warp_size];
      SIMGPU_LANES r[l] = Op::template run<D>(a[l]);
      blend(c, d, r);
    }
    return i + 1;
  }
};

template <class Op, class D, class A, class B>
struct Map2 {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const A* a = at<A>(c, i->a);
    const B* b = at<B>(c, i->b);
    D* d = at<D>(c, i->d);
    if constexpr (!masked) {
      SIMGPU_LANES d[l] = Op::template run<D>(a[l], b[l]);
    } else {
      alignas(64) D r[warp_size];
      SIMGPU_LANES r[l] = Op::template run<D>(a[l], b[l]);
      blend(c, d, r);
    }
    return i + 1;
  }
};

template <class Op, class D, class A, class B, class C>
struct Map3 {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const A* a = at<A>(c, i->a);
    const B* b = at<B>(c, i->b);
    const C* e = at<C>(c, i->c);
    D* d = at<D>(c, i->d);
    if constexpr (!masked) {
      SIMGPU_LANES d[l] = Op::template run<D>(a[l], b[l], e[l]);
    } else {
      alignas(64) D r[warp_size];
      SIMGPU_LANES r[l] = Op::template run<D>(a[l], b[l], e[l]);
      blend(c, d, r);
    }
    return i + 1;
  }
};

template <class Map>
SIMGPU_INLINE Handlers both() {
  return {&Map::template run<false>, &Map::template run<true>};
}

template <class T>
struct Tag {
  using type = T;
};

// Calls f(Tag<T>()) with the C++ type of a PTX integer type. Other types have no handler.
template <class F>
SIMGPU_INLINE Handlers by_integer(ptx::Type type, F f) {
  switch (type) {
    case ptx::Type::B16:
    case ptx::Type::U16: return f(Tag<u16>());
    case ptx::Type::B32:
    case ptx::Type::U32: return f(Tag<u32>());
    case ptx::Type::B64:
    case ptx::Type::U64: return f(Tag<u64>());
    case ptx::Type::S16: return f(Tag<s16>());
    case ptx::Type::S32: return f(Tag<s32>());
    case ptx::Type::S64: return f(Tag<s64>());
    default: return {};
  }
}

// Calls f(Tag<T>()) with the unsigned type of this size in bytes.
template <class F>
SIMGPU_INLINE Handlers by_size(unsigned size, F f) {
  switch (size) {
    case 2: return f(Tag<u16>());
    case 4: return f(Tag<u32>());
    case 8: return f(Tag<u64>());
    default: return {};
  }
}

template <class F>
SIMGPU_INLINE Handlers by_float(ptx::Type type, F f) {
  switch (type) {
    case ptx::Type::F32: return f(Tag<f32>());
    case ptx::Type::F64: return f(Tag<f64>());
    default: return {};
  }
}

}  // namespace simgpu::SIMGPU_ISA
