// cuSOLVER, dense: Cholesky, LU and QR factorisations and their solutions, eigenvalues, singular values, and batches of
// small matrices. The program checks each result by multiplication.
#include <cusolverDn.h>

#include "tests/conformance/library.h"

namespace {

using Matrix = std::vector<double>;
constexpr int n = 160, right = 5;

struct Solver {
  cusolverDnHandle_t handle = nullptr;
  int* info = check::device_buffer<int>(1);
  Solver() { CHECK_LIBRARY(cusolverDnCreate(&handle)); }
  ~Solver() { cusolverDnDestroy(handle); }
  void ended(const char* what) const {
    const int found = check::host_copy(info, 1)[0];
    CHECK_THAT(found == 0, "%s: info is %d.", what, found);
  }
};

Matrix general(int rows, int columns, unsigned seed) {
  return library::numbers<double>(static_cast<size_t>(rows) * columns, seed);
}
Matrix turned(const Matrix& a, int rows, int columns) {
  Matrix b(a.size());
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i) b[static_cast<size_t>(i) * columns + j] = a[static_cast<size_t>(j) * rows + i];
  return b;
}

void cholesky(const Solver& solver) {
  const Matrix a = library::definite_matrix(n, 1), b = general(n, right, 2);
  double *da = check::device_copy(a), *db = check::device_copy(b);
  int size = 0;
  CHECK_LIBRARY(cusolverDnDpotrf_bufferSize(solver.handle, CUBLAS_FILL_MODE_LOWER, n, da, n, &size));
  double* space = check::device_buffer<double>(static_cast<size_t>(size));
  CHECK_LIBRARY(cusolverDnDpotrf(solver.handle, CUBLAS_FILL_MODE_LOWER, n, da, n, space, size, solver.info));
  solver.ended("potrf");
  CHECK_LIBRARY(cusolverDnDpotrs(solver.handle, CUBLAS_FILL_MODE_LOWER, n, right, da, n, db, n, solver.info));
  const auto x = check::host_copy(db, b.size());
  library::check_near("cholesky", library::product(a, x, n, right, n), b, 1e-12);
  library::rounded("cholesky", x);
}

// Uses the interface with 64-bit sizes, which needs host memory besides device memory.
void lu(const Solver& solver) {
  const Matrix a = general(n, n, 3), b = general(n, right, 4);
  double *da = check::device_copy(a), *db = check::device_copy(b);
  int64_t* pivots = check::device_buffer<int64_t>(n);
  size_t on_device = 0, on_host = 0;
  cusolverDnParams_t parameters = nullptr;
  CHECK_LIBRARY(cusolverDnCreateParams(&parameters));
  CHECK_LIBRARY(cusolverDnXgetrf_bufferSize(solver.handle, parameters, n, n, CUDA_R_64F, da, n, CUDA_R_64F, &on_device,
                                            &on_host));
  std::vector<char> host(on_host + 1);
  CHECK_LIBRARY(cusolverDnXgetrf(solver.handle, parameters, n, n, CUDA_R_64F, da, n, pivots, CUDA_R_64F,
                                 check::device_buffer<char>(on_device + 1), on_device, host.data(), on_host,
                                 solver.info));
  solver.ended("getrf");
  CHECK_LIBRARY(cusolverDnXgetrs(solver.handle, parameters, CUBLAS_OP_N, n, right, CUDA_R_64F, da, n, pivots,
                                 CUDA_R_64F, db, n, solver.info));
  const auto x = check::host_copy(db, b.size());
  library::check_near("lu", library::product(a, x, n, right, n), b, 1e-8);
  library::rounded("lu", x);
  CHECK_LIBRARY(cusolverDnDestroyParams(parameters));
}

void qr(const Solver& solver) {
  constexpr int rows = 200, columns = 90;
  const Matrix a = general(rows, columns, 5);
  double *da = check::device_copy(a), *tau = check::device_buffer<double>(columns);
  int size = 0, size_q = 0;
  CHECK_LIBRARY(cusolverDnDgeqrf_bufferSize(solver.handle, rows, columns, da, rows, &size));
  CHECK_LIBRARY(cusolverDnDorgqr_bufferSize(solver.handle, rows, columns, columns, da, rows, tau, &size_q));
  size = size > size_q ? size : size_q;
  double* space = check::device_buffer<double>(static_cast<size_t>(size));
  CHECK_LIBRARY(cusolverDnDgeqrf(solver.handle, rows, columns, da, rows, tau, space, size, solver.info));
  solver.ended("geqrf");
  const auto packed = check::host_copy(da, a.size());
  CHECK_LIBRARY(cusolverDnDorgqr(solver.handle, rows, columns, columns, da, rows, tau, space, size, solver.info));
  const auto q = check::host_copy(da, a.size());
  Matrix r(static_cast<size_t>(columns) * columns);
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i <= j; ++i) r[static_cast<size_t>(j) * columns + i] = packed[static_cast<size_t>(j) * rows + i];
  library::check_near("qr", library::product(q, r, rows, columns, columns), a, 1e-12);
  library::rounded("qr", r);
}

void eigenvalues(const Solver& solver) {
  const Matrix a = library::definite_matrix(n, 6);
  double *da = check::device_copy(a), *dw = check::device_buffer<double>(n);
  int size = 0;
  CHECK_LIBRARY(cusolverDnDsyevd_bufferSize(solver.handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, da, n,
                                            dw, &size));
  double* space = check::device_buffer<double>(static_cast<size_t>(size));
  CHECK_LIBRARY(cusolverDnDsyevd(solver.handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, da, n, dw, space,
                                 size, solver.info));
  solver.ended("syevd");
  const auto v = check::host_copy(da, a.size()), w = check::host_copy(dw, n);
  Matrix scaled = v;
  for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= w[i / n];
  library::check_near("syevd", library::product(a, v, n, n, n), scaled, 1e-11);
  library::rounded("eigenvalues", w);
}

void singular_values(const Solver& solver) {
  constexpr int rows = 130, columns = 70;
  const Matrix a = general(rows, columns, 7);
  double *da = check::device_copy(a), *ds = check::device_buffer<double>(columns),
         *du = check::device_buffer<double>(static_cast<size_t>(rows) * columns),
         *dv = check::device_buffer<double>(columns * columns);
  int size = 0;
  CHECK_LIBRARY(cusolverDnDgesvd_bufferSize(solver.handle, rows, columns, &size));
  double* space = check::device_buffer<double>(static_cast<size_t>(size));
  CHECK_LIBRARY(cusolverDnDgesvd(solver.handle, 'S', 'S', rows, columns, da, rows, ds, du, rows, dv, columns, space,
                                 size, nullptr, solver.info));
  solver.ended("gesvd");
  const auto s = check::host_copy(ds, columns);
  auto u = check::host_copy(du, static_cast<size_t>(rows) * columns);
  for (size_t i = 0; i < u.size(); ++i) u[i] *= s[i / rows];
  library::check_near("gesvd", library::product(u, check::host_copy(dv, columns * columns), rows, columns, columns), a,
                      1e-11);
  library::rounded("singular values", s);

  gesvdjInfo_t rotations = nullptr;
  CHECK_LIBRARY(cusolverDnCreateGesvdjInfo(&rotations));
  CHECK_CUDA(cudaMemcpy(da, a.data(), a.size() * sizeof(double), cudaMemcpyHostToDevice));
  CHECK_LIBRARY(cusolverDnDgesvdj_bufferSize(solver.handle, CUSOLVER_EIG_MODE_VECTOR, 1, rows, columns, da, rows, ds,
                                             du, rows, dv, columns, &size, rotations));
  space = check::device_buffer<double>(static_cast<size_t>(size));
  CHECK_LIBRARY(cusolverDnDgesvdj(solver.handle, CUSOLVER_EIG_MODE_VECTOR, 1, rows, columns, da, rows, ds, du, rows, dv,
                                  columns, space, size, solver.info, rotations));
  solver.ended("gesvdj");
  library::check_near("gesvdj", check::host_copy(ds, columns), s, 1e-11);
  CHECK_LIBRARY(cusolverDnDestroyGesvdjInfo(rotations));
}

void batch(const Solver& solver) {
  constexpr int size = 20, count = 40;
  std::vector<double*> each;
  std::vector<Matrix> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(library::definite_matrix(size, 100 + static_cast<unsigned>(i)));
    each.push_back(check::device_copy(all.back()));
  }
  int* infos = check::device_buffer<int>(count);
  CHECK_LIBRARY(cusolverDnDpotrfBatched(solver.handle, CUBLAS_FILL_MODE_LOWER, size, check::device_copy(each), size,
                                        infos, count));
  Matrix sums;
  for (int i = 0; i < count; ++i) {
    auto l = check::host_copy(each[static_cast<size_t>(i)], size * size);
    for (int column = 1; column < size; ++column)
      for (int row = 0; row < column; ++row) l[static_cast<size_t>(column) * size + row] = 0;
    library::check_near("batch", library::product(l, turned(l, size, size), size, size, size),
                        all[static_cast<size_t>(i)], 1e-13);
    sums.push_back(library::norm(l));
  }
  check::compare("batch, info", check::host_copy(infos, count), std::vector<int>(count));
  library::rounded("batch", sums);
}

}  // namespace

int main() {
  const Solver solver;
  cholesky(solver);
  lu(solver);
  qr(solver);
  eigenvalues(solver);
  singular_values(solver);
  batch(solver);
}
