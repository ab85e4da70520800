// Runs kernels with one texture or surface instruction on rows of words.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/unit/simgpu/fixture.h"
#include "tests/unit/simgpu/texture_fixture.h"

namespace simgpu {

using Row = std::array<std::uint32_t, 12>;
using Answer = std::array<std::uint32_t, 8>;

inline std::uint32_t word(float value) { return std::bit_cast<std::uint32_t>(value); }
inline std::uint32_t word(int value) { return static_cast<std::uint32_t>(value); }
template <class... T>
Row row_of(T... values) {
  return {word(values)...};
}

// The text of the instruction may read these registers:
//   %rd1            the object
//   %r0 to %r11     the words of the thread's row, as bits
//   %f0 to %f11     the words of the thread's row, as floats
//   %rd10, %rd11    the first four words of the row, in pairs
// The results are %r20 to %r27. The text may use %h0 to %h7 for 16-bit values.
class TextureKernel : public Device {
 protected:
  TextureTable& table() { return space.textures(); }

  static std::string kernel(const std::string& text) {
    std::string source =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 object)\n{\n"
        ".reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %rd<20>;\n"
        "mov.u32 %r30, %tid.x; ld.param.u64 %rd2, [out]; mad.wide.u32 %rd2, %r30, 32, %rd2;\n"
        "ld.param.u64 %rd3, [in]; mad.wide.u32 %rd3, %r30, 48, %rd3; ld.param.u64 %rd1, [object];\n";
    for (int k = 0; k < 12; ++k) {
      const std::string number = std::to_string(k);
      const std::string place = "[%rd3+" + std::to_string(4 * k) + "];";
      source += "ld.u32 %r" + number + ", " + place + " ld.f32 %f" + number + ", " + place;
    }
    source += " mov.b64 %rd10, {%r0, %r1}; mov.b64 %rd11, {%r2, %r3};\n";
    for (int k = 20; k < 28; ++k) source += "mov.u32 %r" + std::to_string(k) + ", 0; ";
    source += "\n" + text + "\n";  // line 11 of the PTX text
    for (int k = 0; k < 8; ++k) {
      source += "st.u32 [%rd2+" + std::to_string(4 * k) + "], %r" + std::to_string(20 + k) + "; ";
    }
    return source + "\nret;\n}\n";
  }

  Fault fault_of(const std::string& text, std::uint64_t object, const std::vector<Row>& rows,
                 std::vector<Answer>* answers = nullptr) {
    const auto module = load(kernel(text));
    if (!module) return {CUDA_ERROR_INVALID_PTX, "not loaded"};
    Answer* const out = room<Answer>(rows.size());
    const Fault fault = run(*module, "k", {1}, {static_cast<std::uint32_t>(rows.size())}, 0, out, upload(rows), object);
    if (answers != nullptr) answers->assign(out, out + rows.size());
    return fault;
  }
  std::vector<Answer> run_rows(const std::string& text, std::uint64_t object, const std::vector<Row>& rows) {
    std::vector<Answer> answers;
    const Fault fault = fault_of(text, object, rows, &answers);
    EXPECT_FALSE(fault) << text << ": " << fault.what;
    return answers;
  }
  // Runs one thread and returns the first four words as floats.
  std::array<float, 4> colors(const std::string& text, std::uint64_t object, const Row& row) {
    const Answer answer = run_rows(text, object, {row}).at(0);
    return {as_float(answer[0]), as_float(answer[1]), as_float(answer[2]), as_float(answer[3])};
  }
  float first(const std::string& text, std::uint64_t object, const Row& row) { return colors(text, object, row)[0]; }

  std::string refused(const std::string& text) {
    const std::string source = kernel(text);
    const Module::Loaded loaded = load_ptx(std::span(&source, 1), space);
    EXPECT_EQ(loaded.code, CUDA_ERROR_INVALID_PTX) << text;
    EXPECT_NE(loaded.log.find("line 11"), std::string::npos) << text << ": " << loaded.log;
    return loaded.log;
  }
};

}  // namespace simgpu
