// The kernels of the group `memory`. They form their own module, so that other figures, mainly the first result, do not
// include their compilation.
#pragma once

namespace measure {

// read_words(from, vectors, sums): the grid reads 16 bytes at a time, and each thread writes the sum of its words.
// sample_texture(texture, edge_bits, passes, sums): each pass samples between every two neighbouring texels of a row,
// and each thread writes the sum of its samples. Each pass starts one texel further than the previous pass, so that the
// compiler cannot merge the passes.
inline constexpr const char* memory_kernels = R"(.version 7.5
.target sm_75
.address_size 64

.visible .entry read_words(.param .u64 from, .param .u64 vectors, .param .u64 sums)
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [vectors];
  ld.param.u64 %rd3, [sums];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd3, %rd3;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.lo.u32 %r4, %r4, %r2;
  cvt.u64.u32 %rd4, %r1;
  cvt.u64.u32 %rd5, %r4;
  mov.u32 %r5, 0;
  bra MORE;
NEXT:
  shl.b64 %rd6, %rd4, 4;
  add.u64 %rd6, %rd1, %rd6;
  ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd6];
  add.u32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %r7;
  add.u32 %r5, %r5, %r8;
  add.u32 %r5, %r5, %r9;
  add.u64 %rd4, %rd4, %rd5;
MORE:
  setp.lt.u64 %p1, %rd4, %rd2;
  @%p1 bra NEXT;
  mul.wide.u32 %rd7, %r1, 4;
  add.u64 %rd7, %rd3, %rd7;
  st.global.u32 [%rd7], %r5;
  ret;
}

.visible .entry sample_texture(.param .u64 texture, .param .u32 edge_bits, .param .u32 passes, .param .u64 sums)
{
  .reg .pred %p<3>;
  .reg .b32 %r<14>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [texture];
  ld.param.u32 %r5, [edge_bits];
  ld.param.u32 %r6, [passes];
  ld.param.u64 %rd2, [sums];
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.lo.u32 %r4, %r4, %r2;
  mov.u32 %r7, 1;
  shl.b32 %r8, %r7, %r5;
  sub.u32 %r8, %r8, 1;
  shl.b32 %r9, %r7, %r5;
  shl.b32 %r9, %r9, %r5;
  mov.f32 %f1, 0f00000000;
  bra MOREPASSES;
PASS:
  sub.u32 %r6, %r6, 1;
  mov.u32 %r10, %r1;
  bra MORE;
NEXT:
  add.u32 %r11, %r10, %r6;
  and.b32 %r12, %r11, %r8;
  shr.u32 %r11, %r11, %r5;
  and.b32 %r13, %r11, %r8;
  cvt.rn.f32.u32 %f2, %r12;
  cvt.rn.f32.u32 %f3, %r13;
  add.f32 %f2, %f2, 0f3F800000;
  add.f32 %f3, %f3, 0f3F000000;
  tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f2, %f3}];
  add.f32 %f1, %f1, %f4;
  add.u32 %r10, %r10, %r4;
MORE:
  setp.lt.u32 %p1, %r10, %r9;
  @%p1 bra NEXT;
MOREPASSES:
  setp.ne.u32 %p2, %r6, 0;
  @%p2 bra PASS;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.global.f32 [%rd3], %f1;
  ret;
}
)";

}  // namespace measure
