// Forms of wmma: load matrices from memory, multiply them and store the result. The 32 rows of a warp are 2048
// consecutive bytes of global memory: A, then B, and C if there is space left. The forms vary layouts in memory,
// strides and spaces.
#include "tests/ptx/matrix.h"

namespace ptx_forms {
namespace {

constexpr std::size_t rows_of_form = 128;
constexpr int bytes_of_warp = 2048;
constexpr int bytes_looked_at = 512;  // sixteen bytes per lane
constexpr const char* spaces[] = {".shared", ".global", "", ".shared::cta"};
constexpr const char* bases[] = {"%r3", "%rd3", "%rd4", "%r3"};  // base addresses in these spaces

// A matrix in memory. A line is a row or a column, and begins `stride` elements after the previous line.
struct Stored {
  ElementType type;
  int rows = 0;
  int columns = 0;
  bool by_columns = false;
  int padding = 1;  // stride in units of the line length
  int offset = 0;   // bytes

  int lines() const { return by_columns ? columns : rows; }
  int length() const { return by_columns ? rows : columns; }
  int stride() const { return length() * padding; }
  int bytes() const { return lines() * stride() * type.bits / 8; }
  int bit_of(int row, int column) const {
    const int line = by_columns ? column : row;
    const int along = by_columns ? row : column;
    return 8 * offset + (line * stride() + along) * type.bits;
  }
  std::string layout() const { return by_columns ? "col" : "row"; }
};

Bits bits_at(const Row* rows, int bit, int count) {
  const int row_bits = 64 * 8;
  const Row& row = rows[bit / row_bits];
  const auto word = static_cast<unsigned>(bit % row_bits / 32);
  const Bits both = word_of(row, word) | (word + 1 < words_of_row ? Bits{word_of(row, word + 1)} << 32 : 0);
  return both >> bit % 32 & (count == 64 ? ~Bits{0} : (Bits{1} << count) - 1);
}

Bits element(const Row* rows, const Stored& matrix, int row, int column) {
  return bits_at(rows, matrix.bit_of(row, column), matrix.type.bits);
}

void set_warp_word(Row* rows, int number, u32 word) {
  constexpr int each = static_cast<int>(words_of_row);
  set_word(rows[number / each], static_cast<unsigned>(number % each), word);
}

void fill(Row* rows, const Stored& matrix, Values values) {
  const int step = matrix.type.bits == 64 ? 2 : 1;
  const int first = matrix.offset / 4;
  for (int w = first; w < first + matrix.bytes() / 4; w += step) {
    Bits bits = 0;
    for (int shift = 0; shift < 32; shift += matrix.type.bits) bits |= random_element(matrix.type, values) << shift;
    set_warp_word(rows, w, static_cast<u32>(bits));
    if (step == 2) set_warp_word(rows, w + 1, static_cast<u32>(bits >> 32));
  }
}

struct Shape {
  const char* name;
  int m, n, k;
};

struct Case {
  Shape shape{};
  Rule rule;
  Stored a, b, c, d;
  bool loads_c = false;
  unsigned space = 0;
  int part = 0;
};

constexpr Bits two_of(const ElementType& type) {
  if (type.sort == Sort::Integer) return 2;
  return static_cast<Bits>(type.format.most + 1) << type.format.fraction();
}

// ---- expected results

// Returns the sixteen bytes of D that a lane checks. `sum` computes an element.
template <class F>
Result looked_at(const Stored& d, int part, unsigned lane, F sum) {
  Result result;
  const int size = d.type.bits / 8;
  for (int byte = 0; byte < 16; byte += size) {
    const int place = (part * bytes_looked_at + static_cast<int>(lane) * 16 + byte) / size;
    const int line = place / d.stride();
    const int along = place % d.stride();
    if (line >= d.lines() || along >= d.length()) continue;
    const Bits bits = d.by_columns ? sum(along, line) : sum(line, along);
    (byte < 8 ? result.d : result.e) |= bits << byte * 8 % 64;
  }
  return result;
}

Bits sum_at(const Case& test, const Row* rows, int row, int column) {
  std::vector<Bits> left;
  std::vector<Bits> right;
  for (int k = 0; k < test.shape.k; ++k) {
    left.push_back(element(rows, test.a, row, k));
    right.push_back(element(rows, test.b, k, column));
  }
  const Bits before = test.loads_c ? element(rows, test.c, row, column) : two_of(test.rule.c);
  return dot(test.rule, left, right, before);
}

// ---- the PTX text

constexpr const char* prologue = R"({
.reg .b32 %m<16>; .reg .b32 %ga<8>; .reg .b32 %gb<8>; .reg .b32 %gc<8>; .reg .b32 %gd<8>;
.reg .f64 %xa<2>; .reg .f64 %xb<2>; .reg .f64 %xc<2>; .reg .f64 %xd<2>;
ld.global.v4.b32 {%m0, %m1, %m2, %m3}, [%in]; ld.global.v4.b32 {%m4, %m5, %m6, %m7}, [%in+16];
ld.global.v4.b32 {%m8, %m9, %m10, %m11}, [%in+32]; ld.global.v4.b32 {%m12, %m13, %m14, %m15}, [%in+48];
st.shared.v4.b32 [%tile], {%m0, %m1, %m2, %m3}; st.shared.v4.b32 [%tile+16], {%m4, %m5, %m6, %m7};
st.shared.v4.b32 [%tile+32], {%m8, %m9, %m10, %m11}; st.shared.v4.b32 [%tile+48], {%m12, %m13, %m14, %m15};
mov.u32 %r1, %laneid; mul.lo.u32 %r2, %r1, 64; sub.u32 %r3, %tile, %r2; cvt.u64.u32 %rd1, %r2;
sub.u64 %rd2, %mem, %rd1; sub.u64 %rd3, %in, %rd1; cvt.u64.u32 %rd4, %r3; cvta.shared.u64 %rd4, %rd4;
mad.wide.u32 %rd5, %r1, 16, %rd2; bar.warp.sync -1;
)";

std::string epilogue(int part) {
  return "bar.warp.sync -1;\nld.global.v2.b64 {%d, %e}, [%rd5+" + std::to_string(part * bytes_looked_at) + "];\n}";
}

int registers_of(const ElementType& type, int elements, bool multiplicand) {
  if (multiplicand && type.name == "f16") return 8;
  return type.bits == 64 ? elements / 32 : elements * type.bits / 32 / 32;
}

std::string list(char matrix, const ElementType& type, int elements) {
  const int count = registers_of(type, elements, matrix == 'a' || matrix == 'b');
  std::string text = "{";
  for (int k = 0; k < count; ++k) {
    text += std::string(k == 0 ? "%" : ", %") + (type.bits == 64 ? 'x' : 'g') + matrix + std::to_string(k);
  }
  return text + "}";
}
std::string list(char matrix, const Stored& stored) { return list(matrix, stored.type, stored.rows * stored.columns); }

std::string transfer_name(const std::string& what, const Stored& matrix, const Shape& shape, const std::string& space) {
  return "wmma." + what + ".sync.aligned." + matrix.layout() + "." + shape.name + space + "." + matrix.type.name;
}

// In half of the cases, the text omits a stride that has the default value.
std::string stride_of(const Stored& matrix, bool shown) {
  return matrix.padding > 1 || shown ? ", " + std::to_string(matrix.stride()) : "";
}

std::string load_text(const Case& test, char name, const Stored& matrix) {
  return transfer_name(std::string("load.") + name, matrix, test.shape, spaces[test.space]) + " " + list(name, matrix) +
         ", [" + bases[test.space] + "+" + std::to_string(matrix.offset) + "]" + stride_of(matrix, test.part % 2 != 0) +
         ";\n";
}

std::string store_text(const Case& test) {
  const std::string space = test.space % 2 == 0 ? ".global" : "";
  return transfer_name("store.d", test.d, test.shape, space) + " [%rd2], " + list('d', test.d) +
         stride_of(test.d, test.part % 2 != 0) + ";\n";
}

std::string twos(const ElementType& type, int elements) {
  std::string text;
  const int count = registers_of(type, elements, false);
  const Bits two = two_of(type);
  for (int k = 0; k < count; ++k) {
    text += type.bits == 64 ? "mov.f64 %xc" + std::to_string(k) + ", 0d4000000000000000; "
                            : "mov.b32 %gc" + std::to_string(k) + ", " +
                                  std::to_string(type.bits == 16 ? two << 16 | two : two) + "; ";
  }
  return text + "\n";
}

std::string product_name(const Case& test, const std::string& before, const std::string& after) {
  const Rule& rule = test.rule;
  const std::string types = rule.a.name == "f16" ? "" : "." + rule.a.name + "." + rule.b.name;
  return "wmma.mma" + before + ".sync.aligned." + test.a.layout() + "." + test.b.layout() + "." + test.shape.name +
         "." + rule.d.name + types + "." + rule.c.name + after;
}

// ---- forms

struct Wanted {
  Shape shape{};
  Rule rule;
  std::string before, after;  // parts of the opcode's text
  Values values = Values::Small;
  unsigned target = 75;
};

Form form_of(const std::string& name, const std::string& text, unsigned target) {
  Form form;
  form.name = name;
  form.text = prologue + text;
  form.result = form.second = "b64";
  form.rows.resize(rows_of_form);
  form.target = target;
  return form;
}

void place(Case& test, int padding) {
  const Rule& rule = test.rule;
  test.a.padding = test.b.padding = test.c.padding = test.d.padding = padding;
  test.a.offset = 0;
  test.b.offset = test.a.bytes();
  test.c.offset = test.b.offset + test.b.bytes();
  test.loads_c = test.c.offset + test.c.bytes() <= bytes_of_warp;
  if (rule.d.sort == Sort::Double) test.loads_c = true;
}

Case case_of(const Wanted& wanted, bool a_columns, bool b_columns, unsigned number) {
  const Shape& shape = wanted.shape;
  Case test;
  test.shape = shape;
  test.rule = wanted.rule;
  test.a = {wanted.rule.a, shape.m, shape.k, a_columns};
  test.b = {wanted.rule.b, shape.k, shape.n, b_columns};
  test.c = {wanted.rule.c, shape.m, shape.n, number % 3 == 1};
  test.d = {wanted.rule.d, shape.m, shape.n, number % 5 == 2};
  test.space = number % 4;
  place(test, 2);
  if (number % 2 == 0 || test.c.offset > bytes_of_warp) place(test, 1);
  return test;
}

void add_case(Forms& forms, const Wanted& wanted, const Case& test) {
  const std::string name = product_name(test, wanted.before, wanted.after);
  const int sums = test.shape.m * test.shape.n;
  const std::string c = test.loads_c ? load_text(test, 'c', test.c) : twos(test.rule.c, sums);
  const std::string text = load_text(test, 'a', test.a) + load_text(test, 'b', test.b) + c + name + " " +
                           list('d', test.d) + ", " + list('a', test.a) + ", " + list('b', test.b) + ", " +
                           list('c', test.c) + ";\n" + store_text(test) + epilogue(test.part);
  Form form = form_of(name, text, wanted.target);
  for (std::size_t r = 0; r < form.rows.size(); r += warp) {
    fill(&form.rows[r], test.a, wanted.values);
    fill(&form.rows[r], test.b, wanted.values);
    if (test.loads_c) fill(&form.rows[r], test.c, wanted.values);
  }
  form.reference = [test](const Row* rows, unsigned lane) {
    return looked_at(test.d, test.part, lane, [&](int row, int column) { return sum_at(test, rows, row, column); });
  };
  if (test.rule.d.sort == Sort::Float && wanted.values != Values::Small) {
    form.accept = within(test.rule.d, distance_of_sums(test.rule, test.shape.k));
  }
  forms.push_back(std::move(form));
}

// Adds the product with each valid layout of A and B.
void add_products(Forms& forms, const Wanted& wanted, bool any_layout) {
  static unsigned number = 0;
  for (const bool a_columns : {false, true}) {
    for (const bool b_columns : {false, true}) {
      if (!any_layout && (a_columns || !b_columns)) continue;
      Case test = case_of(wanted, a_columns, b_columns, number++);
      for (; test.part * bytes_looked_at < test.d.bytes(); ++test.part) add_case(forms, wanted, test);
    }
  }
}

constexpr Shape squares[] = {{"m16n16k16", 16, 16, 16}, {"m8n32k16", 8, 32, 16}, {"m32n8k16", 32, 8, 16}};

Rule rule_of(const std::string& d, const std::string& a, const std::string& c) {
  return {element_type(a), element_type(a), element_type(c), element_type(d)};
}

void floats(Forms& forms) {
  for (const Values values : {Values::Small, Values::Any, Values::Edges}) {
    for (const Shape& shape : squares) {
      for (const char* d : {"f16", "f32"}) {
        for (const char* c : {"f16", "f32"}) {
          add_products(forms, {shape, rule_of(d, "f16", c), "", "", values, 75}, true);
        }
      }
      add_products(forms, {shape, rule_of("f32", "bf16", "f32"), "", "", values, 80}, true);
    }
    add_products(forms, {{"m16n16k8", 16, 16, 8}, rule_of("f32", "tf32", "f32"), "", "", values, 80}, true);
  }
  const std::pair<const char*, Round> roundings[] = {
      {"", Round::Nearest}, {".rn", Round::Nearest}, {".rz", Round::Zero}, {".rm", Round::Down}, {".rp", Round::Up}};
  for (const auto& [suffix, round] : roundings) {
    Wanted wanted{{"m8n8k4", 8, 8, 4}, rule_of("f64", "f64", "f64"), "", suffix, Values::Any, 80};
    wanted.rule.round = round;
    add_products(forms, wanted, true);
  }
}

void integers(Forms& forms) {
  for (const bool saturates : {false, true}) {
    for (const Values values : {Values::Any, Values::Edges}) {
      for (const char* type : {"s8", "u8", "s4", "u4"}) {
        Wanted wanted{
            {"m8n8k32", 8, 8, 32}, rule_of("s32", type, "s32"), "", saturates ? ".satfinite" : "", values, 75};
        wanted.rule.saturates = saturates;
        if (wanted.rule.a.bits == 4) {
          add_products(forms, wanted, false);
          continue;
        }
        for (const Shape& shape : squares) {
          wanted.shape = shape;
          add_products(forms, wanted, true);
        }
      }
    }
  }
  Wanted wanted{{"m8n8k128", 8, 8, 128}, rule_of("s32", "b1", "s32"), ".xor.popc", "", Values::Any, 75};
  add_products(forms, wanted, false);
  wanted.rule.both = true;
  wanted.before = ".and.popc";
  wanted.target = 80;
  add_products(forms, wanted, false);
}

// Loads C and stores it as D, in another layout.
void transfers(Forms& forms, const Shape& shape, const std::string& type, unsigned target) {
  for (unsigned number = 0; number < 16; ++number) {
    Case test;
    test.shape = shape;
    test.c = {element_type(type), shape.m, shape.n, number % 2 != 0, number < 8 ? 1 : 2};
    test.d = {element_type(type), shape.m, shape.n, number / 2 % 2 != 0};
    test.space = number / 4;
    for (; test.part * bytes_looked_at < test.d.bytes(); ++test.part) {
      std::string copy;
      for (int k = 0; k < registers_of(test.c.type, shape.m * shape.n, false); ++k) {
        const std::string end = std::to_string(k);
        copy += test.c.type.bits == 64 ? "mov.f64 %xd" + end + ", %xc" + end + "; "
                                       : "mov.b32 %gd" + end + ", %gc" + end + "; ";
      }
      const std::string name = transfer_name("load.c", test.c, shape, spaces[test.space]);
      Form form = form_of(name, load_text(test, 'c', test.c) + copy + store_text(test) + epilogue(test.part), target);
      for (Row& row : form.rows) {
        for (unsigned w = 0; w < words_of_row; ++w) set_word(row, w, static_cast<u32>(next_random() >> 8));
      }
      form.reference = [test](const Row* rows, unsigned lane) {
        return looked_at(test.d, test.part, lane,
                         [&](int row, int column) { return element(rows, test.c, row, column); });
      };
      forms.push_back(std::move(form));
    }
  }
}

}  // namespace

void wmma_forms(Forms& forms) {
  floats(forms);
  integers(forms);
  for (const Shape& shape : squares) {
    for (const char* type : {"f16", "f32", "s32"}) transfers(forms, shape, type, 75);
  }
  transfers(forms, {"m16n16k8", 16, 16, 8}, "f32", 80);
  transfers(forms, {"m8n8k4", 8, 8, 4}, "f64", 80);
  transfers(forms, {"m8n8k32", 8, 8, 32}, "s32", 75);
  transfers(forms, {"m8n8k128", 8, 8, 128}, "s32", 75);
}

}  // namespace ptx_forms
