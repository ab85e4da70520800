// cuSPARSE: a sparse matrix times a vector, a sparse matrix times a dense one, a triangular solve, and format
// conversions.
#include <cusparse.h>

#include "tests/conformance/library.h"

namespace {

constexpr int rows = 1000, columns = 800, right = 24;
constexpr cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
const double one = 1, zero = 0;

// A matrix in compressed row format: offsets, columns, values.
struct Sparse {
  std::vector<int> offsets{0}, places;
  std::vector<double> values;
  int height, width;
  Sparse(int h, int w, unsigned seed) : height(h), width(w) {
    for (int i = 0; i < h; ++i) {
      for (int k = check::small_number(static_cast<size_t>(i), seed); k < w;
           k += 17 + 3 * check::small_number(static_cast<size_t>(k), seed)) {
        places.push_back(k);
        values.push_back(
            library::number(static_cast<size_t>(i) * static_cast<size_t>(w) + static_cast<size_t>(k), seed));
      }
      offsets.push_back(static_cast<int>(places.size()));
    }
  }
  // Returns the dense matrix, in column order.
  std::vector<double> dense() const {
    std::vector<double> all(static_cast<size_t>(height) * width);
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
      for (auto k = static_cast<size_t>(offsets[i]); k < static_cast<size_t>(offsets[i + 1]); ++k)
        all[static_cast<size_t>(places[k]) * height + i] = values[k];
    return all;
  }
  cusparseSpMatDescr_t on_device() const {
    cusparseSpMatDescr_t matrix = nullptr;
    CHECK_LIBRARY(cusparseCreateCsr(&matrix, height, width, static_cast<int64_t>(values.size()),
                                    check::device_copy(offsets), check::device_copy(places), check::device_copy(values),
                                    CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    return matrix;
  }
};

cusparseDnVecDescr_t vector_of(double* values, int count) {
  cusparseDnVecDescr_t vector = nullptr;
  CHECK_LIBRARY(cusparseCreateDnVec(&vector, count, values, CUDA_R_64F));
  return vector;
}
cusparseDnMatDescr_t matrix_of(double* values, int height, int width) {
  cusparseDnMatDescr_t matrix = nullptr;
  CHECK_LIBRARY(cusparseCreateDnMat(&matrix, height, width, height, values, CUDA_R_64F, CUSPARSE_ORDER_COL));
  return matrix;
}

void times_vector(cusparseHandle_t sparse, const Sparse& a) {
  const auto x = library::numbers<double>(columns, 2);
  double* y = check::device_buffer<double>(rows);
  const auto dx = vector_of(check::device_copy(x), columns), dy = vector_of(y, rows);
  const auto da = a.on_device();
  for (cusparseSpMVAlg_t way : {CUSPARSE_SPMV_ALG_DEFAULT, CUSPARSE_SPMV_CSR_ALG2}) {
    size_t size = 0;
    CHECK_LIBRARY(cusparseSpMV_bufferSize(sparse, plain, &one, da, dx, &zero, dy, CUDA_R_64F, way, &size));
    CHECK_LIBRARY(
        cusparseSpMV(sparse, plain, &one, da, dx, &zero, dy, CUDA_R_64F, way, check::device_buffer<char>(size + 1)));
    const auto got = check::host_copy(y, rows);
    library::check_near("SpMV", got, library::product(a.dense(), x, rows, 1, columns), 1e-13);
    library::rounded("SpMV", got);
  }
}

void times_dense(cusparseHandle_t sparse, const Sparse& a) {
  const auto b = library::numbers<double>(columns * right, 3);
  double* c = check::device_buffer<double>(rows * right);
  const auto db = matrix_of(check::device_copy(b), columns, right), dc = matrix_of(c, rows, right);
  const auto da = a.on_device();
  size_t size = 0;
  CHECK_LIBRARY(cusparseSpMM_bufferSize(sparse, plain, plain, &one, da, db, &zero, dc, CUDA_R_64F,
                                        CUSPARSE_SPMM_ALG_DEFAULT, &size));
  CHECK_LIBRARY(cusparseSpMM(sparse, plain, plain, &one, da, db, &zero, dc, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT,
                             check::device_buffer<char>(size + 1)));
  const auto got = check::host_copy(c, rows * right);
  library::check_near("SpMM", got, library::product(a.dense(), b, rows, right, columns), 1e-13);
  library::rounded("SpMM", got);
}

void times_sparse(cusparseHandle_t sparse, const Sparse& a) {
  const Sparse b(columns, 300, 4);
  cusparseSpMatDescr_t c = nullptr;
  int* offsets = check::device_buffer<int>(rows + 1);
  CHECK_LIBRARY(cusparseCreateCsr(&c, rows, 300, 0, offsets, nullptr, nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                  CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  const auto da = a.on_device(), db = b.on_device();
  const auto way = CUSPARSE_SPGEMM_DEFAULT;
  cusparseSpGEMMDescr_t work = nullptr;
  CHECK_LIBRARY(cusparseSpGEMM_createDescr(&work));
  size_t size = 0;
  CHECK_LIBRARY(cusparseSpGEMM_workEstimation(sparse, plain, plain, &one, da, db, &zero, c, CUDA_R_64F, way, work,
                                              &size, nullptr));
  void* first = check::device_buffer<char>(size + 1);
  CHECK_LIBRARY(
      cusparseSpGEMM_workEstimation(sparse, plain, plain, &one, da, db, &zero, c, CUDA_R_64F, way, work, &size, first));
  CHECK_LIBRARY(
      cusparseSpGEMM_compute(sparse, plain, plain, &one, da, db, &zero, c, CUDA_R_64F, way, work, &size, nullptr));
  void* second = check::device_buffer<char>(size + 1);
  CHECK_LIBRARY(
      cusparseSpGEMM_compute(sparse, plain, plain, &one, da, db, &zero, c, CUDA_R_64F, way, work, &size, second));
  int64_t height = 0, width = 0, entries = 0;
  CHECK_LIBRARY(cusparseSpMatGetSize(c, &height, &width, &entries));
  int* places = check::device_buffer<int>(static_cast<size_t>(entries));
  double* values = check::device_buffer<double>(static_cast<size_t>(entries));
  CHECK_LIBRARY(cusparseCsrSetPointers(c, offsets, places, values));
  CHECK_LIBRARY(cusparseSpGEMM_copy(sparse, plain, plain, &one, da, db, &zero, c, CUDA_R_64F, way, work));
  Sparse got(0, 0, 0);
  got.height = rows, got.width = 300;
  got.offsets = check::host_copy(offsets, rows + 1);
  got.places = check::host_copy(places, static_cast<size_t>(entries));
  got.values = check::host_copy(values, static_cast<size_t>(entries));
  library::check_near("SpGEMM", got.dense(), library::product(a.dense(), b.dense(), rows, 300, columns), 1e-13);
  std::printf("SpGEMM: %lld entries\n", static_cast<long long>(entries));
  library::rounded("SpGEMM", got.values);
  CHECK_LIBRARY(cusparseSpGEMM_destroyDescr(work));
}

// Solves a lower triangular system with a dominant diagonal.
void solve(cusparseHandle_t sparse) {
  Sparse a(0, 0, 0);
  a.height = a.width = rows;
  for (int i = 0; i < rows; ++i) {
    for (int k : {i - 31, i - 2, i})
      if (k >= 0) {
        a.places.push_back(k);
        a.values.push_back(k == i ? 4 : library::number(static_cast<size_t>(i) + static_cast<size_t>(k), 5));
      }
    a.offsets.push_back(static_cast<int>(a.places.size()));
  }
  const auto b = library::numbers<double>(rows, 6);
  double* x = check::device_buffer<double>(rows);
  const auto db = vector_of(check::device_copy(b), rows), dx = vector_of(x, rows);
  const auto da = a.on_device();
  auto lower = CUSPARSE_FILL_MODE_LOWER;
  CHECK_LIBRARY(cusparseSpMatSetAttribute(da, CUSPARSE_SPMAT_FILL_MODE, &lower, sizeof lower));
  cusparseSpSVDescr_t work = nullptr;
  CHECK_LIBRARY(cusparseSpSV_createDescr(&work));
  size_t size = 0;
  const auto way = CUSPARSE_SPSV_ALG_DEFAULT;
  CHECK_LIBRARY(cusparseSpSV_bufferSize(sparse, plain, &one, da, db, dx, CUDA_R_64F, way, work, &size));
  CHECK_LIBRARY(cusparseSpSV_analysis(sparse, plain, &one, da, db, dx, CUDA_R_64F, way, work,
                                      check::device_buffer<char>(size + 1)));
  CHECK_LIBRARY(cusparseSpSV_solve(sparse, plain, &one, da, db, dx, CUDA_R_64F, way, work));
  const auto got = check::host_copy(x, rows);
  library::check_near("SpSV", library::product(a.dense(), got, rows, 1, rows), b, 1e-13);
  library::rounded("SpSV", got);
  CHECK_LIBRARY(cusparseSpSV_destroyDescr(work));
}

void to_dense(cusparseHandle_t sparse, const Sparse& a) {
  double* all = check::device_buffer<double>(static_cast<size_t>(rows) * columns);
  const auto da = a.on_device();
  const auto dense = matrix_of(all, rows, columns);
  size_t size = 0;
  CHECK_LIBRARY(cusparseSparseToDense_bufferSize(sparse, da, dense, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, &size));
  CHECK_LIBRARY(cusparseSparseToDense(sparse, da, dense, CUSPARSE_SPARSETODENSE_ALG_DEFAULT,
                                      check::device_buffer<char>(size + 1)));
  const auto got = check::host_copy(all, static_cast<size_t>(rows) * columns);
  check::compare("dense", got, a.dense());
  library::exact("dense", got);
}

}  // namespace

int main() {
  cusparseHandle_t sparse = nullptr;
  CHECK_LIBRARY(cusparseCreate(&sparse));
  const Sparse a(rows, columns, 1);
  times_vector(sparse, a);
  times_dense(sparse, a);
  times_sparse(sparse, a);
  solve(sparse);
  to_dense(sparse, a);
  CHECK_LIBRARY(cusparseDestroy(sparse));
}
