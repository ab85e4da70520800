// Forms of bitwise logic, shifts, bit fields and permutations.
#include <bit>

#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

template <class T>
constexpr u32 width = 8 * sizeof(T);
template <class T>
std::string sized(const std::string& opcode) {
  return opcode + ".b" + std::to_string(width<T>);
}
template <class T>
std::string typed(const std::string& opcode) {
  return opcode + "." + type_name<T>();
}
template <class T>
bool bit(T value, u32 k) {
  return (static_cast<u64>(static_cast<std::make_unsigned_t<T>>(value)) >> k & 1) != 0;
}

// Adds rows whose shift amounts are close to the width of the type.
template <class T>
void add_amounts(Form& form) {
  for (const Bits value : integer_edges(width<T>, false)) {
    for (const u32 amount : {width<T> - 1, width<T>, width<T> + 1}) form.rows.push_back({{value, amount, 0}});
  }
}

template <class T>
void logic(Forms& forms) {
  add_op<T, T, T>(forms, sized<T>("and"), [](T a, T b) { return static_cast<T>(a & b); });
  add_op<T, T, T>(forms, sized<T>("or"), [](T a, T b) { return static_cast<T>(a | b); });
  add_op<T, T, T>(forms, sized<T>("xor"), [](T a, T b) { return static_cast<T>(a ^ b); });
  add_op<T, T>(forms, sized<T>("not"), [](T a) { return static_cast<T>(~a); });
  add_op<T, T>(forms, sized<T>("cnot"), [](T a) { return static_cast<T>(a == 0); });
  add_amounts<T>(add_op<T, T, u32>(forms, sized<T>("shl"), [](T a, u32 b) {
    return b >= width<T> ? T{0} : static_cast<T>(static_cast<u64>(a) << b);
  }));
  add_amounts<T>(add_op<T, T, u32>(forms, sized<T>("shr"),
                                   [](T a, u32 b) { return b >= width<T> ? T{0} : static_cast<T>(a >> b); }));
}

// A right shift of a signed number fills with the sign.
template <class T>
void shifts(Forms& forms) {
  add_amounts<T>(add_op<T, T, u32>(forms, typed<T>("shr"), [](T a, u32 b) {
    T result = 0;
    for (u32 k = 0; k < width<T>; ++k) {
      const u64 from = u64{k} + b;
      const bool set = from < width<T> ? bit(a, static_cast<u32>(from)) : a < 0;
      if (set) result = static_cast<T>(static_cast<u64>(result) | u64{1} << k);
    }
    return result;
  }));
}

void funnels(Forms& forms) {
  for (const bool wraps : {false, true}) {
    const std::string mode = wraps ? "wrap" : "clamp";
    const auto amount = [wraps](u32 c) { return wraps ? c % 32 : c < 32 ? c : 32; };
    const auto add = [&](const std::string& opcode, auto reference) {
      Form& form = add_op<u32, u32, u32, u32>(forms, opcode + mode + ".b32", reference);
      for (const Bits a : integer_edges(32, true)) {
        for (const Bits c : {31, 32, 33, 63, 64}) form.rows.push_back({{a, 0x1234'5678, c}});
      }
    };
    add("shf.l.", [=](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{b} << 32 | a) << amount(c) >> 32); });
    add("shf.r.", [=](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{b} << 32 | a) >> amount(c)); });
  }
}

template <class T>
void counts(Forms& forms) {
  add_op<u32, T>(forms, sized<T>("popc"), [](T a) { return static_cast<u32>(std::popcount(a)); });
  add_op<u32, T>(forms, sized<T>("clz"), [](T a) { return static_cast<u32>(std::countl_zero(a)); });
  add_op<T, T>(forms, sized<T>("brev"), [](T a) {
    T result = 0;
    for (u32 k = 0; k < width<T>; ++k) result = static_cast<T>(result << 1 | T{bit(a, k)});
    return result;
  });
}

template <class T>
void find(Forms& forms) {
  for (const bool amount : {false, true}) {
    add_op<u32, T>(forms, typed<T>(amount ? "bfind.shiftamt" : "bfind"), [amount](T a) {
      const bool sign = a < 0;
      for (u32 k = width<T>; k-- > 0;) {
        if (bit(a, k) != sign) return amount ? width<T> - 1 - k : k;
      }
      return ~u32{0};
    });
  }
}

// PTX defines that positions and lengths are the lowest bytes of their operands. An H200 follows this only for 32-bit
// fields, and uses the whole operands for 64-bit fields. Therefore the rows for 64 bits have zeros above the lowest
// byte.
template <class T>
void extract(Forms& forms) {
  Form& form = add_op<T, T, u32, u32>(forms, typed<T>("bfe"), [](T a, u32 b, u32 c) {
    const u32 position = b & 0xff;
    const u32 length = c & 0xff;
    if (length == 0) return T{0};
    const u32 last = std::min(position + length - 1, width<T> - 1);
    const bool fill = std::is_signed_v<T> && bit(a, last);
    u64 result = 0;
    for (u32 k = 0; k < width<T>; ++k) {
      const bool inside = k < length && position + k < width<T>;
      if (inside ? bit(a, position + k) : fill) result |= u64{1} << k;
    }
    return static_cast<T>(result);
  });
  const Bits places[] = {0, 1, 7, 31, 32, 63, 64, 255, 256 + 3};
  for (const Bits a : integer_edges(width<T>, true)) {
    for (const Bits position : places) {
      for (const Bits length : places) form.rows.push_back({{a, position, length}});
    }
  }
  if (width<T> == 32) return;
  for (Row& row : form.rows) {
    row.in[1] &= 0xff;
    row.in[2] &= 0xff;
  }
}

template <class T>
void insert(Forms& forms) {
  const u32 above = width<T> == 32 ? 256 : 0;
  for (const auto& [position, length] : {std::pair<u32, u32>{0, 8},
                                         {5, 0},
                                         {0, 255},
                                         {31, 4},
                                         {width<T>, 3},
                                         {above + 44, 7},
                                         {7, width<T>},
                                         {width<T> - 1, 1},
                                         {250, 20},
                                         {3, above + 4}}) {
    const std::string text = "mov.u32 %r1, " + std::to_string(position) + "; mov.u32 %r2, " + std::to_string(length) +
                             "; " + sized<T>("bfi") + " %d, %a, %b, %r1, %r2;";
    // On an H200 (2026-11-22), inserting 32 bits at position 7 leaves b unchanged. PTX's text has no such exception,
    // and no other row is an exception.
    const Accept unchanged = [](Result, Result got, const Row& row) { return got.d == row.in[1]; };
    const bool excepted = position == 7 && length == 32;
    add_text<T, T, T>(
        forms, sized<T>("bfi"), text,
        [position = position & 0xff, length = length & 0xff](T a, T b) {
          for (u32 k = 0; k < length && position + k < width<T>; ++k) {
            const T one = static_cast<T>(T{1} << (position + k));
            b = static_cast<T>(bit(a, k) ? b | one : b & ~one);
          }
          return b;
        },
        excepted ? unchanged : nullptr);
  }
}

void masks(Forms& forms) {
  for (const bool wraps : {false, true}) {
    const std::string mode = wraps ? "wrap" : "clamp";
    add_op<u32, u32, u32>(forms, "bmsk." + mode + ".b32", [wraps](u32 a, u32 b) {
      const u32 first = wraps ? a % 32 : std::min(a, 32U);
      const u32 length = wraps ? b % 32 : std::min(b, 32U);
      u32 mask = 0;
      for (u32 k = first; k < 32 && k < first + length; ++k) mask |= 1U << k;
      return mask;
    });
    const auto extended = [wraps](bool is_signed, u32 a, u32 b) {
      const u32 size = wraps ? b % 32 : std::min(b, 32U);
      u32 result = 0;
      for (u32 k = 0; k < 32 && size != 0; ++k) {
        const bool set = k < size ? bit(a, k) : is_signed && bit(a, size - 1);
        result |= u32{set} << k;
      }
      return result;
    };
    add_op<u32, u32, u32>(forms, "szext." + mode + ".u32", [=](u32 a, u32 b) { return extended(false, a, b); });
    add_op<u32, u32, u32>(forms, "szext." + mode + ".s32", [=](u32 a, u32 b) { return extended(true, a, b); });
  }
}

// ---- permutation

u32 byte_of(u32 a, u32 b, u32 selector) {
  const u32 number = selector & 7;
  const u32 byte = (number < 4 ? a : b) >> (8 * (number % 4)) & 0xff;
  return (selector & 8) == 0 ? byte : byte >= 0x80 ? 0xff : 0;
}

// Returns the byte that each mode selects for byte k of the result, by PTX's table.
u32 selector(const std::string& mode, u32 c, u32 k) {
  const u32 n = c & 3;
  if (mode == "f4e") return n + k;
  if (mode == "b4e") return (n + 8 - k) % 8;
  if (mode == "rc8") return n;
  if (mode == "ecl") return std::max(n, k);
  if (mode == "ecr") return std::min(n, k);
  return 2 * (n % 2) + k % 2;
}

void permutations(Forms& forms) {
  add_op<u32, u32, u32, u32>(forms, "prmt.b32", [](u32 a, u32 b, u32 c) {
    u32 result = 0;
    for (u32 k = 0; k < 4; ++k) result |= byte_of(a, b, c >> (4 * k) & 15) << (8 * k);
    return result;
  });
  for (const std::string mode : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) {
    add_op<u32, u32, u32, u32>(forms, "prmt.b32." + mode, [mode](u32 a, u32 b, u32 c) {
      u32 result = 0;
      for (u32 k = 0; k < 4; ++k) result |= byte_of(a, b, selector(mode, c, k)) << (8 * k);
      return result;
    });
  }
}

void tables(Forms& forms) {
  for (u32 table = 0; table < 256; table += 1 + table % 7) {
    const std::string text = "lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";";
    add_text<u32, u32, u32, u32>(forms, "lop3.b32", text, [table](u32 a, u32 b, u32 c) {
      u32 result = 0;
      for (u32 k = 0; k < 32; ++k) {
        const u32 at = u32{bit(a, k)} << 2 | u32{bit(b, k)} << 1 | u32{bit(c, k)};
        result |= (table >> at & 1) << k;
      }
      return result;
    });
  }
}

void finders(Forms& forms) {
  Form& form = add_op<u32, u32, u32, s32>(forms, "fns.b32", [](u32 mask, u32 base, s32 offset) {
    u32 left = offset < 0 ? 0U - static_cast<u32>(offset) : static_cast<u32>(offset);
    if (left == 0) return bit(mask, base) ? base : ~u32{0};
    for (s64 at = base; at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
      if (bit(mask, static_cast<u32>(at)) && --left == 0) return static_cast<u32>(at);
    }
    return ~u32{0};
  });
  form.rows.clear();
  for (u32 k = 0; k < 1024; ++k) {
    const u32 mask = static_cast<u32>(k % 3 == 0 ? next_random() : next_random() & next_random());
    form.rows.push_back({{mask, k % 32, static_cast<u32>(static_cast<s32>(k / 32 % 9) - 4)}});
  }
}

}  // namespace

void bit_forms(Forms& forms) {
  logic<u16>(forms);
  logic<u32>(forms);
  logic<u64>(forms);
  shifts<u16>(forms);
  shifts<s16>(forms);
  shifts<u32>(forms);
  shifts<s32>(forms);
  shifts<u64>(forms);
  shifts<s64>(forms);
  funnels(forms);
  counts<u32>(forms);
  counts<u64>(forms);
  find<u32>(forms);
  find<s32>(forms);
  find<u64>(forms);
  find<s64>(forms);
  extract<u32>(forms);
  extract<s32>(forms);
  extract<u64>(forms);
  extract<s64>(forms);
  insert<u32>(forms);
  insert<u64>(forms);
  masks(forms);
  permutations(forms);
  tables(forms);
  finders(forms);
  // The predicates are the lowest bits of the three operands.
  const auto predicates = [&](const std::string& opcode, auto f) {
    add_text<u32, u32, u32>(
        forms, opcode + ".pred",
        "and.b32 %r1, %a, 1; setp.ne.u32 %p1, %r1, 0; and.b32 %r2, %b, 1; setp.ne.u32 %p2, %r2, 0; " + opcode +
            ".pred %p3, %p1" + (opcode == "not" || opcode == "mov" ? "" : ", %p2") + "; selp.u32 %d, 1, 0, %p3;",
        [f](u32 a, u32 b) { return u32{f((a & 1) != 0, (b & 1) != 0)}; });
  };
  predicates("and", [](bool a, bool b) { return a && b; });
  predicates("or", [](bool a, bool b) { return a || b; });
  predicates("xor", [](bool a, bool b) { return a != b; });
  predicates("not", [](bool a, bool) { return !a; });
  predicates("mov", [](bool a, bool) { return a; });
}

}  // namespace ptx_forms
