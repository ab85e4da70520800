// The tables list the combinations that ptxas 13.0 accepts for sm_90.
#include "host/simgpu/vm/matrix/matrix_forms.h"

#include <algorithm>

namespace simgpu::matrix {
namespace {

constexpr std::uint8_t any_layout = product_a_columns | product_b_columns;

// One row of the table of products. Shapes, types of multiplicands, and pairs of types for d and c are lists of words.
struct Row {
  ProductKind kind;
  std::string_view shapes;
  std::string_view multiplicands;
  std::string_view sums;  // pairs "d.c"
  std::uint8_t options;   // allowed options; any_layout allows all layouts
  bool rounds;
};
constexpr std::string_view wmma_shapes = "m16n16k16 m8n32k16 m32n8k16";
constexpr Row rows[] = {
    {ProductKind::Mma, "m8n8k4", "f16", "f16.f16 f32.f16 f32.f32", any_layout, false},
    {ProductKind::Mma, "m16n8k8 m16n8k16", "f16", "f16.f16 f32.f32", 0, false},
    {ProductKind::Mma, "m16n8k8 m16n8k16", "bf16", "f32.f32", 0, false},
    {ProductKind::Mma, "m16n8k4 m16n8k8", "tf32", "f32.f32", 0, false},
    {ProductKind::Mma, "m8n8k4 m16n8k4 m16n8k8 m16n8k16", "f64", "f64.f64", 0, true},
    {ProductKind::Mma, "m16n8k16 m16n8k32", "e4m3 e5m2", "f16.f16 f32.f32", 0, false},
    {ProductKind::Mma, "m8n8k16 m16n8k16 m16n8k32", "s8 u8", "s32.s32", product_saturates, false},
    {ProductKind::Mma, "m8n8k32 m16n8k32 m16n8k64", "s4 u4", "s32.s32", product_saturates, false},
    {ProductKind::Mma, "m8n8k128 m16n8k128 m16n8k256", "b1", "s32.s32", product_of_and, false},
    {ProductKind::Wmma, wmma_shapes, "f16", "f16.f16 f16.f32 f32.f16 f32.f32", any_layout, false},
    {ProductKind::Wmma, wmma_shapes, "bf16", "f32.f32", any_layout, false},
    {ProductKind::Wmma, "m16n16k8", "tf32", "f32.f32", any_layout, false},
    {ProductKind::Wmma, "m8n8k4", "f64", "f64.f64", any_layout, true},
    {ProductKind::Wmma, wmma_shapes, "s8", "s32.s32", any_layout | product_saturates, false},
    {ProductKind::Wmma, wmma_shapes, "u8", "s32.s32", any_layout | product_saturates, false},
    {ProductKind::Wmma, "m8n8k32", "s4", "s32.s32", product_saturates, false},
    {ProductKind::Wmma, "m8n8k32", "u4", "s32.s32", product_saturates, false},
    {ProductKind::Wmma, "m8n8k128", "b1", "s32.s32", product_of_and, false},
};

// Returns true if `found` is true for one of the words.
template <class F>
bool any_word(std::string_view words, F found) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (found(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

bool has_shape(const Row& row, std::uint8_t shape) {
  return any_word(row.shapes, [&](std::string_view word) { return word == shapes[shape].name; });
}

bool has_element(std::string_view words, Element element) {
  return any_word(words, [&](std::string_view word) { return element_of(word) == element; });
}

bool has_sum(const Row& row, Element d, Element c) {
  return any_word(row.sums, [&](std::string_view word) {
    const std::size_t dot = word.find('.');
    return element_of(word.substr(0, dot)) == d && element_of(word.substr(dot + 1)) == c;
  });
}

// Returns true if the row allows the product's options. Row-major A and column-major B are always allowed.
bool has_options(const Row& row, const Product& product) {
  const std::uint8_t free = row.options | product_of_wmma | product_b_columns;
  const bool other_b = (product.options & product_b_columns) == 0;
  return (product.options & ~free) == 0 && (!other_b || (row.options & product_b_columns) != 0);
}

bool allows(const Row& row, const Product& product) {
  return has_shape(row, product.shape) && has_element(row.multiplicands, product.a) &&
         has_element(row.multiplicands, product.b) && has_sum(row, product.d, product.c) && has_options(row, product) &&
         (product.round == 0 || row.rounds);
}

bool allows(const Row& row, const Transfer& transfer) {
  if (row.kind != ProductKind::Wmma || !has_shape(row, transfer.shape)) return false;
  if (transfer.role == Role::Accumulator) return has_sum(row, transfer.element, transfer.element);
  const bool usual = transfer.columns == (transfer.role == Role::B);
  return has_element(row.multiplicands, transfer.element) && (usual || (row.options & any_layout) != 0);
}

}  // namespace

bool has_own_suffixes(std::string_view opcode) {
  return opcode == "mma" || opcode == "wmma" || opcode == "ldmatrix" || opcode == "stmatrix" || opcode == "movmatrix";
}

Suffixes::Suffixes(const std::vector<std::string_view>& suffixes) {
  for (const std::string_view suffix : suffixes) {
    const Element element = element_of(suffix);
    if (element != Element::None) {
      types.push_back(element);
    } else if (shape == no_shape && shape_of(suffix) != no_shape) {
      shape = shape_of(suffix);
    } else if (suffix == "row" || suffix == "col") {
      columns.push_back(suffix == "col");
    } else {
      words_.push_back(suffix);
    }
  }
}

bool Suffixes::take(std::string_view word) {
  const auto found = std::find(words_.begin(), words_.end(), word);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

bool has_product(ProductKind kind, const Product& product) {
  return std::any_of(std::begin(rows), std::end(rows),
                     [&](const Row& row) { return row.kind == kind && allows(row, product); });
}

bool has_transfer(const Transfer& transfer) {
  return std::any_of(std::begin(rows), std::end(rows), [&](const Row& row) { return allows(row, transfer); });
}

}  // namespace simgpu::matrix
