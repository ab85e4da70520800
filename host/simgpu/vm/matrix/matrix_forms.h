// The suffixes of an instruction for matrices, sorted, and which combinations of them there are. The order of types and
// of layouts matters, so they are no Form.
#pragma once

#include <string_view>
#include <vector>

#include "host/simgpu/vm/matrix/matrix.h"

namespace simgpu::matrix {

// True for the opcodes whose suffixes are read here.
bool has_own_suffixes(std::string_view opcode);

class Suffixes {
 public:
  explicit Suffixes(const std::vector<std::string_view>& suffixes);

  std::uint8_t shape = no_shape;
  std::vector<Element> types;
  std::vector<bool> columns;  // .col, for each layout

  // Whether the word stands there; it counts as read.
  bool take(std::string_view word);
  bool all_read() const { return words_.empty(); }

 private:
  std::vector<std::string_view> words_;
};

enum class ProductKind : std::uint8_t { Mma, Wmma };
// Whether there is such a product. mma has more shapes; wmma more layouts, but multiplicands of one type only.
bool has_product(ProductKind kind, const Product& product);
// The same for an operand of wmma in memory.
bool has_transfer(const Transfer& transfer);

}  // namespace simgpu::matrix
