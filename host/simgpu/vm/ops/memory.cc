// Loads and stores. Vectorised loops check and execute the common cases: all 32 lanes in one range, at consecutive or
// equal addresses. All other cases go lane by lane through access.h.
#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/ops/gather.h"
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

SIMGPU_INLINE void note_sync(Ctx& c, const Ins* i) {
  if ((i->flags & flag_sync) != 0) {
    ++c.sync_uses;
    c.fuel -= 64;
  }
}

struct Pattern {
  bool in_range = false;
  bool in_row = false;
  bool alike = false;
  u64 first = 0;
};

// The sign bit of a difference is set if an address is below or above the window.
SIMGPU_INLINE Pattern look_global(const u64* a, u64 offset, Window w, u32 element, u32 bytes) {
  u64 outside = 0;
  u64 low = 0;
  u64 row = 0;
  const u64 first = a[0] + offset;
  SIMGPU_LANES {
    const u64 x = a[l] + offset;
    outside |= (x - w.lo) | (w.last - x);
    low |= x;
    row |= (x - first) ^ (u64{l} * element);
  }
  return {static_cast<s64>(outside) >= 0 && (low & (bytes - 1)) == 0, row == 0, false, first};
}

template <class A>
SIMGPU_INLINE Pattern look_offsets(const A* a, A offset, u64 size, u32 element, u32 bytes) {
  if (size < bytes) return {};
  const A limit = static_cast<A>(size - bytes);
  A outside = 0;
  A low = 0;
  A row = 0;
  A same = 0;
  const A first = static_cast<A>(a[0] + offset);
  SIMGPU_LANES {
    const A x = static_cast<A>(a[l] + offset);
    outside |= x | static_cast<A>(limit - x);
    low |= x;
    same |= x ^ first;
    row |= static_cast<A>(x - first) ^ static_cast<A>(l * element);
  }
  return {static_cast<SignedOf<A>>(outside) >= 0 && (low & (bytes - 1)) == 0, row == 0, same == 0, first};
}

SIMGPU_INLINE void add_offset(const u64* a, u64 offset, u64* x) { SIMGPU_LANES x[l] = a[l] + offset; }

// One row of adjacent values between memory and a register, and values at any addresses.
template <class M, class S, bool store>
SIMGPU_INLINE void copy_row(Ctx& c, const Ins* i, u64 host) {
  if constexpr (store)
    copy_row_out<M, S>(at<S>(c, i->b), host);
  else
    copy_row_in<M, S>(at<S>(c, i->d), host);
}
template <class M, class S, bool store>
SIMGPU_INLINE void copy_lanes(Ctx& c, const Ins* i, const u64* host) {
  if constexpr (store)
    scatter<M, S>(c, i, host);
  else
    gather<M, S>(c, i, host);
}

// A load from global memory, or a store to it.
template <class M, class S, bool store>
struct AccessGlobal {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    note_sync(c, i);
    const u64* a = at<u64>(c, i->a);
    const u64 offset = static_cast<u64>(i->imm);
    const u32 bytes = static_cast<u32>(sizeof(M)) * i->count;
    alignas(64) u64 x[warp_size];
    if (!masked && c.mask == all_lanes) {
      const Pattern pattern = look_global(a, offset, c.windows[i->window], sizeof(M), bytes);
      if (pattern.in_range) [[likely]] {
        if (!in_pieces && pattern.in_row && i->count == 1) {
          copy_row<M, S, store>(c, i, pattern.first);
        } else {
          add_offset(a, offset, x);
          copy_lanes<M, S, store>(c, i, x);
        }
        return i + 1;
      }
    }
    add_offset(a, offset, x);
    alignas(64) u64 host[warp_size];
    if (!resolve_global(c, i, x, bytes, host)) return c.stop;
    copy_lanes<M, S, store>(c, i, host);
    return i + 1;
  }
};

template <class A>
SIMGPU_INLINE void widen(const A* a, A offset, u64* x) {
  SIMGPU_LANES x[l] = static_cast<A>(a[l] + offset);
}

template <class A>
SIMGPU_INLINE A offset_of(const Ctx& c, const Ins* i) {
  return static_cast<A>(static_cast<u64>(i->imm) + ((i->flags & flag_frame) != 0 ? c.local_base : 0));
}

template <class A>
SIMGPU_INLINE void place_lanes(const A* a, A offset, const SpaceView& space, u64* x) {
  const u64 base = reinterpret_cast<u64>(space.base);
  const u64 stride = space.stride;
  SIMGPU_LANES x[l] = base + static_cast<A>(a[l] + offset) + l * stride;
}

template <class M, class S, class A>
struct LoadOffset {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    note_sync(c, i);
    const A* a = at<A>(c, i->a);
    const A offset = offset_of<A>(c, i);
    const u32 bytes = static_cast<u32>(sizeof(M)) * i->count;
    const SpaceView& space = c.spaces[i->space];
    alignas(64) u64 x[warp_size];
    if (!masked && c.mask == all_lanes) {
      const Pattern pattern = look_offsets<A>(a, offset, space.size, sizeof(M), bytes);
      if (pattern.in_range) [[likely]] {
        if (i->count == 1 && space.stride == 0 && pattern.in_row) {
          copy_row_in<M, S>(at<S>(c, i->d), reinterpret_cast<u64>(space.base) + pattern.first);
        } else if (i->count == 1 && space.stride == 0 && pattern.alike) {
          const S value = static_cast<S>(get<M>(reinterpret_cast<u64>(space.base) + pattern.first));
          S* d = at<S>(c, i->d);
          SIMGPU_LANES d[l] = value;
        } else {
          place_lanes<A>(a, offset, space, x);
          gather<M, S>(c, i, x);
        }
        return i + 1;
      }
    }
    widen<A>(a, offset, x);
    alignas(64) u64 host[warp_size];
    if (!resolve_offsets(c, i, x, bytes, host)) return c.stop;
    gather<M, S>(c, i, host);
    return i + 1;
  }
};

template <class M, class S, class A>
struct StoreOffset {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    note_sync(c, i);
    const A* a = at<A>(c, i->a);
    const A offset = offset_of<A>(c, i);
    const u32 bytes = static_cast<u32>(sizeof(M)) * i->count;
    const SpaceView& space = c.spaces[i->space];
    alignas(64) u64 x[warp_size];
    if (!masked && c.mask == all_lanes) {
      const Pattern pattern = look_offsets<A>(a, offset, space.size, sizeof(M), bytes);
      if (pattern.in_range) [[likely]] {
        if (i->count == 1 && space.stride == 0 && pattern.in_row) {
          copy_row_out<M, S>(at<S>(c, i->b), reinterpret_cast<u64>(space.base) + pattern.first);
        } else {
          place_lanes<A>(a, offset, space, x);
          scatter<M, S>(c, i, x);
        }
        return i + 1;
      }
    }
    widen<A>(a, offset, x);
    alignas(64) u64 host[warp_size];
    if (!resolve_offsets(c, i, x, bytes, host)) return c.stop;
    scatter<M, S>(c, i, host);
    return i + 1;
  }
};

// Loads a kernel parameter, which is equal for all lanes. The lowering has checked its offset.
template <class M, class S>
struct LoadParam {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    for (u32 k = 0; k < i->count; ++k) {
      S* d = at<S>(c, i->count == 1 ? i->d : c.code->extra[i->index + k]);
      M raw;
      std::memcpy(&raw, c.spaces[space_param].base + i->imm + k * sizeof(M), sizeof raw);
      const S value = static_cast<S>(raw);
      if constexpr (masked) {
        alignas(64) S r[warp_size];
        SIMGPU_LANES r[l] = value;
        blend(c, d, r);
      } else {
        SIMGPU_LANES d[l] = value;
      }
    }
    return i + 1;
  }
};

template <class M, class S, bool store>
Handlers access(bool windowed, unsigned address_size) {
  if (!windowed) return both<AccessGlobal<M, S, store>>();
  if constexpr (store) {
    return address_size == 4 ? both<StoreOffset<M, S, u32>>() : both<StoreOffset<M, S, u64>>();
  } else {
    return address_size == 4 ? both<LoadOffset<M, S, u32>>() : both<LoadOffset<M, S, u64>>();
  }
}

// A register may be wider than the value in memory, but never narrower.
template <class M, bool store>
Handlers by_lane(unsigned lane_size, bool windowed, unsigned address_size) {
  if constexpr (sizeof(M) <= 2) {
    if (lane_size == 2) return access<M, u16, store>(windowed, address_size);
  }
  if constexpr (sizeof(M) <= 4) {
    if (lane_size == 4) return access<M, u32, store>(windowed, address_size);
  }
  return lane_size == 8 ? access<M, u64, store>(windowed, address_size) : Handlers{};
}

template <class M>
Handlers param_by_lane(unsigned lane_size) {
  if constexpr (sizeof(M) <= 2) {
    if (lane_size == 2) return both<LoadParam<M, u16>>();
  }
  if constexpr (sizeof(M) <= 4) {
    if (lane_size == 4) return both<LoadParam<M, u32>>();
  }
  return lane_size == 8 ? both<LoadParam<M, u64>>() : Handlers{};
}

template <class F>
Handlers by_memory(ptx::Type type, F f) {
  const bool sign = ptx::is_signed(type);
  switch (ptx::size_of(type)) {
    case 1: return sign ? f(Tag<s8>()) : f(Tag<u8>());
    case 2: return sign ? f(Tag<s16>()) : f(Tag<u16>());
    case 4: return sign ? f(Tag<s32>()) : f(Tag<u32>());
    case 8: return f(Tag<u64>());
    default: return {};
  }
}

}  // namespace

Handlers pick_load(ptx::Type memory, unsigned lane_size, bool windowed, unsigned address_size) {
  return by_memory(memory, [&](auto tag) {
    return by_lane<typename decltype(tag)::type, false>(lane_size, windowed, address_size);
  });
}

Handlers pick_store(ptx::Type memory, unsigned lane_size, bool windowed, unsigned address_size) {
  return by_memory(memory, [&](auto tag) {
    return by_lane<BitsOf<typename decltype(tag)::type>, true>(lane_size, windowed, address_size);
  });
}

Handlers pick_load_param(ptx::Type memory, unsigned lane_size) {
  return by_memory(memory, [&](auto tag) { return param_by_lane<typename decltype(tag)::type>(lane_size); });
}

}  // namespace simgpu::SIMGPU_ISA
