// Forms of alloca, stacksave and stackrestore, which allocate and free memory on a thread's stack.
#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

// Allocations of different sizes and alignments must not overlap.
void pieces(Forms& forms) {
  add_text<u32, u32>(
      forms, "alloca.u64",
      "and.b32 %r1, %a, 124; cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd1, 4;\n"
      "alloca.u64 %rd2, %rd1, 32; alloca.u64 %rd3, %rd1; alloca.u64 %rd4, 4, 4;\n"
      "add.u64 %rd5, %rd2, %rd1; add.u64 %rd6, %rd3, %rd1;\n"
      "st.local.u32 [%rd2], 1; st.local.u32 [%rd5+-4], %a; st.local.u32 [%rd3], 2;\n"
      "st.local.u32 [%rd6+-4], 3; st.local.u32 [%rd4], 4;\n"
      "ld.local.u32 %r2, [%rd5+-4]; and.b64 %rd7, %rd2, 31; and.b64 %rd8, %rd3, 7; or.b64 %rd7, %rd7, %rd8;\n"
      "cvt.u32.u64 %r3, %rd7; add.u32 %d, %r2, %r3;",
      [](u32 a) { return a; });
  // nvcc emits this sequence.
  add_text<u32, u32>(forms, "alloca.u64",
                     "alloca.u64 %rd1, 16, 16; cvta.local.u64 %rd1, %rd1; cvta.to.local.u64 %rd2, %rd1;\n"
                     "st.local.u32 [%rd2+8], %a; ld.u32 %d, [%rd1+8];",
                     [](u32 a) { return a; });
}

constexpr const char* functions = R"(
.func (.param .b32 result) filled(.param .b32 value, .param .b64 size)
{
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u32 %r1, [value]; ld.param.u64 %rd1, [size];
alloca.u64 %rd2, %rd1, 8; st.local.u32 [%rd2], %r1; add.u64 %rd3, %rd2, %rd1; st.local.u32 [%rd3+-4], %r1;
ld.local.u32 %r2, [%rd2]; ld.local.u32 %r3, [%rd3+-4]; add.u32 %r2, %r2, %r3; st.param.b32 [result], %r2; ret;
}
)";

// The memory that a function has allocated is freed when the function returns: five hundred times 96 bytes would exceed
// the stack.
void returns(Forms& forms) {
  add_text<u32, u32>(forms, "alloca.u64",
                     "mov.u32 %d, 0; mov.u32 %r1, 500; alloca.u64 %rd1, 8; st.local.u32 [%rd1], %a;\n"
                     "and.b32 %r3, %a, 7; mul.lo.u32 %r3, %r3, 8; add.u32 %r3, %r3, 40; cvt.u64.u32 %rd2, %r3;\nNEXT:\n"
                     "{ .param .b32 x; st.param.b32 [x], %r1; .param .b64 z; st.param.b64 [z], %rd2; .param .b32 y;\n"
                     "call (y), filled, (x, z); ld.param.b32 %r2, [y]; }\nadd.u32 %d, %d, %r2; sub.u32 %r1, %r1, 1;\n"
                     "setp.ne.u32 %p1, %r1, 0; @%p1 bra NEXT;\nld.local.u32 %r2, [%rd1]; add.u32 %d, %d, %r2;",
                     [](u32 a) { return a + 500 * 501; })
      .declarations = functions;
}

// stackrestore frees the memory that was allocated after the stacksave, and keeps the memory that was allocated before.
void saves(Forms& forms) {
  const std::string text =
      "mov.u32 %r1, 500; alloca.u64 %rd1, 8; st.local.u32 [%rd1], %a;\nNEXT:\nstacksave.u64 %rd2;\n"
      "alloca.u64 %rd3, 96; st.local.u32 [%rd3], %r1; st.local.u32 [%rd3+92], %r1; stackrestore.u64 %rd2;\n"
      "sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra NEXT;\nld.local.u32 %d, [%rd1];";
  add_text<u32, u32>(forms, "stacksave.u64", text, [](u32 a) { return a; });
  add_text<u32, u32>(forms, "stackrestore.u64", text, [](u32 a) { return a; });
}

}  // namespace

void stack_forms(Forms& forms) {
  const std::size_t first = forms.size();
  pieces(forms);
  returns(forms);
  saves(forms);
  for (std::size_t k = first; k < forms.size(); ++k) forms[k].rows.resize(128);
}

}  // namespace ptx_forms
