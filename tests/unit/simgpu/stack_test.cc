// Tests invalid uses of stack memory that a thread allocates at run time. Also tests 128-bit words that many threads
// update at once. tests/ptx/ tests valid uses.
#include "tests/unit/simgpu/fixture.h"

namespace simgpu {
namespace {

constexpr const char* head = ".version 9.0\n.target sm_90\n.address_size 64\n";
constexpr const char* registers =
    ".reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .b128 %w<9>;\nld.param.u64 %rd90, [out];\n";

class Stack : public Device {
 protected:
  static std::string kernel(const std::string& body) {
    return std::string(head) + ".visible .entry k(.param .u64 out)\n{\n" + registers + body + "\nret;\n}\n";
  }
  Fault fault_of(const std::string& body, std::uint32_t threads = 32) {
    const auto module = load(kernel(body));
    return module ? run(*module, "k", {1}, {threads}, 0, room<std::uint64_t>(64)) : Fault{};
  }
  std::string refused(const std::string& line) {
    const std::string text = kernel(line);
    const Module::Loaded loaded = load_ptx(std::span(&text, 1), space);
    EXPECT_EQ(loaded.code, CUDA_ERROR_INVALID_PTX) << line;
    return loaded.log;
  }
};

TEST_F(Stack, MoreThanThereIsIsAFault) {
  for (const char* size : {"0x7fffffffffffffff", "0xffffffffffffffff", "0xfffffffffffffff8", "1000000"}) {
    const Fault fault = fault_of(std::string("mov.u64 %rd1, ") + size + "; alloca.u64 %rd2, %rd1, 8;");
    EXPECT_EQ(fault.code, CUDA_ERROR_HARDWARE_STACK_ERROR) << size << fault.what;
  }
  // The frame occupies the only address with that alignment.
  EXPECT_EQ(fault_of(".local .b8 own[16]; st.local.b8 [own], 1; alloca.u64 %rd2, 16, 8388608;").code,
            CUDA_ERROR_HARDWARE_STACK_ERROR);
}

TEST_F(Stack, ALoopThatTakesWithoutEndIsAFault) {
  EXPECT_EQ(fault_of("NEXT:\nalloca.u64 %rd1, 64; st.local.u32 [%rd1], 1; bra NEXT;").code,
            CUDA_ERROR_HARDWARE_STACK_ERROR);
}

TEST_F(Stack, FramesAndWhatIsTakenDoNotMeet) {
  const std::string text = std::string(head) + R"(
.func deeper(.param .b32 n)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .local .b8 own[64];
  ld.param.u32 %r1, [n];
  alloca.u64 %rd1, 64; st.local.u32 [%rd1], %r1; st.local.u32 [own], %r1;
  add.u32 %r1, %r1, 1;
  { .param .b32 next; st.param.b32 [next], %r1; call deeper, (next); }
  ret;
}
.visible .entry k() { { .param .b32 start; st.param.b32 [start], 0; call deeper, (start); } ret; }
)";
  const auto module = load(text);
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module, "k", {1}, {32}, 0).code, CUDA_ERROR_HARDWARE_STACK_ERROR);
}

TEST_F(Stack, OnlyAPlaceOnTheStackCanBeRestored) {
  for (const char* place : {"0xffffffffffffffff", "0x100000000", "1000000"}) {
    const Fault fault = fault_of(std::string("mov.u64 %rd1, ") + place + "; stackrestore.u64 %rd1;");
    EXPECT_EQ(fault.code, CUDA_ERROR_HARDWARE_STACK_ERROR) << place;
  }
}

TEST_F(Stack, WhatMakesNoSenseIsRefusedWithItsLine) {
  for (const char* line : {"alloca.u64 %rd1, 16, 3;",
                           "alloca.u64 %rd1, 16, 0;",
                           "alloca.u64 %rd1, 16, 16777216;",
                           "alloca.u64 %rd1, 16, %rd2;",
                           "alloca.b64 %rd1, 16;",
                           "alloca.u64 %r1, 16;",
                           "stacksave.u64 %r1;",
                           "stackrestore.f64 %rd1;",
                           "mov.b128 %w1, {%rd1};",
                           "mov.b128 %w1, {%r1, %r2, %r3, %r4};",
                           "mov.b128 %w1, %rd1;",
                           "mov.b64 %rd1, %w1;",
                           "mov.b128 {%rd1, %rd2}, {%rd3, %rd4};",
                           "add.u64 %rd1, %w1, 1;",
                           "ld.global.b64 %w1, [%rd1];",
                           "ld.global.v2.b128 {%w1, %w2}, [%rd1];",
                           "ld.global.b128 %rd1, [%rd1];",
                           "ld.global.b128 %w1, [%w2];",
                           "st.global.b128 [%rd1], 0;",
                           "atom.global.add.b128 %w1, [%rd1], %w2;",
                           "red.global.exch.b128 [%rd1], %w2;",
                           "atom.global.cas.b128 %w1, [%rd1], %w2, %rd3;",
                           "cvt.u32.u64 %r1, %w1;",
                           "selp.b128 %w1, %w2, %w3, %p1;"}) {
    EXPECT_NE(refused(line).find("line 8"), std::string::npos) << line << ": " << refused(line);
  }
}

TEST_F(Stack, ACellOf128BitsLiesOn16AndInMemory) {
  EXPECT_EQ(fault_of("atom.global.exch.b128 %w1, [%rd90+8], %w2;").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(fault_of("ld.global.b128 %w1, [%rd90+8];").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(fault_of("st.global.b128 [%rd90+4], %w1;").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(fault_of("atom.global.cas.b128 %w1, [%rd90+512], %w2, %w3;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(fault_of("mov.u64 %rd1, 16; atom.exch.b128 %w1, [%rd1], %w2;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Threads of many blocks increment both halves of a word together. No increment may be lost, and the halves must stay
// equal.
TEST_F(Stack, BothHalvesOfACellChangeTogether) {
  const auto module = load(kernel(R"(
    ld.relaxed.gpu.global.b128 %w1, [%rd90];
AGAIN:
    mov.b128 {%rd1, %rd2}, %w1;
    add.u64 %rd3, %rd1, 1; add.u64 %rd4, %rd2, 3;
    mov.b128 %w2, {%rd3, %rd4};
    atom.acq_rel.gpu.global.cas.b128 %w3, [%rd90], %w1, %w2;
    mov.b128 {%rd5, %rd6}, %w3;
    mov.b128 %w1, %w3;
    setp.ne.u64 %p1, %rd5, %rd1; @%p1 bra AGAIN;
    setp.ne.u64 %p1, %rd6, %rd2; @%p1 bra AGAIN;)"));
  ASSERT_TRUE(module);
  auto* const cell = room<std::uint64_t>(2);
  const Fault fault = run(*module, "k", {40}, {64}, 0, cell);
  ASSERT_FALSE(fault) << fault.what;
  EXPECT_EQ(cell[0], 40u * 64);
  EXPECT_EQ(cell[1], 3u * 40 * 64);
}

}  // namespace
}  // namespace simgpu
