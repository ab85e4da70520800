// cuBLAS: products of matrices of each type, batched in both ways, and some smaller routines, on a stream, with the
// program's own workspace and with scalars on the device.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>

#include "tests/conformance/library.h"

namespace {

using library::numbers;

constexpr int rows = 192, columns = 160, inner = 256;

template <class T>
void gemm(cublasHandle_t blas, const char* what, cudaDataType type, cublasComputeType_t compute, double tolerance) {
  const auto a = numbers<T>(rows * inner, 1), b = numbers<T>(inner * columns, 2);
  T *da = check::device_copy(a), *db = check::device_copy(b), *dc = check::device_buffer<T>(rows * columns);
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const bool wide = compute == CUBLAS_COMPUTE_64F;
  const void *alpha = wide ? static_cast<const void*>(&one64) : &one,
             *beta = wide ? static_cast<const void*>(&zero64) : &zero;
  CHECK_LIBRARY(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, rows, columns, inner, alpha, da, type, rows, db, type,
                             inner, beta, dc, type, rows, compute, CUBLAS_GEMM_DEFAULT));
  const auto c = check::host_copy(dc, rows * columns);
  library::check_near(what, c, library::product(a, b, rows, columns, inner), tolerance);
  library::exact(what, c);
  for (T* buffer : {da, db, dc}) CHECK_CUDA(cudaFree(buffer));
}

// Uses an array of pointers to matrices, in device memory.
void batched(cublasHandle_t blas) {
  constexpr int n = 24, count = 10;
  const auto a = numbers<float>(n * n * count, 3), b = numbers<float>(n * n * count, 4);
  float *da = check::device_copy(a), *db = check::device_copy(b), *dc = check::device_buffer<float>(n * n * count);
  std::array<std::vector<float*>, 3> each;
  for (int i = 0; i < count; ++i) {
    each[0].push_back(da + i * n * n);
    each[1].push_back(db + i * n * n);
    // In reverse order, so that a library that ignores the pointers gives a wrong result.
    each[2].push_back(dc + (count - 1 - i) * n * n);
  }
  float **pa = check::device_copy(each[0]), **pb = check::device_copy(each[1]), **pc = check::device_copy(each[2]);
  const float one = 1, zero = 0;
  CHECK_LIBRARY(cublasSgemmBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, pa, n, pb, n, &zero, pc, n, count));
  const auto c = check::host_copy(dc, n * n * count);
  for (int i = 0; i < count; ++i) {
    const auto part = [&](const std::vector<float>& all, int k) {
      return std::vector<float>(all.begin() + k * n * n, all.begin() + (k + 1) * n * n);
    };
    library::check_near("batched", part(c, count - 1 - i), library::product(part(a, i), part(b, i), n, n, n), 1e-5);
  }
  library::exact("batched", c);
}

void strided(cublasHandle_t blas) {
  constexpr int n = 64, count = 12;
  const auto a = numbers<__half>(n * n * count, 5), b = numbers<__half>(n * n * count, 6);
  __half *da = check::device_copy(a), *db = check::device_copy(b), *dc = check::device_buffer<__half>(n * n * count);
  const float one = 1, zero = 0;
  CHECK_LIBRARY(cublasGemmStridedBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, da, CUDA_R_16F, n, n * n, db,
                                           CUDA_R_16F, n, n * n, &zero, dc, CUDA_R_16F, n, n * n, count,
                                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  library::exact("strided, transposed", check::host_copy(dc, n * n * count));
}

// Routines of levels 1 and 2, with scalars on the device.
void small_routines(cublasHandle_t blas) {
  constexpr int n = 10000, m = 100;
  double *x = check::device_copy(numbers<double>(n, 7)), *y = check::device_copy(numbers<double>(n, 8));
  double* scalar = check::device_copy(std::vector<double>{0.5, 0, 0, 1});
  CHECK_LIBRARY(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
  CHECK_LIBRARY(cublasDaxpy(blas, n, scalar, x, 1, y, 1));
  CHECK_LIBRARY(cublasDdot(blas, n, x, 1, y, 1, scalar + 1));
  CHECK_LIBRARY(cublasDnrm2(blas, n, y, 1, scalar + 2));
  CHECK_LIBRARY(cublasDgemv(blas, CUBLAS_OP_T, m, m, scalar + 3, x, m, y, 1, scalar, y + m, 1));
  CHECK_LIBRARY(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
  int largest = 0;
  CHECK_LIBRARY(cublasIdamax(blas, n, y, 1, &largest));
  const auto scalars = check::host_copy(scalar, 4);
  const auto after = check::host_copy(y, n);
  double most = 0;
  for (double value : after) most = std::fmax(most, std::fabs(value));
  CHECK_THAT(largest > 0 && largest <= n && std::fabs(after[static_cast<size_t>(largest) - 1]) == most,
             "amax is %d, where the value is not the largest.", largest);
  std::printf("dot %.9g, norm %.9g, largest at %d\n", scalars[1], scalars[2], largest);
  library::exact("axpy, gemv", after);
}

// Solves A X = B with a triangular matrix, with a factor from A and without one.
void triangles(cublasHandle_t blas) {
  constexpr int n = 96, right = 32;
  const auto a = library::definite_matrix(n, 9);
  const auto b = numbers<double>(n * right, 10);
  double *da = check::device_copy(a), *db = check::device_copy(b), *dc = check::device_buffer<double>(n * n);
  const double one = 1, zero = 0;
  CHECK_LIBRARY(cublasDtrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, right,
                            &one, da, n, db, n));
  const auto x = check::host_copy(db, n * right);
  auto triangle = a;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < j; ++i) triangle[static_cast<size_t>(j) * n + i] = 0;
  library::check_near("trsm", library::product(triangle, x, n, right, n), b, 1e-12);
  library::exact("trsm", x);
  CHECK_CUDA(cudaMemset(dc, 0, n * n * sizeof(double)));
  CHECK_LIBRARY(cublasDsyrk(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n, n, &one, da, n, &zero, dc, n));
  library::exact("syrk", check::host_copy(dc, n * n));
}

}  // namespace

int main() {
  cublasHandle_t blas = nullptr;
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));  // copies to the host wait for this blocking stream
  CHECK_LIBRARY(cublasCreate(&blas));
  gemm<float>(blas, "sgemm", CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-5);
  gemm<float>(blas, "sgemm, tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1e-2);
  gemm<double>(blas, "dgemm", CUDA_R_64F, CUBLAS_COMPUTE_64F, 1e-13);
  CHECK_LIBRARY(cublasSetStream(blas, stream));
  constexpr size_t workspace = size_t{32} << 20;
  CHECK_LIBRARY(cublasSetWorkspace(blas, check::device_buffer<char>(workspace), workspace));
  gemm<__half>(blas, "half", CUDA_R_16F, CUBLAS_COMPUTE_32F, 2e-3);
  gemm<__nv_bfloat16>(blas, "bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1e-2);
  batched(blas);
  strided(blas);
  small_routines(blas);
  triangles(blas);
  CHECK_LIBRARY(cublasDestroy(blas));
  CHECK_CUDA(cudaStreamDestroy(stream));
}
