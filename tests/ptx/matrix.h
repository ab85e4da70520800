// Elements of matrices, as forms_mma.cc and forms_wmma.cc fill them with values and compute with them: the test's own
// arithmetic, exact throughout.
#pragma once

#include <string>
#include <vector>

#include "tests/ptx/form.h"

namespace ptx_forms {

enum class Sort { Float, Double, Integer, Bit };

struct ElementType {
  std::string name;
  int bits = 0;
  Sort sort = Sort::Float;
  Format format{};         // of floats
  bool is_signed = false;  // of integers
  bool infinities = true;  // e4m3 has none
  Bits mask() const { return bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1; }
};
const ElementType& element_type(const std::string& name);

// Small: integers of which every product and sum is exact in any order. Any: from 1/8 to 2 for floats, all bits for
// integers. Edges: infinities, NaN, zeros and subnormals among small ones; for integers the ends of the range.
enum class Values { Small, Any, Edges };
Bits random_element(const ElementType& type, Values values);

struct Rule {
  ElementType a, b, c, d;
  bool saturates = false;
  bool both = false;  // of single bits: and, not exclusive or
  Round round = Round::Nearest;
};
// c and the products of a row of A and a column of B: floats exactly and rounded once, doubles by fused multiply-adds
// in their order.
Bits dot(const Rule& rule, const std::vector<Bits>& row, const std::vector<Bits>& column, Bits c);

// Floats of the type, as many as fit, each no further than `distance` from the one that is wanted.
Accept within(const ElementType& type, double distance);
// How far a sum of `count` products, none above 4, may be from the exact one. Each step may lose a unit in the last
// place of the largest sum that there can be, and the unit is that of the precision that PTX promises.
double distance_of_sums(const Rule& rule, int count);

// ---- rows of a form

inline constexpr unsigned words_of_row = 16;  // of 32 bits
u32 word_of(const Row& row, unsigned number);
void set_word(Row& row, unsigned number, u32 word);

}  // namespace ptx_forms
