// cuBLASLt: products with algorithms that its heuristics choose, an epilogue, and 8-bit numbers if the GPU supports
// them.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "tests/conformance/library.h"

namespace {

using library::numbers;

constexpr int rows = 256, columns = 128, inner = 192;
constexpr size_t workspace_size = size_t{32} << 20;

struct Product {
  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;

  // A is transposed, since 8-bit products require this form.
  Product(cublasLtHandle_t handle, cudaDataType in, cudaDataType out) : lt(handle) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    CHECK_LIBRARY(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(CUBLASLT_MATMUL_DESC_TRANSA, transposed);
    CHECK_LIBRARY(cublasLtMatrixLayoutCreate(&a, in, inner, rows, inner));
    CHECK_LIBRARY(cublasLtMatrixLayoutCreate(&b, in, inner, columns, inner));
    CHECK_LIBRARY(cublasLtMatrixLayoutCreate(&c, out, rows, columns, rows));
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    CHECK_LIBRARY(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
  }
  // Returns false if this GPU has no algorithm for the product.
  bool run(const void* da, const void* db, void* dc, void* workspace, cudaStream_t stream) {
    cublasLtMatmulPreference_t preference = nullptr;
    CHECK_LIBRARY(cublasLtMatmulPreferenceCreate(&preference));
    CHECK_LIBRARY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &workspace_size, sizeof workspace_size));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt, description, a, b, c, c, preference, 1, &found, &count);
    CHECK_LIBRARY(cublasLtMatmulPreferenceDestroy(preference));
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || count == 0) return false;
    CHECK_LIBRARY(status);
    const float one = 1, zero = 0;
    CHECK_LIBRARY(cublasLtMatmul(lt, description, &one, da, a, db, b, &zero, dc, c, dc, c, &found.algo, workspace,
                                 workspace_size, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return true;
  }
  ~Product() {
    for (cublasLtMatrixLayout_t layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(description);
  }
};

// The transposed A in column order equals A in row order.
template <class T>
std::vector<double> expected(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> turned(a.size());
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < inner; ++k) turned[static_cast<size_t>(k) * rows + i] = a[static_cast<size_t>(i) * inner + k];
  return library::product(turned, b, rows, columns, inner);
}

void with_epilogue(cublasLtHandle_t lt, void* workspace, cudaStream_t stream) {
  const auto a = numbers<__nv_bfloat16>(rows * inner, 1), b = numbers<__nv_bfloat16>(inner * columns, 2);
  const auto bias = numbers<__nv_bfloat16>(rows, 3);
  __nv_bfloat16* dc = check::device_buffer<__nv_bfloat16>(rows * columns);
  Product product(lt, CUDA_R_16BF, CUDA_R_16BF);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS);
  product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, check::device_copy(bias));
  CHECK_THAT(product.run(check::device_copy(a), check::device_copy(b), dc, workspace, stream),
             "bf16 has no algorithm.");
  auto right = expected(a, b);
  for (size_t i = 0; i < right.size(); ++i) right[i] = std::fmax(0, right[i] + library::as_double(bias[i % rows]));
  const auto c = check::host_copy(dc, rows * columns);
  library::check_near("bf16, bias, relu", c, right, 1e-2);
  library::exact("bf16, bias, relu", c);
}

void eight_bits(cublasLtHandle_t lt, void* workspace, cudaStream_t stream) {
  const auto a = numbers<__nv_fp8_e4m3>(rows * inner, 4), b = numbers<__nv_fp8_e4m3>(inner * columns, 5);
  __nv_bfloat16* dc = check::device_buffer<__nv_bfloat16>(rows * columns);
  const float* half_scale = check::device_copy(std::vector<float>{0.5f});
  Product product(lt, CUDA_R_8F_E4M3, CUDA_R_16BF);
  product.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, half_scale);
  product.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, half_scale);
  if (!product.run(check::device_copy(a), check::device_copy(b), dc, workspace, stream)) {
    std::printf("fp8: this GPU has no algorithm\n");
    return;
  }
  auto right = expected(a, b);
  for (double& value : right) value *= 0.25;
  const auto c = check::host_copy(dc, rows * columns);
  library::check_near("fp8", c, right, 2e-2);
  library::exact("fp8", c);
}

}  // namespace

int main() {
  cublasLtHandle_t lt = nullptr;
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_LIBRARY(cublasLtCreate(&lt));
  void* workspace = check::device_buffer<char>(workspace_size);
  with_epilogue(lt, workspace, stream);
  eight_bits(lt, workspace, stream);
  CHECK_LIBRARY(cublasLtDestroy(lt));
}
