// Forms of atomics and reductions in memory: each operation, type, space, order and scope. Each thread has a word of
// its own; the last forms test many threads that update the same word.
#include <algorithm>

#include "tests/ptx/form.h"
#include "tests/ptx/places.h"

namespace ptx_forms {
namespace {

// Computes the new value of a word from its old value and one or two operands.
template <class T>
using Update = std::function<T(T old, T b, T c)>;

template <class T>
void one(Forms& forms, const std::string& words, const std::string& operation, const Place& place, bool swaps,
         const Update<T>& update, unsigned target) {
  const std::string cell = std::string("[") + place.address + "]";
  const std::string type = register_type<T>();
  const std::string plain = sizeof(T) == 2 ? "b16" : sizeof(T) == 4 ? "b32" : "b64";
  const std::string before = std::string(place.prepare) + "st" + place.space + "." + plain + " " + cell + ", %a;\n";
  const std::string after = "ld" + std::string(place.space) + "." + plain + " %e, " + cell + ";";
  const std::string operands = swaps ? ", %b, %c;\n" : ", %b;\n";
  const auto reference = [update](bool old_too) {
    return [=](const Row* rows, unsigned lane) {
      const auto& in = rows[lane].in;
      const T fresh = update(value_of<T>(in[0]), value_of<T>(in[1]), value_of<T>(in[2]));
      return Result{old_too ? bits_of(value_of<T>(in[0])) : 0, bits_of(fresh)};
    };
  };
  const auto row = [&](const std::string& name, const std::string& text, bool old_too) {
    Form& form = add_text<T, T, T, T>(forms, name, text, [](T a, T, T) { return a; });
    form.second = register_type<T>();
    form.reference = reference(old_too);
    form.target = target;
    form.rows.resize(std::min<std::size_t>(form.rows.size(), 1024));
  };
  const std::string rest = words + place.space + operation;
  row("atom" + rest, before + "atom" + rest + " %d, " + cell + operands + after, true);
  if (operation.find(".exch") != std::string::npos || swaps) return;
  row("red" + rest, before + "red" + rest + " " + cell + operands + "mov." + plain + " %d, 0;\n" + after, false);
}

template <class T>
void operation(Forms& forms, const std::string& name, bool swaps, const Update<T>& update, unsigned target = 75) {
  for (const Place& place : places) one<T>(forms, "", name, place, swaps, update, target);
}

template <class T>
void arithmetic(Forms& forms) {
  const std::string type = std::string(".") + type_name<T>();
  if constexpr (!std::is_same_v<T, s64>) {
    operation<T>(forms, ".add" + type, false,
                 [](T a, T b, T) { return static_cast<T>(static_cast<u64>(a) + static_cast<u64>(b)); });
  }
  operation<T>(forms, ".min" + type, false, [](T a, T b, T) { return std::min(a, b); });
  operation<T>(forms, ".max" + type, false, [](T a, T b, T) { return std::max(a, b); });
}

template <class T>
void logic(Forms& forms, const std::string& type) {
  operation<T>(forms, ".and" + type, false, [](T a, T b, T) { return static_cast<T>(a & b); });
  operation<T>(forms, ".or" + type, false, [](T a, T b, T) { return static_cast<T>(a | b); });
  operation<T>(forms, ".xor" + type, false, [](T a, T b, T) { return static_cast<T>(a ^ b); });
  operation<T>(forms, ".exch" + type, false, [](T, T b, T) { return b; });
}

template <class T>
void swap(Forms& forms, const std::string& type) {
  const std::size_t first = forms.size();
  operation<T>(forms, ".cas" + type, true, [](T a, T b, T c) { return a == b ? c : a; });
  // In half of the rows, the compared values are equal.
  for (std::size_t k = first; k < forms.size(); ++k) {
    for (std::size_t r = 0; r < forms[k].rows.size(); r += 2) forms[k].rows[r].in[1] = forms[k].rows[r].in[0];
  }
}

// The adder of global memory flushes subnormal singles; the adder of shared memory does not.
void floats(Forms& forms) {
  for (const Place& place : places) {
    const bool flushes = std::string(place.address) == "%mem";
    one<f32>(
        forms, "", ".add.f32", place, false,
        [flushes](f32 a, f32 b, f32) {
          if (!flushes) return value_of<f32>(add(a.bits, b.bits, single, Round::Nearest));
          const Bits sum = add(flushed(a.bits, single), flushed(b.bits, single), single, Round::Nearest);
          return value_of<f32>(flushed(sum, single));
        },
        75);
  }
  const std::size_t first = forms.size();
  operation<f64>(forms, ".add.f64", false,
                 [](f64 a, f64 b, f64) { return value_of<f64>(add(a.bits, b.bits, twice, Round::Nearest)); });
  for (std::size_t k = first; k < forms.size(); ++k) {
    forms[k].accept = [](Result wanted, Result got, const Row&) {
      return wanted.d == got.d && is_nan(wanted.e, twice) && is_nan(got.e, twice);
    };
  }
}

template <class T>
Bits add_halves(Bits a, Bits b) {
  Bits sum = 0;
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); shift += 16) {
    sum |= add(a >> shift & 0xffff, b >> shift & 0xffff, format_of<T>(), Round::Nearest) << shift;
  }
  return sum;
}
template <class T>
void halves(Forms& forms, unsigned target) {
  operation<T>(
      forms, std::string(".add.noftz.") + type_name<T>(), false,
      [](T a, T b, T) { return value_of<T>(add_halves<T>(a.bits, b.bits)); }, target);
}

// Order and scope have no effect that a single thread could observe.
void ordered(Forms& forms) {
  for (const std::string order : {"", ".relaxed", ".acquire", ".release", ".acq_rel"}) {
    for (const std::string scope : {"", ".cta", ".gpu", ".sys", ".cluster"}) {
      if (order.empty() != scope.empty()) continue;
      const unsigned target = scope == ".cluster" ? 90 : 75;
      for (const Place& place : places) {
        one<u32>(
            forms, order + scope, ".add.u32", place, false, [](u32 a, u32 b, u32) { return a + b; }, target);
        one<u32>(
            forms, order + scope, ".or.b32", place, false, [](u32 a, u32 b, u32) { return a | b; }, target);
        one<u32>(
            forms, order + scope, ".and.b32", place, false, [](u32 a, u32 b, u32) { return a & b; }, target);
        one<u64>(
            forms, order + scope, ".cas.b64", place, true, [](u64 a, u64 b, u64 c) { return a == b ? c : a; }, target);
        one<u64>(
            forms, order + scope, ".exch.b64", place, false, [](u64, u64 b, u64) { return b; }, target);
      }
    }
  }
  // Cooperative groups use this spelling.
  for (const Place& place : places) {
    one<u32>(
        forms, "", ".or.acq_rel.cta.b32", place, false, [](u32 a, u32 b, u32) { return a | b; }, 75);
    one<u32>(
        forms, "", ".and.release.cta.b32", place, false, [](u32 a, u32 b, u32) { return a & b; }, 75);
  }
  // A reduction returns no value, so it has no acquire variant.
  std::erase_if(forms, [](const Form& form) {
    return form.name.starts_with("red") && form.name.find(".acq") != std::string::npos;
  });
}

// All 32 lanes of a warp add to the word of the first lane. The sum is independent of their order.
void contended(Forms& forms) {
  for (const std::string space : {".global", ".shared"}) {
    const bool shared = space == ".shared";
    const std::string cell = shared ? "%r2" : "%rd1";
    const std::string find = shared ? "mov.u32 %r1, %laneid; mul.lo.u32 %r1, %r1, 64; sub.u32 %r2, %tile, %r1;\n"
                                    : "mov.u32 %r1, %laneid; mul.wide.u32 %rd2, %r1, 64; sub.u64 %rd1, %mem, %rd2;\n";
    Form& form = add_text<u32, u32>(forms, "atom" + space + ".add.u32",
                                    find + "st" + space + ".u32 [" + cell + "], 0; bar.warp.sync -1;\n" + "atom" +
                                        space + ".add.u32 %r3, [" + cell + "], %a; bar.warp.sync -1;\n" +
                                        "ld.volatile" + space + ".u32 %d, [" + cell + "];",
                                    [](u32 a) { return a; });
    form.reference = [](const Row* rows, unsigned) {
      u32 sum = 0;
      for (unsigned k = 0; k < warp; ++k) sum += static_cast<u32>(rows[k].in[0]);
      return Result{sum, 0};
    };
    form.rows.resize(128);
  }
}

}  // namespace

void atomic_forms(Forms& forms) {
  arithmetic<u32>(forms);
  arithmetic<s32>(forms);
  arithmetic<u64>(forms);
  arithmetic<s64>(forms);
  logic<u32>(forms, ".b32");
  logic<u64>(forms, ".b64");
  swap<u16>(forms, ".b16");
  swap<u32>(forms, ".b32");
  swap<u64>(forms, ".b64");
  operation<u32>(forms, ".inc.u32", false, [](u32 a, u32 b, u32) { return a >= b ? 0 : a + 1; });
  operation<u32>(forms, ".dec.u32", false, [](u32 a, u32 b, u32) { return a == 0 || a > b ? b : a - 1; });
  floats(forms);
  halves<f16>(forms, 75);
  halves<f16x2>(forms, 75);
  halves<bf16>(forms, 90);
  halves<bf16x2>(forms, 90);
  ordered(forms);
  contended(forms);
}

}  // namespace ptx_forms
