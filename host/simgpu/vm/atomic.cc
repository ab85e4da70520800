// Atomic read-modify-write instructions, one lane after another. Blocks run on several threads and the host accesses
// the same memory, so each instruction is an atomic of the processor. Shared memory uses the same code.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/simgpu/isa/half.h"
#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/rights.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {
namespace {

using isa_base::BitsOf;

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

template <class T>
T flush(T value) {
  if constexpr (std::is_same_v<T, float>) {
    if (value < 1.17549435e-38F && value > -1.17549435e-38F) return std::signbit(value) ? -0.0F : 0.0F;
  }
  return value;
}

// Adding floats in global memory flushes subnormals to zero; adding floats in shared memory does not.
struct Add {
  template <class T>
  static T run(T old, T b, T, bool shared) {
    if constexpr (std::is_floating_point_v<T>) {
      const T sum = shared ? old + b : flush(flush(old) + flush(b));
      return sum != sum && sizeof(T) == 4 ? static_cast<T>(std::bit_cast<float>(0x7fff'ffffU)) : sum;
    } else {
      return static_cast<T>(static_cast<BitsOf<T>>(old) + static_cast<BitsOf<T>>(b));
    }
  }
};
// The halves of a pair are added separately, and each sum is rounded once.
template <class F, unsigned halves>
struct AddHalves {
  template <class T>
  static T run(T old, T b, T, bool) {
    std::uint32_t sum = 0;
    for (unsigned k = 0; k < 16 * halves; k += 16) {
      const double total = isa_base::widen<F>(static_cast<std::uint16_t>(old >> k)) +
                           isa_base::widen<F>(static_cast<std::uint16_t>(b >> k));
      sum |= std::uint32_t{isa_base::narrow<F>(total, 0)} << k;
    }
    return static_cast<T>(sum);
  }
};
struct Min {
  template <class T>
  static T run(T old, T b, T, bool) {
    return b < old ? b : old;
  }
};
struct Max {
  template <class T>
  static T run(T old, T b, T, bool) {
    return b > old ? b : old;
  }
};
struct And {
  template <class T>
  static T run(T old, T b, T, bool) {
    return static_cast<T>(old & b);
  }
};
struct Or {
  template <class T>
  static T run(T old, T b, T, bool) {
    return static_cast<T>(old | b);
  }
};
struct Xor {
  template <class T>
  static T run(T old, T b, T, bool) {
    return static_cast<T>(old ^ b);
  }
};
struct Exchange {
  template <class T>
  static T run(T, T b, T, bool) {
    return b;
  }
};
struct Inc {
  template <class T>
  static T run(T old, T b, T, bool) {
    return old >= b ? T{0} : static_cast<T>(old + 1);
  }
};
struct Dec {
  template <class T>
  static T run(T old, T b, T, bool) {
    return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
};
struct CompareSwap {
  template <class T>
  static T run(T old, T b, T c, bool) {
    return old == b ? c : old;
  }
};

template <class Op, class T>
T exchange(std::uint64_t host, T b, T c, bool shared) {
  using B = BitsOf<T>;
  B* const memory = reinterpret_cast<B*>(host);
  B old = __atomic_load_n(memory, __ATOMIC_RELAXED);
  for (;;) {
    const T before = std::bit_cast<T>(old);
    const B wanted = std::bit_cast<B>(Op::template run<T>(before, b, c, shared));
    if (__atomic_compare_exchange_n(memory, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return before;
  }
}

// The processor has an instruction for these additions.
template <>
std::uint32_t exchange<Add, std::uint32_t>(std::uint64_t host, std::uint32_t b, std::uint32_t, bool) {
  return __atomic_fetch_add(reinterpret_cast<std::uint32_t*>(host), b, __ATOMIC_SEQ_CST);
}
template <>
std::uint64_t exchange<Add, std::uint64_t>(std::uint64_t host, std::uint64_t b, std::uint64_t, bool) {
  return __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(host), b, __ATOMIC_SEQ_CST);
}

// The device address and the host address of each lane's operand. find() returns false after a fault.
struct Cells {
  std::uint64_t addresses[warp_size];
  std::uint64_t host[warp_size];

  bool find(Ctx& c, const Ins* i, unsigned bytes) {
    isa_base::set_mode(c, 0);
    ++c.sync_uses;
    c.fuel -= 64;
    const std::uint64_t* a = lanes<std::uint64_t>(c, i->a);
    for (unsigned l = 0; l < warp_size; ++l) addresses[l] = a[l] + static_cast<std::uint64_t>(i->imm);
    return resolve_global(c, i, addresses, bytes, host);
  }
};

template <class Op, class T>
const Ins* update(Ctx& c, const Ins* i) {
  Cells cells;
  if (!cells.find(c, i, sizeof(T))) return c.stop;
  const T* b = lanes<T>(c, i->b);
  const T* e = lanes<T>(c, i->c);
  T* d = (i->flags & flag_no_result) != 0 ? nullptr : lanes<T>(c, i->d);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const bool shared = cells.addresses[l] - shared_window < window_size;
    const T old = exchange<Op, T>(cells.host[l], b[l], e[l], shared);
    if (d != nullptr) d[l] = old;
  }
  return i + 1;
}

// ---- 128-bit atomics

struct [[gnu::may_alias]] Wide {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Wide&) const = default;
};

// Inline assembly, because a library function could use a lock, which the host's threads and other processes would not
// take.
template <bool swap>
Wide exchange_wide(std::uint64_t host, Wide b, Wide c) {
  Wide& cell = *reinterpret_cast<Wide*>(host);
  Wide old;
  if (host % 16 != 0) {  // private memory of a lane, which no other lane accesses
    old = cell;
    if (!swap || old == b) cell = swap ? c : b;
    return old;
  }
  for (bool done = false; !done;) {
    const Wide fresh = !swap ? b : old == b ? c : old;
    asm volatile("lock cmpxchg16b %1"
                 : "=@ccz"(done), "+m"(cell), "+a"(old.low), "+d"(old.high)
                 : "b"(fresh.low), "c"(fresh.high)
                 : "memory");
  }
  return old;
}

template <bool swap>
const Ins* update_wide(Ctx& c, const Ins* i) {
  Cells cells;
  if (!cells.find(c, i, sizeof(Wide))) return c.stop;
  std::uint64_t* part[6];  // the halves of b, c and d
  for (unsigned k = 0; k < 6; ++k) part[k] = lanes<std::uint64_t>(c, c.code->extra[i->index + k]);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const Wide old = exchange_wide<swap>(cells.host[l], {part[0][l], part[1][l]}, {part[2][l], part[3][l]});
    part[4][l] = old.low;
    part[5][l] = old.high;
  }
  return i + 1;
}

// ---- bulk reductions

// Combines Ins::c bytes (a multiple of 16) of shared memory at b into the memory at a, element by element. Unless
// flag_no_result is set, Ins::e is the mbarrier to notify.
template <class Op, class T>
const Ins* reduce_bulk(Ctx& c, const Ins* i) {
  constexpr std::uint32_t piece = 16;
  isa_base::set_mode(c, 0);
  const auto refused = [&](unsigned lane, CUresult code, const char* what) {
    return raise_fault(c, i, code, lane, std::string("a bulk reduction ") + what);
  };
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t into = lanes<std::uint64_t>(c, i->a)[l];
    const std::uint64_t from = lanes<std::uint64_t>(c, i->b)[l];
    const std::uint32_t size = lanes<std::uint32_t>(c, i->c)[l];
    if (((into | from | size) & (piece - 1)) != 0) {
      return refused(l, CUDA_ERROR_MISALIGNED_ADDRESS, "is not aligned to sixteen bytes");
    }
    const bool shared = into - shared_window < window_size;
    for (std::uint32_t at = 0; at < size; at += piece) {
      const std::uint64_t to = resolve_one_to_write(c, l, into + at, piece);
      const std::uint64_t source = resolve_one(c, l, from + at, piece);
      if (to == 0 || source == 0) return refused(l, CUDA_ERROR_ILLEGAL_ADDRESS, "leaves its memory");
      for (std::uint32_t inside = 0; inside < piece; inside += sizeof(T)) {
        T value;
        std::memcpy(&value, reinterpret_cast<const void*>(source + inside), sizeof value);
        exchange<Op, T>(to + inside, value, value, shared);
      }
    }
    if ((i->flags & flag_no_result) != 0) continue;
    const std::uint64_t barrier = resolve_one(c, l, lanes<std::uint64_t>(c, i->e)[l], sizeof(std::uint64_t));
    if (barrier == 0) return refused(l, CUDA_ERROR_ILLEGAL_ADDRESS, "names an mbarrier outside of memory");
    complete_bytes(barrier, size);
  }
  return i + 1;
}

struct AtomicRow {
  Word operation;
  ptx::Type type;
  Handler update, reduce_bulk;
};

template <class Op, class T>
constexpr AtomicRow row(Word operation, ptx::Type type) {
  return {operation, type, &update<Op, T>, &reduce_bulk<Op, T>};
}

constexpr AtomicRow rows[] = {
    row<Add, std::uint32_t>(Word::add, ptx::Type::U32),
    row<Add, std::uint32_t>(Word::add, ptx::Type::S32),
    row<Add, std::uint64_t>(Word::add, ptx::Type::U64),
    row<Add, std::uint64_t>(Word::add, ptx::Type::S64),
    row<Add, float>(Word::add, ptx::Type::F32),
    row<Add, double>(Word::add, ptx::Type::F64),
    row<AddHalves<isa_base::Half, 1>, std::uint16_t>(Word::add, ptx::Type::F16),
    row<AddHalves<isa_base::Half, 2>, std::uint32_t>(Word::add, ptx::Type::F16x2),
    row<AddHalves<isa_base::Brain, 1>, std::uint16_t>(Word::add, ptx::Type::Bf16),
    row<AddHalves<isa_base::Brain, 2>, std::uint32_t>(Word::add, ptx::Type::Bf16x2),
    row<Min, std::uint32_t>(Word::min, ptx::Type::U32),
    row<Min, std::int32_t>(Word::min, ptx::Type::S32),
    row<Min, std::uint64_t>(Word::min, ptx::Type::U64),
    row<Min, std::int64_t>(Word::min, ptx::Type::S64),
    row<Max, std::uint32_t>(Word::max, ptx::Type::U32),
    row<Max, std::int32_t>(Word::max, ptx::Type::S32),
    row<Max, std::uint64_t>(Word::max, ptx::Type::U64),
    row<Max, std::int64_t>(Word::max, ptx::Type::S64),
    row<And, std::uint32_t>(Word::and_, ptx::Type::B32),
    row<And, std::uint64_t>(Word::and_, ptx::Type::B64),
    row<Or, std::uint32_t>(Word::or_, ptx::Type::B32),
    row<Or, std::uint64_t>(Word::or_, ptx::Type::B64),
    row<Xor, std::uint32_t>(Word::xor_, ptx::Type::B32),
    row<Xor, std::uint64_t>(Word::xor_, ptx::Type::B64),
    row<Exchange, std::uint32_t>(Word::exch, ptx::Type::B32),
    row<Exchange, std::uint64_t>(Word::exch, ptx::Type::B64),
    row<CompareSwap, std::uint16_t>(Word::cas, ptx::Type::B16),
    row<CompareSwap, std::uint32_t>(Word::cas, ptx::Type::B32),
    row<CompareSwap, std::uint64_t>(Word::cas, ptx::Type::B64),
    row<Inc, std::uint32_t>(Word::inc, ptx::Type::U32),
    row<Dec, std::uint32_t>(Word::dec, ptx::Type::U32),
};

const AtomicRow* find_row(Word operation, ptx::Type type) {
  const auto* const found = std::find_if(std::begin(rows), std::end(rows), [&](const AtomicRow& row) {
    return row.operation == operation && row.type == type;
  });
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

Handlers wide_atomic_handler(bool swap) {
  return swap ? Handlers{&update_wide<true>, &update_wide<true>} : Handlers{&update_wide<false>, &update_wide<false>};
}

Handlers atomic_handler(Word operation, ptx::Type type) {
  const AtomicRow* const found = find_row(operation, type);
  return found == nullptr ? Handlers{} : Handlers{found->update, found->update};
}

Handlers bulk_reduction_handler(Word operation, ptx::Type type) {
  const bool swaps = operation == Word::exch || operation == Word::cas;
  const AtomicRow* const found = swaps ? nullptr : find_row(operation, type);
  return found == nullptr ? Handlers{} : Handlers{found->reduce_bulk, found->reduce_bulk};
}

}  // namespace simgpu
