// The scalar types of PTX and their sizes. Used by the parser and by the lowering; holds no state.
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
  Tf32,    // a single with fewer bits, in 32
  E4m3x2,  // two floats of eight bits
  E5m2x2,
};

enum class Space : std::uint8_t { Generic, Global, Shared, Local, Const, Param, Register };

// Type::None when `name` (without its dot) is no type.
Type type_of(std::string_view name);
std::string_view name_of(Type type);
// Bytes in memory; 0 for None and Pred.
unsigned size_of(Type type);
bool is_signed(Type type);
bool is_float(Type type);
bool is_half(Type type);       // a float of 16 bits
bool is_half_pair(Type type);  // two of them in one register

// An error in a text, and its place. Thrown within the engine only; Module::load turns it into a log line.
class Error : public std::runtime_error {
 public:
  Error(unsigned line, const std::string& what) : std::runtime_error(what), line_(line) {}
  unsigned line() const { return line_; }

 private:
  unsigned line_;
};

}  // namespace simgpu::ptx
