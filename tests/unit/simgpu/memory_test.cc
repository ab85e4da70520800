// Tests memory of the simulated device: its address space, valid and invalid accesses of kernels, state spaces and
// windows, atomics, printf.
#include <algorithm>
#include <bit>
#include <numeric>
#include <thread>

#include "tests/unit/simgpu/fixture.h"
#include "tests/unit/under_tsan.h"

namespace simgpu {
namespace {

constexpr const char* head = ".version 9.0\n.target sm_90\n.address_size 64\n";
constexpr const char* registers =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<9>; .reg .f64 %fd<9>;\n";

// ---- the address space ----------------------------------------------------------------------------------------------

TEST(AddressSpace, AllocationsAreAlignedApartAndCounted) {
  AddressSpace space(std::size_t{64} << 20);
  const Address a = space.allocate(100);
  const Address b = space.allocate(1);
  const Address c = space.allocate(std::size_t{3} << 20);
  ASSERT_NE(a, 0u);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(b % 256, 0u);
  EXPECT_EQ(c % (2 << 20), 0u);
  EXPECT_TRUE(space.check(a, 100));
  EXPECT_FALSE(space.check(a, 101));
  EXPECT_TRUE(space.check(a + 99, 1));
  EXPECT_FALSE(space.check(a + 100, 1));
  EXPECT_FALSE(space.check(a - 1, 1));
  EXPECT_FALSE(space.check(a + 1, ~std::size_t{0}));
  EXPECT_GE(space.used(), 100u + 1 + (3u << 20));
  const auto range = space.find(a + 50);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->start, a);
  EXPECT_EQ(range->size, 100u);
  EXPECT_NE(range->id, space.find(b)->id);
  EXPECT_TRUE(space.free(a));
  EXPECT_FALSE(space.free(a));
  EXPECT_FALSE(space.free(b + 1));
  EXPECT_FALSE(space.find(a));
  EXPECT_TRUE(space.free(b));
  EXPECT_TRUE(space.free(c));
  EXPECT_EQ(space.used(), 0u);
}

TEST(AddressSpace, CapacityIsExhaustedAndComesBack) {
  AddressSpace space(std::size_t{8} << 20);
  EXPECT_EQ(space.capacity(), std::size_t{8} << 20);
  EXPECT_EQ(space.allocate(0), 0u);
  EXPECT_EQ(space.allocate((std::size_t{8} << 20) + 1), 0u);
  EXPECT_EQ(space.allocate(~std::size_t{0}), 0u);
  for (int round = 0; round < 50; ++round) {
    std::vector<Address> all;
    while (const Address address = space.allocate(static_cast<std::size_t>(100'000 + 1000 * round)))
      all.push_back(address);
    EXPECT_GE(all.size(), std::size_t{8 << 20} / static_cast<std::size_t>(101'000 + 1000 * round));
    for (std::size_t k = 0; k < all.size(); k += 2) EXPECT_TRUE(space.free(all[k]));
    for (std::size_t k = 1; k < all.size(); k += 2) EXPECT_TRUE(space.free(all[k]));
  }
  const Address whole = space.allocate(std::size_t{8} << 20);
  EXPECT_NE(whole, 0u);
  std::memset(reinterpret_cast<void*>(whole), 1, std::size_t{8} << 20);
}

TEST(AddressSpace, HostRangesDoNotOverlap) {
  AddressSpace space(std::size_t{8} << 20);
  std::vector<char> memory(1000);
  EXPECT_TRUE(space.add_host(memory.data() + 100, 500));
  EXPECT_FALSE(space.add_host(memory.data(), 101));
  EXPECT_FALSE(space.add_host(memory.data() + 599, 10));
  EXPECT_FALSE(space.add_host(memory.data() + 200, 10));
  EXPECT_FALSE(space.add_host(memory.data(), 0));
  EXPECT_TRUE(space.add_host(memory.data() + 600, 10));
  EXPECT_TRUE(space.add_host(memory.data(), 100));
  const auto address = reinterpret_cast<Address>(memory.data());
  EXPECT_EQ(space.find(address + 100)->kind, RangeKind::Host);
  EXPECT_FALSE(space.check(address + 599, 2)) << "two ranges side by side are not one";
  EXPECT_FALSE(space.free(address + 100));
  EXPECT_FALSE(space.remove_host(memory.data() + 101));
  EXPECT_TRUE(space.remove_host(memory.data() + 100));
  EXPECT_FALSE(space.find(address + 100));
  EXPECT_EQ(space.used(), 0u);
}

TEST(AddressSpace, ThreadsAllocateAtOnce) {
  AddressSpace space(std::size_t{64} << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&space, t] {
      for (int k = 0; k < 300; ++k) {
        const Address address = space.allocate(static_cast<std::size_t>(1 + k * 37));
        auto* const bytes = reinterpret_cast<unsigned char*>(address);
        std::fill(bytes, bytes + 1 + k * 37, static_cast<unsigned char>(t));
        EXPECT_TRUE(space.check(address, static_cast<std::size_t>(1 + k * 37)));
        EXPECT_TRUE(std::all_of(bytes, bytes + 1 + k * 37, [t](unsigned char b) { return b == t; }));
        EXPECT_TRUE(space.free(address));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(space.used(), 0u);
}

// ---- kernels --------------------------------------------------------------------------------------------------------

class Memory : public Device {
 protected:
  std::unique_ptr<Module> kernel(const std::string& body, const std::string& before = "") {
    return load(std::string(head) + before + ".visible .entry k(.param .u64 p, .param .u64 q)\n{\n" + registers +
                "ld.param.u64 %rd90, [p]; ld.param.u64 %rd91, [q]; mov.u32 %r90, %tid.x;\n" + body + "\nret;\n}\n");
  }
  Fault go(const std::string& body, std::uint64_t p, std::uint64_t q = 0, std::uint32_t threads = 32,
           std::size_t shared = 0, const std::string& before = "") {
    const auto module = kernel(body, before);
    return module ? run(*module, "k", {1}, {threads}, shared, p, q) : Fault{CUDA_ERROR_UNKNOWN, "no module"};
  }
  std::uint64_t words(std::size_t count) { return reinterpret_cast<std::uint64_t>(room<std::uint32_t>(count)); }
  static std::uint32_t* at(std::uint64_t address) { return reinterpret_cast<std::uint32_t*>(address); }
};

TEST_F(Memory, ReachingBeyondAnAllocationIsIllegal) {
  const std::uint64_t p = words(32);
  const char* const store = "mad.wide.u32 %rd1, %r90, 4, %rd90; st.global.u32 [%rd1], %r90;";
  EXPECT_FALSE(go(store, p, 0, 32));
  const Fault over = go(store, p, 0, 33);
  EXPECT_EQ(over.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(over.what.find("thread (32,0,0)"), std::string::npos) << over.what;
  EXPECT_NE(over.what.find("kernel k"), std::string::npos) << over.what;
  EXPECT_EQ(go(store, p - 4).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(go(store, 0).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(go(store, ~std::uint64_t{3}).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(go("ld.global.u32 %r1, [%rd90+128];", p).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(go("ld.u64 %rd1, [%rd90+124];", p - 4 + 8).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(go("atom.global.add.u32 %r1, [%rd90+128], 1;", p).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_TRUE(space.free(p));
  EXPECT_EQ(go(store, p).code, CUDA_ERROR_ILLEGAL_ADDRESS) << "freed";
}

TEST_F(Memory, OneLaneOfManyIsFound) {
  const std::uint64_t p = words(32);
  const Fault fault = go(R"(
    mad.wide.u32 %rd1, %r90, 4, %rd90; setp.eq.u32 %p1, %r90, 17; @%p1 mov.u64 %rd1, 64;
    ld.global.u32 %r1, [%rd1];)",
                         p);
  EXPECT_EQ(fault.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(fault.what.find("thread (17,0,0)"), std::string::npos) << fault.what;
}

TEST_F(Memory, MisalignedAccessesAreFaults) {
  const std::uint64_t p = words(64);
  EXPECT_EQ(go("ld.global.u32 %r1, [%rd90+2];", p).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(go("ld.global.u64 %rd1, [%rd90+4];", p).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(go("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd90+8];", p).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(go("st.u16 [%rd90+1], %h1;", p).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(go(".shared .align 16 .b8 s[64]; mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+1];", p).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(go(".local .align 8 .b8 l[64]; mov.u64 %rd1, l; st.local.u32 [%rd1+3], %r2;", p).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(go("atom.add.u32 %r1, [%rd90+2], 1;", p).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_FALSE(go("ld.global.u8 %r1, [%rd90+3];", p));
}

TEST_F(Memory, SharedAndLocalMemoryEnd) {
  const std::string shared = ".shared .align 4 .b8 s[64]; mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+";
  EXPECT_FALSE(go(shared + "60];", 0));
  EXPECT_EQ(go(shared + "64];", 0).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(go(shared + "64];", 0, 0, 32, 16)) << "the dynamic part begins there";
  EXPECT_EQ(go(shared + "-4];", 0).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(go(".local .align 4 .b8 l[64]; mov.u64 %rd1, l; ld.local.u32 %r2, [%rd1+64];", 0).code,
            CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Memory, FaultsOfTheProgramsOwn) {
  EXPECT_EQ(go("trap;", 0).code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(go("brkpt;", 0).code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_FALSE(go("setp.eq.u32 %p1, %r90, 1000; @%p1 trap;", 0));
}

TEST_F(Memory, TheOtherBlocksStopAfterAFault) {
  const auto module = kernel(R"(
    mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 3; @%p1 bra SPIN; trap;
  SPIN:
    ld.volatile.global.u32 %r2, [%rd90]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN;)");
  const Fault fault = run(*module, "k", {8}, {64}, 0, words(1), std::uint64_t{0});
  EXPECT_EQ(fault.code, CUDA_ERROR_LAUNCH_FAILED) << fault.what;
}

TEST_F(Memory, PinnedHostMemoryIsReadAndWritten) {
  std::vector<std::uint32_t> host(64, 5);
  const char* const body =
      "mad.wide.u32 %rd1, %r90, 4, %rd90; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, %r90; st.global.u32 [%rd1], "
      "%r1;";
  const auto p = reinterpret_cast<std::uint64_t>(host.data());
  EXPECT_EQ(go(body, p).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_TRUE(space.add_host(host.data(), 128));
  EXPECT_FALSE(go(body, p));
  EXPECT_EQ(host[31], 36u);
  EXPECT_EQ(go(body, p, 0, 33).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_TRUE(space.remove_host(host.data()));
  EXPECT_EQ(go(body, p).code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Memory, LanesSpreadOverSeveralAllocations) {
  const std::uint64_t p = words(64);
  const std::uint64_t q = words(64);
  std::iota(at(p), at(p) + 64, 0U);
  std::iota(at(q), at(q) + 64, 1000U);
  // Odd lanes read from one buffer and even lanes from the other, and both write to the buffer that they do not read.
  ASSERT_FALSE(go(R"(
    and.b32 %r1, %r90, 1; setp.eq.u32 %p1, %r1, 1; selp.b64 %rd1, %rd90, %rd91, %p1; selp.b64 %rd2, %rd91, %rd90, %p1;
    mad.wide.u32 %rd3, %r90, 4, %rd1; ld.global.u32 %r2, [%rd3];
    mad.wide.u32 %rd4, %r90, 4, %rd2; st.global.u32 [%rd4+128], %r2;)",
                  p, q));
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(at((i & 1) != 0 ? q : p)[32 + i], (i & 1) != 0 ? i : 1000 + i) << i;
  }
}

TEST_F(Memory, EveryWidthExtendsByItsSign) {
  const std::uint64_t p = words(8);
  const std::uint64_t q = words(32 * 16);
  const std::int64_t values[] = {-2, 0x7f'8081'fffe};
  std::memcpy(at(p), values, sizeof values);
  ASSERT_FALSE(go(R"(
    ld.global.s8 %r1, [%rd90]; ld.global.u8 %r2, [%rd90]; ld.global.s16 %r3, [%rd90]; ld.global.u16 %r4, [%rd90];
    ld.global.s8 %h1, [%rd90]; cvt.u32.u16 %r5, %h1; ld.global.s32 %rd1, [%rd90]; ld.global.u32 %rd2, [%rd90];
    shr.u64 %rd3, %rd1, 32; cvt.u32.u64 %r6, %rd3; shr.u64 %rd3, %rd2, 32; cvt.u32.u64 %r7, %rd3;
    ld.global.b8 %r8, [%rd90+9];
    mov.u64 %rd4, %rd91;
    st.global.v4.u32 [%rd4], {%r1,%r2,%r3,%r4}; st.global.v4.u32 [%rd4+16], {%r5,%r6,%r7,%r8};
    st.global.u8 [%rd4+32], %r1; st.global.u16 [%rd4+34], %rd2; st.global.v2.u8 [%rd4+36], {%r8, %r2};)",
                  p, q, 1));
  const std::uint32_t wanted[] = {0xffff'fffe, 0xfe, 0xffff'fffe, 0xfffe,      0xfffe,
                                  0xffff'ffff, 0,    0xff,        0xfffe'00fe, 0xfeff};
  for (std::size_t k = 0; k < 10; ++k) EXPECT_EQ(at(q)[k], wanted[k]) << k;
}

#ifndef IVGPU_UNDER_TSAN  // ThreadSanitizer does not support 16-byte atomics (host/simgpu/vm/ops/lane_access.h)
// A GPU reads and writes 16 bytes of a lane in one access, and programs rely on that: CUB's look-back writes a value
// and its state together. One block writes pairs of equal numbers, the other counts unequal pairs.
TEST_F(Memory, AVectorOfSixteenBytesIsOneAccess) {
  const auto module = load(std::string(head) + R"(
    .visible .entry pairs(.param .u64 at, .param .u64 torn) {)" +
                           registers + R"(
    ld.param.u64 %rd1, [at]; ld.param.u64 %rd2, [torn];
    mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0;
    mov.u64 %rd3, 0;
    @%p1 bra READ;
    WRITE:
    st.relaxed.gpu.global.v2.u64 [%rd1], {%rd3, %rd3};
    add.u64 %rd3, %rd3, 1; setp.lt.u64 %p2, %rd3, 300000; @%p2 bra WRITE;
    ret;
    READ:
    ld.relaxed.gpu.global.v2.u64 {%rd4, %rd5}, [%rd1];
    setp.eq.u64 %p3, %rd4, %rd5; @%p3 bra SAME;
    atom.global.add.u64 %rd6, [%rd2], 1;
    SAME:
    add.u64 %rd3, %rd3, 1; setp.lt.u64 %p2, %rd3, 300000; @%p2 bra READ;
    ret; })");
  ASSERT_NE(module, nullptr);
  auto* at = room<std::uint64_t>(2);
  auto* torn = room<std::uint64_t>(1);
  EXPECT_EQ(run(*module, "pairs", {2, 1, 1}, {1, 1, 1}, 0, at, torn).code, CUDA_SUCCESS);
  EXPECT_EQ(at[0], 299999u);
  EXPECT_EQ(*torn, 0u);
}
#endif

TEST_F(Memory, VectorsOfTwoFourAndEight) {
  const std::uint64_t p = words(32 * 8);
  const std::uint64_t q = words(32 * 8);
  std::iota(at(p), at(p) + 256, 7U);
  ASSERT_FALSE(go(R"(
    mad.wide.u32 %rd1, %r90, 32, %rd90; mad.wide.u32 %rd2, %r90, 32, %rd91;
    ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%rd1]; ld.global.v2.u64 {%rd3,%rd4}, [%rd1+16];
    st.global.v2.u64 [%rd2], {%rd3,%rd4}; st.global.v2.f32 [%rd2+16], {%r1,%r2}; st.global.v2.b32 [%rd2+24], {%r3,%r4};
    ld.global.nc.v8.b32 {%r11,%r12,%r13,%r14,%r15,%r16,%r17,_}, [%rd1]; st.global.u32 [%rd2+28], %r17;)",
                  p, q));
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t base = 7 + 8 * i;
    const std::uint32_t wanted[] = {base + 4, base + 5, base + 6, base + 7, base, base + 1, base + 2, base + 6};
    for (std::uint32_t k = 0; k < 8; ++k) EXPECT_EQ(at(q)[8 * i + k], wanted[k]) << i << " " << k;
  }
}

TEST_F(Memory, SpacesAppearAmongGenericAddresses) {
  const std::uint64_t p = words(64);
  const std::uint64_t q = words(64);
  ASSERT_FALSE(go(R"(
    .shared .align 8 .b8 s[256]; .local .align 8 .b8 l[16];
    mov.u64 %rd1, s; cvta.shared.u64 %rd2, %rd1; mov.u64 %rd3, l; cvta.local.u64 %rd4, %rd3;
    mad.wide.u32 %rd5, %r90, 4, %rd2;
    st.u32 [%rd5], %r90;                       // generic into shared
    st.local.u32 [%rd3+4], %r90; ld.u32 %r1, [%rd4+4];  // local, read generically
    cvta.to.shared.u64 %rd6, %rd5; cvt.u32.u64 %r2, %rd6; ld.shared.u32 %r3, [%r2];
    atom.add.u32 %r4, [%rd5], 100; ld.shared.u32 %r4, [%r2];
    isspacep.shared %p1, %rd5; isspacep.local %p2, %rd4; isspacep.global %p3, %rd90; isspacep.global %p4, %rd5;
    isspacep.shared %p5, %rd4;
    selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 2, 0, %p2; selp.u32 %r7, 4, 0, %p3; selp.u32 %r8, 8, 0, %p4; selp.u32 %r9, 16, 0, %p5;
    add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r8; add.u32 %r5, %r5, %r9;
    add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; mad.lo.u32 %r1, %r1, 100, %r5;
    mad.wide.u32 %rd7, %r90, 4, %rd90; st.u32 [%rd7], %r1;)",
                  p, q));
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(at(p)[i], (3 * i + 100) * 100 + 7) << i;
}

TEST_F(Memory, DynamicSharedMemoryFollowsTheStatic) {
  const std::uint64_t p = words(64);
  ASSERT_FALSE(go(R"(
    .shared .align 4 .b8 fixed[20];
    mov.u32 %r1, more; mad.lo.u32 %r2, %r90, 4, %r1; st.shared.u32 [%r2], %r90;
    bar.sync 0;
    ld.shared.u32 %r3, [more+12]; mov.u32 %r4, %dynamic_smem_size; mov.u32 %r5, %total_smem_size;
    st.global.v2.u32 [%rd90], {%r3, %r1}; st.global.v2.u32 [%rd90+8], {%r4, %r5};)",
                  p, 0, 32, 128, ".extern .shared .align 16 .b8 more[];\n"));
  EXPECT_EQ(at(p)[0], 3u);
  EXPECT_EQ(at(p)[1], 32u);
  EXPECT_EQ(at(p)[2], 128u);
  EXPECT_EQ(at(p)[3], 160u);
}

TEST_F(Memory, InitialisedVariablesAndAddressesInThem) {
  const auto module = kernel(R"(
    ld.const.u32 %r1, [numbers+4]; mov.u64 %rd1, numbers; ld.const.u16 %h1, [%rd1+2]; cvt.u32.u16 %r2, %h1;
    ld.global.u64 %rd2, [pointers+8]; ld.u32 %r3, [%rd2]; ld.global.f32 %f1, [values+4]; mov.b32 %r4, %f1;
    ld.global.u32 %r5, [counter]; add.u32 %r6, %r5, 1; st.global.u32 [counter], %r6;
    st.global.v4.u32 [%rd90], {%r1,%r2,%r3,%r4};)",
                             R"(.const .align 4 .b8 numbers[8] = {1, 2, 3, 4, 0x78, 0x56, 0x34, 0x12};
.global .align 4 .u32 table[3] = {10, 20, -30};
.visible .global .align 8 .u64 pointers[2] = {table, generic(table)+8};
.global .f32 values[3] = {1.5, 0f40490fdb, 0d3ff0000000000000};
.visible .global .u32 counter = 41;
)");
  ASSERT_TRUE(module);
  const std::uint64_t p = words(4);
  ASSERT_FALSE(run(*module, "k", {1}, {1}, 0, p, std::uint64_t{0}));
  EXPECT_EQ(at(p)[0], 0x12345678u);
  EXPECT_EQ(at(p)[1], 0x0403u);
  EXPECT_EQ(at(p)[2], static_cast<std::uint32_t>(-30));
  EXPECT_EQ(at(p)[3], 0x40490fdbu);
  const Global* counter = module->global("counter");
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(*at(counter->address), 42u);
  EXPECT_EQ(counter->size, 4u);
  EXPECT_EQ(*at(module->global("values")->address + 8), 0x3f800000u);
  EXPECT_EQ(module->global("nothing"), nullptr);
  EXPECT_EQ(module->globals().size(), 5u);
}

TEST_F(Memory, ModulesGiveTheirMemoryBack) {
  const std::size_t before = space.used();
  for (int k = 0; k < 10; ++k) {
    const auto module = kernel("", ".global .b8 large[1000000];\n");
    EXPECT_GE(space.used(), before + 1'000'000);
  }
  EXPECT_EQ(space.used(), before);
}

TEST_F(Memory, ParametersOfEverySizeAndPlace) {
  const auto module = load(std::string(head) + R"(
.visible .entry k(.param .u8 a, .param .u16 b, .param .u32 c, .param .f64 d, .param .align 16 .b8 e[24], .param .u64 out)
{
  .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f64 %fd<3>; .reg .b16 %h<4>;
  ld.param.u64 %rd1, [out];
  ld.param.s8 %r1, [a]; ld.param.u16 %h1, [b]; cvt.u32.u16 %r2, %h1; ld.param.u32 %r3, [c]; ld.param.f64 %fd1, [d];
  mov.b64 %rd2, e; ld.param.u32 %r4, [%rd2+20]; ld.param.v2.u64 {%rd3, %rd4}, [e];
  cvta.param.u64 %rd5, %rd2; ld.u32 %r5, [%rd5+4];
  st.global.v4.u32 [%rd1], {%r1,%r2,%r3,%r4}; st.global.f64 [%rd1+16], %fd1; st.global.v2.u64 [%rd1+32], {%rd3,%rd4};
  st.global.u32 [%rd1+24], %r5;
  ret;
}
)");
  const Function* function = module->function("k");
  ASSERT_EQ(function->params.size(), 6u);
  const std::size_t offsets[] = {0, 2, 4, 8, 16, 40};
  const std::size_t sizes[] = {1, 2, 4, 8, 24, 8};
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_EQ(function->params[k].offset, offsets[k]);
    EXPECT_EQ(function->params[k].size, sizes[k]);
  }
  struct Six {
    std::uint64_t words[3];
  };
  const std::uint64_t p = words(16);
  ASSERT_FALSE(run(*module, "k", {1}, {32}, 0, std::int8_t{-3}, std::uint16_t{60000}, 77, 2.5,
                   Six{{0x1111'2222'3333'4444, 5, 0x6666'0000'0000'0000}}, p));
  EXPECT_EQ(at(p)[0], static_cast<std::uint32_t>(-3));
  EXPECT_EQ(at(p)[1], 60000u);
  EXPECT_EQ(at(p)[2], 77u);
  EXPECT_EQ(at(p)[3], 0x6666'0000u);
  EXPECT_EQ(at(p)[6], 0x1111'2222u);
  EXPECT_EQ(*reinterpret_cast<double*>(p + 16), 2.5);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(p + 40), 5u);
}

TEST_F(Memory, AttributesOfAFunction) {
  const auto module = load(std::string(head) + R"(
.visible .entry a() .maxntid 8, 4, 2 { .shared .align 8 .b8 s[100]; .local .b8 l[40]; .reg .b32 %r<2>; mov.u32 %r1, s; ret; }
.entry b() .reqntid 16, 2 .minnctapersm 2 { ret; }
)");
  const Function* a = module->function("a");
  const Function* b = module->function("b");
  ASSERT_TRUE(a != nullptr && b != nullptr) << "a kernel need not be visible to be found";
  EXPECT_EQ(a->max_threads_per_block, 64u);
  EXPECT_FALSE(a->required_block);
  EXPECT_EQ(a->static_shared, 100u);
  EXPECT_GE(a->local_bytes, 40u);
  EXPECT_EQ(a->ptx_version, 90);
  EXPECT_GT(a->registers, 0);
  EXPECT_EQ(b->required_block->x, 16u);
  EXPECT_EQ(b->required_block->y, 2u);
  EXPECT_EQ(b->max_threads_per_block, 32u);
  EXPECT_EQ(module->function("c"), nullptr);
  EXPECT_EQ(module->functions().size(), 2u);
}

// The function has two hundred registers that are live at the same time, and declares its block size.
TEST_F(Memory, AFunctionTakesNoMoreRegistersThanItsBlocksHave) {
  std::string body = "ld.param.u64 %rd1, [out];\n";
  for (int k = 0; k < 200; ++k)
    body += "ld.global.u32 %r" + std::to_string(k) + ", [%rd1+" + std::to_string(4 * k) + "];\n";
  for (int k = 0; k < 200; ++k)
    body += "st.global.u32 [%rd1+" + std::to_string(4 * k) + "], %r" + std::to_string(k) + ";\n";
  const auto registers_with = [&](const std::string& bound) {
    const auto module = load(std::string(head) + ".visible .entry k(.param .u64 out) " + bound +
                             "\n{\n.reg .b32 %r<200>; .reg .b64 %rd<2>;\n" + body + "ret;\n}\n");
    return module->function("k")->registers;
  };
  EXPECT_GE(registers_with(""), 200);
  EXPECT_EQ(registers_with(".maxntid 1024, 1, 1"), 64);
  EXPECT_EQ(registers_with(".reqntid 384, 1, 1"), 168);
  EXPECT_GE(registers_with(".maxntid 64, 1, 1"), 200);
}

TEST_F(Memory, SeparatelyCompiledTextsAreLinked) {
  const std::string texts[] = {std::string(head) + R"(
.extern .func (.param .b32 r) helper(.param .b32 a);
.extern .global .u32 shared_value;
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [shared_value];
  { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), helper, (a); ld.param.b32 %r2, [r]; }
  st.global.u32 [%rd1], %r2;
  ret;
}
)",
                               std::string(head) + R"(
.visible .global .u32 shared_value = 20;
.global .u32 own = 1;
.visible .func (.param .b32 r) helper(.param .b32 a)
{
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [a]; ld.global.u32 %r2, [own]; mad.lo.u32 %r3, %r1, 2, %r2; st.param.b32 [r], %r3; ret;
}
)"};
  const Module::Loaded loaded = load_ptx(texts, space);
  ASSERT_TRUE(loaded.module) << loaded.log;
  const std::uint64_t p = words(1);
  ASSERT_FALSE(run(*loaded.module, "k", {1}, {1}, 0, p));
  EXPECT_EQ(*at(p), 41u);
  const Module::Loaded alone = load_ptx(std::span(texts, 1), space);
  EXPECT_EQ(alone.code, CUDA_ERROR_INVALID_PTX);
  EXPECT_FALSE(alone.log.empty());
}

// ---- atomics --------------------------------------------------------------------------------------------------------

TEST_F(Memory, AtomicsOfEveryKind) {
  struct Case {
    const char* operation;
    const char* type;
    std::uint64_t start, operand, third, result;
  };
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const auto single = [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; };
  const Case cases[] = {
      {"add", "u32", 0xffff'ffff, 3, 0, 2},
      {"add", "s32", 5, 0xffff'fff0, 0, 0xffff'fff5},
      {"add", "u64", 1ULL << 40, 1, 0, (1ULL << 40) + 1},
      {"add", "f32", single(1.5F), single(2.25F), 0, single(3.75F)},
      {"add", "f64", bits(1.5), bits(-4.0), 0, bits(-2.5)},
      {"min", "s32", 5, 0xffff'fffe, 0, 0xffff'fffe},
      {"min", "u32", 5, 0xffff'fffe, 0, 5},
      {"max", "s32", 5, 0xffff'fffe, 0, 5},
      {"max", "u32", 5, 0xffff'fffe, 0, 0xffff'fffe},
      {"min", "s64", 5, ~0ULL, 0, ~0ULL},
      {"max", "u64", 5, ~0ULL, 0, ~0ULL},
      {"and", "b32", 0xff0f, 0x0ff1, 0, 0x0f01},
      {"or", "b64", 0xf0ULL << 40, 0x0f, 0, 0xf0ULL << 40 | 0x0f},
      {"xor", "b32", 0xffff, 0x0f0f, 0, 0xf0f0},
      {"exch", "b32", 1, 2, 0, 2},
      {"exch", "b64", 1, 2ULL << 50, 0, 2ULL << 50},
      {"cas", "b32", 7, 7, 9, 9},
      {"cas", "b32", 8, 7, 9, 8},
      {"cas", "b64", 7ULL << 40, 7ULL << 40, 9, 9},
      {"cas", "b16", 0x1'0007, 7, 9, 0x1'0009},
      {"inc", "u32", 4, 5, 0, 5},
      {"inc", "u32", 5, 5, 0, 0},
      {"dec", "u32", 0, 5, 0, 5},
      {"dec", "u32", 9, 5, 0, 5},
      {"dec", "u32", 3, 5, 0, 2},
  };
  for (const Case& one : cases) {
    const std::string width = std::string(one.type).substr(1);
    const std::string reg = width == "16" ? "%h" : width == "32" ? "%r" : "%rd";
    const std::string load =
        "ld.global.b" + width + " " + reg + "2, [%rd91]; ld.global.b" + width + " " + reg + "3, [%rd91+8]; ";
    const std::string third = std::string(one.operation) == "cas" ? ", " + reg + "3" : "";
    for (const char* const space_name : {".global", ""}) {
      const std::uint64_t p = words(4);
      const std::uint64_t q = words(4);
      std::memcpy(at(p), &one.start, 8);
      std::memcpy(at(q), &one.operand, 8);
      std::memcpy(at(q) + 2, &one.third, 8);
      ASSERT_FALSE(go(load + "atom" + space_name + "." + one.operation + "." + one.type + " " + reg + "4, [%rd90], " +
                          reg + "2" + third + "; st.global.b" + width + " [%rd90+8], " + reg + "4;",
                      p, q, 1));
      std::uint64_t got[2];
      std::memcpy(got, at(p), sizeof got);
      EXPECT_EQ(got[0], one.result) << one.operation << "." << one.type;
      EXPECT_EQ(got[1], width == "16" ? one.start & 0xffff : one.start) << one.operation << "." << one.type;
    }
  }
}

TEST_F(Memory, ReductionsWithoutResult) {
  const std::uint64_t p = words(2);
  ASSERT_FALSE(go("red.global.add.u32 [%rd90], 2; red.relaxed.gpu.global.max.u32 [%rd90+4], %r90;", p, 0, 64));
  EXPECT_EQ(at(p)[0], 128u);
  EXPECT_EQ(at(p)[1], 63u);
}

TEST_F(Memory, AtomicsOfManyBlocksLoseNothing) {
  const auto module = kernel(R"(
    .shared .u32 own; mov.u32 %r5, own; setp.eq.u32 %p1, %r90, 0; @%p1 st.shared.u32 [own], 0; bar.sync 0;
    atom.global.add.u32 %r1, [%rd90], 1; red.shared.add.u32 [%r5], 1; atom.global.add.f32 %f1, [%rd90+4], 0f3f800000;
    bar.sync 0; ld.shared.u32 %r2, [own]; setp.ne.u32 %p2, %r2, 96; @%p2 trap;)");
  const std::uint64_t p = words(2);
  const Fault fault = run(*module, "k", {200}, {96}, 0, p, std::uint64_t{0});
  ASSERT_FALSE(fault) << fault.what;
  EXPECT_EQ(at(p)[0], 200u * 96);
  EXPECT_EQ(std::bit_cast<float>(at(p)[1]), 200.0F * 96);
}

TEST_F(Memory, LaunchesAreChecked) {
  const auto module = kernel("");
  const Function* function = module->function("k");
  std::vector<std::byte> params(16);
  EXPECT_EQ(engine.run({function, {0}, {1}, 0, params, false}).code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(engine.run({function, {1}, {1025}, 0, params, false}).code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(engine.run({function, {1}, {1}, 0, std::span(params).first(8), false}).code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(engine.run({function, {1}, {1}, 0, params, false}));
}

}  // namespace
}  // namespace simgpu
