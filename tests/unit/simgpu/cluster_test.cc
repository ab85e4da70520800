// Tests blocks of a cluster: their barrier, their shared memory, and invalid addresses of shared memory.
// tests/programs/clusters.cu tests valid programs.
#include "tests/unit/simgpu/fixture.h"

namespace simgpu {
namespace {

std::string kernel(const std::string& body) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 memory)\n{\n"
         ".reg .pred %p<5>; .reg .b32 %r<19>; .reg .b64 %rd<9>;\n.shared .align 16 .b8 tile[64];\n"
         "ld.param.u64 %rd1, [memory]; mov.u32 %r1, tile; mov.u32 %r2, %tid.x; mov.u32 %r3, %cluster_ctarank;\n"
         "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mad.lo.u32 %r6, %r4, %r5, %r2; mad.wide.u32 %rd2, %r6, 4, "
         "%rd1;\n" +
         body + "\nret;\n}\n";
}

class Clustered : public Device {
 protected:
  // Runs a kernel and returns its memory: one word per thread of the grid.
  std::vector<unsigned> words(const std::string& body, std::uint32_t blocks, std::uint32_t cluster,
                              std::uint32_t threads = 64) {
    auto* const memory = room<unsigned>(std::size_t{blocks} * threads);
    const Fault fault = run_in(body, blocks, cluster, threads, memory);
    EXPECT_FALSE(fault) << fault.what;
    return {memory, memory + std::size_t{blocks} * threads};
  }
  Fault after(const std::string& body) { return run_in(body, 2, 2, 32, room<unsigned>(64)); }

 private:
  Fault run_in(const std::string& body, std::uint32_t blocks, std::uint32_t cluster, std::uint32_t threads,
               unsigned* memory) {
    const std::unique_ptr<Module> module = load(kernel(body));
    if (!module) return {CUDA_ERROR_INVALID_PTX, "not loaded"};
    std::vector<std::byte> parameters(sizeof memory);
    std::memcpy(parameters.data(), &memory, sizeof memory);
    Launch launch{module->function("k"), {blocks}, {threads}, 0, parameters};
    launch.cluster = Dim3{cluster};
    return engine.run(launch);
  }
};

constexpr char meet[] = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

TEST_F(Clustered, EachBlockReadsItsNeighbours) {
  const std::string body = std::string("add.u32 %r7, %r4, 40; st.shared.u32 [%r1], %r7;\n") + meet +
                           "xor.b32 %r8, %r3, 1; mapa.shared::cluster.u32 %r9, %r1, %r8; "
                           "ld.shared::cluster.u32 %r10, [%r9]; st.global.u32 [%rd2], %r10;\n" +
                           meet;
  EXPECT_EQ(words(body, 4, 2, 1), (std::vector<unsigned>{41, 40, 43, 42}));
}

// The blocks use generic addresses, and all blocks update the memory of the first block by atomics.
TEST_F(Clustered, GenericAddressesAndAtomicsReachTheOtherBlocks) {
  const std::string body = std::string("st.shared.u32 [%r1], 0;\n") + meet +
                           "cvt.u64.u32 %rd3, %r1; cvta.shared.u64 %rd3, %rd3; mapa.u64 %rd4, %rd3, 0; "
                           "atom.add.u32 %r7, [%rd4], 1;\n" +
                           meet + "ld.u32 %r8, [%rd4]; st.global.u32 [%rd2], %r8;\n" + meet;
  EXPECT_EQ(words(body, 8, 4, 64), std::vector<unsigned>(8 * 64, 4 * 64));
}

TEST_F(Clustered, RanksAndWindowsAreReported) {
  const std::string body =
      "mapa.shared::cluster.u32 %r7, %r1, 1; getctarank.shared::cluster.u32 %r8, %r7;\n"
      "getctarank.shared::cluster.u32 %r9, %r1;\n"
      "cvt.u64.u32 %rd3, %r7; cvta.shared.u64 %rd3, %rd3; isspacep.shared::cluster %p1, %rd3; "
      "isspacep.shared::cta %p2, %rd3; isspacep.shared %p3, %rd3;\n"
      "selp.u32 %r10, 1, 0, %p1; selp.u32 %r11, 10, 0, %p2; selp.u32 %r12, 100, 0, %p3;\n"
      "mad.lo.u32 %r13, %r8, 10000, %r10; mad.lo.u32 %r13, %r9, 1000, %r13; add.u32 %r13, %r13, %r11; "
      "add.u32 %r13, %r13, %r12; st.global.u32 [%rd2], %r13;";
  // For block 1, the mapped address is its own memory.
  EXPECT_EQ(words(body, 2, 2, 1), (std::vector<unsigned>{10001, 11111}));
}

// Lanes that arrived and exited must not count for lanes that have not arrived.
TEST_F(Clustered, ThreadsThatExitAfterTheyArrivedCountOnce) {
  const std::string body =
      "setp.eq.u32 %p1, %r3, 0; setp.lt.u32 %p2, %r2, 32;\n"
      // Half of block 0 arrives and exits immediately. The other half computes for a while and then arrives.
      "not.pred %p3, %p1; @%p3 bra READ;\n"
      "@!%p2 bra WORK;\nbarrier.cluster.arrive;\nexit;\n"
      "WORK:\nmov.u32 %r7, 20000;\nAGAIN:\nsub.u32 %r7, %r7, 1; setp.ne.u32 %p4, %r7, 0; @%p4 bra AGAIN;\n"
      "st.shared.u32 [%r1], 9;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\nexit;\n"
      "READ:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
      "mapa.shared::cluster.u32 %r8, %r1, 0; ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%rd2], %r9;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;";
  const std::vector<unsigned> got = words(body, 2, 2, 64);
  EXPECT_EQ(std::vector<unsigned>(got.begin() + 64, got.end()), std::vector<unsigned>(64, 9));
}

// Lanes of one warp may be in different phases of the barrier at the same instruction.
TEST_F(Clustered, LanesOfAWarpMayBeARoundApart) {
  const std::string body =
      "mov.u32 %r7, 0;\nNEXT:\nbarrier.cluster.arrive;\n"
      "and.b32 %r8, %r2, 1; setp.eq.u32 %p1, %r8, 0; @%p1 bra MEET;\n"
      "mov.u32 %r9, 3000;\nSPIN:\nsub.u32 %r9, %r9, 1; setp.ne.u32 %p2, %r9, 0; @%p2 bra SPIN;\n"
      "MEET:\nbarrier.cluster.wait;\nadd.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 5; @%p3 bra NEXT;\n"
      "st.global.u32 [%rd2], %r7;";
  EXPECT_EQ(words(body, 4, 2, 64), std::vector<unsigned>(4 * 64, 5));
}

TEST_F(Clustered, AddressesLeadToBlocksThatAreThere) {
  const std::string load = "ld.shared::cluster.u32 %r9, [%r8];\n";
  EXPECT_FALSE(after("mapa.shared::cluster.u32 %r8, %r1, 1;\n" + load + meet));
  EXPECT_EQ(after("mapa.shared::cluster.u32 %r8, %r1, 2;\n" + load + meet).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after("mapa.shared::cluster.u32 %r8, %r1, -1;\n" + load + meet).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after("mapa.shared::cluster.u32 %r8, %r1, 1; add.u32 %r8, %r8, 64;\n" + load + meet).code,
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after("mapa.shared::cluster.u32 %r8, %r1, 1; add.u32 %r8, %r8, 2;\n" + load + meet).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Clustered, TheMemoryOfABlockEndsWithIt) {
  const Fault fault = after(
      "setp.eq.u32 %p1, %r3, 1; @%p1 exit;\nmov.u32 %r7, 20000;\n"
      "AGAIN:\nsub.u32 %r7, %r7, 1; setp.ne.u32 %p2, %r7, 0; @%p2 bra AGAIN;\n"
      "mapa.shared::cluster.u32 %r8, %r1, 1; ld.shared::cluster.u32 %r9, [%r8];");
  EXPECT_EQ(fault.code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Clustered, ABarrierThatABlockDoesNotReachIsADeadlock) {
  EXPECT_EQ(after("setp.eq.u32 %p1, %r3, 0; @%p1 bra OTHER;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n"
                  "OTHER:\nbar.sync 1, 64;")
                .code,
            CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_F(Clustered, StoresReductionsAndCopiesCompleteAtAnotherBlocksBarrier) {
  // Block 0 sends data to block 1 by a store, a reduction and a bulk reduction.
  const std::string body =
      std::string(
          "setp.eq.u32 %p1, %r3, 1; st.shared.v4.u32 [%r1+16], {1, 2, 3, 4};\n"
          "@%p1 mbarrier.init.shared.b64 [%r1], 1;\nfence.mbarrier_init.release.cluster;\n") +
      meet +
      "@%p1 bra RECEIVE;\nst.shared.v4.u32 [%r1+32], {10, 20, 30, 40};\n"
      "mapa.shared::cluster.u32 %r7, %r1, 1; add.u32 %r8, %r7, 16; add.u32 %r9, %r7, 48;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], 500, [%r7];\n"
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], 1000, [%r7];\n"
      "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r8], [%r1+32], 16, "
      "[%r7];\n"
      "bra END;\n"
      "RECEIVE:\nmbarrier.arrive.expect_tx.shared.b64 %rd3, [%r1], 24;\n"
      "AGAIN:\nmbarrier.try_wait.shared.b64 %p2, [%r1], %rd3; @!%p2 bra AGAIN;\n"
      "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r1+16]; ld.shared.u32 %r14, [%r1+48];\n"
      "add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r12; add.u32 %r10, %r10, %r13; add.u32 %r10, %r10, %r14;\n"
      "st.global.u32 [%rd2], %r10;\nEND:\n" +
      meet;
  EXPECT_EQ(words(body, 2, 2, 1), (std::vector<unsigned>{0, 10 + 100 + 1000 + 500}));
}

TEST_F(Clustered, AGridIsAWholeNumberOfClusters) {
  const std::unique_ptr<Module> module = load(kernel(""));
  ASSERT_NE(module, nullptr);
  const std::vector<std::byte> parameters(8);
  Launch launch{module->function("k"), {3}, {1}, 0, parameters};
  launch.cluster = Dim3{2};
  EXPECT_EQ(engine.run(launch).code, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  launch.cluster = Dim3{0};
  EXPECT_EQ(engine.run(launch).code, CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

}  // namespace
}  // namespace simgpu
