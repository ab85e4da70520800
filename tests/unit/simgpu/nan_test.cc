// Tests the bits of NaNs in double precision, which PTX does not define. tests/ptx/ tests all other results of
// arithmetic.
#include "tests/unit/simgpu/fixture.h"

namespace simgpu {
namespace {

class Nans : public Device {
 protected:
  // Returns the result of an instruction that reads %a and %b and writes %d.
  std::uint64_t result(const std::string& text, std::uint64_t a, std::uint64_t b = 0) {
    const auto module = load(R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .f64 a, .param .f64 b)
{
.reg .b64 %out; .reg .f64 %a, %b, %d;
ld.param.u64 %out, [out]; ld.param.f64 %a, [a]; ld.param.f64 %b, [b];
)" + text + "\nst.global.f64 [%out], %d;\nret;\n}\n");
    auto* const out = room<std::uint64_t>(1);
    if (module) {
      const Fault fault = run(*module, "k", {1}, {1}, 0, out, a, b);
      EXPECT_FALSE(fault) << fault.what;
    }
    return *out;
  }
  static constexpr std::uint64_t one = 0x3ff0'0000'0000'0000;
  static constexpr std::uint64_t infinity = 0x7ff0'0000'0000'0000;
};

TEST_F(Nans, InvalidOperationGivesNegativeQuietNan) {
  EXPECT_EQ(result("sub.f64 %d, %a, %b;", infinity, infinity), 0xfff8'0000'0000'0000U);
}

TEST_F(Nans, ArithmeticKeepsThePayloadOfItsOperand) {
  EXPECT_EQ(result("add.f64 %d, %a, %b;", 0x7ff8'0000'0000'1234, one), 0x7ff8'0000'0000'1234U);
  EXPECT_EQ(result("sqrt.rn.f64 %d, %a;", 0x7ff8'0000'0000'1234), 0x7ff8'0000'0000'1234U);
}

TEST_F(Nans, ReciprocalSeedsGiveOneNan) {
  for (const char* text : {"rcp.approx.ftz.f64 %d, %a;", "rsqrt.approx.ftz.f64 %d, %a;"}) {
    EXPECT_EQ(result(text, 0x7ff8'0000'0000'0000), 0x7fff'ffff'0000'0000U) << text;
  }
}

}  // namespace
}  // namespace simgpu
