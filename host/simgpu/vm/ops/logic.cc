// Bitwise logic of integers, and logic of predicates. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

struct And {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(a & b);
  }
};
struct Or {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(a | b);
  }
};
struct Xor {
  template <class D>
  static D run(D a, D b) {
    return static_cast<D>(a ^ b);
  }
};
struct Not {
  template <class D>
  static D run(D a) {
    return static_cast<D>(~a);
  }
};
struct Cnot {
  template <class D>
  static D run(D a) {
    return static_cast<D>(a == 0);
  }
};

// For the input bits a, b and c, the result is bit number abc of the constant.
struct Lop3 {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const u32* x = at<u32>(c, i->a);
    const u32* y = at<u32>(c, i->b);
    const u32* z = at<u32>(c, i->c);
    alignas(64) u32 r[warp_size];
    u32 m[8];
    for (unsigned k = 0; k < 8; ++k) m[k] = (i->imm >> k & 1) != 0 ? ~u32{0} : 0;
    SIMGPU_LANES {
      const u32 high = (((m[7] & z[l]) | (m[6] & ~z[l])) & y[l]) | (((m[5] & z[l]) | (m[4] & ~z[l])) & ~y[l]);
      const u32 low = (((m[3] & z[l]) | (m[2] & ~z[l])) & y[l]) | (((m[1] & z[l]) | (m[0] & ~z[l])) & ~y[l]);
      r[l] = (high & x[l]) | (low & ~x[l]);
    }
    blend(c, at<u32>(c, i->d), r);
    return i + 1;
  }
};

template <class Op>
struct PredicateOp {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    put_predicate(c, i->d, Op::template run<u32>(predicate(c, i->a), predicate(c, i->b)), masked);
    return i + 1;
  }
};
struct PredicateNot {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    put_predicate(c, i->d, ~predicate(c, i->a), masked);
    return i + 1;
  }
};

template <class Op>
Handlers pick_bits1(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map1<Op, T, T>>();
  });
}
template <class Op>
Handlers pick_bits2(const Form& form) {
  return by_size(ptx::size_of(form.type()), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map2<Op, T, T, T>>();
  });
}

constexpr const char* bit_types = "b16 b32 b64";

constexpr Row rows[] = {
    {"and", "dtt", bit_types, "", &pick_bits2<And>},
    {"or", "dtt", bit_types, "", &pick_bits2<Or>},
    {"xor", "dtt", bit_types, "", &pick_bits2<Xor>},
    {"not", "dt", bit_types, "", &pick_bits1<Not>},
    {"cnot", "dt", bit_types, "", &pick_bits1<Cnot>},
    {"lop3", "dttti", "b32", "", [](const Form&) { return both<Lop3>(); }},
};

}  // namespace

Rows logic_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

Handlers pick_predicate(Word operation) {
  switch (operation) {
    case Word::and_: return both<PredicateOp<And>>();
    case Word::or_: return both<PredicateOp<Or>>();
    case Word::xor_: return both<PredicateOp<Xor>>();
    default: return both<PredicateNot>();
  }
}

}  // namespace simgpu::SIMGPU_ISA
