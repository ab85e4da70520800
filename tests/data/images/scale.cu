// Compiled in several ways at build time, for the tests of fat binaries.
extern "C" __global__ void scale(float* data, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] *= factor;
}
