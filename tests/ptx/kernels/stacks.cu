// Uses stack memory whose size is known only at run time, and atomics on objects of 16 bytes. integers.cu explains how
// these kernels are tested.
struct __align__(16) Pair {
  unsigned long long low, high;
};

extern "C" __global__ void taken(int n, int* data) {
  int* copy = static_cast<int*>(__builtin_alloca(static_cast<unsigned>(n) * sizeof(int)));
  for (int i = 0; i < n; ++i) copy[i] = data[i];
  for (int i = 0; i < n; ++i) data[i] = copy[(i * 7) % n];
}

__device__ __noinline__ int weighed(int n, const int* data) {
  int* copy = static_cast<int*>(__builtin_alloca(static_cast<unsigned>(n) * sizeof(int)));
  int sum = 0;
  for (int i = 0; i < n; ++i) copy[(i * 5) % n] = data[i];
  for (int i = 0; i < n; ++i) sum += copy[i] * i;
  return sum;
}
extern "C" __global__ void taken_in_functions(int n, int* data) {
  data[threadIdx.x] = weighed(n, data) + weighed(n + static_cast<int>(threadIdx.x), data);
}

extern "C" __global__ void pairs([[maybe_unused]] Pair* at, [[maybe_unused]] Pair* out, [[maybe_unused]] Pair a,
                                 [[maybe_unused]] Pair b) {
#if __CUDA_ARCH__ >= 900
  __shared__ Pair tile;
  if (threadIdx.x == 0) tile = a;
  __syncthreads();
  out[0] = atomicExch(at, a);
  out[1] = atomicCAS(at, a, b);
  out[2] = atomicExch_block(&tile, b);
  out[3] = atomicCAS_system(at + 1, b, a);
  __nv_atomic_load(at + 2, out + 4, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM);
  __nv_atomic_load(at + 2, out + 5, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_store(at + 3, &a, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_BLOCK);
  __nv_atomic_exchange(at + 4, &a, out + 6, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM);
#endif
}
