// PTX of a kernel with an adjustable run time, for programs that need a busy GPU.
#pragma once

// long_kernel(ns): runs for `ns` nanoseconds.
inline constexpr const char* long_kernel_text = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry long_kernel(.param .u64 ns) {
  .reg .u64 %rd<5>;
  .reg .pred %p;
  ld.param.u64 %rd1, [ns];
  mov.u64 %rd2, %globaltimer;
again:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p, %rd4, %rd1;
  @%p bra again;
  ret;
}
)";
