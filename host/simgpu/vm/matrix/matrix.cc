// PTX's tables of matrix fragments, expressed as sums of steps. All tables except one have the same scheme. Four lanes
// share a line (a row or column), and eight lines are below each other. Further registers hold the rest of the matrix.
#include "host/simgpu/vm/matrix/matrix.h"

#include <algorithm>

namespace simgpu::matrix {
namespace {

struct Named {
  Element element;
  std::string_view name;
  unsigned bits;
};
constexpr Named elements[] = {
    {Element::F16, "f16", 16}, {Element::Bf16, "bf16", 16}, {Element::Tf32, "tf32", 32}, {Element::F32, "f32", 32},
    {Element::F64, "f64", 64}, {Element::E4m3, "e4m3", 8},  {Element::E5m2, "e5m2", 8},  {Element::S8, "s8", 8},
    {Element::U8, "u8", 8},    {Element::S4, "s4", 4},      {Element::U4, "u4", 4},      {Element::B1, "b1", 1},
    {Element::S32, "s32", 32},
};

// Returns the layout of `lines` lines of `length` elements. A lane has `run` consecutive elements of a line, then the
// elements of the line eight below, and then those four runs further along the line.
Layout spread(unsigned lines, unsigned length, unsigned run) {
  Layout layout;
  layout.rows = static_cast<std::uint16_t>(lines);
  layout.columns = static_cast<std::uint16_t>(length);
  layout.elements = 1;
  const auto step = [](unsigned row, unsigned column) {
    return Step{static_cast<std::uint16_t>(row), static_cast<std::uint16_t>(column)};
  };
  layout.lane = {step(0, run), step(0, 2 * run), step(1, 0), step(2, 0), step(4, 0)};
  std::size_t bit = 0;
  const auto add = [&](Step next) {
    layout.element[bit++] = next;
    layout.elements = static_cast<std::uint16_t>(2 * layout.elements);
  };
  for (unsigned k = 1; k < run; k *= 2) add(step(0, k));
  for (unsigned k = 8; k < lines; k *= 2) add(step(k, 0));
  for (unsigned k = 4 * run; k < length; k *= 2) add(step(0, k));
  return layout;
}

// The exception is mma.m8n8k4 of halves: four products of eight lanes each. Here the four matrices A, and the four
// matrices C, are stacked vertically; the four matrices B are placed side by side.
struct Quads {
  Layout a[2];  // row-major; column-major
  Layout b[2];
  Layout c[2];  // halves; singles
};
constexpr Quads quads{{{32, 4, 4, 16, {{{1, 0}, {2, 0}, {8, 0}, {16, 0}, {4, 0}}}, {{{0, 1}, {0, 2}}}},
                       {32, 4, 4, 16, {{{0, 1}, {0, 2}, {8, 0}, {16, 0}, {4, 0}}}, {{{1, 0}, {2, 0}}}}},
                      {{4, 32, 4, 16, {{{1, 0}, {2, 0}, {0, 8}, {0, 16}, {0, 4}}}, {{{0, 1}, {0, 2}}}},
                       {4, 32, 4, 16, {{{0, 1}, {0, 2}, {0, 8}, {0, 16}, {0, 4}}}, {{{1, 0}, {2, 0}}}}},
                      {{32, 8, 8, 16, {{{1, 0}, {2, 0}, {8, 0}, {16, 0}, {4, 0}}}, {{{0, 1}, {0, 2}, {0, 4}}}},
                       {32, 8, 8, 32, {{{1, 0}, {0, 2}, {8, 0}, {16, 0}, {4, 0}}}, {{{0, 1}, {2, 0}, {0, 4}}}}}};

Layout quad_layout(const Product& product, Role role, Element element) {
  if (role == Role::A) return quads.a[(product.options & product_a_columns) != 0];
  if (role == Role::B) return quads.b[(product.options & product_b_columns) != 0];
  return quads.c[element != Element::F16];
}

Layout fragment(const Shape& shape, Role role, unsigned bits, unsigned unit) {
  const unsigned k = shape.k * bits / unit;
  const unsigned run = std::max(1U, 32 / unit);
  Layout layout = role == Role::A   ? spread(shape.m, k, run)
                  : role == Role::B ? transposed(spread(shape.n, k, run))
                                    : spread(shape.m, shape.n, 2);
  layout.unit = static_cast<std::uint8_t>(unit);
  return layout;
}

// wmma fragments of halves always have sixteen elements. If the matrix has fewer per lane, its elements occur more than
// once.
Layout copied(Layout layout, Role role, Element element) {
  if (role != Role::Accumulator && element == Element::F16) layout.elements = 16;
  return layout;
}

}  // namespace

Layout transposed(Layout layout) {
  std::swap(layout.rows, layout.columns);
  for (Step& step : layout.lane) std::swap(step.row, step.column);
  for (Step& step : layout.element) std::swap(step.row, step.column);
  return layout;
}

Element element_of(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(elements), std::end(elements), [&](const Named& named) { return named.name == name; });
  return found == std::end(elements) ? Element::None : found->element;
}

unsigned bits_of(Element element) {
  const auto* found = std::find_if(std::begin(elements), std::end(elements),
                                   [&](const Named& named) { return named.element == element; });
  return found == std::end(elements) ? 0 : found->bits;
}

std::uint8_t shape_of(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(shapes), std::end(shapes), [&](const Shape& shape) { return shape.name == name; });
  return found == std::end(shapes) ? no_shape : static_cast<std::uint8_t>(found - std::begin(shapes));
}

unsigned elements_in_unit(Element element) {
  const unsigned bits = bits_of(element);
  return bits < 8 ? 32 / bits : 1;
}

Layout layout_of(const Product& product, Role role, Element element) {
  const Shape& shape = shapes[product.shape];
  const bool wmma = (product.options & product_of_wmma) != 0;
  if (shape.k == 4 && product.a == Element::F16) return quad_layout(product, role, element);
  const unsigned bits = bits_of(element);
  const Layout layout = fragment(shape, role, bits, bits == 1 ? 32 : bits);
  return wmma ? copied(layout, role, element) : layout;
}

Layout layout_of(const Transfer& transfer) {
  const unsigned bits = bits_of(transfer.element);
  const Layout layout = fragment(shapes[transfer.shape], transfer.role, bits, bits < 8 ? 32 : bits);
  return copied(layout, transfer.role, transfer.element);
}

Layout tile_layout(bool columns) {
  Layout layout = spread(8, 8, 2);
  layout.unit = 16;
  return columns ? transposed(layout) : layout;
}

}  // namespace simgpu::matrix
