// Forms of mma.sync: each shape with each of its types. A lane's row holds its registers: those of a begin at word 0,
// those of b at word 4, those of c at word 6. For doubles, the row holds a, b and c one after another as singles, which
// the text converts to doubles with 53 significant bits.
#include <map>

#include "tests/ptx/matrix.h"

namespace ptx_forms {
namespace {

struct Place {
  int row = 0;
  int column = 0;
};
// Returns the row and column of element i in a lane's fragment, as the PTX documentation defines it.
using Fragment = Place (*)(int lane, int i);

int group(int lane) { return lane >> 2; }
int in_group(int lane) { return lane % 4; }

struct Fragments {
  Fragment a;
  Fragment b;
};

// The fragments by shape and by bits of an element.
const std::map<std::pair<std::string, int>, Fragments>& fragments() {
  static const std::map<std::pair<std::string, int>, Fragments> map = {
      {{"m8n8k4", 64},
       {[](int l, int) {
          return Place{group(l), in_group(l)};
        },
        [](int l, int) {
          return Place{in_group(l), group(l)};
        }}},
      {{"m16n8k4", 32},
       {[](int l, int i) {
          return Place{i == 0 ? group(l) : group(l) + 8, in_group(l)};
        },
        [](int l, int) {
          return Place{in_group(l), group(l)};
        }}},
      {{"m16n8k8", 16},
       {[](int l, int i) {
          return Place{i < 2 ? group(l) : group(l) + 8, in_group(l) * 2 + (i & 1)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 2 + i, group(l)};
        }}},
      {{"m16n8k8", 32},
       {[](int l, int i) {
          return Place{i == 0 || i == 2 ? group(l) : group(l) + 8, i < 2 ? in_group(l) : in_group(l) + 4};
        },
        [](int l, int i) {
          return Place{i == 0 ? in_group(l) : in_group(l) + 4, group(l)};
        }}},
      {{"m16n8k16", 16},
       {[](int l, int i) {
          const bool upper = i < 2 || (4 <= i && i < 6);
          return Place{upper ? group(l) : group(l) + 8, in_group(l) * 2 + (i & 1) + (i < 4 ? 0 : 8)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 2 + (i & 1) + (i < 2 ? 0 : 8), group(l)};
        }}},
      {{"m16n8k16", 64},
       {[](int l, int i) {
          return i % 2 == 0 ? Place{group(l), i * 2 + in_group(l)} : Place{group(l) + 8, i * 2 - 2 + in_group(l)};
        },
        [](int l, int i) {
          return Place{in_group(l) + i * 4, group(l)};
        }}},
      {{"m8n8k16", 8},
       {[](int l, int i) {
          return Place{group(l), in_group(l) * 4 + i};
        },
        [](int l, int i) {
          return Place{in_group(l) * 4 + i, group(l)};
        }}},
      {{"m16n8k16", 8},
       {[](int l, int i) {
          return Place{i < 4 ? group(l) : group(l) + 8, in_group(l) * 4 + (i & 3)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 4 + i, group(l)};
        }}},
      {{"m16n8k32", 8},
       {[](int l, int i) {
          const bool upper = i < 4 || (8 <= i && i < 12);
          return Place{upper ? group(l) : group(l) + 8, in_group(l) * 4 + (i & 3) + (i < 8 ? 0 : 16)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 4 + (i & 3) + (i < 4 ? 0 : 16), group(l)};
        }}},
      {{"m8n8k32", 4},
       {[](int l, int i) {
          return Place{group(l), in_group(l) * 8 + i};
        },
        [](int l, int i) {
          return Place{in_group(l) * 8 + i, group(l)};
        }}},
      {{"m16n8k32", 4},
       {[](int l, int i) {
          return Place{i < 8 ? group(l) : group(l) + 8, in_group(l) * 8 + (i & 7)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 8 + i, group(l)};
        }}},
      {{"m16n8k64", 4},
       {[](int l, int i) {
          const bool upper = i < 8 || (16 <= i && i < 24);
          return Place{upper ? group(l) : group(l) + 8, in_group(l) * 8 + (i & 7) + (i < 16 ? 0 : 32)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 8 + (i & 7) + (i < 8 ? 0 : 32), group(l)};
        }}},
      {{"m8n8k128", 1},
       {[](int l, int i) {
          return Place{group(l), in_group(l) * 32 + i};
        },
        [](int l, int i) {
          return Place{in_group(l) * 32 + i, group(l)};
        }}},
      {{"m16n8k128", 1},
       {[](int l, int i) {
          return Place{i < 32 ? group(l) : group(l) + 8, in_group(l) * 32 + (i & 31)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 32 + i, group(l)};
        }}},
      {{"m16n8k256", 1},
       {[](int l, int i) {
          const bool upper = i < 32 || (64 <= i && i < 96);
          return Place{upper ? group(l) : group(l) + 8, in_group(l) * 32 + (i & 31) + (i < 64 ? 0 : 128)};
        },
        [](int l, int i) {
          return Place{in_group(l) * 32 + (i & 31) + (i < 32 ? 0 : 128), group(l)};
        }}},
  };
  return map;
}

Place of_sum(int lane, int i) { return {i < 2 ? group(lane) : group(lane) + 8, in_group(lane) * 2 + (i & 1)}; }

struct Shape {
  std::string name;
  int m, n, k;
};

// If a shape has both doubles and tf32, the two types have the same layout.
const Fragments& fragments_of(const Shape& shape, int bits) {
  const auto found = fragments().find({shape.name, bits});
  return found != fragments().end() ? found->second : fragments().at({shape.name, 32});
}

struct Case {
  Shape shape;
  std::string layouts;
  Rule rule;
  int part = 0;  // the part of the results to check
  int elements_of_sum() const { return shape.m * shape.n / static_cast<int>(warp); }
};

constexpr unsigned first_b = 4;
constexpr unsigned first_c = 6;

// ---- contents of a lane's registers

// Each double has a word of its own, in order.
unsigned first_word(const Case& test, char matrix) {
  if (test.rule.a.sort != Sort::Double) return matrix == 'a' ? 0 : matrix == 'b' ? first_b : first_c;
  const int a = test.shape.m * test.shape.k / 32;
  const int b = test.shape.k * test.shape.n / 32;
  return static_cast<unsigned>(matrix == 'a' ? 0 : matrix == 'b' ? a : a + b);
}

Bits long_double_of(u32 word) {
  constexpr Bits third = 0x3ff5'5555'5555'5555;
  return multiply(converted(word, single, twice, Round::Nearest), third, twice, Round::Nearest);
}

Bits element_of_lane(const Case& test, const Row& row, char matrix, int i) {
  const ElementType& type = matrix == 'a' ? test.rule.a : matrix == 'b' ? test.rule.b : test.rule.c;
  const unsigned first = first_word(test, matrix);
  if (type.sort == Sort::Double) return long_double_of(word_of(row, first + static_cast<unsigned>(i)));
  const int packed = 32 / type.bits;
  return word_of(row, first + static_cast<unsigned>(i / packed)) >> (i % packed * type.bits) & type.mask();
}

Reference reference_of(const Case& test) {
  return [test](const Row* rows, unsigned lane) {
    const Shape& shape = test.shape;
    const Fragments& where = fragments_of(shape, test.rule.a.bits);
    std::vector<Bits> results;
    for (int r = 0; r < test.elements_of_sum(); ++r) {
      const Place place = of_sum(static_cast<int>(lane), r);
      std::vector<Bits> row(static_cast<std::size_t>(shape.k));
      std::vector<Bits> column(row.size());
      for (int l = 0; l < static_cast<int>(warp); ++l) {
        for (int i = 0; i < shape.m * shape.k / 32; ++i) {
          const Place at = where.a(l, i);
          if (at.row == place.row) row[static_cast<std::size_t>(at.column)] = element_of_lane(test, rows[l], 'a', i);
        }
        for (int i = 0; i < shape.n * shape.k / 32; ++i) {
          const Place at = where.b(l, i);
          if (at.column == place.column)
            column[static_cast<std::size_t>(at.row)] = element_of_lane(test, rows[l], 'b', i);
        }
      }
      results.push_back(dot(test.rule, row, column, element_of_lane(test, rows[lane], 'c', r)));
    }
    // The result is 128 bits of the sums, starting at the selected part.
    Result result;
    const int bits = test.rule.d.bits;
    const std::size_t skipped = static_cast<std::size_t>(test.part * 128 / bits);
    for (std::size_t r = skipped; r < results.size() && r < skipped + static_cast<std::size_t>(128 / bits); ++r) {
      const int shift = static_cast<int>(r - skipped) * bits;
      (shift < 64 ? result.d : result.e) |= results[r] << shift % 64;
    }
    return result;
  };
}

// ---- the PTX text

std::string list(const char* name, unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned k = 0; k < count; ++k) text += (k == 0 ? "%" : ", %") + (name + std::to_string(first + k));
  return text + "}";
}

unsigned registers_of(int elements, const ElementType& type) {
  return static_cast<unsigned>(type.bits == 64 ? elements : elements * type.bits / 32);
}

constexpr const char* load_words = R"({
.reg .b32 %m<16>; .reg .b32 %n<8>; .reg .f64 %x<16>; .reg .f64 %y<4>; .reg .f32 %z;
ld.global.v4.b32 {%m0, %m1, %m2, %m3}, [%in]; ld.global.v4.b32 {%m4, %m5, %m6, %m7}, [%in+16];
ld.global.v4.b32 {%m8, %m9, %m10, %m11}, [%in+32]; ld.global.v4.b32 {%m12, %m13, %m14, %m15}, [%in+48];
)";

std::string make_doubles() {
  std::string text;
  for (unsigned k = 0; k < words_of_row; ++k) {
    const std::string number = std::to_string(k);
    text += "mov.b32 %z, %m" + number + "; cvt.f64.f32 %x" + number + ", %z; mul.rn.f64 %x" + number + ", %x" + number +
            ", 0d3FF5555555555555;\n";
  }
  return text;
}

std::string text_of(const Case& test, const std::string& opcode) {
  const Rule& rule = test.rule;
  const Shape& shape = test.shape;
  const bool doubles = rule.a.sort == Sort::Double;
  const char* from = doubles ? "x" : "m";
  const char* into = doubles ? "y" : "n";
  const unsigned sums = registers_of(test.elements_of_sum(), rule.d);
  std::string text = load_words + (doubles ? make_doubles() : std::string()) + opcode + " " + list(into, 0, sums) +
                     ", " + list(from, first_word(test, 'a'), registers_of(shape.m * shape.k / 32, rule.a)) + ", " +
                     list(from, first_word(test, 'b'), registers_of(shape.k * shape.n / 32, rule.b)) + ", " +
                     list(from, first_word(test, 'c'), registers_of(test.elements_of_sum(), rule.c)) + ";\n";
  const std::string first = std::string("%") + into;
  if (doubles) {
    const int r = 2 * test.part;
    return text + "mov.b64 %d, " + first + std::to_string(r) + "; mov.b64 %e, " + first + std::to_string(r + 1) +
           ";\n}";
  }
  text += "mov.b64 %d, {%n0, %n1}; mov.b64 %e, ";
  return text + (sums > 2 ? "{%n2, %n3};\n}" : "0;\n}");
}

// ---- forms

constexpr std::size_t rows_of_form = 256;

u32 random_word(const ElementType& type, Values values) {
  if (type.sort == Sort::Double) return static_cast<u32>(random_element(element_type("f32"), values));
  u32 word = 0;
  for (int shift = 0; shift < 32; shift += type.bits) word |= static_cast<u32>(random_element(type, values)) << shift;
  return word;
}

std::vector<Row> rows_of(const Case& test, Values values) {
  std::vector<Row> rows(rows_of_form);
  for (Row& row : rows) {
    for (unsigned w = 0; w < words_of_row; ++w) {
      const ElementType& type = w < first_word(test, 'b')   ? test.rule.a
                                : w < first_word(test, 'c') ? test.rule.b
                                                            : test.rule.c;
      set_word(row, w, random_word(type, values));
    }
  }
  return rows;
}

void add(Forms& forms, const Case& test, const std::string& opcode, unsigned target, Values values) {
  Form form;
  form.name = opcode;
  form.text = text_of(test, opcode);
  form.result = form.second = "b64";
  form.rows = rows_of(test, values);
  form.reference = reference_of(test);
  form.target = target;
  if (test.rule.d.sort == Sort::Float && values != Values::Small) {
    form.accept = within(test.rule.d, distance_of_sums(test.rule, test.shape.k));
  }
  forms.push_back(std::move(form));
}

Rule rule_of(const std::string& d, const std::string& a, const std::string& b, const std::string& c) {
  return {element_type(a), element_type(b), element_type(c), element_type(d)};
}

const Shape shapes[] = {{"m8n8k4", 8, 8, 4},       {"m8n8k16", 8, 8, 16},    {"m8n8k32", 8, 8, 32},
                        {"m8n8k128", 8, 8, 128},   {"m16n8k4", 16, 8, 4},    {"m16n8k8", 16, 8, 8},
                        {"m16n8k16", 16, 8, 16},   {"m16n8k32", 16, 8, 32},  {"m16n8k64", 16, 8, 64},
                        {"m16n8k128", 16, 8, 128}, {"m16n8k256", 16, 8, 256}};

const Shape& shape_named(const std::string& name) {
  const Shape* shape = shapes;
  while (shape->name != name) ++shape;
  return *shape;
}

std::string opcode_of(const Case& test, const std::string& before, const std::string& after) {
  const Rule& rule = test.rule;
  return "mma.sync.aligned." + test.shape.name + ".row.col" + before + "." + rule.d.name + "." + rule.a.name + "." +
         rule.b.name + "." + rule.c.name + after;
}

void floats(Forms& forms, const std::string& shape, const std::string& a, const std::string& b, const std::string& sum,
            unsigned target) {
  const Case test{shape_named(shape), "", rule_of(sum, a, b, sum)};
  for (const Values values : {Values::Small, Values::Any, Values::Edges}) {
    add(forms, test, opcode_of(test, "", ""), target, values);
  }
}

void doubles(Forms& forms, const std::string& shape, const std::string& suffix, Round round, unsigned target) {
  Case test{shape_named(shape), "", rule_of("f64", "f64", "f64", "f64")};
  test.rule.round = round;
  for (test.part = 0; test.part < test.elements_of_sum() / 2; ++test.part) {
    add(forms, test, opcode_of(test, "", suffix), target, Values::Any);
    add(forms, test, opcode_of(test, "", suffix), target, Values::Small);
  }
}

void integers(Forms& forms, const std::string& shape, const std::string& a, const std::string& b, unsigned target) {
  Case test{shape_named(shape), "", rule_of("s32", a, b, "s32")};
  for (const bool saturates : {false, true}) {
    test.rule.saturates = saturates;
    for (const Values values : {Values::Any, Values::Edges}) {
      add(forms, test, opcode_of(test, saturates ? ".satfinite" : "", ""), target, values);
    }
  }
}

void bits(Forms& forms, const std::string& shape, unsigned target) {
  Case test{shape_named(shape), "", rule_of("s32", "b1", "b1", "s32")};
  add(forms, test, opcode_of(test, "", ".xor.popc"), target, Values::Any);
  test.rule.both = true;
  add(forms, test, opcode_of(test, "", ".and.popc"), 80, Values::Any);
}

}  // namespace

void mma_forms(Forms& forms) {
  for (const char* sum : {"f16", "f32"}) {
    floats(forms, "m16n8k8", "f16", "f16", sum, 75);
    floats(forms, "m16n8k16", "f16", "f16", sum, 80);
    for (const char* shape : {"m16n8k16", "m16n8k32"}) {
      for (const char* a : {"e4m3", "e5m2"}) {
        for (const char* b : {"e4m3", "e5m2"}) floats(forms, shape, a, b, sum, 89);
      }
    }
  }
  for (const char* shape : {"m16n8k8", "m16n8k16"}) floats(forms, shape, "bf16", "bf16", "f32", 80);
  for (const char* shape : {"m16n8k4", "m16n8k8"}) floats(forms, shape, "tf32", "tf32", "f32", 80);
  for (const char* shape : {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}) {
    const unsigned target = shape == std::string("m8n8k4") ? 80 : 90;
    doubles(forms, shape, "", Round::Nearest, target);
    doubles(forms, shape, ".rn", Round::Nearest, target);
    doubles(forms, shape, ".rz", Round::Zero, target);
    doubles(forms, shape, ".rm", Round::Down, target);
    doubles(forms, shape, ".rp", Round::Up, target);
  }
  for (const char* a : {"s8", "u8"}) {
    for (const char* b : {"s8", "u8"}) {
      for (const char* shape : {"m8n8k16", "m16n8k16", "m16n8k32"}) {
        integers(forms, shape, a, b, shape == std::string("m8n8k16") ? 75 : 80);
      }
    }
  }
  for (const char* a : {"s4", "u4"}) {
    for (const char* b : {"s4", "u4"}) {
      for (const char* shape : {"m8n8k32", "m16n8k32", "m16n8k64"}) {
        integers(forms, shape, a, b, shape == std::string("m8n8k32") ? 75 : 80);
      }
    }
  }
  bits(forms, "m8n8k128", 75);
  for (const char* shape : {"m16n8k128", "m16n8k256"}) bits(forms, shape, 80);
}

}  // namespace ptx_forms
