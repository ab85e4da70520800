// Compares integers and floats, and writes predicates. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

#define SIMGPU_COMPARISON(Name, expression) \
  struct Name {                             \
    template <class T>                      \
    static bool run(T a, T b) {             \
      return expression;                    \
    }                                       \
  };
SIMGPU_COMPARISON(Eq, a == b)
SIMGPU_COMPARISON(Ne, a != b)
SIMGPU_COMPARISON(Lt, a < b)
SIMGPU_COMPARISON(Le, a <= b)
SIMGPU_COMPARISON(Gt, a > b)
SIMGPU_COMPARISON(Ge, a >= b)
SIMGPU_COMPARISON(NeOrdered, (a < b) | (a > b))
SIMGPU_COMPARISON(Equ, !((a < b) | (a > b)))
SIMGPU_COMPARISON(Ltu, !(a >= b))
SIMGPU_COMPARISON(Leu, !(a > b))
SIMGPU_COMPARISON(Gtu, !(a <= b))
SIMGPU_COMPARISON(Geu, !(a < b))
SIMGPU_COMPARISON(Num, (a == a) & (b == b))
SIMGPU_COMPARISON(Nan, (a != a) | (b != b))
#undef SIMGPU_COMPARISON

template <class Op, class T>
struct Compare {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    if constexpr (std::is_floating_point_v<T>) set_mode(c, i->flags);
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, i->b);
    u32 bits = 0;
    SIMGPU_LANES bits |= Op::template run<T>(a[l], b[l]) ? u32{1} << l : 0U;
    put_predicate(c, i->d, bits, masked);
    return i + 1;
  }
};

template <class T>
Handlers compare_integer(Word word) {
  switch (word) {
    case Word::eq: return both<Compare<Eq, T>>();
    case Word::ne: return both<Compare<Ne, T>>();
    case Word::lt:
    case Word::lo: return both<Compare<Lt, T>>();
    case Word::le:
    case Word::ls: return both<Compare<Le, T>>();
    case Word::gt:
    case Word::hi: return both<Compare<Gt, T>>();
    case Word::ge:
    case Word::hs: return both<Compare<Ge, T>>();
    default: return {};
  }
}

template <class T>
Handlers compare_float(Word word) {
  switch (word) {
    case Word::eq: return both<Compare<Eq, T>>();
    case Word::ne: return both<Compare<NeOrdered, T>>();
    case Word::lt: return both<Compare<Lt, T>>();
    case Word::le: return both<Compare<Le, T>>();
    case Word::gt: return both<Compare<Gt, T>>();
    case Word::ge: return both<Compare<Ge, T>>();
    case Word::equ: return both<Compare<Equ, T>>();
    case Word::neu: return both<Compare<Ne, T>>();
    case Word::ltu: return both<Compare<Ltu, T>>();
    case Word::leu: return both<Compare<Leu, T>>();
    case Word::gtu: return both<Compare<Gtu, T>>();
    case Word::geu: return both<Compare<Geu, T>>();
    case Word::num: return both<Compare<Num, T>>();
    case Word::isnan: return both<Compare<Nan, T>>();
    default: return {};
  }
}

}  // namespace

Handlers pick_compare(Word comparison, ptx::Type type) {
  if (type == ptx::Type::F32) return compare_float<f32>(comparison);
  if (type == ptx::Type::F64) return compare_float<f64>(comparison);
  return by_integer(type, [&](auto tag) { return compare_integer<typename decltype(tag)::type>(comparison); });
}

}  // namespace simgpu::SIMGPU_ISA
