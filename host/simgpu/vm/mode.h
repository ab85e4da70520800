// The processor's floating-point mode (MXCSR): rounding and subnormals. It is written only if an instruction needs
// another mode than the previous one.
#pragma once

#include <xmmintrin.h>

#include "host/simgpu/isa/scalar.h"
#include "host/simgpu/vm/ctx.h"

namespace simgpu::SIMGPU_ISA {

// All exceptions masked; rounding in bits 13 and 14; 0x8000 flushes results, 0x0040 inputs.
SIMGPU_INLINE u32 mode_of(u32 flags) {
  return 0x1f80U | (flags & round_mask) << 13 | ((flags & flag_ftz) != 0 ? 0x8040U : 0U);
}

// The barrier keeps the lanes' loads and arithmetic after the change.
SIMGPU_INLINE void set_mode(Ctx& c, u32 flags) {
  const u32 wanted = mode_of(flags);
  if (c.csr != wanted) [[unlikely]] {
    _mm_setcsr(wanted);
    c.csr = wanted;
  }
  asm volatile("" ::: "memory");
}

}  // namespace simgpu::SIMGPU_ISA
