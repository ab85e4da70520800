// Forms of ldmatrix, stmatrix and movmatrix, which use matrices of 8 by 8 halves, and of mma.m8n8k4, whose fragments
// differ from all others. A lane's row holds sixteen words.
#include "tests/ptx/matrix.h"

namespace ptx_forms {
namespace {

constexpr std::size_t rows_of_form = 256;

std::vector<Row> random_rows() {
  std::vector<Row> rows(rows_of_form);
  for (Row& row : rows) {
    for (unsigned w = 0; w < words_of_row; ++w) set_word(row, w, static_cast<u32>(next_random() >> 8));
  }
  return rows;
}

constexpr const char* load_words = R"({
.reg .b32 %m<16>; .reg .b32 %n<8>; .reg .f32 %s<8>;
ld.global.v4.b32 {%m0, %m1, %m2, %m3}, [%in]; ld.global.v4.b32 {%m4, %m5, %m6, %m7}, [%in+16];
ld.global.v4.b32 {%m8, %m9, %m10, %m11}, [%in+32]; ld.global.v4.b32 {%m12, %m13, %m14, %m15}, [%in+48];
)";
constexpr const char* fill_tile =
    "st.shared.v4.b32 [%tile], {%m0, %m1, %m2, %m3}; st.shared.v4.b32 [%tile+16], {%m4, %m5, %m6, %m7};\n"
    "st.shared.v4.b32 [%tile+32], {%m8, %m9, %m10, %m11}; st.shared.v4.b32 [%tile+48], {%m12, %m13, %m14, %m15};\n"
    "bar.warp.sync -1;\n";
constexpr const char* results = "mov.b64 %d, {%n0, %n1}; mov.b64 %e, {%n2, %n3};\n}";

Form& add(Forms& forms, const std::string& opcode, const std::string& text, unsigned target, Reference reference) {
  Form form;
  form.name = opcode;
  form.text = load_words + text + results;
  form.result = form.second = "b64";
  form.rows = random_rows();
  form.reference = std::move(reference);
  form.target = target;
  return forms.emplace_back(std::move(form));
}

Result words(const u32 (&w)[4]) { return {Bits{w[1]} << 32 | w[0], Bits{w[3]} << 32 | w[2]}; }

u32 half_of(const Row& row, unsigned number) { return word_of(row, number / 2) >> (number % 2 * 16) & 0xffff; }

// ---- ldmatrix

// Lane l gives the address of a row: sixteen bytes among the 64 bytes of another lane.
unsigned lane_named(unsigned l) { return (5 * l + 3) % warp; }
unsigned half_named(unsigned l) { return l / 2 % 4 * 8; }
constexpr const char* name_row =
    "mov.u32 %r1, %laneid; mad.lo.u32 %r2, %r1, 5, 3; and.b32 %r2, %r2, 31; sub.s32 %r2, %r2, %r1; mad.lo.s32 %r2, "
    "%r2, "
    "64, %tile;\nshr.u32 %r3, %r1, 1; and.b32 %r3, %r3, 3; mad.lo.u32 %r2, %r3, 16, %r2;\n";

void loads(Forms& forms, unsigned count, bool transposed, const std::string& space) {
  const std::string opcode =
      "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") + space + ".b16";
  std::string text =
      std::string(fill_tile) + name_row + "mov.b32 %n0, 0; mov.b32 %n1, 0; mov.b32 %n2, 0; mov.b32 %n3, 0;\n";
  std::string list;
  for (unsigned k = 0; k < count; ++k) list += (k == 0 ? "%n" : ", %n") + std::to_string(k);
  const bool generic = space.empty();
  if (generic) text += "cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1;\n";
  text += opcode + " {" + list + "}, [" + (generic ? "%rd1" : "%r2") + "];\n";
  add(forms, opcode, text, 75, [=](const Row* rows, unsigned lane) {
    u32 w[4] = {};
    for (unsigned k = 0; k < count; ++k) {
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned line = transposed ? lane % 4 * 2 + i : lane / 4;
        const unsigned along = transposed ? lane / 4 : lane % 4 * 2 + i;
        const unsigned from = 8 * k + line;  // the lane that gives the address of the row
        w[k] |= half_of(rows[lane_named(from)], half_named(from) + along) << 16 * i;
      }
    }
    return words(w);
  });
}

// ---- stmatrix

void stores(Forms& forms, unsigned count, bool transposed, const std::string& space) {
  const std::string opcode =
      "stmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") + space + ".b16";
  std::string list;
  for (unsigned k = 0; k < count; ++k) list += (k == 0 ? "%m" : ", %m") + std::to_string(k);
  const bool generic = space.empty();
  std::string text = std::string(fill_tile) + "add.u32 %r2, %tile, 32;\n";
  if (generic) text += "cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1;\n";
  text += opcode + " [" + (generic ? "%rd1" : "%r2") + "], {" + list +
          "};\nbar.warp.sync -1;\nld.shared.v4.b32 {%n0, %n1, %n2, %n3}, [%tile+32];\n";
  add(forms, opcode, text, 90, [=](const Row* rows, unsigned lane) {
    u32 w[4] = {};
    for (unsigned i = 0; i < 8; ++i) {
      u32 value = half_of(rows[lane], 16 + i);
      if (lane < 8 * count) {
        const unsigned line = lane % 8;
        const unsigned row = transposed ? i : line;
        const unsigned column = transposed ? line : i;
        value = half_of(rows[row * 4 + column / 2], lane / 8 * 2 + column % 2);
      }
      w[i / 2] |= value << i % 2 * 16;
    }
    return words(w);
  });
}

void moves(Forms& forms) {
  const std::string opcode = "movmatrix.sync.aligned.m8n8.trans.b16";
  add(forms, opcode, opcode + " %n0, %m0; mov.b32 %n1, %m0; " + opcode + " %n1, %n1; mov.b32 %n2, 0; mov.b32 %n3, 0;\n",
      75, [](const Row* rows, unsigned lane) {
        u32 w[4] = {};
        for (unsigned i = 0; i < 2; ++i)
          w[0] |= half_of(rows[(lane % 4 * 2 + i) * 4 + lane / 8], lane / 4 % 2) << 16 * i;
        w[1] = w[0];
        return words(w);
      });
}

// ---- mma.m8n8k4 of halves: four products; the lanes of a product have equal bits 2 and 3

struct Quad {
  bool a_columns = false;
  bool b_columns = false;
  Rule rule;
  int part = 0;
};
constexpr unsigned first_b = 2;
constexpr unsigned first_c = 4;

int upper(int lane) { return lane < 16 ? 0 : 4; }

Bits element_at(const Row& row, unsigned first, int i, const ElementType& type) {
  const int packed = 32 / type.bits;
  return word_of(row, first + static_cast<unsigned>(i / packed)) >> (i % packed * type.bits) & type.mask();
}

// Returns the row and column of a lane's sum i. They differ between singles and halves.
std::pair<int, int> sum_at(int lane, int i, int bits) {
  if (bits == 16) return {lane % 4 + upper(lane), i};
  return {(lane & 1) + (i & 2) + upper(lane), (i & 4) + (lane & 2) + (i & 1)};
}

// Returns element (row, column) of c.
Bits sum_before(const Quad& quad, const Row* rows, int first_lane, int row, int column) {
  for (const int lane : {0, 1, 2, 3, 16, 17, 18, 19}) {
    for (int i = 0; i < 8; ++i) {
      if (sum_at(lane, i, quad.rule.c.bits) != std::pair(row, column)) continue;
      return element_at(rows[first_lane + lane], first_c, i, quad.rule.c);
    }
  }
  return 0;
}

Bits sum_of(const Quad& quad, const Row* rows, int first_lane, int row, int column) {
  std::vector<Bits> left(4);
  std::vector<Bits> right(4);
  for (const int lane : {0, 1, 2, 3, 16, 17, 18, 19}) {
    const Row& held = rows[first_lane + lane];
    for (int i = 0; i < 4; ++i) {
      const int a_row = (quad.a_columns ? i : lane % 4) + upper(lane);
      const int a_column = quad.a_columns ? lane % 4 : i;
      const int b_row = quad.b_columns ? i : lane % 4;
      const int b_column = (quad.b_columns ? lane % 4 : i) + upper(lane);
      if (a_row == row) left[static_cast<std::size_t>(a_column)] = element_at(held, 0, i, quad.rule.a);
      if (b_column == column) right[static_cast<std::size_t>(b_row)] = element_at(held, first_b, i, quad.rule.b);
    }
  }
  return dot(quad.rule, left, right, sum_before(quad, rows, first_lane, row, column));
}

Result quad_result(const Quad& quad, const Row* rows, int lane) {
  const int bits = quad.rule.d.bits;
  Result result;
  for (int r = 0; r < 128 / bits; ++r) {
    const auto [row, column] = sum_at(lane, quad.part * (128 / bits) + r, bits);
    const Bits sum = sum_of(quad, rows, lane & 12, row, column);
    (r * bits < 64 ? result.d : result.e) |= sum << r * bits % 64;
  }
  return result;
}

std::vector<Row> quad_rows(const Quad& quad, Values values) {
  std::vector<Row> rows(rows_of_form);
  for (Row& row : rows) {
    for (unsigned w = 0; w < words_of_row; ++w) {
      const ElementType& type = w < first_c ? quad.rule.a : quad.rule.c;
      u32 word = 0;
      for (int shift = 0; shift < 32; shift += type.bits)
        word |= static_cast<u32>(random_element(type, values)) << shift;
      set_word(row, w, word);
    }
  }
  return rows;
}

void add_quad(Forms& forms, const Quad& quad, Values values) {
  const std::string opcode = std::string("mma.sync.aligned.m8n8k4.") + (quad.a_columns ? "col." : "row.") +
                             (quad.b_columns ? "col." : "row.") + quad.rule.d.name + ".f16.f16." + quad.rule.c.name;
  std::string text = opcode + " ";
  const bool singles = quad.rule.d.bits == 32;
  text += singles ? "{%s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7}" : "{%n0, %n1, %n2, %n3}";
  text += ", {%m0, %m1}, {%m2, %m3}, ";
  text += quad.rule.c.bits == 32 ? "{%m4, %m5, %m6, %m7, %m8, %m9, %m10, %m11};\n" : "{%m4, %m5, %m6, %m7};\n";
  for (int r = 0; singles && r < 4; ++r) {
    text += "mov.b32 %n" + std::to_string(r) + ", %s" + std::to_string(4 * quad.part + r) + ";\n";
  }
  Form& form = add(forms, opcode, text, 75,
                   [quad](const Row* rows, unsigned lane) { return quad_result(quad, rows, static_cast<int>(lane)); });
  form.rows = quad_rows(quad, values);
  if (values != Values::Small) form.accept = within(quad.rule.d, distance_of_sums(quad.rule, 4));
}

void quads(Forms& forms, const std::string& d, const std::string& c) {
  Quad quad;
  quad.rule = {element_type("f16"), element_type("f16"), element_type(c), element_type(d)};
  for (const bool a_columns : {false, true}) {
    for (const bool b_columns : {false, true}) {
      quad.a_columns = a_columns;
      quad.b_columns = b_columns;
      for (quad.part = 0; quad.part < quad.rule.d.bits / 16; ++quad.part) {
        add_quad(forms, quad, Values::Small);
        add_quad(forms, quad, Values::Any);
      }
    }
  }
  quad.part = 0;
  add_quad(forms, quad, Values::Edges);
}

}  // namespace

void tile_forms(Forms& forms) {
  for (const unsigned count : {1U, 2U, 4U}) {
    for (const bool transposed : {false, true}) {
      for (const char* space : {"", ".shared", ".shared::cta"}) {
        loads(forms, count, transposed, space);
        stores(forms, count, transposed, space);
      }
    }
  }
  moves(forms);
  quads(forms, "f16", "f16");
  quads(forms, "f32", "f16");
  quads(forms, "f32", "f32");
}

}  // namespace ptx_forms
