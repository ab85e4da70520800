// Uses nvcuda::wmma with the types and shapes of the virtual architecture. The kernels are only loaded, never run.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

template <int M, int N, int K, class T, class S, class Left, class Right, class P>
__device__ void product(const P* a, const P* b, S* c, wmma::layout_t layout) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, Left> left;
  wmma::fragment<wmma::matrix_b, M, N, K, T, Right> right;
  wmma::fragment<wmma::accumulator, M, N, K, S> sum;
  wmma::load_matrix_sync(left, a, 128);
  wmma::load_matrix_sync(right, b, 128);
  wmma::load_matrix_sync(sum, c, 32, layout);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 32, layout);
}

template <int M, int N, int K, class T, class S, class P>
__device__ void every_layout(const P* a, const P* b, S* c) {
  product<M, N, K, T, S, wmma::row_major, wmma::row_major>(a, b, c, wmma::mem_row_major);
  product<M, N, K, T, S, wmma::row_major, wmma::col_major>(a, b, c, wmma::mem_col_major);
  product<M, N, K, T, S, wmma::col_major, wmma::row_major>(a, b, c, wmma::mem_row_major);
  product<M, N, K, T, S, wmma::col_major, wmma::col_major>(a, b, c, wmma::mem_col_major);
}

template <class T, class S>
__device__ void every_shape(const T* a, const T* b, S* c) {
  every_layout<16, 16, 16, T>(a, b, c);
  every_layout<32, 8, 16, T>(a, b, c);
  every_layout<8, 32, 16, T>(a, b, c);
}

__global__ void halves(const half* a, const half* b, float* c, half* d) {
  every_shape(a, b, c);
  every_shape(a, b, d);
}

__global__ void bytes(const signed char* a, const signed char* b, const unsigned char* x, const unsigned char* y,
                      int* c) {
  every_shape(a, b, c);
  every_shape(x, y, c);
}

__global__ void below_bytes(const void* a, const void* b, int* c) {
  namespace few = wmma::experimental;
  product<8, 8, 32, few::precision::s4, int, wmma::row_major, wmma::col_major>(a, b, c, wmma::mem_row_major);
  product<8, 8, 32, few::precision::u4, int, wmma::row_major, wmma::col_major>(a, b, c, wmma::mem_col_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 128, few::precision::b1, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, few::precision::b1, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> sum;
  wmma::fill_fragment(sum, 0);
  wmma::load_matrix_sync(left, a, 128);
  wmma::load_matrix_sync(right, b, 128);
  wmma::bmma_sync(sum, left, right, sum);
#if __CUDA_ARCH__ >= 800
  wmma::bmma_sync(sum, left, right, sum, few::bmmaBitOpAND);
#endif
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

#if __CUDA_ARCH__ >= 800
__global__ void newer(const __nv_bfloat16* a, const __nv_bfloat16* b, const float* x, const float* y, float* c,
                      const double* p, const double* q, double* r) {
  every_shape(a, b, c);
  every_layout<16, 16, 8, wmma::precision::tf32>(x, y, c);
  every_layout<8, 8, 4, double>(p, q, r);
}
#endif

__global__ void in_shared(const half* from, float* c) {
  __shared__ __align__(32) half tile[256];
  tile[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(left, tile, 16);
  wmma::load_matrix_sync(right, tile, 16);
  for (int k = 0; k < left.num_elements; ++k) left.x[k] = __hneg(left.x[k]);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
