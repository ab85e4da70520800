// Forms of loads and stores: each space, order, scope, cache hint, type and vector length of the scalar part of PTX.
#include "tests/ptx/driver.h"
#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

using Bytes = std::array<unsigned char, 64>;

struct Type {
  const char* name;
  unsigned size;
  bool is_signed = false;
  bool is_float = false;
};
constexpr Type types[] = {
    {"u8", 1},
    {"s8", 1, true},
    {"b8", 1},
    {"u16", 2},
    {"s16", 2, true},
    {"b16", 2},
    {"u32", 4},
    {"s32", 4, true},
    {"b32", 4},
    {"u64", 8},
    {"s64", 8, true},
    {"b64", 8},
    {"f32", 4, false, true},
    {"f64", 8, false, true},
};

Bytes bytes_of(const Row& row) {
  Bytes bytes{};
  std::memcpy(bytes.data(), row.in.data(), sizeof row.in);
  return bytes;
}

Bits element(const unsigned char* at, const Type& type) {
  Bits value = 0;
  std::memcpy(&value, at, type.size);
  const Bits sign = Bits{1} << (8 * type.size - 1);
  return type.is_signed ? (value ^ sign) - sign : value;
}

std::string reg(const Type& type, unsigned number) {
  const char* const kind = type.is_float ? (type.size == 4 ? "%f" : "%q") : "%rd";
  return kind + std::to_string(number + 1);
}

// Returns a list such as "{%r1, %r2}", or a single register.
std::string registers(const Type& type, unsigned count) {
  std::string text = reg(type, 0);
  for (unsigned k = 1; k < count; ++k) text += ", " + reg(type, k);
  return count == 1 ? text : "{" + text + "}";
}

// Sums up the elements with different weights, so that exchanged elements change the sum.
std::string sum_text(const Type& type, unsigned count) {
  std::string text = "mov.u64 %d, 0;\n";
  for (unsigned k = 0; k < count; ++k) {
    if (!type.is_float)
      text += "mad.lo.u64 %d, " + reg(type, k) + ", " + std::to_string(2 * k + 1) + ", %d;\n";
    else if (type.size == 8)
      text += "mov.b64 %rd8, " + reg(type, k) + "; mad.lo.u64 %d, %rd8, " + std::to_string(2 * k + 1) + ", %d;\n";
    else
      text += "mov.b32 %r8, " + reg(type, k) + "; cvt.u64.u32 %rd8, %r8; mad.lo.u64 %d, %rd8, " +
              std::to_string(2 * k + 1) + ", %d;\n";
  }
  return text;
}

std::string opcode(const std::string& head, const std::string& words, const Type& type, unsigned count) {
  return head + words + (count == 1 ? "" : ".v" + std::to_string(count)) + "." + type.name;
}

// An address in a space, and the text that writes the inputs there.
struct Space {
  const char* address;
  const char* prepare;
};
constexpr Space in_global{"%in", ""};
constexpr Space in_shared{"%tile",
                          "st.shared.b64 [%tile], %a; st.shared.b64 [%tile+8], %b; st.shared.b64 [%tile+16], %c;\n"};
constexpr Space in_local{"stack",
                         ".local .align 16 .b8 stack[64];\nst.local.b64 [stack], %a; st.local.b64 [stack+8], %b; "
                         "st.local.b64 [stack+16], %c;\n"};
// This space uses generic addresses of the shared tile.
constexpr Space in_window{"%rd7",
                          "st.shared.b64 [%tile], %a; st.shared.b64 [%tile+8], %b; st.shared.b64 [%tile+16], %c;\n"
                          "cvt.u64.u32 %rd7, %tile; cvta.shared.u64 %rd7, %rd7;\n"};

Form& load(Forms& forms, const std::string& words, const Type& type, unsigned count, const Space& space) {
  const std::string name = opcode("ld", words, type, count);
  const std::string text = std::string("{\n") + space.prepare + name + " " + registers(type, count) + ", [" +
                           space.address + "];\n" + sum_text(type, count) + "}";
  Form& form = add_text<u64, u64, u64, u64>(forms, name, text, [=](u64 a, u64 b, u64 c) {
    const Bytes bytes = bytes_of({{a, b, c}});
    Bits sum = 0;
    for (unsigned k = 0; k < count; ++k) sum += (2 * k + 1) * element(&bytes[k * type.size], type);
    return sum;
  });
  form.rows.resize(256);
  return form;
}

// The result is the first two words of memory after a store. The other words must stay zero.
Form& store(Forms& forms, const std::string& words, const Type& type, unsigned count, const std::string& space,
            const std::string& address) {
  const std::string name = opcode("st", words, type, count);
  const std::string at = "[" + address;
  std::string text = "{\n";
  if (space == ".local") text += ".local .align 16 .b8 stack[64];\n";
  text += "st" + space + ".b64 " + at + "], 0; st" + space + ".b64 " + at + "+8], 0;\n";
  for (unsigned k = 0; k < count; ++k) {
    const std::string source = std::string("%") + static_cast<char>('a' + k % 3);
    if (!type.is_float)
      text += "add.u64 " + reg(type, k) + ", " + source + ", " + std::to_string(k) + ";\n";
    else if (type.size == 8)
      text += "add.u64 %rd8, " + source + ", " + std::to_string(k) + "; mov.b64 " + reg(type, k) + ", %rd8;\n";
    else
      text += "add.u64 %rd8, " + source + ", " + std::to_string(k) + "; cvt.u32.u64 %r8, %rd8; mov.b32 " +
              reg(type, k) + ", %r8;\n";
  }
  text += name + " " + at + "], " + registers(type, count) + ";\n";
  text += "ld" + space + ".b64 %d, " + at + "]; ld" + space + ".b64 %e, " + at + "+8];\n}";
  Form& form = add_text<u64, u64, u64, u64>(forms, name, text, [](u64, u64, u64) { return u64{0}; });
  form.second = "b64";
  form.reference = [=](const Row* rows, unsigned lane) {
    Bytes bytes{};
    for (unsigned k = 0; k < count; ++k) {
      const Bits value = rows[lane].in[k % 3] + k;
      std::memcpy(&bytes[k * type.size], &value, type.size);
    }
    Result result;
    std::memcpy(&result, bytes.data(), sizeof result);
    return result;
  };
  form.rows.resize(256);
  return form;
}

void loads(Forms& forms, const std::string& words, const Space& space, unsigned target = 75) {
  for (const Type& type : types) {
    for (unsigned count = 1; count <= 4 && count * type.size <= 16; count *= 2) {
      load(forms, words, type, count, space).target = target;
    }
  }
}
void stores(Forms& forms, const std::string& words, const std::string& space, const std::string& address,
            unsigned target = 75) {
  for (const Type& type : types) {
    for (unsigned count = 1; count <= 4 && count * type.size <= 16; count *= 2) {
      store(forms, words, type, count, space, address).target = target;
    }
  }
}

// Adds the orders and scopes for a few types.
void ordered(Forms& forms) {
  constexpr Type few[] = {{"u32", 4}, {"b64", 8}, {"f32", 4, false, true}, {"u8", 1}};
  for (const Type& type : few) {
    for (const std::string space : {"", ".global", ".shared"}) {
      const bool shared = space == ".shared";
      const Space& from = shared ? in_shared : in_global;
      const std::string to = shared ? "%tile" : "%mem";
      for (const std::string scope : {".cta", ".gpu", ".sys", ".cluster"}) {
        const unsigned target = scope == ".cluster" ? 90 : 75;
        load(forms, ".relaxed" + scope + space, type, 1, from).target = target;
        load(forms, ".acquire" + scope + space, type, 1, from).target = target;
        store(forms, ".relaxed" + scope + space, type, 1, space, to).target = target;
        store(forms, ".release" + scope + space, type, 1, space, to).target = target;
      }
      load(forms, ".weak" + space, type, 1, from);
      store(forms, ".weak" + space, type, 1, space, to);
    }
    load(forms, ".mmio.relaxed.sys.global", type, 1, in_global);
    store(forms, ".mmio.relaxed.sys.global", type, 1, ".global", "%mem");
  }
}

void hints(Forms& forms) {
  constexpr Type word{"u32", 4};
  for (const std::string cache : {".ca", ".cg", ".cs", ".lu", ".cv"})
    load(forms, ".global" + cache, word, 1, in_global);
  for (const std::string cache : {".wb", ".cg", ".cs", ".wt"})
    store(forms, ".global" + cache, word, 1, ".global", "%mem");
  for (const std::string hint : {".L1::evict_first", ".L1::evict_last", ".L1::no_allocate", ".L1::evict_unchanged",
                                 ".L1::evict_normal", ".L2::64B", ".L2::128B"}) {
    load(forms, ".global" + hint, word, 1, in_global);
    load(forms, ".global.nc" + hint, word, 4, in_global);
  }
  for (const std::string hint : {".L1::evict_first", ".L1::evict_last", ".L1::no_allocate"}) {
    store(forms, ".global" + hint, word, 1, ".global", "%mem");
  }
  load(forms, ".global.ca.L2::256B", word, 1, in_global).target = 80;
}

// Constant memory contains 1000, 1007, 1014 and so on.
void constants(Forms& forms) {
  std::string table = ".const .align 8 .b32 table[64] = {";
  for (unsigned k = 0; k < 64; ++k) table += (k == 0 ? "" : ", ") + std::to_string(1000 + 7 * k);
  table += "};\n";
  for (const std::string type : {"u32", "s32", "b32", "f32"}) {
    const std::string target = type == "f32" ? "%f1" : "%d";
    add_text<u32, u32>(forms, "ld.const." + type,
                       "and.b32 %r1, %a, 63; mov.u64 %rd1, table; mad.wide.u32 %rd1, %r1, 4, %rd1; ld.const." + type +
                           " " + target + ", [%rd1];" + (type == "f32" ? " mov.b32 %d, %f1;" : ""),
                       [](u32 a) { return 1000 + 7 * (a & 63); })
        .declarations = table;
  }
  add_text<u32, u32>(forms, "ld.const.v2.u32", "ld.const.v2.u32 {%r1, %d}, [table+16];", [](u32) {
    return 1035U;
  }).declarations = table;
}

// The fourth parameter of the kernel is a block of known bytes.
void parameters(Forms& forms) {
  for (const Type& type : types) {
    for (unsigned count = 1; count <= 4 && count * type.size <= 16; count *= 2) {
      const std::string name = opcode("ld", ".param", type, count);
      const std::string text = name + " " + registers(type, count) + ", [extra+16];\n" + sum_text(type, count);
      add_text<u64, u32>(forms, name, text, [=](u32) {
        Bits sum = 0;
        for (unsigned k = 0; k < count; ++k) sum += (2 * k + 1) * element(&extra_parameter()[16 + k * type.size], type);
        return sum;
      }).rows.resize(32);
    }
  }
}

}  // namespace

void memory_forms(Forms& forms) {
  loads(forms, "", in_global);
  loads(forms, ".global", in_global);
  loads(forms, ".global.nc", in_global);
  loads(forms, ".volatile.global", in_global);
  loads(forms, ".shared", in_shared);
  loads(forms, ".volatile.shared", in_shared);
  loads(forms, "", in_window);
  loads(forms, ".local", in_local);
  stores(forms, "", "", "%mem");
  stores(forms, ".global", ".global", "%mem");
  stores(forms, ".volatile.global", ".global", "%mem");
  stores(forms, ".shared", ".shared", "%tile");
  stores(forms, ".volatile.shared", ".shared", "%tile");
  stores(forms, ".local", ".local", "stack");
  ordered(forms);
  hints(forms);
  constants(forms);
  parameters(forms);
}

}  // namespace ptx_forms
