// The scalar types of PTX and their sizes, for the parser and the lowering.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace simgpu::ptx {

enum class Type : std::uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  U16x2,
  S16x2,
  F16,
  F16x2,
  Bf16,
  Bf16x2,
  F32,
  F64,
  F32x2,
  Tf32,    // a 32-bit float with reduced precision
  E4m3x2,  // a pair of 8-bit floats, as is E5m2x2
  E5m2x2,
};

enum class Space : std::uint8_t { Generic, Global, Shared, Local, Const, Param, Register };

// `name` is written without its dot. Returns Type::None if `name` is not a type.
Type type_of(std::string_view name);
std::string_view name_of(Type type);
// Returns the size in memory in bytes; 0 for None and Pred.
unsigned size_of(Type type);
bool is_signed(Type type);
bool is_float(Type type);
bool is_half(Type type);       // true for a 16-bit float
bool is_half_pair(Type type);  // true for two 16-bit floats in one register

// An error in a text, with its line. This exception never leaves the engine: Module::load turns it into a line of the
// log.
class Error : public std::runtime_error {
 public:
  Error(unsigned line, const std::string& what) : std::runtime_error(what), line_(line) {}
  unsigned line() const { return line_; }

 private:
  unsigned line_;
};

}  // namespace simgpu::ptx
