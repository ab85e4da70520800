// One access of a lane to memory, in one word, even while other blocks access the same place.
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

// Races between blocks are the program's own and must not be this process's undefined behaviour, so a lane's access is
// a relaxed atomic (the same instruction). Rows of lanes are copied in one piece unless a race detector watches.
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

// A lane's vector of up to 16 bytes is one access on a GPU, and programs count on it: CUB's look-back writes a value
// and its state together. So it is moved as one word. A race detector knows no atomic access of 16 bytes: under one,
// that size goes element by element.
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
  using Type = long long __attribute__((vector_size(16), may_alias));  // aligned: one instruction, and atomic with AVX
};

template <unsigned bytes>
SIMGPU_INLINE typename WordOf<bytes>::Type get_word(u64 host) {
  using Word = typename WordOf<bytes>::Type;
  if constexpr (bytes == 16) {
    if (host % 16 == 0) return *reinterpret_cast<const volatile Word*>(host);
    return Word{get<long long>(host), get<long long>(host + 8)};  // a lane's own memory: no other lane looks
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
