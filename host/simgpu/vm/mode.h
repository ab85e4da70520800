// The processor's floating-point mode (MXCSR): rounding and subnormals. MXCSR is written only if an instruction needs
// another mode than the previous instruction.
#pragma once

#include <xmmintrin.h>

#include "host/simgpu/isa/scalar.h"
#include "host/simgpu/vm/ctx.h"

namespace simgpu::SIMGPU_ISA {

// All exceptions are masked. Bits 13 and 14 select the rounding; 0x8000 flushes subnormal results, 0x0040 subnormal
// inputs.
SIMGPU_INLINE u32 mode_of(u32 flags) {
  return 0x1f80U | (flags & round_mask) << 13 | ((flags & flag_ftz) != 0 ? 0x8040U : 0U);
}

// The compiler barrier keeps the loads and arithmetic of the lanes after the change of mode.
SIMGPU_INLINE void set_mode(Ctx& c, u32 flags) {
  const u32 wanted = mode_of(flags);
  if (c.csr != wanted) [[unlikely]] {
    _mm_setcsr(wanted);
    c.csr = wanted;
  }
  asm volatile("" ::: "memory");
}

}  // namespace simgpu::SIMGPU_ISA
