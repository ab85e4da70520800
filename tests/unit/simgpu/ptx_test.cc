// Tests the PTX parser: it accepts all spellings, and refuses all other texts with a line number and a message. No test
// runs a kernel.
#include <gtest/gtest.h>

#include <string>

#include "host/simgpu/ptx/parser.h"
#include "host/simgpu/vm/load.h"

namespace simgpu {
namespace {

const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string kernel(const std::string& body) {
  return head +
         ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; "
         ".reg .f32 %f<4>; .reg .f64 %fd<4>;\n" +
         body + "\nret;\n}\n";
}

Module::Loaded load_text(const std::string& text) {
  static AddressSpace space(std::size_t{64} << 20);
  return load_ptx(std::span(&text, 1), space);
}

// ---- the syntax tree ------------------------------------------------------------------------------------------------

TEST(Ptx, HeaderAndTargets) {
  EXPECT_EQ(ptx::parse(".version 7.8\n.target sm_75, debug\n").version, 78u);
  EXPECT_EQ(ptx::parse(".version 9.0 .target sm_120a").target, 120u);
  EXPECT_EQ(ptx::parse("// comment\n\n/* another\n */ .version 8.0\n.target texmode_independent, sm_90").target, 90u);
}

TEST(Ptx, CommentsDirectivesAndDebugSectionsArePassedOver) {
  const ptx::Module module = ptx::parse(head + R"(
.file 1 "a.cu", 123, 456
.visible .entry k()
.maxntid 128, 1, 1
.minnctapersm 4
{
  .loc 1 5 3, function_name $L__info, inlined_at 1 3 4
  .pragma "nounroll";
  ret; // done
}
.section .debug_abbrev { .b8 1, 2
.b32 { 3 } }
.section .debug_str { LABEL: .b8 65 }
)");
  ASSERT_EQ(module.functions.size(), 1u);
  EXPECT_EQ(module.functions[0].body.size(), 1u);
  EXPECT_EQ((*module.functions[0].max_block)[0], 128u);
}

TEST(Ptx, RegistersHaveBlockScope) {
  const ptx::Module module = ptx::parse(head + R"(.func f() {
  .reg .b32 %r<3>; .reg .b32 extended, %r1<3>;
  mov.u32 %r1, 1;
  { .reg .b64 %r1; mov.u64 %r1, 2; { .reg .pred %r1; mov.pred %r1, 1; } mov.u64 %r1, 3; }
  mov.u32 %r1, %r2; mov.u32 extended, %r12;
})");
  const ptx::Function& f = module.functions[0];
  ASSERT_EQ(f.body.size(), 7u) << "six moves and the return at the end";
  const auto type = [&](std::size_t k) { return f.registers[f.body[k].operands[0].index]; };
  EXPECT_EQ(type(0), ptx::Type::B32);
  EXPECT_EQ(type(1), ptx::Type::B64);
  EXPECT_EQ(type(2), ptx::Type::Pred);
  EXPECT_EQ(type(3), ptx::Type::B64);
  EXPECT_EQ(f.body[4].operands[0].index, f.body[0].operands[0].index);
  EXPECT_EQ(f.body[5].operands[1].kind, ptx::Operand::Kind::Register) << "%r1<3> declares %r10 to %r12";
}

TEST(Ptx, LiteralsInEverySpelling) {
  const ptx::Module module = ptx::parse(head + R"(.func f() { .reg .b64 %a;
    mov.u64 %a, 17; mov.u64 %a, -17; mov.u64 %a, 0x1F; mov.u64 %a, 0b101; mov.u64 %a, 017; mov.u64 %a, 5U;
    mov.u64 %a, (1+2)*3; mov.u64 %a, ~0; mov.u64 %a, WARP_SZ; mov.f32 %a, 0f3F800000; mov.f64 %a, 0d4000000000000000;
    mov.f64 %a, 1.5; mov.f64 %a, -2.0e3; mov.u64 %a, 0xFFFFFFFFFFFFFFFF; })");
  const std::int64_t wanted[] = {17, -17, 31, 5, 15, 5, 9, -1, 32};
  for (std::size_t k = 0; k < 9; ++k) EXPECT_EQ(module.functions[0].body[k].operands[1].value, wanted[k]) << k;
  EXPECT_EQ(module.functions[0].body[9].operands[1].kind, ptx::Operand::Kind::Float32);
  EXPECT_EQ(module.functions[0].body[9].operands[1].value, 0x3f800000);
  EXPECT_EQ(module.functions[0].body[11].operands[1].value, 0x3ff8000000000000);
  EXPECT_EQ(static_cast<std::uint64_t>(module.functions[0].body[12].operands[1].value), 0xc09f400000000000u);
  EXPECT_EQ(module.functions[0].body[13].operands[1].value, -1);
}

TEST(Ptx, AddressesListsAndPairs) {
  const ptx::Module module = ptx::parse(head + R"(.global .b8 g[64];
.func f() { .reg .b64 %a; .reg .b32 %r<4>; .reg .pred %p<3>;
    ld.global.u32 %r1, [%a]; ld.global.u32 %r1, [%a+8]; ld.global.u32 %r1, [%a+-4]; ld.global.u32 %r1, [%a-12];
    ld.global.u32 %r1, [g]; ld.global.u32 %r1, [g+16]; ld.global.v2.u32 {%r1, _}, [g];
    shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1; @!%p1 bra END; setp.eq.and.u32 %p1|%p2, %r1, 0, !%p2;
END: })");
  const auto& body = module.functions[0].body;
  const std::int64_t offsets[] = {0, 8, -4, -12, 0, 16};
  for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(body[k].operands[1].value, offsets[k]) << k;
  EXPECT_EQ(body[6].operands[0].parts.size(), 2u);
  EXPECT_EQ(body[6].operands[0].parts[1].kind, ptx::Operand::Kind::Sink);
  EXPECT_EQ(body[7].operands[0].kind, ptx::Operand::Kind::Pair);
  EXPECT_TRUE(body[8].guard->negated);
  EXPECT_TRUE(body[9].operands[3].negated);
}

TEST(Ptx, EveryOpcodeThatACompilerWasSeenToEmitLoads) {
  // The lines are grouped by instruction, in the spellings of both generations of the compiler.
  const char* const lines[] = {
      "abs.f32 %f1, %f2; abs.f64 %fd1, %fd2; abs.s32 %r1, %r2;",
      "add.f32 %f1, %f2, 0f3F800000; add.rn.f64 %fd1, %fd2, %fd3; add.s64 %rd1, %rd2, -8; add.u64 %rd1, %rd2, 1;",
      "and.b16 %h1, %h2, 255; and.pred %p1, %p2, %p3; and.b64 %rd1, %rd2, 60;",
      "atom.global.add.u32 %r1, [%rd1], 1; atom.or.acq_rel.cta.b32 %r1, [%rd1], %r2; atom.shared.add.u32 %r1, [%r2], "
      "1;",
      "bar.sync 0; bar.warp.sync -1; barrier.sync 0; barrier.cta.sync.aligned 0;",
      "bfi.b64 %rd1, %rd2, %rd3, 1, 2; bfe.u32 %r1, %r2, 3, 4;",
      "cvt.f64.f32 %fd1, %f1; cvt.rn.f32.s64 %f1, %rd1; cvt.rni.s32.f32 %r1, %f1; cvt.sat.f32.f32 %f1, %f2; "
      "cvt.u16.u32 %h1, %r1;",
      "cvt.u32.u16 %r1, %h1; cvt.u32.u64 %r1, %rd1; cvt.u64.u32 %rd1, %r1; cvt.rzi.u32.f32 %r1, %f1;",
      "div.approx.f32 %f1, %f2, %f3; div.rn.f32 %f1, %f2, %f3; div.s32 %r1, %r2, %r3; div.u16 %h1, %h2, 3;",
      "ex2.approx.ftz.f32 %f1, %f2; lg2.approx.f32 %f1, %f2; sin.approx.f32 %f1, %f2; cos.approx.ftz.f32 %f1, %f2;",
      "fma.rm.f32 %f1, %f2, %f3, %f1; fma.rn.ftz.f32 %f1, %f2, %f3, %f1; fma.rn.f64 %fd1, %fd2, %fd3, "
      "0d3FF0000000000000;",
      "ld.acquire.cta.u32 %r1, [%rd1]; ld.global.nc.v4.f32 {%f1,%f2,%f3,%f1}, [%rd1]; ld.volatile.global.u32 %r1, "
      "[%rd1];",
      "ld.global.nc.L1::no_allocate.L2::128B.u32 %r1, [%rd1]; ld.relaxed.sys.global.u64 %rd2, [%rd1]; "
      "ld.weak.global.cv.u32 %r1, [%rd1];",
      "mad.wide.u32 %rd1, %r1, %r2, %rd2; mad.lo.s32 %r1, %r2, %r3, %r4; mul.hi.u16 %h1, %h2, 1639; mul.wide.u16 %r1, "
      "%h1, %h2;",
      "membar.cta; membar.gl; membar.sys; fence.sc.cta; fence.acq_rel.gpu; fence.proxy.async;",
      "mov.b32 %r1, %f1; mov.pred %p1, -1; mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r1, %r2}, %rd1; mov.b16 %h1, 1;",
      "prmt.b32 %r1, %r2, %r3, 0x5410U; shf.l.wrap.b32 %r1, %r2, %r3, 8; lop3.b32 %r1, %r2, %r3, %r4, 0x96;",
      "rcp.approx.ftz.f64 %fd1, %fd2; rcp.rn.f32 %f1, %f2; rsqrt.approx.f32 %f1, %f2; sqrt.rn.f32 %f1, %f2;",
      "red.and.release.cta.b32 [%rd1], %r1; redux.sync.add.s32 %r1, %r2, -1; nanosleep.u32 %r1; activemask.b32 %r1;",
      "selp.f64 %fd1, %fd2, %fd3, %p1; selp.u16 %h1, 1, 0, %p1; set.gt.u32.f32 %r1, %f1, %f2; slct.u32.s32 %r1, %r2, "
      "%r3, %r4;",
      "setp.neu.f32 %p1, %f1, 0f7F800000; setp.eq.s16 %p1, %h1, 0; setp.nan.f64 %p1, %fd1, %fd1; setp.lt.and.s32 %p1, "
      "%r1, %r2, %p2;",
      "vote.sync.ballot.b32 %r1, %p1, -1; vote.ballot.sync.b32 %r1, %p1, -1; match.any.sync.b32 %r1, %r2, -1; "
      "elect.sync _|%p1, -1;",
      "prefetch.global.L2 [%rd1]; brkpt; trap; exit;",
  };
  for (const char* const line : lines) {
    const Module::Loaded loaded = load_text(kernel(line));
    EXPECT_EQ(loaded.code, CUDA_SUCCESS) << line << "\n" << loaded.log;
  }
}

// ---- refusals -------------------------------------------------------------------------------------------------------

struct Bad {
  const char* name;
  std::string text;
  unsigned line;
  CUresult code = CUDA_ERROR_INVALID_PTX;
};

TEST(Ptx, MalformedTextsAreRefusedWithTheirLine) {
  const Bad cases[] = {
      {"empty", "", 0},
      {"no PTX", "hello world", 1},
      {"binary",
       std::string("\x7f"
                   "ELF\x01\x02\x03",
                   7),
       1},
      {"no target", ".version 9.0\n", 1},
      {"odd version", ".version nine\n.target sm_90\n", 1},
      {"version of the future", ".version 10.1\n.target sm_90\n", 1, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
      {"target of the future", ".version 9.0\n.target sm_999\n", 2},
      {"32-bit addresses", ".version 9.0\n.target sm_90\n.address_size 32\n", 3},
      {"comment without end", head + "/* ", 4},
      {"string without end", head + ".file 1 \"abc\n", 4},
      {"unknown directive", head + ".frobnicate 3;", 4},
      {"unknown opcode", kernel("\nfoo.bar %r1, %r2;"), 8},
      {"unknown suffix", kernel("\nadd.sideways.u32 %r1, %r2, %r3;"), 8},
      {"texture of many samples", kernel("tex.2dms.v4.f32.s32 {%f1,%f2,%f3,%f1}, [%rd1, {%r1,%r2,%r3,%r3}];"), 7},
      {"too few operands", kernel("add.u32 %r1, %r2;"), 7},
      {"too many operands", kernel("add.u32 %r1, %r2, %r3, %r4;"), 7},
      {"register too wide", kernel("add.u32 %r1, %r2, %rd1;"), 7},
      {"register too narrow", kernel("add.u64 %rd1, %rd2, %r1;"), 7},
      {"unknown register", kernel("add.u32 %r1, %r2, %x;"), 7},
      {"register beyond its family", kernel("add.u32 %r1, %r2, %r9;"), 7},
      {"predicate as number", kernel("add.u32 %r1, %r2, %p1;"), 7},
      {"number as predicate", kernel("selp.u32 %r1, %r2, %r3, %r4;"), 7},
      {"guard is no predicate", kernel("@%r1 bra X; X:"), 7},
      {"integer as float", kernel("add.f32 %f1, %f2, 1;"), 7},
      {"destination is a number", kernel("add.u32 5, %r2, %r3;"), 7},
      {"write to a special register", kernel("mov.u32 %tid.x, %r1;"), 7},
      {"unknown special register", kernel("mov.u32 %r1, %bogus.x;"), 7},
      {"label that is not there", kernel("bra NOWHERE;"), 7},
      {"label twice", kernel("A: A: bra A;"), 7},
      {"variable that is not there", kernel("mov.u64 %rd1, nothing;"), 7},
      {"function that is not there", kernel("call nothing, ();"), 7},
      {"call of a kernel", kernel("call k, ();"), 7},
      {"symbol in another space", kernel(".shared .u32 s; ld.global.u32 %r1, [s];"), 7},
      {"store to a parameter", kernel("st.param.u64 [p], %rd1;"), 7},
      {"no semicolon", kernel("add.u32 %r1, %r2, %r3\nadd.u32 %r1, %r2, %r3;"), 8},
      {"no brace", head + ".entry k() { ret; ", 4},
      {"brace too many", head + ".entry k() { ret; } }", 4},
      {"vector of the wrong length", kernel("ld.global.v4.u32 {%r1,%r2}, [%rd1];"), 7},
      {"vector without list", kernel("ld.global.v2.u32 %r1, [%rd1];"), 7},
      {"address without base", kernel("ld.global.u32 %r1, [];"), 7},
      {"float cut short", kernel("mov.f32 %f1, 0f3F80;"), 7},
      {"integer too long", kernel("mov.u64 %rd1, 0x10000000000000000;"), 7},
      {"odd alignment", head + ".global .align 3 .u32 a;", 4},
      {"array too large", head + ".global .b8 a[0x7fffffffffffffff][16];", 4},
      {"initialiser too long", head + ".global .u32 a[2] = {1, 2, 3};", 4},
      {"no size", head + ".global .b8 a[0];", 4},
      {"open bound without initialiser", head + ".global .b8 a[];", 4},
      {"negative bound", head + ".global .u32 a[-2];", 4},
      {"variable twice", head + ".global .u32 a;\n.global .u32 a;", 5},
      {"function twice", head + ".func f() { ret; }\n.func f() { ret; }", 5},
      {"address of nothing", head + ".global .u64 a = nothing;", 4},
      {"address in a byte", head + ".global .u32 b; .global .u8 a = b;", 4},
      {"memory that no device has", head + ".global .b8 a[0x400000000];", 0, CUDA_ERROR_OUT_OF_MEMORY},
      {"shared memory without end", kernel(".shared .b8 a[0x400000000]; mov.u32 %r1, a;"), 7},
      {"local memory without end", kernel(".local .b8 a[0x100000]; mov.u64 %rd1, a;"), 7},
      {"block of no size", head + ".entry k() .maxntid 0 { ret; }", 4},
      {"barrier without number of threads", kernel("bar.arrive 0;"), 7},
      {"atomic that does not exist", kernel("atom.global.inc.f32 %f1, [%rd1], %f2;"), 7},
      {"vector register", head + ".entry k() { .reg .v4 .f32 %v; ret; }", 4},
  };
  for (const Bad& bad : cases) {
    const Module::Loaded loaded = load_text(bad.text);
    EXPECT_EQ(loaded.module, nullptr) << bad.name;
    EXPECT_EQ(loaded.code, bad.code) << bad.name << ": " << loaded.log;
    EXPECT_FALSE(loaded.log.empty()) << bad.name;
    if (bad.line != 0) {
      EXPECT_EQ(loaded.log.rfind("line " + std::to_string(bad.line) + ": ", 0), 0u) << bad.name << ": " << loaded.log;
    }
  }
}

// Directives that affect a launch or a query are stored. Hints are skipped. All other directives are refused.
TEST(Ptx, EachDirectiveOfAFunctionIsKeptOrAHintOrRefused) {
  const auto with = [](const std::string& directives) { return head + ".entry k()\n" + directives + "\n{ ret; }\n"; };
  const ptx::Module module =
      ptx::parse(with(".explicitcluster .reqnctapercluster 2, 3 .reqntid 64 .maxnreg 40 "
                      ".blocksareclusters .minnctapersm 2 .maxnctapersm 4 .abi_preserve 8 "
                      ".abi_preserve_control 1 .noreturn .pragma \"anything\";"));
  const ptx::Function& function = module.functions.at(0);
  EXPECT_EQ(function.cluster, (std::array<std::uint32_t, 3>{2, 3, 1}));
  EXPECT_EQ(function.required_block, (std::array<std::uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(function.max_registers, 40u);
  EXPECT_TRUE(function.explicit_cluster && function.grid_of_clusters && function.no_return);
  EXPECT_EQ(ptx::parse(with(".maxclusterrank 4")).functions.at(0).max_cluster, 4u);
  const auto refused = [&](const std::string& directives, const std::string& said) {
    const Module::Loaded loaded = load_text(with(directives));
    EXPECT_EQ(loaded.code, CUDA_ERROR_INVALID_PTX) << directives;
    EXPECT_NE(loaded.log.find(said), std::string::npos) << loaded.log;
  };
  refused(".frobnicate 2", "the directive '.frobnicate' is not served");
  refused(".attribute(.frobnicated)", "the directive '.attribute' is not served");
  refused(".reqnctapercluster 2, 0", "out of range");
  refused(".reqnctapercluster 2, 2, 2, 2", "more than three dimensions");
  refused(".reqnctapercluster", "a number is missing");
  refused(".maxclusterrank 0", "out of range");
  refused(".minnctapersm", "a number is missing");
  refused(".maxclusterrank 4 .reqnctapercluster 2", "exclude each other");
  refused(".blocksareclusters .reqntid 32", ".blocksareclusters needs");
}

TEST(Ptx, AttributesOfFunctionsAndVariablesAreKnownOrRefused) {
  EXPECT_EQ(load_text(head + ".func .attribute(.unified(1, 2)) f() { ret; }\n").code, CUDA_SUCCESS);
  EXPECT_EQ(load_text(head + ".global .attribute(.managed) .u32 v;\n.global .attribute(.unified(1, 2)) .u32 w;\n").code,
            CUDA_SUCCESS);
  for (const std::string text : {".func .attribute(.managed) f() { ret; }", ".global .attribute(.frobnicated) .u32 v;",
                                 ".global .attribute(.unified(1, 2), .frobnicated) .u32 v;"}) {
    const Module::Loaded loaded = load_text(head + text + "\n");
    EXPECT_EQ(loaded.code, CUDA_ERROR_INVALID_PTX) << text;
    EXPECT_NE(loaded.log.find("is not served"), std::string::npos) << loaded.log;
  }
}

// A compiler obeys .maxnreg, and cuFuncGetAttribute reports the number of registers.
TEST(Ptx, AKernelHasNoMoreRegistersThanItsDirectiveAllows) {
  std::string body;
  for (int k = 0; k < 60; ++k)
    body += "ld.global.u32 %x" + std::to_string(k) + ", [%rd1+" + std::to_string(4 * k) + "];\n";
  for (int k = 0; k < 60; ++k) body += "st.global.u32 [%rd1], %x" + std::to_string(k) + ";\n";
  const auto registers = [&](const std::string& directive) {
    const Module::Loaded loaded =
        load_text(head + ".entry k(.param .u64 p) " + directive +
                  " { .reg .b64 %rd<2>; .reg .b32 %x<60>; ld.param.u64 %rd1, [p];\n" + body + "ret; }\n");
    return loaded.module == nullptr ? -1 : loaded.module->function("k")->registers;
  };
  EXPECT_GT(registers(""), 40);
  EXPECT_EQ(registers(".maxnreg 40"), 40);
}

TEST(Ptx, AnUnknownOpcodeIsNamed) {
  const Module::Loaded loaded = load_text(kernel("wgmma.fence.sync.aligned;"));
  EXPECT_EQ(loaded.log, "line 7: opcode wgmma.fence.sync.aligned is not served");
}

TEST(Ptx, NestingIsBounded) {
  const std::string open(100'000, '{');
  EXPECT_EQ(load_text(kernel(open)).code, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load_text(kernel("mov.u32 %r1, " + std::string(100'000, '(') + "1;")).code, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load_text(kernel("mov.u32 %r1, " + std::string(100'000, '-') + "1;")).code, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load_text(kernel("mov.u32 %r1, " + std::string(100'000, '[') + "1;")).code, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load_text(kernel("mov.u32 %r1, " + std::string(100'000, '!') + "%p1;")).code, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load_text(head + ".global .u32 a[4] = " + open).code, CUDA_ERROR_INVALID_PTX);
}

// A fixed sequence of damages: changed bytes, removed and duplicated parts. Any result is valid except a crash or a
// hang.
TEST(Ptx, DamagedTextsNeverCrash) {
  const std::string whole = head + R"(.extern .shared .align 16 .b8 dynamic[];
.global .align 8 .u64 table[2] = {generic(value), value+4};
.global .u32 value = 7;
.func (.param .b32 r) f(.param .align 8 .b8 a[16]) { .reg .b32 %r<4>; ld.param.u32 %r1, [a+4]; st.param.b32 [r], %r1; ret; }
)" +
                            kernel(R"(.shared .f32 s[4]; .local .b8 l[8];
  mov.u64 %rd1, l; cvta.local.u64 %rd2, %rd1; setp.lt.and.u32 %p1|%p2, %r1, 5, !%p3; @!%p1 bra $L2;
  { .param .align 8 .b8 x[16]; .param .b32 y; st.param.v2.b32 [x+8], {%r1, %r2}; call.uni (y), f, (x); ld.param.b32 %r3, [y]; }
  T: .branchtargets $L1, $L2; brx.idx %r1, T;
$L1: shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1; fma.rn.f32 %f1, %f2, 0f3F800000, %f1; atom.global.cas.b32 %r1, [table], 1, 2;
$L2: bar.red.popc.u32 %r1, 0, %p1; ld.global.v4.f32 {%f1,%f2,_,%f3}, [%rd1+-16]; cvt.rzi.s64.f64 %rd1, %fd1;)")
                                .substr(head.size());
  ASSERT_EQ(load_text(whole).code, CUDA_SUCCESS) << load_text(whole).log;
  std::uint32_t state = 12345;
  const auto next = [&](std::size_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  const std::string letters = ".,;:{}[]()@!%|+-<>=_ \n\"0189afuxbrdpsL$/*";
  int accepted = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string text = whole;
    for (std::size_t n = next(3) + 1; n > 0; --n) {
      const std::size_t at = next(text.size());
      const std::size_t length = std::min<std::size_t>(next(12) + 1, text.size() - at);
      switch (next(4)) {
        case 0: text[at] = letters[next(letters.size())]; break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, text.substr(next(text.size()), length)); break;
        default: text.resize(at); break;
      }
      if (text.empty()) text = " ";
    }
    const Module::Loaded loaded = load_text(text);
    EXPECT_EQ(loaded.code == CUDA_SUCCESS, loaded.module != nullptr);
    EXPECT_EQ(loaded.code == CUDA_SUCCESS, loaded.log.empty());
    accepted += loaded.code == CUDA_SUCCESS;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 3000);
}

}  // namespace
}  // namespace simgpu
