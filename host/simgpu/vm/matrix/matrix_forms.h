// Parses the suffixes of matrix instructions and checks their combinations. Form cannot represent these suffixes, since
// the order of types and layouts matters.
#pragma once

#include <string_view>
#include <vector>

#include "host/simgpu/vm/matrix/matrix.h"

namespace simgpu::matrix {

// Returns true for opcodes whose suffixes are parsed here.
bool has_own_suffixes(std::string_view opcode);

class Suffixes {
 public:
  explicit Suffixes(const std::vector<std::string_view>& suffixes);

  std::uint8_t shape = no_shape;
  std::vector<Element> types;
  std::vector<bool> columns;  // one entry per layout suffix; true: .col

  // Returns true if the suffix is present, and marks it as read.
  bool take(std::string_view word);
  bool all_read() const { return words_.empty(); }

 private:
  std::vector<std::string_view> words_;
};

enum class ProductKind : std::uint8_t { Mma, Wmma };
// Returns true if the product exists. mma has more shapes; wmma has more layouts, but requires equal types of
// multiplicands.
bool has_product(ProductKind kind, const Product& product);
// Returns true if the wmma operand in memory exists.
bool has_transfer(const Transfer& transfer);

}  // namespace simgpu::matrix
