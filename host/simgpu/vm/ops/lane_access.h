// Accesses the memory of a lane as one word, even if other blocks access the memory at the same time.
#pragma once

#include "host/simgpu/vm/ops/lanes.h"

#if defined(__SANITIZE_THREAD__)
#define SIMGPU_LANEWISE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMGPU_LANEWISE 1
#endif
#endif

namespace simgpu::SIMGPU_ISA {
namespace {

// Data races between blocks are the program's own, but must not be undefined behaviour of the simulator. A lane's
// access is therefore a relaxed atomic, which compiles to the same instruction. Rows of lanes are copied as a whole
// unless a race detector is active.
#ifdef SIMGPU_LANEWISE
constexpr bool in_pieces = true;
#else
constexpr bool in_pieces = false;
#endif

template <class M>
SIMGPU_INLINE M get(u64 host) {
  return __atomic_load_n(reinterpret_cast<const M*>(host), __ATOMIC_RELAXED);
}
template <class M>
SIMGPU_INLINE void put(u64 host, M value) {
  __atomic_store_n(reinterpret_cast<M*>(host), value, __ATOMIC_RELAXED);
}

// On a GPU, a lane's vector of up to 16 bytes is one access. Programs rely on that: CUB's look-back writes a value and
// its state together. Therefore a vector is moved as one word, except under a race detector, which does not support
// 16-byte atomics.
template <unsigned bytes>
struct WordOf;
template <>
struct WordOf<2> {
  using Type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using Type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using Type = u64;
};
template <>
struct WordOf<16> {
  // an aligned access is one instruction, which is atomic on processors with AVX
  using Type = long long __attribute__((vector_size(16), may_alias));
};

template <unsigned bytes>
SIMGPU_INLINE typename WordOf<bytes>::Type get_word(u64 host) {
  using Word = typename WordOf<bytes>::Type;
  if constexpr (bytes == 16) {
    if (host % 16 == 0) return *reinterpret_cast<const volatile Word*>(host);
    return Word{get<long long>(host), get<long long>(host + 8)};  // private memory of a lane, which no other lane reads
  } else {
    return get<Word>(host);
  }
}
template <unsigned bytes>
SIMGPU_INLINE void put_word(u64 host, typename WordOf<bytes>::Type word) {
  using Word = typename WordOf<bytes>::Type;
  if constexpr (bytes == 16) {
    if (host % 16 == 0) {
      *reinterpret_cast<volatile Word*>(host) = word;
    } else {
      put<long long>(host, word[0]);
      put<long long>(host + 8, word[1]);
    }
  } else {
    put<Word>(host, word);
  }
}

}  // namespace
}  // namespace simgpu::SIMGPU_ISA
