// The launched kernels as PTX, so that neither the build nor the program needs a compiler of the toolkit.
#pragma once

namespace measure {

inline constexpr const char* kernels = R"(.version 7.5
.target sm_75
.address_size 64

.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d, .param .f32 e, .param .f32 f,
                        .param .u32 g, .param .u32 h)
{
  ret;
}

.visible .entry store(.param .u64 at, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [at];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

}  // namespace measure
