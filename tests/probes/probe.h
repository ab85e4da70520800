// Helpers of the probes: the driver's functions by name, and questions that run in a separate process.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace probe {

inline void* library = nullptr;

inline void* symbol(const char* name) {
  void* at = dlsym(library, name);
  if (at == nullptr) std::printf("%s is missing\n", name), std::exit(1);
  return at;
}

// The function of this name, with its declaration. A macro yields the name that cuda.h's own macros substitute.
#define NAMED(name) #name
#define CU(fn) reinterpret_cast<decltype(&::fn)>(::probe::symbol(NAMED(fn)))

#define MUST(call)                                                                            \
  do {                                                                                        \
    if (const CUresult r_ = (call); r_ != CUDA_SUCCESS) {                                     \
      std::printf("line %d: error %d before the question\n", __LINE__, static_cast<int>(r_)); \
      std::exit(1);                                                                           \
    }                                                                                         \
  } while (false)

inline bool open_library(const char* name) {
  library = dlopen(name, RTLD_NOW);
  if (library == nullptr) std::printf("%s\n", dlerror());
  return library != nullptr;
}

// A result's name without "CUDA_"; "ok" for success.
inline std::string text_of(CUresult r) {
  const char* name = nullptr;
  if (CU(cuGetErrorName)(r, &name) != CUDA_SUCCESS || name == nullptr) return std::to_string(static_cast<int>(r));
  return r == CUDA_SUCCESS ? "ok" : name + 5;
}

// Runs a question in a child, since a driver may end the process, or wait forever. The answer is a line of the child's
// output.
inline void ask_alone(const std::string& name, const std::function<void()>& ask) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    setvbuf(stdout, nullptr, _IONBF, 0);  // keeps the output that precedes the child's end
    ask();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    std::printf("| `%s` | the process ends with status %d |\n", name.c_str(), status);
}

}  // namespace probe
