// Forms of comparison and selection: each comparison of each type, combined with a further predicate, ordered and
// unordered.
#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

enum class Order { Less, Equal, Greater, None };

template <class T>
Order order(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? Order::Less : a == b ? Order::Equal : Order::Greater;
  } else {
    const Format& format = format_of<T>();
    if (is_nan(a.bits, format) || is_nan(b.bits, format)) return Order::None;
    // Maps the bits to integers that have the same order as the numbers.
    const auto key = [&](Bits bits) {
      const s64 size = static_cast<s64>(bits & (format.sign() - 1));
      return (bits & format.sign()) != 0 ? -size : size;
    };
    const s64 x = key(a.bits);
    const s64 y = key(b.bits);
    return x < y ? Order::Less : x == y ? Order::Equal : Order::Greater;
  }
}

struct Comparison {
  const char* name;
  bool less, equal, greater, none;
};
constexpr Comparison common[] = {
    {"eq", false, true, false, false}, {"ne", true, false, true, false},  {"lt", true, false, false, false},
    {"le", true, true, false, false},  {"gt", false, false, true, false}, {"ge", false, true, true, false},
};
constexpr Comparison only_unsigned[] = {
    {"lo", true, false, false, false},
    {"ls", true, true, false, false},
    {"hi", false, false, true, false},
    {"hs", false, true, true, false},
};
constexpr Comparison only_float[] = {
    {"equ", false, true, false, true}, {"neu", true, false, true, true},   {"ltu", true, false, false, true},
    {"leu", true, true, false, true},  {"gtu", false, false, true, true},  {"geu", false, true, true, true},
    {"num", true, true, true, false},  {"nan", false, false, false, true},
};

template <class T>
bool holds(const Comparison& comparison, T a, T b) {
  switch (order(a, b)) {
    case Order::Less: return comparison.less;
    case Order::Equal: return comparison.equal;
    case Order::Greater: return comparison.greater;
    default: return comparison.none;
  }
}

template <class T>
T without_subnormals(T value) {
  return value_of<T>(flushed(value.bits, format_of<T>()));
}

template <class T>
void setp(Forms& forms, const Comparison& comparison, const std::string& type) {
  const std::string opcode = std::string("setp.") + comparison.name;
  add_test<T, T>(forms, opcode + "." + type, [=](T a, T b) { return holds(comparison, a, b); });
  if constexpr (std::is_same_v<T, f32>) {
    add_test<T, T>(forms, opcode + ".ftz.f32",
                   [=](T a, T b) { return holds(comparison, without_subnormals(a), without_subnormals(b)); });
  }
}

// Adds forms with a third predicate, and forms with the complement as a second result.
template <class T>
void joined(Forms& forms, const Comparison& comparison, const std::string& type) {
  const auto join = [](const std::string& how, bool x, bool y) {
    return how == "and" ? x && y : how == "or" ? x || y : x != y;
  };
  for (const std::string how : {"and", "or", "xor"}) {
    const std::string opcode = std::string("setp.") + comparison.name + "." + how + "." + type;
    const std::string third = "and.b32 %r1, %c, 1; setp.ne.u32 %p3, %r1, 0; ";
    Form& form = add_text<u32, T, T, u32>(
        forms, opcode,
        third + opcode + " %p1|%p2, %a, %b, !%p3; selp.u32 %d, 1, 0, %p1; selp.u32 %r2, 2, 0, %p2; or.b32 %d, %d, %r2;",
        [=](T a, T b, u32 c) {
          const bool other = (c & 1) == 0;
          const bool is = holds(comparison, a, b);
          return u32{join(how, is, other)} | u32{join(how, !is, other)} << 1;
        });
    form.rows.resize(form.rows.size() / 2);
  }
}

template <class T>
void set(Forms& forms, const Comparison& comparison, const std::string& type) {
  const std::string opcode = std::string("set.") + comparison.name;
  add_op<u32, T, T>(forms, opcode + ".u32." + type, [=](T a, T b) { return holds(comparison, a, b) ? ~u32{0} : 0; });
  add_op<s32, T, T>(forms, opcode + ".s32." + type, [=](T a, T b) { return holds(comparison, a, b) ? -1 : 0; });
  add_op<f32, T, T>(forms, opcode + ".f32." + type,
                    [=](T a, T b) { return f32{holds(comparison, a, b) ? 0x3f80'0000U : 0}; });
}

template <class T>
void all_of(Forms& forms, const std::string& type) {
  for (const Comparison& comparison : common) {
    setp<T>(forms, comparison, type);
    if constexpr (sizeof(T) >= 4) set<T>(forms, comparison, type);
  }
  if constexpr (sizeof(T) >= 4) joined<T>(forms, common[2], type);
  if constexpr (std::is_unsigned_v<T>) {
    for (const Comparison& comparison : only_unsigned) setp<T>(forms, comparison, type);
  }
  if constexpr (!std::is_integral_v<T>) {
    for (const Comparison& comparison : only_float) setp<T>(forms, comparison, type);
    joined<T>(forms, only_float[2], type);
  }
}

template <class T>
void bits(Forms& forms, const std::string& type) {
  setp<T>(forms, common[0], type);
  setp<T>(forms, common[1], type);
}

template <class T>
void select(Forms& forms, const std::string& type) {
  add_text<T, T, T, u32>(forms, "selp." + type, "setp.lt.s32 %p1, %c, 0; selp." + type + " %d, %a, %b, %p1;",
                         [](T a, T b, u32 c) { return static_cast<s32>(c) < 0 ? a : b; });
}

template <class T>
void choose(Forms& forms, const std::string& type) {
  add_op<T, T, T, s32>(forms, "slct." + type + ".s32", [](T a, T b, s32 c) { return c >= 0 ? a : b; });
  add_op<T, T, T, f32>(forms, "slct." + type + ".f32",
                       [](T a, T b, f32 c) { return holds(common[5], c, f32{0}) ? a : b; });
  add_op<T, T, T, f32>(forms, "slct.ftz." + type + ".f32",
                       [](T a, T b, f32 c) { return holds(common[5], without_subnormals(c), f32{0}) ? a : b; });
}

template <class T>
void move(Forms& forms, const std::string& type) {
  add_op<T, T>(forms, "mov." + type, [](T a) { return a; });
}

}  // namespace

void compare_forms(Forms& forms) {
  all_of<u16>(forms, "u16");
  all_of<s16>(forms, "s16");
  all_of<u32>(forms, "u32");
  all_of<s32>(forms, "s32");
  all_of<u64>(forms, "u64");
  all_of<s64>(forms, "s64");
  all_of<f32>(forms, "f32");
  all_of<f64>(forms, "f64");
  bits<u16>(forms, "b16");
  bits<u32>(forms, "b32");
  bits<u64>(forms, "b64");
  for (const std::string type : {"b16", "u16", "s16"}) select<u16>(forms, type);
  for (const std::string type : {"b32", "u32", "s32"}) select<u32>(forms, type);
  for (const std::string type : {"b64", "u64", "s64"}) select<u64>(forms, type);
  select<f32>(forms, "f32");
  select<f64>(forms, "f64");
  for (const std::string type : {"b16", "u16", "s16"}) choose<u16>(forms, type);
  for (const std::string type : {"b32", "u32", "s32"}) choose<u32>(forms, type);
  for (const std::string type : {"b64", "u64", "s64"}) choose<u64>(forms, type);
  choose<f32>(forms, "f32");
  choose<f64>(forms, "f64");
  for (const std::string type : {"b16", "u16", "s16"}) move<u16>(forms, type);
  for (const std::string type : {"b32", "u32", "s32"}) move<u32>(forms, type);
  for (const std::string type : {"b64", "u64", "s64"}) move<u64>(forms, type);
  move<f32>(forms, "f32");
  move<f64>(forms, "f64");
  // Packing and unpacking of words: the first element has the lowest bits.
  add_text<u64, u32, u32>(forms, "mov.b64", "mov.b64 %d, {%a, %b};", [](u32 a, u32 b) { return u64{b} << 32 | a; });
  add_text<u32, u64>(forms, "mov.b64", "mov.b64 {%r1, %d}, %a;", [](u64 a) { return static_cast<u32>(a >> 32); });
  add_text<u32, u64>(forms, "mov.b64", "mov.b64 {%d, _}, %a;", [](u64 a) { return static_cast<u32>(a); });
  add_text<u32, u16, u16>(forms, "mov.b32", "mov.b32 %d, {%a, %b};", [](u16 a, u16 b) { return u32{b} << 16 | a; });
  add_text<u16, u32>(forms, "mov.b32", "mov.b32 {%h1, %d}, %a;", [](u32 a) { return static_cast<u16>(a >> 16); });
  add_text<u64, u64>(forms, "mov.b64", "mov.b64 {%h1, %h2, %h3, %h4}, %a; mov.b64 %d, {%h4, %h3, %h2, %h1};",
                     [](u64 a) { return a << 48 | (a & 0xffff'0000) << 16 | (a >> 16 & 0xffff'0000) | a >> 48; });
  add_text<u32, u32>(forms, "mov.b32", "mov.b32 {%r1}, %a; mov.b32 %d, %r1;", [](u32 a) { return a; }).text =
      "mov.b32 %f1, %a; mov.b32 %d, %f1;";
}

}  // namespace ptx_forms
