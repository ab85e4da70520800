// Helpers of the test programs: checks, options, the driver's entry points, CPU-side numbers and checksums.
//
// All programs follow these rules. stdout has result lines that are the same on every correct GPU (no time, no address,
// no device name), so that the output of two backends can be compared byte for byte. The exit code is 0 for pass, 1 for
// fail with one sentence on stderr, and 2 for an invalid command line.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace check {

// Uses _Exit, because other threads of the program may still be inside CUDA calls and must not delay the exit.
[[noreturn]] __attribute__((format(printf, 1, 2))) inline void fail(const char* format, ...) {
  std::fflush(stdout);
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
  std::_Exit(1);
}

#define CHECK_CUDA(call)                                                                                 \
  do {                                                                                                   \
    const cudaError_t check_result = (call);                                                             \
    if (check_result != cudaSuccess)                                                                     \
      check::fail("%s:%d: %s gave %s.", __FILE_NAME__, __LINE__, #call, cudaGetErrorName(check_result)); \
  } while (0)

#define CHECK_DRIVER(call)                                                                                       \
  do {                                                                                                           \
    const CUresult check_result = (call);                                                                        \
    if (check_result != CUDA_SUCCESS)                                                                            \
      check::fail("%s:%d: %s gave %s.", __FILE_NAME__, __LINE__, #call, check::driver_error_name(check_result)); \
  } while (0)

#define CHECK_THAT(condition, ...)              \
  do {                                          \
    if (!(condition)) check::fail(__VA_ARGS__); \
  } while (0)

// Finds an entry point of the driver API without -lcuda, through the runtime library. A program therefore starts
// wherever the runtime starts.
template <class Function>
Function driver_entry(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &status));
  CHECK_THAT(status == cudaDriverEntryPointSuccess && entry != nullptr, "The driver has no %s.", name);
  return reinterpret_cast<Function>(entry);
}

// Macros in cuda.h rename calls to their newest version. The type is that of the renamed call; the requested name is
// the original one.
#define DRIVER_ENTRY(name) check::driver_entry<decltype(&::name)>(#name)

inline const char* driver_error_name(CUresult result) {
  static const auto get_name = DRIVER_ENTRY(cuGetErrorName);
  const char* name = nullptr;
  return get_name(result, &name) == CUDA_SUCCESS && name != nullptr ? name : "an unknown error";
}

struct Option {
  const char* name;
  const char* meaning;
  long* value;  // holds the default until the command line changes it
  long minimum;
  long maximum;
};

[[noreturn]] inline void help(const char* program, const char* about, std::initializer_list<Option> options) {
  std::printf("%s: %s\n\n  --help  this text\n", program, about);
  for (const Option& option : options) {
    std::printf("  %s N  %s (default %ld, from %ld to %ld)\n", option.name, option.meaning, *option.value,
                option.minimum, option.maximum);
  }
  std::exit(0);
}

inline void set_option(const char* program, const Option& option, const char* text) {
  char* end = nullptr;
  const long value = text != nullptr ? std::strtol(text, &end, 10) : 0;
  if (text == nullptr || end == text || *end != '\0' || value < option.minimum || value > option.maximum) {
    std::fprintf(stderr, "%s: %s takes a number from %ld to %ld.\n", program, option.name, option.minimum,
                 option.maximum);
    std::exit(2);
  }
  *option.value = value;
}

inline void parse(int argc, char** argv, const char* program, const char* about,
                  std::initializer_list<Option> options) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) help(program, about, options);
    const Option* found = nullptr;
    for (const Option& option : options) {
      if (std::strcmp(argv[i], option.name) == 0) found = &option;
    }
    if (found == nullptr) {
      std::fprintf(stderr, "%s: there is no option %s; see --help.\n", program, argv[i]);
      std::exit(2);
    }
    set_option(program, *found, argv[i + 1]);
    ++i;
  }
}

// A number from 0 to 15 that depends only on place and salt. It is small, so that float sums of products of such
// numbers are exact.
inline int small_number(size_t place, unsigned salt) {
  uint64_t x = place * 0x9e3779b97f4a7c15ull + salt;
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9ull;
  return static_cast<int>(x >> 60);
}

// FNV-1a.
inline uint64_t checksum(const void* bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3ull;
  return hash;
}

template <class T>
uint64_t checksum(const std::vector<T>& values) {
  return checksum(values.data(), values.size() * sizeof(T));
}

template <class T>
T* device_buffer(size_t count) {
  void* buffer = nullptr;
  CHECK_CUDA(cudaMalloc(&buffer, count * sizeof(T)));
  return static_cast<T*>(buffer);
}

template <class T>
T* device_copy(const std::vector<T>& values) {
  T* buffer = device_buffer<T>(values.size());
  CHECK_CUDA(cudaMemcpy(buffer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return buffer;
}

template <class T>
std::vector<T> host_copy(const T* buffer, size_t count) {
  std::vector<T> values(count);
  CHECK_CUDA(cudaMemcpy(values.data(), buffer, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

template <class T>
void compare(const char* what, const std::vector<T>& got, const std::vector<T>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK_THAT(got[i] == expected[i], "%s: element %zu is %g, the CPU says %g.", what, i, static_cast<double>(got[i]),
               static_cast<double>(expected[i]));
  }
}

}  // namespace check
