// Forms of 128-bit registers: moves, loads, stores, and the two atomics that support 128 bits.
#include "tests/ptx/driver.h"
#include "tests/ptx/form.h"
#include "tests/ptx/places.h"

namespace ptx_forms {
namespace {

using Words = std::function<Result(u64 a, u64 b, u64 c)>;

// Adds a form with two 64-bit results and three 64-bit inputs. Rows with equal halves are as useful as rows with
// different halves, so 512 of the combinations suffice.
void add_wide(Forms& forms, const std::string& name, const std::string& text, unsigned target, const Words& words) {
  Form& form = add_text<u64, u64, u64, u64>(forms, name, "{\n.reg .b128 %w<4>;\n" + text + "\n}",
                                            [](u64 a, u64, u64) { return a; });
  form.second = "b64";
  form.target = target;
  form.reference = [words](const Row* rows, unsigned lane) {
    const auto& in = rows[lane].in;
    return words(in[0], in[1], in[2]);
  };
  form.rows.resize(512);
}

void moves(Forms& forms) {
  const std::string out = "mov.b128 {%d, %e}, ";
  add_wide(forms, "mov.b128", "mov.b128 %w1, {%b, %a}; " + out + "%w1;", 75, [](u64 a, u64 b, u64) {
    return Result{b, a};
  });
  add_wide(forms, "mov.b128",
           "mov.b128 %w1, {%a, %b}; mov.b128 %w2, %w1; mov.b128 {_, %d}, %w2; mov.b128 {%e, _}, %w1;", 75,
           [](u64 a, u64 b, u64) {
             return Result{b, a};
           });
  add_wide(forms, "mov.b128",
           "setp.lt.u64 %p1, %a, %b; mov.b128 %w1, {%a, %b};\n@%p1 mov.b128 %w1, {%b, %c};\n" + out + "%w1;", 75,
           [](u64 a, u64 b, u64 c) {
             return a < b ? Result{b, c} : Result{a, b};
           });
}

constexpr Place stack{".local", "stack", ".local .align 16 .b8 stack[32];\n"};

std::string cell(const Place& place) { return std::string("[") + place.address + "+16]"; }
std::string put(const Place& place, const std::string& values) {
  return std::string(place.prepare) + "st" + place.space + ".v2.b64 " + cell(place) + ", {" + values + "};\n";
}
std::string get(const Place& place) {
  return std::string("ld") + place.space + ".v2.b64 {%d, %e}, " + cell(place) + ";";
}

void one_load(Forms& forms, const std::string& words, const Place& place) {
  const std::string name = "ld" + words + place.space + ".b128";
  add_wide(forms, name, put(place, "%a, %b") + name + " %w1, " + cell(place) + "; mov.b128 {%d, %e}, %w1;", 75,
           [](u64 a, u64 b, u64) {
             return Result{a, b};
           });
}
void one_store(Forms& forms, const std::string& words, const Place& place) {
  const std::string name = "st" + words + place.space + ".b128";
  add_wide(forms, name,
           put(place, "%c, %c") + "mov.b128 %w1, {%a, %b}; " + name + " " + cell(place) + ", %w1;\n" + get(place), 75,
           [](u64 a, u64 b, u64) {
             return Result{a, b};
           });
}

void loads_and_stores(Forms& forms) {
  for (const Place& place : {places[0], places[1], places[2], places[3], stack}) {
    one_load(forms, "", place);
    one_store(forms, "", place);
  }
  for (const Place& place : places) {
    for (const std::string scope : {".cta", ".gpu", ".sys"}) {
      one_load(forms, ".relaxed" + scope, place);
      one_load(forms, ".acquire" + scope, place);
      one_store(forms, ".relaxed" + scope, place);
      one_store(forms, ".release" + scope, place);
    }
  }
  const auto known = [](u64, u64, u64) {
    Result result;
    std::memcpy(&result, &extra_parameter()[16], sizeof result);
    return result;
  };
  add_wide(forms, "ld.param.b128", "ld.param.b128 %w1, [extra+16]; mov.b128 {%d, %e}, %w1;", 75, known);
}

// The results are the old and the new contents of the memory.
void one_atomic(Forms& forms, const std::string& name, const Place& place, const std::string& operands,
                const Words& then) {
  const std::string before = put(place, "%a, %b") + "mov.b128 %w1, {%c, %a};\n";
  const std::string line = name + " %w3, " + cell(place) + ", " + operands + ";\n";
  add_wide(forms, name, before + line + "mov.b128 {%d, %e}, %w3;", 90, [](u64 a, u64 b, u64) { return Result{a, b}; });
  add_wide(forms, name, before + line + get(place), 90, then);
}

void atomics(Forms& forms) {
  // The compared value equals the memory except for the lowest bits of both halves.
  const std::string near =
      "and.b64 %rd1, %c, 1; xor.b64 %rd1, %rd1, %a; and.b64 %rd2, %c, 2; xor.b64 %rd2, %rd2, %b;\n"
      "mov.b128 %w2, {%rd1, %rd2};\n";
  for (const Place& place : places) {
    for (const std::string order :
         {"", ".relaxed.cta", ".acquire.gpu", ".release.sys", ".acq_rel.gpu", ".acq_rel.sys"}) {
      Place swapped = place;
      const std::string prepare = place.prepare + near;
      swapped.prepare = prepare.c_str();
      one_atomic(forms, "atom" + order + place.space + ".exch.b128", place, "%w1", [](u64 a, u64, u64 c) {
        return Result{c, a};
      });
      one_atomic(forms, "atom" + order + place.space + ".cas.b128", swapped, "%w2, %w1", [](u64 a, u64 b, u64 c) {
        return (c & 3) == 0 ? Result{c, a} : Result{a, b};
      });
    }
  }
}

}  // namespace

void wide_forms(Forms& forms) {
  moves(forms);
  loads_and_stores(forms);
  atomics(forms);
}

}  // namespace ptx_forms
