// Helpers that cases for textures and surfaces in kernels share: kernels of one instruction, and arrays with texels.
#pragma once

#include <array>
#include <bit>

#include "tests/contract/suite.h"

namespace contract {

using TexelRow = std::array<unsigned, 8>;

template <class T>
unsigned row_word(T value) {
  static_assert(sizeof(T) == sizeof(unsigned));
  return std::bit_cast<unsigned>(value);
}
template <class... T>
TexelRow row_of(T... values) {
  return {row_word(values)...};
}

// Runs an instruction in one thread. Inputs are the object in %rd1, and the words of the row in %r0 to %r7 and, as
// floats, in %f0 to %f7. Outputs are %r20 to %r23.
class Instruction {
 public:
  explicit Instruction(const std::string& text);
  // Returns the four output words. If the kernel cannot be loaded or fails, all bits are ones and why() returns the
  // error.
  std::array<unsigned, 4> run(unsigned long long object, const TexelRow& row);
  CUresult why() const { return why_; }

 private:
  CUfunction function_ = nullptr;
  CUdeviceptr out_ = 0;
  CUresult why_ = CUDA_SUCCESS;
};

// Shows the first `count` output words as numbers.
void show_words(const std::string& what, const std::string& text, unsigned long long object, const TexelRow& row,
                unsigned count = 1);
// Shows the error of a kernel with this instruction.
void show_end(const std::string& what, const std::string& text, unsigned long long object, const TexelRow& row);

struct Texels {
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  unsigned channels = 1;
  std::size_t width = 1, height = 0, depth = 0;  // in the form that cuArray3DCreate takes
  unsigned flags = 0;
};
CUarray array_of(const Texels& shape, const void* texels);

CUDA_TEXTURE_DESC sampling_of(CUfilter_mode filter, CUaddress_mode mode, unsigned flags = 0);
CUDA_RESOURCE_DESC resource_of_array(CUarray array);
unsigned long long texture_of(CUarray array, const CUDA_TEXTURE_DESC& sampling);
unsigned long long surface_of(CUarray array);

}  // namespace contract
