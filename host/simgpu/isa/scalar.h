// Scalar types of the handlers. The handlers are compiled once per instruction set, in a namespace of their own
// (SIMGPU_ISA). Otherwise the linker could use a function for a newer processor on an older one.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifndef SIMGPU_ISA
#error "SIMGPU_ISA names the namespace of this instruction set"
#endif

#if defined(SIMGPU_SMALL)  // host/simgpu/CMakeLists.txt explains this macro
#define SIMGPU_INLINE static inline
#else
#define SIMGPU_INLINE [[gnu::always_inline]] static inline
#endif

namespace simgpu::SIMGPU_ISA {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

template <unsigned size>
struct Bits;
template <>
struct Bits<1> {
  using type = u8;
};
template <>
struct Bits<2> {
  using type = u16;
};
template <>
struct Bits<4> {
  using type = u32;
};
template <>
struct Bits<8> {
  using type = u64;
};
template <class T>
using BitsOf = typename Bits<sizeof(T)>::type;
template <class T>
using SignedOf = std::make_signed_t<BitsOf<T>>;
template <class T>
constexpr u32 width = 8 * sizeof(T);

template <class To, class From>
SIMGPU_INLINE To as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

}  // namespace simgpu::SIMGPU_ISA
