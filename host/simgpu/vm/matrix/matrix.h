// Matrices whose elements are distributed over the registers of a warp: shapes, element types and element positions.
// The lowering uses this to count registers, and the handlers of matrix_*.cc to move elements.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "host/simgpu/vm/code.h"

namespace simgpu::matrix {

enum class Element : std::uint8_t { None, F16, Bf16, Tf32, F32, F64, E4m3, E5m2, S8, U8, S4, U4, B1, S32 };
// Returns Element::None if the name is not an element type of matrices.
Element element_of(std::string_view name);
unsigned bits_of(Element element);

// A product with m rows, n columns and sums of k elements.
struct Shape {
  std::string_view name;
  std::uint16_t m = 0, n = 0, k = 0;
};
inline constexpr Shape shapes[] = {
    {"m8n8k4", 8, 8, 4},       {"m8n8k16", 8, 8, 16},     {"m8n8k32", 8, 8, 32},     {"m8n8k128", 8, 8, 128},
    {"m16n8k4", 16, 8, 4},     {"m16n8k8", 16, 8, 8},     {"m16n8k16", 16, 8, 16},   {"m16n8k32", 16, 8, 32},
    {"m16n8k64", 16, 8, 64},   {"m16n8k128", 16, 8, 128}, {"m16n8k256", 16, 8, 256}, {"m16n16k8", 16, 16, 8},
    {"m16n16k16", 16, 16, 16}, {"m8n32k16", 8, 32, 16},   {"m32n8k16", 32, 8, 16},
};
inline constexpr std::uint8_t no_shape = 0xff;
std::uint8_t shape_of(std::string_view name);

enum class Role : std::uint8_t { A, B, Accumulator };

// A displacement in a matrix. Element e of lane l is at the sum of the steps for the bits set in l and in e.
struct Step {
  std::uint16_t row = 0;
  std::uint16_t column = 0;
};
struct Layout {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  std::uint16_t elements = 0;  // elements per lane
  std::uint8_t unit = 32;      // bits per element
  std::array<Step, 5> lane{};
  std::array<Step, 7> element{};

  // Returns the number of elements per register. A register has 64 bits for 64-bit elements, else 32.
  unsigned packed() const { return unit >= 32 ? 1 : 32U / unit; }
  unsigned registers() const { return elements / packed(); }
  Step of_lane(unsigned l) const { return sum(lane, l); }
  Step of_element(unsigned e) const { return sum(element, e); }

 private:
  template <std::size_t n>
  static Step sum(const std::array<Step, n>& steps, unsigned bits) {
    Step total;
    for (std::size_t k = 0; k < n; ++k) {
      if ((bits >> k & 1) == 0) continue;
      total.row = static_cast<std::uint16_t>(total.row + steps[k].row);
      total.column = static_cast<std::uint16_t>(total.column + steps[k].column);
    }
    return total;
  }
};

Layout transposed(Layout layout);

// The parameters of a product's handler, which Ins::imm encodes.
struct Product {
  std::uint8_t shape = 0;
  Element a = Element::None, b = Element::None, c = Element::None, d = Element::None;
  std::uint8_t options = 0;
  std::uint8_t round = 0;  // rounding mode as in Ins::flags
  std::uint8_t zero = 0;
};
enum ProductOption : std::uint8_t {
  product_saturates = 1,   // integer sums saturate
  product_of_and = 2,      // one-bit products use AND, else exclusive OR
  product_of_wmma = 4,     // fragments in wmma layout
  product_a_columns = 8,   // .col layout of A
  product_b_columns = 16,  // .col layout of B
};
static_assert(sizeof(Product) == sizeof(Ins::imm));

// Returns the layout of a product's operand. One-bit elements are grouped by 32.
Layout layout_of(const Product& product, Role role, Element element);

// The parameters of a wmma transfer between memory and registers, which Ins::imm encodes. Elements below 8 bits are
// moved in whole registers.
struct Transfer {
  std::uint8_t shape = 0;
  Role role = Role::A;
  Element element = Element::None;
  bool columns = false;  // true: column-major memory; false: row-major
  std::array<std::uint8_t, 4> zero{};
};
static_assert(sizeof(Transfer) == sizeof(Ins::imm));
Layout layout_of(const Transfer& transfer);
// Returns the number of elements of this type per unit of the layout.
unsigned elements_in_unit(Element element);

// Returns the layout of the 8x8 matrix of 16-bit elements that ldmatrix, stmatrix and movmatrix use.
Layout tile_layout(bool transposed);

template <class T>
std::int64_t as_immediate(const T& value) {
  return std::bit_cast<std::int64_t>(value);
}

// matrix_product.cc: the extra places from Ins::index on are the registers of d, a, b and c. Ins::e: all lanes; imm: a
// Product.
Handlers product_handler(Element multiplicand);
// matrix_memory.cc: the extra places from Ins::index on are the registers. Ins::e: all lanes.
Handlers load_handler();            // Ins::a: address; b: stride in elements; imm: a Transfer
Handlers store_handler();           // operands as for load_handler()
Handlers tiles_load_handler();      // Ins::a: address of a row; count: tiles; imm 1: transposed
Handlers tiles_store_handler();     // operands as for tiles_load_handler()
Handlers tile_transpose_handler();  // Ins::a: source; d: destination

}  // namespace simgpu::matrix
