// Tests invalid uses of barriers in shared memory and of asynchronous copies. Each is either a fault with the
// documented code or refused when the module is loaded. tests/ptx/ tests valid uses.
#include "tests/unit/simgpu/fixture.h"

namespace simgpu {
namespace {

std::string kernel(const std::string& body) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 memory)\n{\n"
         ".reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<3>;\n"
         ".shared .align 16 .b8 tile[64];\nld.param.u64 %rd1, [memory]; mov.u32 %r1, tile;\n" +
         body + "\nret;\n}\n";
}

class Async : public Device {
 protected:
  Fault after(const std::string& body) {
    const std::unique_ptr<Module> module = load(kernel(body));
    return module ? run(*module, "k", {1}, {1}, 0, room<char>(256)) : Fault{CUDA_ERROR_INVALID_PTX, "not loaded"};
  }
  static void expect_refusal(const std::string& body, const std::string& opcode) {
    AddressSpace small{std::size_t{1} << 20};
    const std::string text = kernel(body);
    const Module::Loaded loaded = load_ptx(std::span(&text, 1), small);
    EXPECT_EQ(loaded.code, CUDA_ERROR_INVALID_PTX) << body;
    EXPECT_NE(loaded.log.find("line 9"), std::string::npos) << loaded.log;
    EXPECT_NE(loaded.log.find(opcode), std::string::npos) << loaded.log;
  }
};

TEST_F(Async, MoreArrivalsThanExpectedAreAFault) {
  const std::string init = "mbarrier.init.shared.b64 [tile], 2;\n";
  EXPECT_FALSE(after(init + "mbarrier.arrive.shared.b64 _, [tile], 2;"));
  EXPECT_EQ(after(init + "mbarrier.arrive.shared.b64 _, [tile], 3;").code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(after(init + "mbarrier.arrive_drop.shared.b64 _, [tile], 3;").code, CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(Async, BarriersLieInMemoryAndAreAligned) {
  EXPECT_EQ(after("mbarrier.init.shared.b64 [tile+4], 1;").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(after("mbarrier.init.shared.b64 [tile+64], 1;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after("mbarrier.test_wait.parity.shared.b64 %p1, [tile+4096], 0;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Async, CopiesStayInTheirMemory) {
  EXPECT_FALSE(after("cp.async.ca.shared.global [tile+48], [%rd1+240], 16;"));
  EXPECT_EQ(after("cp.async.ca.shared.global [tile+64], [%rd1], 4;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after("cp.async.ca.shared.global [tile], [%rd1+1048576], 4;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after("cp.async.ca.shared.global [tile+2], [%rd1], 4;").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(after("cp.async.cg.shared.global [tile], [%rd1+8], 16;").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  // If no source byte counts, the copy reads no memory.
  EXPECT_FALSE(after("cp.async.ca.shared.global [tile], [%rd1+1048576], 4, 0;"));
}

TEST_F(Async, BulkCopiesToo) {
  const std::string init = "mbarrier.init.shared.b64 [tile], 1;\n";
  const std::string copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ";
  EXPECT_FALSE(after(init + copy + "[tile+16], [%rd1], 48, [tile];"));
  EXPECT_EQ(after(init + copy + "[tile+16], [%rd1], 64, [tile];").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after(init + copy + "[tile+16], [%rd1], 40, [tile];").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(after(init + copy + "[tile+16], [%rd1], 16, [tile+4096];").code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Async, FormsThatAreNotThereAreRefused) {
  expect_refusal("cp.async.ca.shared.global [tile], [%rd1], %r1;", "a copy has 4, 8 or 16 bytes");
  expect_refusal("cp.async.ca.shared.global [tile], [%rd1], 5;", "a copy has 4, 8 or 16 bytes");
  expect_refusal("cp.async.ca.global.cta [tile], [%rd1], 4;", "cp.async.ca.global.cta");
  expect_refusal("cp.async.bulk.shared.global [tile], [%rd1], 16, [tile];", "cp.async.bulk.shared.global");
  expect_refusal("mbarrier.shared.b64 [tile];", "mbarrier.shared.b64");
  expect_refusal("barrier.cluster.acquire;", "barrier.cluster.acquire");
  expect_refusal("atom.global.cas.v2.b32 {%r1, %r2}, [%rd1], {%r1, %r2}, {%r1, %r2};", "atom.global.cas.v2.b32");
  expect_refusal("atom.global.add.v4.f32 {%f1, %f2}, [%rd1], {%f1, %f2};", "atom.global.add.v4.f32");
  expect_refusal("set.eq.f32.f16x2 %f1, %r1, %r2;", "set.eq.f32.f16x2");
  expect_refusal("dp2a.u32.u32 %r1, %r2, %r3, %r4;", "dp2a.u32.u32");
  expect_refusal("cvt.rn.e4m3x2.e5m2x2 %h1, %h2;", "cvt.rn.e4m3x2.e5m2x2");
  expect_refusal("mapa.b16 %h1, %h2, 0;", "mapa.b16");
  expect_refusal("st.async.mmio.release.gpu.global.u32 [%rd1], %r1;", "st.async.mmio.release.gpu.global.u32");
  expect_refusal("st.async.shared::cluster.mbarrier::complete_tx::bytes.u16 [tile], %h1, [tile];", "st.async.shared");
  expect_refusal("red.async.relaxed.cluster.add.u32 [tile], %r1, [tile];", "red.async.relaxed.cluster.add.u32");
  expect_refusal("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.f32 [tile], %f1, [tile];", "red.async");
  const std::string outwards = "cp.reduce.async.bulk.global.shared::cta.bulk_group";
  expect_refusal(outwards + ".exch.b32 [%rd1], [tile], 16;", outwards + ".exch.b32");
  expect_refusal(outwards + ".min.f16 [%rd1], [tile], 16;", outwards + ".min.f16");
  expect_refusal(outwards + ".u32 [%rd1], [tile], 16;", outwards + ".u32");
  expect_refusal(
      "cp.reduce.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.add.u32 [tile], [%rd1], 16, "
      "[tile];",
      "cp.reduce.async.bulk.shared::cluster.global");
  expect_refusal("cp.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 16;", "bulk_group.add.u32");
  const std::string multicast = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster ";
  expect_refusal(multicast + "[tile], [%rd1], 16, [tile], %h1;", "multicast::cluster");
}

TEST_F(Async, BulkReductionsStayInTheirMemory) {
  const std::string reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 ";
  EXPECT_FALSE(after(reduce + "[%rd1], [tile], 64;"));
  EXPECT_EQ(after(reduce + "[%rd1], [tile+16], 64;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after(reduce + "[%rd1+1048576], [tile], 16;").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after(reduce + "[%rd1+4], [tile], 16;").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(after(reduce + "[%rd1], [tile], 20;").code, CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Async, StoresWithAnMbarrierStayInTheirMemory) {
  const std::string init = "mbarrier.init.shared.b64 [tile], 1;\n";
  const std::string store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 ";
  EXPECT_FALSE(after(init + store + "[tile+16], {%r1, %r1}, [tile];"));
  EXPECT_EQ(after(init + store + "[tile+64], {%r1, %r1}, [tile];").code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after(init + store + "[tile+20], {%r1, %r1}, [tile];").code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(after(init + store + "[tile+16], {%r1, %r1}, [tile+64];").code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Cache hints have no effect for any address. Spellings that PTX does not define are refused.
TEST_F(Async, PoliciesOfTheCacheAreHints) {
  EXPECT_FALSE(after("createpolicy.cvt.L2.b64 %rd2, %rd1;"));
  EXPECT_FALSE(after("discard.global.L2 [%rd1], 128; applypriority.L2::evict_normal [%rd1], 128;"));
  expect_refusal("createpolicy.L2::evict_last.b64 %rd2;", "createpolicy.L2::evict_last.b64");
  expect_refusal("createpolicy.fractional.range.L2::evict_last.b64 %rd2;", "createpolicy.fractional.range");
  expect_refusal("createpolicy.fractional.L2::evict_last.b32 %r1;", "createpolicy.fractional.L2::evict_last.b32");
  expect_refusal("createpolicy.range.L2::evict_last.b64 %rd2, [%rd1], 16;", "takes 4 operands and has 3");
  expect_refusal("discard.global.L2 [%rd1], 64;", "the size of a cache line is 128");
  expect_refusal("discard.shared.L2 [%rd1], 128;", "discard.shared.L2");
}

}  // namespace
}  // namespace simgpu
