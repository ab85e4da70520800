// Forms of branches, calls, barriers, fences, address conversions and special registers.
#include <bit>

#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

void branches(Forms& forms) {
  add_text<u32, u32>(forms, "bra",
                     "mov.u32 %d, 0; and.b32 %r1, %a, 15;\nNEXT:\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra DONE;\n"
                     "add.u32 %d, %d, %r1; sub.u32 %r1, %r1, 1;\nbra NEXT;\nDONE:",
                     [](u32 a) { return (a & 15) * ((a & 15) + 1) / 2; });
  add_text<u32, u32>(forms, "bra", "setp.gt.s32 %p1, %a, 5; mov.u32 %d, 1;\n@!%p1 bra LOW;\nmov.u32 %d, 2;\nLOW:",
                     [](u32 a) { return static_cast<s32>(a) > 5 ? 2U : 1U; });
  add_text<u32, u32>(forms, "bra.uni", "mov.u32 %d, 7;\nbra.uni END;\nmov.u32 %d, 8;\nEND:", [](u32) { return 7U; });
  add_text<u32, u32>(forms, "brx.idx",
                     "and.b32 %r1, %a, 3;\nTARGETS: .branchtargets ZERO, ONE, TWO, ONE;\nbrx.idx %r1, TARGETS;\n"
                     "ZERO:\nmov.u32 %d, 100; bra END;\nONE:\nmov.u32 %d, 101; bra END;\nTWO:\nmov.u32 %d, 102;\nEND:",
                     [](u32 a) { return (a & 3) == 0   ? 100U
                                        : (a & 3) == 2 ? 102U
                                                       : 101U; });
  // Any instruction may have a guard.
  add_text<u32, u32, u32>(forms, "add.s32",
                          "setp.lt.u32 %p1, %a, %b; mov.u32 %d, %a;\n@%p1 add.s32 %d, %d, 3;\n"
                          "@!%p1 sub.s32 %d, %d, 3;",
                          [](u32 a, u32 b) { return a < b ? a + 3 : a - 3; });
  // For every family of instructions, a false guard leaves the destination unchanged.
  const auto stays = [&](const std::string& opcode, const std::string& operands, u32 otherwise) {
    add_text<u32, u32, u32>(
        forms, opcode,
        "setp.lt.u32 %p1, %a, %b; mov.u32 %d, %a; mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0f3FC00000;\n@%p1 " + opcode +
            " %d, " + operands + ";",
        [=](u32 a, u32 b) { return a < b ? otherwise : a; });
  };
  stays("add.f32", "0f3F800000, 0f3F800000", 0x4000'0000);
  stays("fma.rn.f32", "0f3F800000, 0f40000000, 0f3F800000", 0x4040'0000);
  stays("add.f16x2", "%r1, %r1", 0x4000'4000);
  stays("cvt.rni.f32.f32", "%r2", 0x4000'0000);
  stays("mul.lo.u32", "6, 7", 42);
  stays("popc.b32", "%r1", 8);
  add_text<u64, u32, u32>(forms, "add.f64",
                          "setp.lt.u32 %p1, %a, %b; cvt.u64.u32 %d, %a;\n"
                          "@%p1 add.f64 %d, 0d3FF0000000000000, 0d3FF0000000000000;",
                          [](u32 a, u32 b) { return a < b ? u64{0x4000'0000'0000'0000} : u64{a}; });
  add_text<u32, u32>(forms, "exit",
                     "mov.u32 %d, %a; st.global.u32 [%out], %d; st.global.u32 [%out+4], 0;\n"
                     "mov.b64 %wide, 0; st.global.b64 [%out+8], %wide; setp.ne.u32 %p1, %a, 5; @%p1 exit;",
                     [](u32 a) { return a; });
}

constexpr const char* functions = R"(
.func (.param .b32 result) twice(.param .b32 value)
{
.reg .b32 %r<3>;
ld.param.u32 %r1, [value]; add.u32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret;
}
.func (.param .b32 result) next(.param .b32 value)
{
.reg .b32 %r<3>;
ld.param.u32 %r1, [value]; add.u32 %r2, %r1, 1; st.param.b32 [result], %r2; ret;
}
.func (.param .b32 result) steps(.param .b32 value)
{
.reg .b32 %r<5>; .reg .pred %p<2>;
ld.param.u32 %r1, [value]; setp.eq.u32 %p1, %r1, 0; mov.u32 %r4, 0; @%p1 bra DONE;
sub.u32 %r2, %r1, 1;
{ .param .b32 x; st.param.b32 [x], %r2; .param .b32 y; call.uni (y), steps, (x); ld.param.b32 %r3, [y]; }
add.u32 %r4, %r3, %r1;
DONE:
st.param.b32 [result], %r4; ret;
}
.func (.param .align 8 .b8 result[24]) turned(.param .align 8 .b8 value[24])
{
.reg .b64 %rd<5>;
ld.param.b64 %rd1, [value]; ld.param.b64 %rd2, [value+8]; ld.param.b64 %rd3, [value+16];
st.param.b64 [result], %rd3; st.param.b64 [result+8], %rd1; st.param.b64 [result+16], %rd2; ret;
}
.global .align 8 .u64 table[2] = {twice, next};
)";

void calls(Forms& forms) {
  const auto add = [&](const std::string& name, const std::string& text, auto reference) {
    add_text<u32, u32>(forms, name, text, reference).declarations = functions;
  };
  const std::string direct =
      "{ .param .b32 x; st.param.b32 [x], %a; .param .b32 y; @ (y), twice, (x); ld.param.b32 %d, [y]; }";
  const auto with = [](std::string text, const std::string& what) { return text.replace(text.find('@'), 1, what); };
  add("call.uni", with(direct, "call.uni"), [](u32 a) { return 2 * a; });
  add("call", with(direct, "call"), [](u32 a) { return 2 * a; });
  // The lanes of a warp call different functions.
  add("call",
      "{ .reg .b64 %target;\nKIND: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
      "and.b32 %r1, %a, 1; mov.u64 %rd1, table; mad.wide.u32 %rd1, %r1, 8, %rd1; ld.global.u64 %target, [%rd1];\n"
      ".param .b32 x; st.param.b32 [x], %a; .param .b32 y; call (y), %target, (x), KIND; ld.param.b32 %d, [y]; }",
      [](u32 a) { return (a & 1) != 0 ? a + 1 : 2 * a; });
  add("call",
      "and.b32 %r1, %a, 7; { .param .b32 x; st.param.b32 [x], %r1; .param .b32 y; call (y), steps, (x); "
      "ld.param.b32 %d, [y]; }",
      [](u32 a) { return (a & 7) * ((a & 7) + 1) / 2; });
  add("ret",
      "{ .param .align 8 .b8 x[24]; st.param.b64 [x], 5; st.param.b64 [x+8], 6; cvt.u64.u32 %rd1, %a; "
      "st.param.b64 [x+16], %rd1; .param .align 8 .b8 y[24]; call (y), turned, (x); ld.param.b64 %rd2, [y]; "
      "cvt.u32.u64 %d, %rd2; }",
      [](u32 a) { return a; });
}

// Thread t reads the value that its counterpart at the other end of the block has written.
void barriers(Forms& forms) {
  const std::string other =
      "mov.u32 %r1, %tid.x; sub.u32 %r2, 127, %r1; mov.u32 %r3, tile; mad.lo.u32 %r2, %r2, 64, %r3;\n"
      "st.shared.u32 [%tile], %r1;\n";
  const auto add = [&](const std::string& opcode, const std::string& operands, unsigned target) {
    Form& form = add_text<u32, u32>(forms, opcode, other + opcode + operands + "ld.shared.u32 %d, [%r2];",
                                    [](u32) { return 0U; });
    form.rows.assign(256, Row{});
    for (std::size_t k = 0; k < form.rows.size(); ++k) form.rows[k].in[0] = k % 128;
    form.reference = [](const Row* rows, unsigned lane) { return Result{127 - rows[lane].in[0], 0}; };
    form.target = target;
  };
  add("bar.sync", " 0;\n", 75);
  add("bar.sync", " 3, 128;\n", 75);
  add("barrier.sync", " 0;\n", 75);
  add("barrier.sync", " 1, 128;\n", 75);
  add("barrier.sync.aligned", " 2;\n", 75);
  add("bar.cta.sync", " 0;\n", 75);
  add("barrier.cta.sync", " 0;\n", 75);
  add("barrier.cta.sync.aligned", " 5, 128;\n", 75);
  add("barrier.cluster.arrive", ";\nbarrier.cluster.wait;\nbar.sync 0;\n", 90);
}

void counted_barriers(Forms& forms) {
  const auto add = [&](const std::string& opcode, bool number, auto result) {
    const std::string test = "and.b32 %r1, %a, 1; setp.ne.u32 %p1, %r1, 0;\n";
    const std::string text =
        number ? test + opcode + " %d, 0, %p1;" : test + opcode + " %p2, 0, %p1; selp.u32 %d, 1, 0, %p2;";
    Form& form = add_text<u32, u32>(forms, opcode, text, [](u32) { return 0U; });
    form.rows.assign(384, Row{});
    for (std::size_t k = 0; k < form.rows.size(); ++k) form.rows[k].in[0] = k < 128 ? 1 : k < 256 ? 0 : k % 3 == 0;
    // In the third block, threads 256 to 383, the predicate is true for the multiples of three.
    form.reference = [result](const Row* rows, unsigned lane) {
      const bool mixed = rows[0].in[0] + rows[1].in[0] + rows[2].in[0] == 1;
      (void)lane;
      return Result{result(mixed ? 42U : rows[0].in[0] != 0 ? 128U : 0U), 0};
    };
  };
  u32 multiples = 0;
  for (u32 k = 256; k < 384; ++k) multiples += k % 3 == 0;
  const auto count = [multiples](u32 c) { return c == 42 ? multiples : c; };
  add("bar.red.popc.u32", true, [=](u32 c) { return Bits{count(c)}; });
  add("bar.red.and.pred", false, [](u32 c) { return Bits{c == 128}; });
  add("bar.red.or.pred", false, [](u32 c) { return Bits{c != 0}; });
  add("barrier.red.popc.u32", true, [=](u32 c) { return Bits{count(c)}; });
  add("barrier.cta.red.popc.aligned.u32", true, [=](u32 c) { return Bits{count(c)}; });
  add("barrier.cta.red.and.aligned.pred", false, [](u32 c) { return Bits{c == 128}; });
  add("barrier.cta.red.or.pred", false, [](u32 c) { return Bits{c != 0}; });
}

// A fence has no effect that a single thread could observe. These forms only check that it is accepted.
void fences(Forms& forms) {
  const auto add = [&](const std::string& opcode, unsigned target) {
    add_text<u32, u32>(forms, opcode, "st.global.u32 [%mem], %a;\n" + opcode + ";\nld.global.u32 %d, [%mem];",
                       [](u32 a) { return a; })
        .target = target;
  };
  for (const std::string level : {"cta", "gl", "sys"}) add("membar." + level, 75);
  for (const std::string scope : {"cta", "gpu", "sys", "cluster"}) {
    const unsigned target = scope == "cluster" ? 90 : 75;
    add("fence.sc." + scope, target);
    add("fence.acq_rel." + scope, target);
    add("fence." + scope, target);
    add("fence.acquire." + scope, 90);
    add("fence.release." + scope, 90);
  }
  for (const std::string proxy : {"alias", "async", "async.global", "async.shared::cta"}) {
    add("fence.proxy." + proxy, proxy == "alias" ? 75 : 90);
  }
  add("fence.mbarrier_init.release.cluster", 90);
  add_text<u32, u32>(forms, "nanosleep.u32", "nanosleep.u32 20; mov.u32 %d, %a;", [](u32 a) {
    return a;
  }).rows.resize(32);
  add_text<u32, u32>(forms, "prefetch.global.L1", "prefetch.global.L1 [%in]; prefetch.global.L2 [%in]; mov.u32 %d, %a;",
                     [](u32 a) { return a; });
  add_text<u32, u32>(forms, "prefetchu.L1", "prefetchu.L1 [%in]; mov.u32 %d, %a;", [](u32 a) { return a; });
}

// ---- addresses

void addresses(Forms& forms) {
  const auto add = [&](const std::string& name, const std::string& text) {
    add_text<u32, u32>(forms, name, text, [](u32 a) { return a; });
  };
  add("cvta.to.global.u64",
      "cvta.to.global.u64 %rd1, %mem; st.global.u32 [%rd1], %a; cvta.global.u64 %rd2, %rd1; "
      "ld.u32 %d, [%rd2];");
  add("cvta.global.u64", "cvta.global.u64 %rd1, %mem; st.u32 [%rd1], %a; ld.global.u32 %d, [%mem];");
  add("cvta.shared.u64",
      "cvt.u64.u32 %rd1, %tile; cvta.shared.u64 %rd2, %rd1; st.u32 [%rd2], %a; "
      "ld.shared.u32 %d, [%tile];");
  add("cvta.to.shared.u64",
      "cvt.u64.u32 %rd1, %tile; cvta.shared.u64 %rd2, %rd1; cvta.to.shared.u64 %rd3, %rd2; "
      "st.shared.u32 [%rd3], %a; ld.shared.u32 %d, [%tile];");
  add("cvta.local.u64",
      "{ .local .align 8 .b8 stack[16]; mov.u64 %rd1, stack; cvta.local.u64 %rd2, %rd1; "
      "st.u32 [%rd2+4], %a; ld.local.u32 %d, [stack+4]; }");
  add("cvta.to.local.u64",
      "{ .local .align 8 .b8 stack[16]; mov.u64 %rd1, stack; cvta.local.u64 %rd2, %rd1; "
      "cvta.to.local.u64 %rd3, %rd2; st.local.u32 [%rd3+8], %a; ld.u32 %d, [%rd2+8]; }");
  const std::string all_spaces =
      "{ .local .align 8 .b8 stack[16]; mov.u64 %rd1, stack; cvta.local.u64 %rd1, %rd1; "
      "cvt.u64.u32 %rd2, %tile; cvta.shared.u64 %rd2, %rd2; mov.u32 %d, 0;\n";
  u32 bit = 1;
  for (const std::string space : {"local", "shared", "global"}) {
    std::string text = all_spaces;
    for (const std::string address : {"%rd1", "%rd2", "%mem"}) {
      text += "isspacep." + space + " %p1, " + address + "; selp.u32 %r1, 1, 0, %p1; mad.lo.u32 %d, %d, 2, %r1;\n";
    }
    add_text<u32, u32>(forms, "isspacep." + space, text + "}",
                       [wanted = 8 >> bit](u32) { return static_cast<u32>(wanted); });
    ++bit;
  }
}

// ---- special registers

void specials(Forms& forms) {
  const auto add = [&](const std::string& name, auto reference, unsigned target = 75) {
    Form& form = add_text<u32, u32>(forms, "mov.u32", "mov.u32 %d, " + name + ";", [](u32) { return 0U; });
    form.rows.assign(256, Row{});
    for (std::size_t k = 0; k < form.rows.size(); ++k) form.rows[k].in[0] = k;
    form.reference = [reference](const Row* rows, unsigned lane) {
      return Result{static_cast<u32>(reference(static_cast<u32>(rows[lane].in[0]), u32{lane})), 0};
    };
    form.target = target;
  };
  add("%tid.x", [](u32 t, u32) { return t % 128; });
  add("%ctaid.x", [](u32 t, u32) { return t / 128; });
  add("%nctaid.x", [](u32, u32) { return 2; });
  for (const char* const one : {"%ntid.y", "%ntid.z", "%nctaid.y", "%nctaid.z"}) add(one, [](u32, u32) { return 1; });
  for (const char* const zero : {"%tid.y", "%tid.z", "%ctaid.y", "%ctaid.z"}) add(zero, [](u32, u32) { return 0; });
  add("%ntid.x", [](u32, u32) { return 128; });
  add("%laneid", [](u32, u32 lane) { return lane; });
  add("%lanemask_eq", [](u32, u32 lane) { return 1U << lane; });
  add("%lanemask_lt", [](u32, u32 lane) { return (1U << lane) - 1; });
  add("%lanemask_le", [](u32, u32 lane) { return (2U << lane) - 1; });
  add("%lanemask_gt", [](u32, u32 lane) { return ~((2U << lane) - 1); });
  add("%lanemask_ge", [](u32, u32 lane) { return ~((1U << lane) - 1); });
  add("%dynamic_smem_size", [](u32, u32) { return 0; });
  for (const char* const one : {"%nclusterid.y", "%cluster_nctaid.x", "%cluster_nctarank"}) {
    add(
        one, [](u32, u32) { return 1; }, 90);
  }
  for (const char* const zero : {"%cluster_ctaid.x", "%cluster_ctarank"})
    add(
        zero, [](u32, u32) { return 0; }, 90);
  // The second reading of a clock is later than the first.
  for (const std::string clock : {"%clock64", "%globaltimer"}) {
    add_text<u32, u32>(forms, "mov.u64",
                       "mov.u64 %rd1, " + clock + "; nanosleep.u32 5000; mov.u64 %rd2, " + clock +
                           "; setp.ge.u64 %p1, %rd2, %rd1; selp.u32 %d, 1, 0, %p1;",
                       [](u32) { return 1U; })
        .rows.resize(32);
  }
}

}  // namespace

void control_forms(Forms& forms) {
  branches(forms);
  calls(forms);
  barriers(forms);
  counted_barriers(forms);
  fences(forms);
  addresses(forms);
  specials(forms);
}

}  // namespace ptx_forms
