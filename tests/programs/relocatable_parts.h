// What the two files of `relocatable` share: relocatable_parts.cu defines it, relocatable.cu uses it.
#pragma once

struct Tally {
  unsigned calls;
  unsigned sum;
};

using Step = unsigned (*)(unsigned);

extern __device__ Tally tally;          // zero at first, kernels of both files add to it
extern __device__ unsigned weights[4];  // with initial values
extern __constant__ unsigned bias;      // set by relocatable.cu
extern __device__ Step chosen_step;     // the address of a function of relocatable_parts.cu
__device__ unsigned weighted(unsigned value);
__device__ unsigned recursive_sum(unsigned value);

// A kernel of the other file, launched there.
void launch_tally(unsigned count);
