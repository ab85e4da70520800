// cuFFT: transforms of one to three dimensions, of complex and real numbers, in single and double precision, many at
// once, with a stream and the program's own work area.
#include <cufft.h>

#include <complex>

#include "tests/conformance/library.h"

namespace {

using Double = std::complex<double>;
const double turn = 2 * std::acos(-1.0);

template <class T>
std::vector<T> values(size_t count, unsigned seed) {
  return library::numbers<T>(count, seed);
}

// Computes one value of a line's transform, by definition.
template <class T>
Double term(const std::vector<T>& line, size_t k) {
  Double sum = 0;
  const size_t n = line.size() / 2;
  for (size_t j = 0; j < n; ++j)
    sum += Double(line[2 * j], line[2 * j + 1]) *
           std::polar(1.0, -turn * static_cast<double>(j * k % n) / static_cast<double>(n));
  return sum;
}

template <class T>
void check_terms(const char* what, const std::vector<T>& in, const std::vector<T>& out, double tolerance) {
  const size_t n = in.size() / 2;
  for (size_t k : {size_t{0}, size_t{1}, n / 3, n - 1}) {
    const double off = std::abs(term(in, k) - Double(out[2 * k], out[2 * k + 1]));
    CHECK_THAT(off <= tolerance * std::sqrt(static_cast<double>(n)), "%s: value %zu is off by %g.", what, k, off);
  }
}

// Transforming forward and back multiplies the numbers by their count.
template <class T>
void check_back(const char* what, const std::vector<T>& in, std::vector<T> back, double count, double tolerance) {
  for (T& value : back) value = static_cast<T>(value / count);
  library::check_near(what, back, in, tolerance);
}

// Lengths of every kind: powers of two, products of small primes, and primes.
void lines() {
  for (int n : {1024, 1 << 16, 2 * 3 * 5 * 7 * 11, 127, 4099}) {
    const auto in = values<float>(2 * static_cast<size_t>(n), static_cast<unsigned>(n));
    auto* data = reinterpret_cast<cufftComplex*>(check::device_copy(in));
    cufftHandle plan = 0;
    CHECK_LIBRARY(cufftPlan1d(&plan, n, CUFFT_C2C, 1));
    CHECK_LIBRARY(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    const auto out = check::host_copy(reinterpret_cast<float*>(data), in.size());
    check_terms("C2C", in, out, 1e-4);
    CHECK_LIBRARY(cufftExecC2C(plan, data, data, CUFFT_INVERSE));
    check_back("C2C back", in, check::host_copy(reinterpret_cast<float*>(data), in.size()), n, 1e-5);
    char name[40];
    std::snprintf(name, sizeof name, "line of %d", n);
    library::exact(name, out);
    CHECK_LIBRARY(cufftDestroy(plan));
    CHECK_CUDA(cudaFree(data));
  }
}

void doubles() {
  constexpr int n = 3000;
  const auto in = values<double>(2 * n, 1);
  auto* data = reinterpret_cast<cufftDoubleComplex*>(check::device_copy(in));
  cufftHandle plan = 0;
  CHECK_LIBRARY(cufftPlan1d(&plan, n, CUFFT_Z2Z, 1));
  CHECK_LIBRARY(cufftExecZ2Z(plan, data, data, CUFFT_FORWARD));
  const auto out = check::host_copy(reinterpret_cast<double*>(data), 2 * n);
  check_terms("Z2Z", in, out, 1e-12);
  library::exact("doubles", out);
  CHECK_LIBRARY(cufftDestroy(plan));
}

// Transforms real numbers of two and three dimensions forward and back.
void real(const char* what, std::vector<int> sizes) {
  size_t count = 1, half = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    count *= static_cast<size_t>(sizes[i]);
    half *= static_cast<size_t>(i + 1 < sizes.size() ? sizes[i] : sizes[i] / 2 + 1);
  }
  const auto in = values<float>(count, 2);
  float* data = check::device_copy(in);
  auto* spectrum = check::device_buffer<cufftComplex>(half);
  cufftHandle there = 0, back = 0;
  if (sizes.size() == 2) {
    CHECK_LIBRARY(cufftPlan2d(&there, sizes[0], sizes[1], CUFFT_R2C));
    CHECK_LIBRARY(cufftPlan2d(&back, sizes[0], sizes[1], CUFFT_C2R));
  } else {
    CHECK_LIBRARY(cufftPlan3d(&there, sizes[0], sizes[1], sizes[2], CUFFT_R2C));
    CHECK_LIBRARY(cufftPlan3d(&back, sizes[0], sizes[1], sizes[2], CUFFT_C2R));
  }
  CHECK_LIBRARY(cufftExecR2C(there, data, spectrum));
  const auto out = check::host_copy(reinterpret_cast<float*>(spectrum), 2 * half);
  CHECK_LIBRARY(cufftExecC2R(back, spectrum, data));
  check_back(what, in, check::host_copy(data, count), static_cast<double>(count), 1e-5);
  double sum = 0;
  for (float value : in) sum += value;
  CHECK_THAT(std::fabs(sum - out[0]) < 1e-2, "%s: the first value is %g and the sum %g.", what, out[0], sum);
  library::exact(what, out);
  CHECK_LIBRARY(cufftDestroy(there));
  CHECK_LIBRARY(cufftDestroy(back));
}

// Transforms many lines with gaps between them, on a stream, in the program's own work area.
void many() {
  constexpr int n = 240, count = 33, distance = 256;
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  const auto in = values<float>(2 * distance * count, 3);
  auto* data = reinterpret_cast<cufftComplex*>(check::device_copy(in));
  cufftHandle plan = 0;
  size_t size = 0;
  int length[] = {n}, layout[] = {distance};
  CHECK_LIBRARY(cufftCreate(&plan));
  CHECK_LIBRARY(cufftSetAutoAllocation(plan, 0));
  CHECK_LIBRARY(cufftMakePlanMany(plan, 1, length, layout, 1, distance, layout, 1, distance, CUFFT_C2C, count, &size));
  CHECK_LIBRARY(cufftSetWorkArea(plan, check::device_buffer<char>(size + 1)));
  CHECK_LIBRARY(cufftSetStream(plan, stream));
  CHECK_LIBRARY(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  const auto out = check::host_copy(reinterpret_cast<float*>(data), in.size());
  const auto line = [&](const std::vector<float>& all, int i) {
    return std::vector<float>(all.begin() + 2 * distance * i, all.begin() + 2 * (distance * i + n));
  };
  for (int i : {0, 1, count - 1}) check_terms("many", line(in, i), line(out, i), 1e-4);
  CHECK_THAT(out[2 * n] == in[2 * n], "A gap between two lines has changed.");
  library::exact("many", out);
  CHECK_LIBRARY(cufftDestroy(plan));
}

void plane() {
  constexpr int rows = 96, columns = 100;
  const auto in = values<float>(2 * rows * columns, 4);
  auto* data = reinterpret_cast<cufftComplex*>(check::device_copy(in));
  cufftHandle plan = 0;
  CHECK_LIBRARY(cufftPlan2d(&plan, rows, columns, CUFFT_C2C));
  CHECK_LIBRARY(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  library::exact("plane", check::host_copy(reinterpret_cast<float*>(data), in.size()));
  CHECK_LIBRARY(cufftExecC2C(plan, data, data, CUFFT_INVERSE));
  check_back("plane back", in, check::host_copy(reinterpret_cast<float*>(data), in.size()), rows * columns, 1e-5);
  CHECK_LIBRARY(cufftDestroy(plan));
}

}  // namespace

int main() {
  lines();
  doubles();
  plane();
  real("real plane", {120, 90});
  real("real block", {32, 30, 28});
  many();
}
