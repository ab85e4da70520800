// cuSOLVER, sparse: a grid's Laplace matrix solved by QR and by Cholesky, an eigenvalue near an estimate, and a row
// order computed on the host.
#include <cusolverSp.h>

#include "tests/conformance/library.h"

namespace {

constexpr int side = 20, n = side * side;

struct Sparse {
  std::vector<int> rows{0}, columns;
  std::vector<double> values;
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(n);
    for (size_t i = 0; i < n; ++i)
      for (int k = rows[i]; k < rows[i + 1]; ++k)
        y[i] += values[static_cast<size_t>(k)] * x[static_cast<size_t>(columns[static_cast<size_t>(k)])];
    return y;
  }
};

Sparse grid() {
  Sparse a;
  const auto entry = [&](int column, double value) {
    a.columns.push_back(column);
    a.values.push_back(value);
  };
  for (int i = 0; i < n; ++i) {
    if (i >= side) entry(i - side, -1);
    if (i % side > 0) entry(i - 1, -1);
    entry(i, 4.5);
    if (i % side < side - 1) entry(i + 1, -1);
    if (i < n - side) entry(i + side, -1);
    a.rows.push_back(static_cast<int>(a.columns.size()));
  }
  return a;
}

}  // namespace

int main() {
  const Sparse a = grid();
  const auto b = library::numbers<double>(n, 1);
  const int entries = static_cast<int>(a.values.size());
  cusolverSpHandle_t solver = nullptr;
  cusparseMatDescr_t form = nullptr;
  CHECK_LIBRARY(cusolverSpCreate(&solver));
  CHECK_LIBRARY(cusparseCreateMatDescr(&form));
  int *rows = check::device_copy(a.rows), *columns = check::device_copy(a.columns), singular = 0;
  double *values = check::device_copy(a.values), *right = check::device_copy(b), *x = check::device_buffer<double>(n);

  CHECK_LIBRARY(cusolverSpDcsrlsvqr(solver, n, entries, form, values, rows, columns, right, 1e-12, 1, x, &singular));
  CHECK_THAT(singular == -1, "QR found the matrix singular at %d.", singular);
  library::check_near("qr", a.times(check::host_copy(x, n)), b, 1e-11);
  library::rounded("qr", check::host_copy(x, n));

  CHECK_CUDA(cudaMemset(x, 0, n * sizeof(double)));
  CHECK_LIBRARY(cusolverSpDcsrlsvchol(solver, n, entries, form, values, rows, columns, right, 1e-12, 2, x, &singular));
  CHECK_THAT(singular == -1, "Cholesky found the matrix singular at %d.", singular);
  library::check_near("cholesky", a.times(check::host_copy(x, n)), b, 1e-11);
  library::rounded("cholesky", check::host_copy(x, n));

  double *value = check::device_buffer<double>(1), *start = check::device_copy(std::vector<double>(n, 1.0));
  CHECK_LIBRARY(
      cusolverSpDcsreigvsi(solver, n, entries, form, values, rows, columns, 0.5, start, 1000, 1e-9, value, x));
  const double least = 0.5 + 4 - 4 * std::cos(std::acos(-1.0) / (side + 1));
  const double found = check::host_copy(value, 1)[0];
  CHECK_THAT(std::fabs(found - least) < 1e-6, "The least eigenvalue is %.9g and not %.9g.", found, least);
  std::printf("eigenvalue %.6f\n", found);

  std::vector<int> order(n), seen(n);
  CHECK_LIBRARY(cusolverSpXcsrsymrcmHost(solver, n, entries, form, a.rows.data(), a.columns.data(), order.data()));
  for (int i : order) ++seen[static_cast<size_t>(i)];
  check::compare("order", seen, std::vector<int>(n, 1));
  library::exact("order", order);
  CHECK_LIBRARY(cusparseDestroyMatDescr(form));
  CHECK_LIBRARY(cusolverSpDestroy(solver));
}
