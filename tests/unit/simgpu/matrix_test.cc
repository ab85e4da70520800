// Tests instructions on matrices: invalid instructions are refused, and undefined cases behave as documented here.
// tests/ptx/forms_mma.cc, forms_wmma.cc and forms_tile.cc test the results.
#include <bit>

#include "tests/unit/simgpu/fixture.h"

namespace simgpu {
namespace {

constexpr const char* head = ".version 9.0\n.target sm_90\n.address_size 64\n";
constexpr const char* registers =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<99>; .reg .f64 %q<9>;\n"
    ".shared .align 128 .b8 tile[4096];\n";
// %r90 is the thread's index in the block, %rd90 the address of out[%r90], %rd91 the address of out. All elements of
// the fragments are 1.
constexpr const char* prologue =
    "mov.u32 %r90, %tid.x; ld.param.u64 %rd91, [out]; mad.wide.u32 %rd90, %r90, 4, %rd91;\n"
    "mov.b32 %r1, 0x3c003c00; mov.b32 %r2, %r1; mov.b32 %r3, %r1; mov.b32 %r4, %r1; mov.b32 %r5, %r1; mov.b32 %r6, "
    "%r1;\n"
    "mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; mov.u32 %r9, tile;\n";
constexpr const char* ones =
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
    "{%f1,%f2,%f3,%f4};\n";
constexpr const char* put = "st.global.f32 [%rd90], %f1; ret;";

class Matrix : public Device {
 protected:
  static std::string text(const std::string& body) {
    return std::string(head) + ".visible .entry k(.param .u64 out)\n{\n" + registers + prologue + body + "\n}\n";
  }
  Fault run_body(const std::string& body, std::uint32_t threads, std::vector<float>* results = nullptr) {
    const auto module = load(text(body));
    auto* const out = room<float>(1024);
    const Fault fault = module ? run(*module, "k", {1}, {threads}, 0, out) : Fault{};
    if (results != nullptr) results->assign(out, out + 1024);
    return fault;
  }
  // Returns the line of the log for a module that cannot be loaded; empty if it can be loaded.
  std::string refusal(const std::string& instruction) {
    const std::string all = text(instruction + "\nret;");
    const Module::Loaded loaded = load_ptx(std::span(&all, 1), space);
    EXPECT_EQ(loaded.code, CUDA_ERROR_INVALID_PTX) << instruction;
    return loaded.log;
  }
  void expect_refused(const std::string& instruction) {
    const std::string opcode = instruction.substr(0, instruction.find_first_of(" ;"));
    EXPECT_NE(refusal(instruction).find("opcode " + opcode + " is not served"), std::string::npos)
        << refusal(instruction);
  }
};

// ---- refused instructions

TEST_F(Matrix, SparseAndNewerMatricesAreRefusedByName) {
  expect_refused(
      "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, "
      "{%f1,%f2,%f3,%f4}, "
      "%r5, 0x0;");
  expect_refused(
      "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, "
      "{%f1,%f2,%f3,%f4}, %r5, 0x0;");
  expect_refused("wgmma.fence.sync.aligned;");
  expect_refused("wgmma.commit_group.sync.aligned;");
  expect_refused("wgmma.wait_group.sync.aligned 0;");
  expect_refused("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;");
  expect_refused("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 32;");
  expect_refused("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;");
  expect_refused(
      "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
      "{%r5,%r6}, "
      "{%f1,%f2,%f3,%f4};");
}

TEST_F(Matrix, TilesOfBytesAreRefused) {
  expect_refused("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1,%r2}, [%r9];");
  expect_refused("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r1}, [%r9];");
  expect_refused("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r9], {%r1};");
  expect_refused("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1,%r2,%r3}, [%r9];");
  expect_refused("ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd91];");
  expect_refused("movmatrix.sync.aligned.m8n8.b16 %r1, %r2;");
}

TEST_F(Matrix, CombinationsThatAreNotThereAreRefused) {
  const std::string singles = " {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};";
  const std::string words = " {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r3}, {%r1,%r2,%r3,%r4};";
  expect_refused("mma.sync.aligned.m16n8k8.row.row.f32.f16.f16.f32" + singles);
  expect_refused("mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32" + singles);
  expect_refused("mma.sync.aligned.m16n8k8.row.col.satfinite.f32.f16.f16.f32" + singles);
  expect_refused("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32.rn" + singles);
  expect_refused("mma.sync.m16n8k8.row.col.f32.f16.f16.f32" + singles);
  expect_refused("mma.sync.aligned.m16n8k16.row.col.s32.s8.s4.s32" + words);
  expect_refused("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32" + words);
  expect_refused("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.or.popc" + words);
  expect_refused("wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.u4.s32 {%r1,%r2}, {%r3}, {%r4}, {%r5,%r6};");
  expect_refused("wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r1}, [%rd91];");
  expect_refused("wmma.load.d.sync.aligned.row.m8n8k32.global.s32 {%r1,%r2}, [%rd91];");
  expect_refused("wmma.load.a.sync.aligned.row.m16n16k16.local.s8 {%r1,%r2}, [%rd91];");
}

TEST_F(Matrix, TheNumberAndSizeOfRegistersIsChecked) {
  EXPECT_NE(
      refusal("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};")
          .find("needs 4 registers in a list"),
      std::string::npos);
  EXPECT_NE(
      refusal("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, %r3, {%f1,%f2,%f3,%f4};")
          .find("needs 1 registers in a list"),
      std::string::npos);
  EXPECT_NE(refusal("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%q1,%q2}, {%q3}, {%r4}, {%q1,%q2};")
                .find("does not fit"),
            std::string::npos);
  EXPECT_NE(refusal("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r9];").find("needs 2 registers in a list"),
            std::string::npos);
}

// ---- complete and incomplete warps

TEST_F(Matrix, EachWarpHasAMatrixOfItsOwn) {
  std::vector<float> out;
  const Fault fault = run_body(
      std::string("setp.ge.u32 %p1, %r90, 32; @!%p1 bra FIRST;\nmov.f32 %f1, 0f41200000;\nFIRST:\n") + ones + put, 64,
      &out);
  EXPECT_FALSE(fault) << fault.what;
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 32 ? 17.0F : 26.0F) << i;
}

TEST_F(Matrix, LanesThatPartedMeetAtTheSameInstruction) {
  std::vector<float> out;
  const Fault fault = run_body(
      std::string("mov.u32 %r80, 0;\nLOOP:\nadd.u32 %r80, %r80, 1; setp.lt.u32 %p1, %r80, %r90; @%p1 bra LOOP;\n") +
          ones + put,
      32, &out);
  EXPECT_FALSE(fault) << fault.what;
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], 17.0F) << i;
}

TEST_F(Matrix, AGuardThatIsTheSameForAllLanesIsObeyed) {
  std::vector<float> out;
  const Fault fault = run_body(
      std::string("setp.eq.u32 %p1, 0, 0; setp.eq.u32 %p2, 0, 1;\n@%p1 ") + ones + "@%p2 " + ones + put, 32, &out);
  EXPECT_FALSE(fault) << fault.what;
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], 17.0F) << i;
}

TEST_F(Matrix, AWarpOfFewerLanesFaults) {
  const Fault fault = run_body(std::string(ones) + put, 48);
  EXPECT_EQ(fault.code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(fault.what.find("thread (32,0,0): a matrix instruction needs all 32 lanes of a warp, and some have exited"),
            std::string::npos)
      << fault.what;
}

TEST_F(Matrix, LanesThatExitedAreMissed) {
  for (const char* kind : {"ret", "exit"}) {
    const Fault fault = run_body(std::string("setp.eq.u32 %p1, %r90, 7; @%p1 ") + kind + ";\n" + ones + put, 32);
    EXPECT_EQ(fault.code, CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_NE(fault.what.find("some have exited"), std::string::npos) << fault.what;
  }
}

TEST_F(Matrix, LanesThatTakeAnotherWayFault) {
  const std::string barrier = "setp.lt.u32 %p1, %r90, 16; @%p1 bra MMA;\nbar.sync 0; bra END;\nMMA:\n";
  const Fault waits = run_body(barrier + ones + "bar.sync 0;\nEND:\n" + put, 32);
  EXPECT_EQ(waits.code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(waits.what.find("some wait elsewhere"), std::string::npos) << waits.what;
  // Two equal instructions at different addresses do not synchronise with each other.
  const Fault two = run_body(
      std::string("setp.lt.u32 %p1, %r90, 16; @%p1 bra OTHER;\n") + ones + "bra END;\nOTHER:\n" + ones + "END:\n" + put,
      32);
  EXPECT_EQ(two.code, CUDA_ERROR_LAUNCH_FAILED);
  const Fault guarded = run_body(std::string("setp.lt.u32 %p1, %r90, 16; @%p1 ") + ones + put, 32);
  EXPECT_EQ(guarded.code, CUDA_ERROR_LAUNCH_FAILED);
}

// ---- memory

constexpr const char* load_bytes = "wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r1,%r2}, ";

TEST_F(Matrix, LanesMustNameOneMatrix) {
  const std::string own = "mad.wide.u32 %rd1, %r90, 4, %rd91;\n";
  const Fault address = run_body(own + load_bytes + "[%rd1], 16;\nret;", 32);
  EXPECT_EQ(address.code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(address.what.find("thread (1,0,0): the lanes of a warp name different matrices"), std::string::npos)
      << address.what;
  const Fault stride = run_body(std::string("shl.b32 %r7, %r90, 2;\n") + load_bytes + "[%rd91], %r7;\nret;", 32);
  EXPECT_EQ(stride.code, CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(Matrix, LinesThatAreMisalignedFault) {
  EXPECT_EQ(run_body(std::string(load_bytes) + "[%rd91+2], 16;\nret;", 32).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(run_body(std::string(load_bytes) + "[%rd91], 17;\nret;", 32).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(run_body("wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%q1}, [%rd91+4];\nret;", 32).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_FALSE(run_body(std::string(load_bytes) + "[%rd91+4], 20;\nret;", 32));
  EXPECT_EQ(run_body("wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {%r1}, [%rd91], 136;\nret;", 32).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Matrix, LinesThatLeaveTheirMemoryFault) {
  // The memory has 4096 bytes: sixteen lines of sixteen bytes fit up to a stride of 272.
  EXPECT_FALSE(run_body(std::string(load_bytes) + "[%rd91], 272;\nret;", 32));
  const Fault fault = run_body(std::string(load_bytes) + "[%rd91], 276;\nret;", 32);
  EXPECT_EQ(fault.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(fault.what.find("access of 16 bytes"), std::string::npos) << fault.what;
  EXPECT_EQ(run_body("wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r1,%r2}, [%r9+3844];\nret;", 32).code,
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(run_body("wmma.store.d.sync.aligned.row.m8n8k4.shared.f64 [%r9+4000], {%q1,%q2};\nret;", 32).code,
            CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Matrix, StoresObeyTheRightsOfMemory) {
  const Address memory = space.claim(4096);
  const auto fault_of = [&](const char* opcode, bool read_only) {
    EXPECT_TRUE(space.add({.start = memory, .size = 4096, .kind = RangeKind::Mapped, .read_only = read_only}));
    const auto module = load(text(std::string(opcode) + " [%rd91], {%q1,%q2};\nret;"));
    const Fault fault = run(*module, "k", {1}, {32}, 0, memory);
    EXPECT_TRUE(space.remove(memory));
    return fault;
  };
  const char* const store = "wmma.store.d.sync.aligned.row.m8n8k4.global.f64";
  EXPECT_FALSE(fault_of(store, false));
  EXPECT_EQ(fault_of(store, true).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  space.give_back_claim(memory, 4096);
}

TEST_F(Matrix, TilesLieInSharedMemoryAtMultiplesOfSixteen) {
  const std::string row = "mad.lo.u32 %r10, %r90, 16, %r9;\n";
  const std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, ";
  EXPECT_FALSE(run_body(row + load + "[%r10];\nret;", 32));
  EXPECT_EQ(run_body(row + load + "[%r10+8];\nret;", 32).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(run_body(row + load + "[%r10+4080];\nret;", 32).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  const Fault outside = run_body("ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd91];\nret;", 32);
  EXPECT_EQ(outside.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(outside.what.find("does not lie in shared memory"), std::string::npos) << outside.what;
  // Lanes that give no row's address may hold an invalid address.
  EXPECT_FALSE(run_body(row + "setp.ge.u32 %p1, %r90, 8; selp.b32 %r10, 0x7ffffff3, %r10, %p1;\n"
                              "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r10];\nret;",
                        32));
}

// ---- results that PTX leaves undefined

TEST_F(Matrix, BitsBelowATf32DoNotCount) {
  std::vector<float> out;
  const Fault fault = run_body(
      "mov.b32 %r1, 0x3f801fff; mov.b32 %r2, %r1; mov.b32 %r5, 0x40001fff; mov.f32 %f1, 0f00000000;\n"
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5}, {%f1,%f1,%f1,%f1};\n" +
          std::string(put),
      32, &out);
  EXPECT_FALSE(fault) << fault.what;
  EXPECT_EQ(out[0], 8.0F);
}

TEST_F(Matrix, SumsAreRoundedStepByStepFromCOn) {
  // The sum is 2^24 plus four ones. Each addition of 1 is lost in rounding, although all four together would change the
  // sum. The products themselves are exact.
  std::vector<float> out;
  const Fault fault = run_body(
      "mov.b32 %r1, 0x3f800000; mov.b32 %r2, %r1; mov.b32 %r5, %r1; mov.f32 %f1, 0f4B800000;\n"
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5}, {%f1,%f1,%f1,%f1};\n" +
          std::string(put),
      32, &out);
  EXPECT_FALSE(fault) << fault.what;
  EXPECT_EQ(out[0], 16777216.0F);
}

TEST_F(Matrix, AModeOfTheInstructionBeforeIsNotKept) {
  // Rounding mode and flushing of ordinary arithmetic must not affect the sums.
  std::vector<float> out;
  const Fault fault = run_body(
      "add.rm.ftz.f32 %f9, %f1, %f1;\n"
      "mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r5, 0; mov.b32 %f1, 0f00000001;\n"
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5}, {%f1,%f1,%f1,%f1};\n" +
          std::string(put),
      32, &out);
  EXPECT_FALSE(fault) << fault.what;
  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[0]), 1U);
}

}  // namespace
}  // namespace simgpu
