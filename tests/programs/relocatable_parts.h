// Declarations that both files of `relocatable` use. relocatable_parts.cu defines them for relocatable.cu.
#pragma once

struct Tally {
  unsigned calls;
  unsigned sum;
};

using Step = unsigned (*)(unsigned);

extern __device__ Tally tally;          // initially zero; kernels of both files add to it
extern __device__ unsigned weights[4];  // with initial values
extern __constant__ unsigned bias;      // relocatable.cu sets its value
extern __device__ Step chosen_step;     // the address of a function of relocatable_parts.cu
__device__ unsigned weighted(unsigned value);
__device__ unsigned recursive_sum(unsigned value);

// Launches a kernel of relocatable_parts.cu.
void launch_tally(unsigned count);
