// The PTX module of the loopback tests for the simulated GPU. The fake driver knows the names in it.
#pragma once

namespace loopback {

inline constexpr const char* module_text = R"(.version 7.5
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter[4];

.visible .entry fill(.param .u64 at, .param .u32 count, .param .u32 value)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [at];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [value];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r3, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r3, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r2;
DONE:
  ret;
}

.visible .entry fault()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 16;
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}

.visible .entry nothing()
{
  ret;
}
)";

}  // namespace loopback
