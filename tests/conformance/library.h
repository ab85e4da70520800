// Helpers of the programs for NVIDIA's libraries, beyond tests/programs/check.h: one check for the status of any
// library, numbers that depend only on a seed, and lines that show a result.
//
// A line shows a result exactly (`exact`) if the library promises the same bits on each run on one GPU, and otherwise
// rounded (`rounded`). tests/conformance/list.txt states which of the two applies to a program.
#pragma once

#include <cmath>

#include "tests/programs/check.h"

// All libraries use 0 for success.
#define CHECK_LIBRARY(call)                                                                                        \
  do {                                                                                                             \
    const auto library_status = (call);                                                                            \
    CHECK_THAT(static_cast<int>(library_status) == 0, "%s:%d: %s gave status %d.", __FILE_NAME__, __LINE__, #call, \
               static_cast<int>(library_status));                                                                  \
  } while (0)

namespace library {

// A number from -1 to 1, in steps of 1/8, which each type of 8 bits or more represents well: 1/8 up to 7/8.
inline double number(size_t place, unsigned seed) { return (check::small_number(place, seed) - 7.5) / 8; }

template <class T>
std::vector<T> numbers(size_t count, unsigned seed) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<float>(number(i, seed)));
  return values;
}

inline double as_double(double value) { return value; }
inline double as_double(int value) { return value; }
template <class T>
double as_double(T value) {
  return static_cast<double>(static_cast<float>(value));
}

template <class T>
double norm(const std::vector<T>& values) {
  double sum = 0;
  for (const T& value : values) sum += as_double(value) * as_double(value);
  return std::sqrt(sum);
}

template <class T>
void exact(const char* what, const std::vector<T>& values) {
  std::printf("%s: %016llx, norm %.9g\n", what, static_cast<unsigned long long>(check::checksum(values)), norm(values));
}

// Shows four digits, since sums in another order differ in the seventh digit.
template <class T>
void rounded(const char* what, const std::vector<T>& values) {
  std::printf("%s: norm %.3e\n", what, norm(values));
}

// The largest difference, relative to the largest expected value.
template <class T, class U>
double difference(const std::vector<T>& got, const std::vector<U>& expected) {
  CHECK_THAT(got.size() == expected.size(), "There are %zu values and not %zu.", got.size(), expected.size());
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < got.size(); ++i) {
    const double distance = std::fabs(as_double(got[i]) - as_double(expected[i]));
    worst = distance <= worst ? worst : distance;  // a NaN counts as the worst difference
    largest = std::fmax(largest, std::fabs(as_double(expected[i])));
  }
  return worst / largest;
}

template <class T, class U>
void check_near(const char* what, const std::vector<T>& got, const std::vector<U>& expected, double tolerance) {
  const double found = difference(got, expected);
  CHECK_THAT(found <= tolerance, "%s: off by %.3g of the largest value; at most %.3g is right.", what, found,
             tolerance);
}

// C = A B, all in column order; A has `rows` rows and `inner` columns.
template <class T>
std::vector<double> product(const std::vector<T>& a, const std::vector<T>& b, int rows, int columns, int inner) {
  std::vector<double> c(static_cast<size_t>(rows) * columns);
  for (int j = 0; j < columns; ++j)
    for (int k = 0; k < inner; ++k) {
      const double factor = as_double(b[static_cast<size_t>(j) * inner + k]);
      for (int i = 0; i < rows; ++i)
        c[static_cast<size_t>(j) * rows + i] += as_double(a[static_cast<size_t>(k) * rows + i]) * factor;
    }
  return c;
}

// A symmetric positive definite matrix, with a dominant diagonal.
inline std::vector<double> definite_matrix(int n, unsigned seed) {
  std::vector<double> a(static_cast<size_t>(n) * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j)
      a[static_cast<size_t>(i) * n + j] = a[static_cast<size_t>(j) * n + i] =
          number(static_cast<size_t>(i) * n + j, seed) + (i == j ? n : 0);
  return a;
}

}  // namespace library
