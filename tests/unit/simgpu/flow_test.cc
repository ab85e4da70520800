// Tests the control flow of lanes: branches, loops, barriers, calls, and operations between lanes of a warp.
#include <bit>

#include "tests/unit/simgpu/fixture.h"

namespace simgpu {
namespace {

constexpr const char* head = ".version 9.0\n.target sm_90\n.address_size 64\n";
constexpr const char* registers =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<9>;\n";
// %r90 is the thread's index in the block, %rd90 the address of out[%r90].
constexpr const char* prologue =
    "mov.u32 %r90, %tid.x; ld.param.u64 %rd91, [out]; mad.wide.u32 %rd90, %r90, 4, %rd91;\n";

class Flow : public Device {
 protected:
  // Runs a kernel with one array as its parameter, and returns the array. The body must end with ret or exit.
  std::vector<std::uint32_t> run_body(const std::string& body, std::uint32_t threads, std::uint32_t blocks = 1,
                                      const std::string& before = "") {
    const auto module = load(std::string(head) + before + ".visible .entry k(.param .u64 out)\n{\n" + registers +
                             prologue + body + "\n}\n");
    auto* const out = room<std::uint32_t>(std::max(1024U, threads * blocks));
    if (module) {
      const Fault fault = run(*module, "k", {blocks}, {threads}, 0, out);
      EXPECT_FALSE(fault) << fault.what;
    }
    return std::vector<std::uint32_t>(out, out + std::max(1024U, threads * blocks));
  }
  Fault fault_of(const std::string& body, std::uint32_t threads, std::size_t dynamic_shared = 0) {
    const auto module =
        load(std::string(head) + ".visible .entry k(.param .u64 out)\n{\n" + registers + prologue + body + "\n}\n");
    auto* const out = room<std::uint32_t>(1024);
    return module ? run(*module, "k", {1}, {threads}, dynamic_shared, out) : Fault{};
  }
};

TEST_F(Flow, BothSidesOfABranchAndTheirMeeting) {
  const auto out = run_body(R"(
    and.b32 %r1, %r90, 3;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra ZERO;
    setp.eq.u32 %p2, %r1, 1;
    @!%p2 bra OTHER;
    mov.u32 %r2, 100;
    bra MEET;
  ZERO:
    mov.u32 %r2, 7;
    bra MEET;
  OTHER:
    add.u32 %r2, %r1, 1000;
  MEET:
    activemask.b32 %r3;
    popc.b32 %r4, %r3;
    mad.lo.u32 %r5, %r4, 10000, %r2;
    st.global.u32 [%rd90], %r5;
    ret;)",
                            40);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint32_t kind = i % 4;
    const std::uint32_t together = i < 32 ? 32 : 8;
    EXPECT_EQ(out[i], together * 10000 + (kind == 0 ? 7 : kind == 1 ? 100 : 1000 + kind)) << i;
  }
}

TEST_F(Flow, NestedLoopsOfDifferentLength) {
  const auto out = run_body(R"(
    mov.u32 %r1, 0; mov.u32 %r2, 0;
  OUTER:
    setp.ge.u32 %p1, %r1, %r90;
    @%p1 bra DONE;
    mov.u32 %r3, 0;
  INNER:
    setp.ge.u32 %p2, %r3, %r1;
    @%p2 bra NEXT;
    add.u32 %r2, %r2, 1;
    add.u32 %r3, %r3, 1;
    bra INNER;
  NEXT:
    add.u32 %r1, %r1, 1;
    bra OUTER;
  DONE:
    st.global.u32 [%rd90], %r2;
    ret;)",
                            64);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i == 0 ? 0 : i * (i - 1) / 2) << i;
}

TEST_F(Flow, GuardsStopSingleInstructions) {
  const auto out = run_body(R"(
    setp.lt.u32 %p1, %r90, 10;
    mov.u32 %r1, 1;
    @%p1 mov.u32 %r1, 2;
    @!%p1 add.u32 %r1, %r1, 5;
    @%p1 st.global.u32 [%rd90], %r1;
    @!%p1 st.global.u32 [%rd90], %r1;
    @%p1 exit;
    st.global.u32 [%rd90], 77;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 10 ? 2u : 77u);
}

TEST_F(Flow, GuardedInstructionsOfSeveralSteps) {
  // The simulation executes two steps for a conversion between registers of different sizes, and for a setp with two
  // results.
  const auto out = run_body(R"(
    setp.lt.u32 %p1, %r90, 10;
    mov.u32 %r1, 0x1ff; mov.u64 %rd1, 5; mov.u32 %r2, 3;
    setp.eq.u32 %p2, 0, 1; setp.eq.u32 %p3, 0, 1;
    @%p1 cvt.s64.s8 %rd1, %r1;
    @%p1 setp.eq.and.u32 %p2|%p3, %r90, 4, %p1;
    cvt.u32.u64 %r3, %rd1;
    selp.u32 %r4, 16, 0, %p2; selp.u32 %r5, 32, 0, %p3;
    add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;
    st.global.u32 [%rd90], %r3;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i >= 10 ? 5u : i == 4 ? 15u : 31u) << i;
}

TEST_F(Flow, BranchesThroughTables) {
  const auto out = run_body(R"(
    rem.u32 %r1, %r90, 3;
    TABLE: .branchtargets A, B, C;
    brx.idx %r1, TABLE;
  A:
    mov.u32 %r2, 10; bra MEET;
  B:
    mov.u32 %r2, 20; bra MEET;
  C:
    mov.u32 %r2, 30;
  MEET:
    activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd90], %r2;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 10 * (i % 3 + 1) + 32);
}

// ---- barriers -------------------------------------------------------------------------------------------------------

TEST_F(Flow, ABarrierInALoop) {
  const auto out = run_body(R"(
    .shared .u32 ring[256];
    mov.u32 %r1, ring; shl.b32 %r2, %r90, 2; add.u32 %r3, %r1, %r2;
    add.u32 %r4, %r90, 1; and.b32 %r4, %r4, 255; shl.b32 %r4, %r4, 2; add.u32 %r5, %r1, %r4;
    mov.u32 %r6, %r90; mov.u32 %r7, 0;
  LOOP:
    st.shared.u32 [%r3], %r6;
    bar.sync 0;
    ld.shared.u32 %r6, [%r5];
    bar.sync 0;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, 50;
    @%p1 bra LOOP;
    st.global.u32 [%rd90], %r6;
    ret;)",
                            256);
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], (i + 50) % 256);
}

TEST_F(Flow, ThreadsThatLeftDoNotCountAtBarriers) {
  const auto out = run_body(R"(
    .shared .u32 sum;
    setp.eq.u32 %p2, %r90, 3; @!%p2 bra NOT_FIRST; mov.u32 %r5, sum; st.shared.u32 [%r5], 0;
  NOT_FIRST:
    bar.sync 0;
    rem.u32 %r1, %r90, 3;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 ret;
    atom.shared.add.u32 %r2, [sum], 1;
    bar.sync 0;
    ld.shared.u32 %r3, [sum];
    st.global.u32 [%rd90], %r3;
    ret;)",
                            100);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(out[i], i % 3 == 1 ? 0u : 67u) << i;
}

TEST_F(Flow, LanesOfAWarpMeetAtDifferentBarrierInstructions) {
  const auto out = run_body(R"(
    .shared .u32 value;
    setp.lt.u32 %p1, %r90, 16;
    @%p1 bra FIRST;
    bar.sync 0;
    ld.shared.u32 %r1, [value];
    bra END;
  FIRST:
    st.shared.u32 [value], 5;
    bar.sync 0;
    mov.u32 %r1, 9;
  END:
    st.global.u32 [%rd90], %r1;
    ret;)",
                            64);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 16 ? 9u : 5u) << i;
}

TEST_F(Flow, NumberedBarriersWithProducersAndConsumers) {
  // Warps 0 and 1 produce data and continue; warps 2 and 3 wait for the data at barrier 3.
  const auto out = run_body(R"(
    .shared .u32 data[64];
    mov.u32 %r1, data;
    setp.ge.u32 %p1, %r90, 64;
    @%p1 bra CONSUME;
    shl.b32 %r2, %r90, 2; add.u32 %r2, %r1, %r2; add.u32 %r3, %r90, 500;
    st.shared.u32 [%r2], %r3;
    bar.arrive 3, 128;
    st.global.u32 [%rd90], 1;
    ret;
  CONSUME:
    bar.sync 3, 128;
    sub.u32 %r4, 127, %r90; shl.b32 %r4, %r4, 2; add.u32 %r4, %r1, %r4;
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%rd90], %r5;
    ret;)",
                            128);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], i < 64 ? 1u : 500 + 127 - i);
}

TEST_F(Flow, BarriersThatReduce) {
  const auto out = run_body(R"(
    setp.lt.u32 %p1, %r90, 37;
    bar.red.popc.u32 %r1, 0, %p1;
    bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, %p1;
    bar.red.and.pred %p4, 1, !%p5;
    setp.ne.u32 %p5, %r90, %r90;
    bar.red.and.pred %p4, 1, !%p5;
    selp.u32 %r2, 1000, 0, %p2; selp.u32 %r3, 2000, 0, %p3; selp.u32 %r4, 4000, 0, %p4;
    add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4;
    st.global.u32 [%rd90], %r1;
    ret;)",
                            70);
  for (std::uint32_t i = 0; i < 70; ++i) EXPECT_EQ(out[i], 37u + 2000 + 4000);
}

TEST_F(Flow, ABarrierNobodyCanCompleteIsAFault) {
  const Fault fault = fault_of(R"(
    setp.lt.u32 %p1, %r90, 32;
    @%p1 bra A;
    bar.sync 1;
    ret;
  A:
    bar.sync 2;
    ret;)",
                               64);
  EXPECT_EQ(fault.code, CUDA_ERROR_LAUNCH_TIMEOUT) << fault.what;
}

// ---- operations between lanes ---------------------------------------------------------------------------------------

// Computes a shuffle as the PTX documentation defines it.
struct Shuffled {
  std::uint32_t value;
  bool inside;
};
Shuffled shuffled(char mode, std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
  const std::int32_t l = static_cast<std::int32_t>(lane);
  const std::int32_t bval = static_cast<std::int32_t>(b & 31);
  const std::int32_t cval = static_cast<std::int32_t>(c & 31);
  const std::int32_t mask = static_cast<std::int32_t>(c >> 8 & 31);
  const std::int32_t max_lane = (l & mask) | (cval & ~mask);
  const std::int32_t min_lane = l & mask;
  std::int32_t j = 0;
  bool p = false;
  if (mode == 'u') j = l - bval, p = j >= max_lane;
  if (mode == 'd') j = l + bval, p = j <= max_lane;
  if (mode == 'b') j = l ^ bval, p = j <= max_lane;
  if (mode == 'i') j = min_lane | (bval & ~mask), p = j <= max_lane;
  if (!p) j = l;
  return {static_cast<std::uint32_t>(j) * 3 + 1, p};
}

TEST_F(Flow, ShufflesFollowTheirRule) {
  const struct {
    char letter;
    const char* name;
  } modes[] = {{'u', "up"}, {'d', "down"}, {'b', "bfly"}, {'i', "idx"}};
  for (const auto& mode : modes) {
    for (const std::uint32_t c : {0x1fU, 0x0U, 0x181fU, 0x1c07U, 0x1e1fU, 0x1000U}) {
      for (const std::uint32_t b : {0U, 1U, 5U, 16U, 31U, 33U}) {
        const auto out =
            run_body("mad.lo.u32 %r1, %r90, 3, 1; shfl.sync." + std::string(mode.name) + ".b32 %r2|%p1, %r1, " +
                         std::to_string(b) + ", " + std::to_string(c) +
                         ", -1; selp.u32 %r3, 1000, 0, %p1; add.u32 %r2, %r2, %r3; st.global.u32 [%rd90], %r2; ret;",
                     32);
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
          const Shuffled wanted = shuffled(mode.letter, lane, b, c);
          ASSERT_EQ(out[lane], wanted.value + (wanted.inside ? 1000 : 0))
              << mode.name << " " << b << " " << c << " " << lane;
        }
      }
    }
  }
}

TEST_F(Flow, LanesThatComeApartWaitForEachOtherAtAShuffle) {
  // The lanes reach the shuffle after loops of different lengths, at different times.
  const auto out = run_body(R"(
    mov.u32 %r1, 0;
  LOOP:
    setp.ge.u32 %p1, %r1, %r90;
    @%p1 bra OUT;
    add.u32 %r1, %r1, 1;
    bra LOOP;
  OUT:
    xor.b32 %r2, %r90, 31;
    shfl.sync.idx.b32 %r3, %r1, %r2, 31, -1;
    st.global.u32 [%rd90], %r3;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 31 - i);
}

TEST_F(Flow, TwoShufflesInTwoBranches) {
  const auto out = run_body(R"(
    setp.lt.u32 %p1, %r90, 16;
    @%p1 bra LOW;
    shfl.sync.bfly.b32 %r1, %r90, 1, 31, 0xffff0000;
    bra END;
  LOW:
    shfl.sync.bfly.b32 %r1, %r90, 2, 31, 0x0000ffff;
  END:
    st.global.u32 [%rd90], %r1;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 16 ? i ^ 2 : i ^ 1);
}

TEST_F(Flow, WarpBarrierBetweenBranchesMakesWritesSeen) {
  // Lane 0 writes before its barrier, and lane 5 reads after another barrier instruction. Both instructions form one
  // synchronisation.
  const auto out = run_body(R"(
    .shared .u32 box;
    setp.eq.u32 %p1, %r90, 0;
    @%p1 bra WRITER;
    bar.warp.sync 0xffffffff;
    ld.volatile.shared.u32 %r1, [box];
    bra END;
  WRITER:
    st.volatile.shared.u32 [box], 1234;
    bar.warp.sync 0xffffffff;
    mov.u32 %r1, 1;
  END:
    st.global.u32 [%rd90], %r1;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i == 0 ? 1u : 1234u);
}

TEST_F(Flow, VotesOfGroupsSideBySide) {
  const auto out = run_body(R"(
    shr.u32 %r1, %r90, 3; shl.b32 %r1, %r1, 3; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1;
    setp.gt.u32 %p1, %r90, 11;
    vote.sync.ballot.b32 %r3, %p1, %r2;
    vote.sync.all.pred %p2, %p1, %r2;
    vote.sync.any.pred %p3, %p1, %r2;
    vote.sync.uni.pred %p4, %p1, %r2;
    selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 2, 0, %p3; selp.u32 %r6, 4, 0, %p4;
    or.b32 %r4, %r4, %r5; or.b32 %r4, %r4, %r6;
    xor.b32 %r3, %r3, %r4;
    st.global.u32 [%rd90], %r3;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t group = i / 8;
    const std::uint32_t members = 255U << (8 * group);
    const std::uint32_t on = members & ~0xfffU;
    const std::uint32_t votes = (on == members ? 1U : 0U) | (on != 0 ? 2U : 0U) | (on == members || on == 0 ? 4U : 0U);
    EXPECT_EQ(out[i], on ^ votes) << i;
  }
}

TEST_F(Flow, ReductionsAndMatches) {
  const auto out = run_body(R"(
    redux.sync.add.u32 %r1, %r90, -1;
    redux.sync.max.s32 %r2, %r90, -1;
    redux.sync.xor.b32 %r3, %r90, -1;
    shr.u32 %r4, %r90, 4;
    match.any.sync.b32 %r5, %r4, -1;
    match.all.sync.b32 %r6|%p1, %r4, -1;
    cvt.u64.u32 %rd1, 7;
    match.all.sync.b64 %r7|%p2, %rd1, -1;
    add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
    setp.eq.u32 %p3, %r5, 0xffff; selp.u32 %r8, 10000, 20000, %p3;
    add.u32 %r1, %r1, %r8; add.u32 %r1, %r1, %r6;
    @%p1 add.u32 %r1, %r1, 100000;
    @%p2 add.u32 %r1, %r1, 200000;
    setp.eq.u32 %p4, %r7, -1;
    @%p4 add.u32 %r1, %r1, 400000;
    st.global.u32 [%rd90], %r1;
    ret;)",
                            32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 496u + 31 + 0 + (i < 16 ? 10000 : 20000) + 600000) << i;
}

TEST_F(Flow, PartialWarpsVoteWithWhoIsThere) {
  const auto out = run_body(R"(
    setp.ge.u32 %p1, %r90, 0;
    vote.sync.ballot.b32 %r1, %p1, -1;
    vote.sync.all.pred %p2, %p1, -1;
    selp.u32 %r2, 1, 0, %p2;
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd90], %r1;
    ret;)",
                            5);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(out[i], 32u);
}

TEST_F(Flow, WarpSynchronousCodeWithoutBarriersRunsInLockstep) {
  const auto out = run_body(R"(
    .shared .u32 values[64];
    mov.u32 %r1, values; shl.b32 %r2, %r90, 2; add.u32 %r3, %r1, %r2;
    st.volatile.shared.u32 [%r3], %r90; st.volatile.shared.u32 [%r3+128], 0;
    ld.volatile.shared.u32 %r4, [%r3]; ld.volatile.shared.u32 %r5, [%r3+64]; add.u32 %r4, %r4, %r5; st.volatile.shared.u32 [%r3], %r4;
    ld.volatile.shared.u32 %r4, [%r3]; ld.volatile.shared.u32 %r5, [%r3+32]; add.u32 %r4, %r4, %r5; st.volatile.shared.u32 [%r3], %r4;
    ld.volatile.shared.u32 %r4, [%r3]; ld.volatile.shared.u32 %r5, [%r3+16]; add.u32 %r4, %r4, %r5; st.volatile.shared.u32 [%r3], %r4;
    ld.volatile.shared.u32 %r4, [%r3]; ld.volatile.shared.u32 %r5, [%r3+8]; add.u32 %r4, %r4, %r5; st.volatile.shared.u32 [%r3], %r4;
    ld.volatile.shared.u32 %r4, [%r3]; ld.volatile.shared.u32 %r5, [%r3+4]; add.u32 %r4, %r4, %r5; st.volatile.shared.u32 [%r3], %r4;
    ld.volatile.shared.u32 %r6, [%r1];
    st.global.u32 [%rd90], %r6;
    ret;)",
                            32);
  EXPECT_EQ(out[0], 496u);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

TEST_F(Flow, ShufflesInFunctionsCalledApart) {
  // Both halves of the warp call the same function from the same instruction, but at different times. The shuffle in
  // the function needs all lanes.
  const char* function = R"(
.func (.param .b32 result) swapped(.param .b32 value)
{
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value];
  shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
  st.param.b32 [result], %r2;
  ret;
}
)";
  const auto out = run_body(R"(
    mov.u32 %r1, 0;
    setp.lt.u32 %p1, %r90, 16;
    mov.u32 %r3, 1; @%p1 mov.u32 %r3, 300;
  SPIN:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, %r3;
    @%p2 bra SPIN;
    { .param .b32 argument; .param .b32 back;
      st.param.b32 [argument], %r90;
      call (back), swapped, (argument);
      ld.param.b32 %r2, [back]; }
    st.global.u32 [%rd90], %r2;
    ret;)",
                            32, 1, function);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i ^ 16) << i;
}

TEST_F(Flow, RecursionWithoutEndIsAFault) {
  const auto module = load(std::string(head) + R"(
.func forever(.param .b32 n)
{
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [n];
  add.u32 %r1, %r1, 1;
  { .param .b32 next; st.param.b32 [next], %r1; call forever, (next); }
  ret;
}
.visible .entry k()
{
  { .param .b32 start; st.param.b32 [start], 0; call forever, (start); }
  ret;
}
)");
  const Fault fault = run(*module, "k", {1}, {32}, 0);
  EXPECT_EQ(fault.code, CUDA_ERROR_HARDWARE_STACK_ERROR) << fault.what;
}

TEST_F(Flow, ExitInAFunctionEndsTheThread) {
  const char* function = R"(
.func leave(.param .b32 n)
{
  .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.u32 %r1, [n];
  setp.lt.u32 %p1, %r1, 20;
  @%p1 exit;
  ret;
}
)";
  const auto out = run_body(R"(
    { .param .b32 n; st.param.b32 [n], %r90; call leave, (n); }
    st.global.u32 [%rd90], 1;
    ret;)",
                            48, 1, function);
  for (std::uint32_t i = 0; i < 48; ++i) EXPECT_EQ(out[i], i < 20 ? 0u : 1u) << i;
}

TEST_F(Flow, CallsToNowhereAreFaults) {
  const Fault fault = fault_of(R"(
    P: .callprototype _ ();
    mov.u64 %rd1, 4096;
    call %rd1, (), P;
    ret;)",
                               32);
  EXPECT_EQ(fault.code, CUDA_ERROR_INVALID_PC) << fault.what;
}

// ---- special registers ----------------------------------------------------------------------------------------------

TEST_F(Flow, ThreeDimensionalIndexes) {
  const auto module = load(std::string(head) + R"(
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<20>; .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
  mov.u32 %r7, %nctaid.x; mov.u32 %r8, %nctaid.y;
  mov.u32 %r9, %ntid.x; mov.u32 %r10, %ntid.y; mov.u32 %r11, %ntid.z;
  mad.lo.u32 %r12, %r6, %r8, %r5; mad.lo.u32 %r12, %r12, %r7, %r4;
  mul.lo.u32 %r13, %r9, %r10; mul.lo.u32 %r13, %r13, %r11;
  mad.lo.u32 %r14, %r3, %r10, %r2; mad.lo.u32 %r14, %r14, %r9, %r1;
  mad.lo.u32 %r15, %r12, %r13, %r14;
  mad.lo.u32 %r16, %r1, 10, %r2; mad.lo.u32 %r16, %r16, 10, %r3; mad.lo.u32 %r16, %r16, 10, %r4;
  mad.lo.u32 %r16, %r16, 10, %r5; mad.lo.u32 %r16, %r16, 10, %r6;
  ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r15, 4, %rd1; st.global.u32 [%rd2], %r16;
  ret;
}
)");
  const Dim3 grid{2, 3, 2};
  const Dim3 block{5, 3, 4};
  auto* const out = room<std::uint32_t>(12 * 60);
  ASSERT_FALSE(run(*module, "k", grid, block, 0, out));
  for (std::uint32_t b = 0; b < 12; ++b) {
    for (std::uint32_t t = 0; t < 60; ++t) {
      const std::uint32_t digits[] = {t % 5, t / 5 % 3, t / 15, b % 2, b / 2 % 3, b / 6};
      std::uint32_t wanted = 0;
      for (const std::uint32_t digit : digits) wanted = wanted * 10 + digit;
      ASSERT_EQ(out[b * 60 + t], wanted);
    }
  }
}

TEST_F(Flow, LaneMasksAndIds) {
  const auto out = run_body(R"(
    mov.u32 %r1, %laneid; mov.u32 %r2, %warpid;
    mov.u32 %r3, %lanemask_eq; mov.u32 %r4, %lanemask_lt; mov.u32 %r5, %lanemask_le;
    mov.u32 %r6, %lanemask_gt; mov.u32 %r7, %lanemask_ge;
    mov.u32 %r8, 1; shl.b32 %r8, %r8, %r1;
    or.b32 %r9, %r4, %r3; xor.b32 %r10, %r9, %r5;      // le = lt | eq
    not.b32 %r11, %r5; xor.b32 %r11, %r11, %r6;        // gt = ~le
    not.b32 %r12, %r4; xor.b32 %r12, %r12, %r7;        // ge = ~lt
    xor.b32 %r13, %r8, %r3;
    or.b32 %r10, %r10, %r11; or.b32 %r10, %r10, %r12; or.b32 %r10, %r10, %r13;
    popc.b32 %r14, %r4; xor.b32 %r14, %r14, %r1; or.b32 %r10, %r10, %r14;
    mad.lo.u32 %r2, %r2, 32, %r1; sub.u32 %r2, %r2, %r90; or.b32 %r10, %r10, %r2;
    st.global.u32 [%rd90], %r10;
    ret;)",
                            96);
  for (std::uint32_t i = 0; i < 96; ++i) EXPECT_EQ(out[i], 0u) << i;
}

TEST_F(Flow, TheClockRunsWhileALaneWaits) {
  const auto out = run_body(R"(
    mov.u64 %rd1, %clock64;
  WAIT:
    mov.u64 %rd2, %clock64;
    sub.u64 %rd3, %rd2, %rd1;
    setp.lt.u64 %p1, %rd3, 200000;
    @%p1 bra WAIT;
    mov.u64 %rd4, %globaltimer;
    setp.gt.u64 %p2, %rd4, 1000000000;
    selp.u32 %r1, 1, 0, %p2;
    st.global.u32 [%rd90], %r1;
    ret;)",
                            64);
  EXPECT_EQ(out[0], 1u);
  EXPECT_EQ(out[63], 1u);
}

TEST_F(Flow, BlocksThatWaitForOtherBlocksMakeProgress) {
  // Block 0 waits until the last of 100 blocks has arrived.
  const auto module = load(std::string(head) + R"(
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  atom.global.add.u32 %r2, [%rd1], 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 ret;
WAIT:
  ld.acquire.gpu.global.u32 %r3, [%rd1];
  setp.lt.u32 %p2, %r3, 100;
  @%p2 bra WAIT;
  st.global.u32 [%rd1+4], 55;
  ret;
}
)");
  auto* const out = room<std::uint32_t>(2);
  ASSERT_FALSE(run(*module, "k", {100}, {1}, 0, out));
  EXPECT_EQ(out[0], 100u);
  EXPECT_EQ(out[1], 55u);
}

}  // namespace
}  // namespace simgpu
