// The kernels of driver_api. They are built into separate images: a fat binary, PTX and a cubin.

// A hundred parameters of four types, so that every kind of padding occurs, and the result's address.
#define FOUR(i) signed char a##i, int b##i, short c##i, double d##i
#define FIVE_FOURS(i) FOUR(i##0), FOUR(i##1), FOUR(i##2), FOUR(i##3), FOUR(i##4)
#define ADD(value) sum = sum * 31 + static_cast<long long>(value)
#define ADD_FOUR(i) ADD(d##i), ADD(c##i), ADD(b##i), ADD(a##i)
#define ADD_FIVE_FOURS(i) ADD_FOUR(i##0), ADD_FOUR(i##1), ADD_FOUR(i##2), ADD_FOUR(i##3), ADD_FOUR(i##4)

extern "C" __global__ void many_parameters(FIVE_FOURS(0), FIVE_FOURS(1), FIVE_FOURS(2), FIVE_FOURS(3), FIVE_FOURS(4),
                                           long long* out) {
  unsigned long long sum = 0;
  ADD_FIVE_FOURS(0);
  ADD_FIVE_FOURS(1);
  ADD_FIVE_FOURS(2);
  ADD_FIVE_FOURS(3);
  ADD_FIVE_FOURS(4);
  *out = static_cast<long long>(sum);
}

struct Numbers {
  int value[2000];
};

extern "C" __global__ void large_parameters(const __grid_constant__ Numbers numbers, int factor, long long* out) {
  long long sum = 0;
  for (int i = 0; i < 2000; ++i) sum += static_cast<long long>(numbers.value[i]) * (i % factor);
  *out = sum;
}

__constant__ int scale = 3;
__device__ int table[64];

// Static shared memory reverses the order, and dynamic shared memory computes a running sum.
extern "C" __global__ void __launch_bounds__(256) work(const int* in, int* out, int n) {
  __shared__ int turned[256];
  extern __shared__ int sum[];
  const int i = threadIdx.x;
  turned[blockDim.x - 1 - i] = i < n ? in[i] * scale + table[i % 64] : 0;
  __syncthreads();
  if (i == 0) {
    sum[0] = turned[0];
    for (unsigned j = 1; j < blockDim.x; ++j) sum[j] = sum[j - 1] + turned[j];
  }
  __syncthreads();
  if (i < n) out[i] = sum[i];
}
