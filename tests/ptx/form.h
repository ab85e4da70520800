// A form: the text of one PTX instruction, values to try it on, and the results that the test's own calculation
// expects. forms_*.cc contain the forms, one per row; run.cc runs them on a driver.
//
// The text of a form reads %a, %b, %c and writes %d, and %e if it has a second result. It may use the registers %p1 to
// %p4, %h1 to %h8, %r1 to %r8, %rd1 to %rd8, %f1 to %f8, and %q1 to %q8 (doubles). %in is the address of the thread's
// row: eight words of eight bytes, aligned to 64, with the three inputs first. %mem is the address of 64 zeroed bytes
// of the thread in global memory. `tile` is shared memory with 64 bytes per thread, and %tile the address of the
// thread's own part. Blocks have 128 threads.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/ptx/number.h"

namespace ptx_forms {

struct Row {
  std::array<Bits, 3> in{};
  std::array<Bits, 5> more{};  // follow the inputs in memory; only the text of a form may load them
};
struct Result {
  Bits d = 0;
  Bits e = 0;
  bool operator==(const Result&) const = default;
};

inline constexpr unsigned warp = 32;

// Returns the expected result of a lane, from the rows of its warp.
using Reference = std::function<Result(const Row* rows, unsigned lane)>;
// Returns true if a result that differs from the expected one is acceptable; null if PTX defines every bit.
using Accept = std::function<bool(Result wanted, Result got, const Row& row)>;

struct Form {
  std::string name;  // as in the table of forms
  std::string text;
  std::string declarations;          // placed before the kernel
  std::string result, second;        // types of the registers %d and %e; empty if there is no second result
  std::vector<std::string> sources;  // types of %a, %b, %c
  std::vector<Row> rows;
  Reference reference;
  Accept accept;
  unsigned target = 75;  // smallest compute capability times ten
  // Odd lanes of odd warps execute the text in a separate branch. Such a text must have neither labels nor exchanges
  // between lanes.
  bool diverges = false;
  bool in_clusters = false;  // the kernel is launched in clusters of one block
};
using Forms = std::vector<Form>;

void integer_forms(Forms& forms);
void carry_forms(Forms& forms);
void bit_forms(Forms& forms);
void compare_forms(Forms& forms);
void float_forms(Forms& forms);
void approximate_forms(Forms& forms);
void half_forms(Forms& forms);
void convert_forms(Forms& forms);
void memory_forms(Forms& forms);
void atomic_forms(Forms& forms);
void warp_forms(Forms& forms);
void control_forms(Forms& forms);
void async_forms(Forms& forms);
void wide_forms(Forms& forms);
void stack_forms(Forms& forms);
void mma_forms(Forms& forms);
void wmma_forms(Forms& forms);
void tile_forms(Forms& forms);

// ---- types

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

// Floats are passed as their bits.
template <class Carrier, int which>
struct FloatBits {
  Carrier bits = 0;
  bool operator==(const FloatBits&) const = default;
};
using f16 = FloatBits<u16, 0>;
using bf16 = FloatBits<u16, 1>;
using f32 = FloatBits<u32, 0>;
using f64 = FloatBits<u64, 0>;
using f16x2 = FloatBits<u32, 1>;
using bf16x2 = FloatBits<u32, 2>;
using f32x2 = FloatBits<u64, 1>;

template <class T>
constexpr bool is_pair = std::is_same_v<T, f16x2> || std::is_same_v<T, bf16x2> || std::is_same_v<T, f32x2>;
template <class T>
constexpr const Format& format_of() {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, f16x2>) return half;
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, bf16x2>) return brain;
  if constexpr (std::is_same_v<T, f32> || std::is_same_v<T, f32x2>) return single;
  if constexpr (std::is_same_v<T, f64>) return twice;
}
template <class T>
const char* type_name() {
  if constexpr (std::is_integral_v<T>) {
    static const std::string name = (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
    return name.c_str();
  } else {
    if (std::is_same_v<T, f16>) return "f16";
    if (std::is_same_v<T, bf16>) return "bf16";
    if (std::is_same_v<T, f32>) return "f32";
    if (std::is_same_v<T, f64>) return "f64";
    if (std::is_same_v<T, f32x2>) return "f32x2";
    return std::is_same_v<T, f16x2> ? "f16x2" : "bf16x2";
  }
}
template <class T>
const char* register_type() {
  if constexpr (std::is_same_v<T, f32>) return "f32";
  if constexpr (std::is_same_v<T, f64>) return "f64";
  return sizeof(T) <= 2 ? "b16" : sizeof(T) == 4 ? "b32" : "b64";
}

template <class T>
Bits bits_of(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(value);
  } else {
    return value.bits;
  }
}
template <class T>
T value_of(Bits bits) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    T value;
    value.bits = static_cast<decltype(value.bits)>(bits);
    return value;
  }
}

// ---- edge values of the types, and some values between them

std::vector<Bits> integer_edges(int size, bool few);
std::vector<Bits> float_edges(const Format& format, bool few);
std::vector<Bits> pair_edges(const Format& format, bool few);
Bits next_random();

template <class T>
std::vector<Bits> edges(bool few) {
  if constexpr (std::is_integral_v<T>) {
    return integer_edges(8 * sizeof(T), few);
  } else if constexpr (is_pair<T>) {
    return pair_edges(format_of<T>(), few);
  } else {
    return float_edges(format_of<T>(), few);
  }
}
template <class T>
Bits random_bits() {
  return bits_of(value_of<T>(next_random()));
}

// Returns all combinations of the edge values, and random rows.
std::vector<Row> combinations(const std::vector<std::vector<Bits>>& values);
template <class... A>
std::vector<Row> rows_of() {
  const bool few = sizeof...(A) > 2;
  std::vector<Row> rows = combinations({edges<A>(few)...});
  for (int k = 0; k < 200; ++k) {
    Row row;
    std::size_t at = 0;
    ((row.in[at++] = random_bits<A>()), ...);
    rows.push_back(row);
  }
  return rows;
}

// ---- functions that add forms

// Adds a form with the given text. `reference` is a function R(A...) that computes the expected result from the inputs.
template <class R, class... A, class F>
Form& add_text(Forms& forms, std::string name, std::string text, F reference, Accept accept = nullptr) {
  Form form;
  form.name = std::move(name);
  form.text = std::move(text);
  form.result = register_type<R>();
  form.sources = {register_type<A>()...};
  form.rows = rows_of<A...>();
  form.reference = [reference](const Row* rows, unsigned lane) {
    const auto call = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return R{reference(value_of<A>(rows[lane].in[I])...)};
    };
    return Result{bits_of(call(std::index_sequence_for<A...>())), 0};
  };
  form.accept = std::move(accept);
  return forms.emplace_back(std::move(form));
}

// Adds a form whose text is the opcode, followed by its operands in order.
template <class R, class... A, class F>
Form& add_op(Forms& forms, const std::string& opcode, F reference, Accept accept = nullptr) {
  static constexpr const char* operands[] = {"", " %d, %a;", " %d, %a, %b;", " %d, %a, %b, %c;"};
  Form& form = add_text<R, A...>(forms, opcode, opcode + operands[sizeof...(A)], reference, std::move(accept));
  form.diverges = true;
  return form;
}

// Adds a form whose result is a predicate, written as 1 or 0.
template <class... A, class F>
Form& add_test(Forms& forms, const std::string& opcode, F reference) {
  static constexpr const char* operands[] = {"", " %p1, %a;", " %p1, %a, %b;", " %p1, %a, %b, %c;"};
  Form& form = add_text<u32, A...>(forms, opcode, opcode + operands[sizeof...(A)] + " selp.u32 %d, 1, 0, %p1;",
                                   [reference](A... values) { return u32{reference(values...)}; });
  form.diverges = true;
  return form;
}

// ---- results that are accepted

// Accepts any NaN if a NaN is expected.
Accept any_nan(const Format& format);
// If subnormals are flushed, also accepts zero for a result that rounds up to the smallest normal number: PTX does not
// say whether a result is flushed before or after rounding. The rule applies to each part of a word of `size` bits.
Accept flushed_least(const Format& format, int size);

inline float as_float(Bits bits) {
  const auto narrow = static_cast<u32>(bits);
  float value = 0;
  std::memcpy(&value, &narrow, sizeof value);
  return value;
}
inline Bits from_float(float value) {
  u32 bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace ptx_forms
