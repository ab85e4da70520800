// Elements of matrices for forms_mma.cc and forms_wmma.cc: generates values and computes products. This arithmetic is
// the test's own and exact.
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
  Format format{};         // for floats
  bool is_signed = false;  // for integers
  bool infinities = true;  // false for e4m3, which has none
  Bits mask() const { return bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1; }
};
const ElementType& element_type(const std::string& name);

// Small: integers whose products and sums are exact in any order. Any: floats from 1/8 to 2, or integers with random
// bits. Edges: infinities, NaN, zeros and subnormals mixed with small values, or the limits of the integer type.
enum class Values { Small, Any, Edges };
Bits random_element(const ElementType& type, Values values);

struct Rule {
  ElementType a, b, c, d;
  bool saturates = false;
  bool both = false;  // for single bits: AND, else exclusive OR
  Round round = Round::Nearest;
};
// Returns c plus the products of a row of A and a column of B. Floats are summed exactly and rounded once. Doubles are
// summed by fused multiply-adds in order.
Bits dot(const Rule& rule, const std::vector<Bits>& row, const std::vector<Bits>& column, Bits c);

// Accepts floats of the type if each differs from the expected float by at most `distance`.
Accept within(const ElementType& type, double distance);
// Returns the largest error of a sum of `count` products that are at most 4. Each step may lose one unit in the last
// place of the largest possible sum, in the precision that PTX guarantees.
double distance_of_sums(const Rule& rule, int count);

// ---- rows of a form

inline constexpr unsigned words_of_row = 16;  // words of 32 bits
u32 word_of(const Row& row, unsigned number);
void set_word(Row& row, unsigned number, u32 word);

}  // namespace ptx_forms
