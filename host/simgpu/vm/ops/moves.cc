// Moves of registers and predicates, changes of register size, and selection by a predicate. See ops/lanes.h and
// vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

struct PredicateMove {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    put_predicate(c, i->d, predicate(c, i->a), masked);
    return i + 1;
  }
};

struct Same {
  template <class D>
  static D run(D a) {
    return a;
  }
};
struct Resize {
  template <class D, class A>
  static D run(A a) {
    return static_cast<D>(a);
  }
};

// Ins::c holds the predicate.
template <class T>
struct Select {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, i->b);
    T* d = at<T>(c, i->d);
    const u32 p = predicate(c, i->c);
    alignas(64) u32 pick[warp_size];
    SIMGPU_LANES pick[l] = (p & (u32{1} << l)) != 0 ? ~u32{0} : 0;
    alignas(64) T r[warp_size];
    SIMGPU_LANES {
      const T take = static_cast<T>(static_cast<SignedOf<T>>(static_cast<s32>(pick[l])));
      r[l] = static_cast<T>((a[l] & take) | (b[l] & static_cast<T>(~take)));
    }
    if constexpr (masked) {
      blend(c, d, r);
    } else {
      SIMGPU_LANES d[l] = r[l];
    }
    return i + 1;
  }
};

template <class To>
Handlers resize_to(unsigned from, bool sign) {
  switch (from) {
    case 2: return sign ? both<Map1<Resize, To, s16>>() : both<Map1<Resize, To, u16>>();
    case 4: return sign ? both<Map1<Resize, To, s32>>() : both<Map1<Resize, To, u32>>();
    case 8: return both<Map1<Resize, To, u64>>();
    default: return {};
  }
}

}  // namespace

Handlers pick_move(unsigned size) {
  if (size == 0) return both<PredicateMove>();
  return by_size(size, [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map1<Same, T, T>>();
  });
}

Handlers pick_resize(unsigned to, unsigned from, bool sign) {
  return by_size(to, [&](auto tag) { return resize_to<typename decltype(tag)::type>(from, sign); });
}

Handlers pick_select(unsigned size) {
  return by_size(size, [](auto tag) { return both<Select<typename decltype(tag)::type>>(); });
}

}  // namespace simgpu::SIMGPU_ISA
