// Moves the values of lanes between registers and checked memory: by lane, by vector word, or for a whole row of lanes.
#pragma once

#include "host/simgpu/vm/ops/lane_access.h"

namespace simgpu::SIMGPU_ISA {
namespace {

constexpr u32 all_lanes = 0xffff'ffff;

// Moves the elements [k, k + bytes / sizeof(M)) of each lane's vector.
template <class M, class S, unsigned bytes>
SIMGPU_INLINE void gather_word(Ctx& c, const Ins* i, const u64* host, u32 k) {
  constexpr unsigned count = bytes / sizeof(M);
  S* to[count];
  for (unsigned n = 0; n < count; ++n) to[n] = at<S>(c, c.code->extra[i->index + k + n]);
  for (u32 left = c.mask; left != 0; left &= left - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
    const auto word = get_word<bytes>(host[l] + k * sizeof(M));
    M part[count];
    std::memcpy(part, &word, bytes);
    for (unsigned n = 0; n < count; ++n) to[n][l] = static_cast<S>(part[n]);
  }
}

template <class M, class S, unsigned bytes>
SIMGPU_INLINE void scatter_word(Ctx& c, const Ins* i, const u64* host, u32 k) {
  constexpr unsigned count = bytes / sizeof(M);
  const S* from[count];
  for (unsigned n = 0; n < count; ++n) from[n] = at<S>(c, c.code->extra[i->index + k + n]);
  for (u32 left = c.mask; left != 0; left &= left - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
    M part[count];
    for (unsigned n = 0; n < count; ++n) part[n] = static_cast<M>(from[n][l]);
    typename WordOf<bytes>::Type word;
    std::memcpy(&word, part, bytes);
    put_word<bytes>(host[l] + k * sizeof(M), word);
  }
}

// Calls `f(size in bytes, first element)` for each word of the vector.
template <class M, class F>
SIMGPU_INLINE void each_word(u32 count, F f) {
  constexpr u32 element = sizeof(M);
  const u32 bytes = std::min(count * element, in_pieces ? 8u : 16u);
  for (u32 k = 0; k < count; k += bytes / element) f(bytes, k);
}

template <class M, class S>
SIMGPU_INLINE void gather_vector(Ctx& c, const Ins* i, const u64* host) {
  each_word<M>(i->count, [&](u32 bytes, u32 k) {
    if constexpr (sizeof(M) <= 1)
      if (bytes == 2) return gather_word<M, S, 2>(c, i, host, k);
    if constexpr (sizeof(M) <= 2)
      if (bytes == 4) return gather_word<M, S, 4>(c, i, host, k);
    if (bytes == 8) return gather_word<M, S, 8>(c, i, host, k);
    gather_word<M, S, 16>(c, i, host, k);
  });
}

template <class M, class S>
SIMGPU_INLINE void scatter_vector(Ctx& c, const Ins* i, const u64* host) {
  each_word<M>(i->count, [&](u32 bytes, u32 k) {
    if constexpr (sizeof(M) <= 1)
      if (bytes == 2) return scatter_word<M, S, 2>(c, i, host, k);
    if constexpr (sizeof(M) <= 2)
      if (bytes == 4) return scatter_word<M, S, 4>(c, i, host, k);
    if (bytes == 8) return scatter_word<M, S, 8>(c, i, host, k);
    scatter_word<M, S, 16>(c, i, host, k);
  });
}

template <class M, class S>
SIMGPU_INLINE void gather(Ctx& c, const Ins* i, const u64* host) {
  if (i->count > 1) return gather_vector<M, S>(c, i, host);
  S* d = at<S>(c, i->d);
  if (c.mask == all_lanes) {
    for (unsigned l = 0; l < warp_size; ++l) d[l] = static_cast<S>(get<M>(host[l]));
    return;
  }
  for (u32 left = c.mask; left != 0; left &= left - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
    d[l] = static_cast<S>(get<M>(host[l]));
  }
}

template <class M, class S>
SIMGPU_INLINE void scatter(Ctx& c, const Ins* i, const u64* host) {
  if (i->count > 1) return scatter_vector<M, S>(c, i, host);
  const S* s = at<S>(c, i->b);
  for (u32 left = c.mask; left != 0; left &= left - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(left));
    put<M>(host[l], static_cast<M>(s[l]));
  }
}

template <class M, class S>
SIMGPU_INLINE void copy_row_in(S* d, u64 host) {
  if constexpr (sizeof(M) == sizeof(S)) {
    std::memcpy(d, reinterpret_cast<const void*>(host), sizeof(M) * warp_size);
  } else {
    const M* from = reinterpret_cast<const M*>(host);
    SIMGPU_LANES d[l] = static_cast<S>(from[l]);
  }
}
template <class M, class S>
SIMGPU_INLINE void copy_row_out(const S* s, u64 host) {
  if constexpr (sizeof(M) == sizeof(S)) {
    std::memcpy(reinterpret_cast<void*>(host), s, sizeof(M) * warp_size);
  } else {
    M* to = reinterpret_cast<M*>(host);
    SIMGPU_LANES to[l] = static_cast<M>(s[l]);
  }
}

}  // namespace
}  // namespace simgpu::SIMGPU_ISA
