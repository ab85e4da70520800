// Progress messages of `ivgpu vm --steps`.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace ivgpu {

// Prints lines on stderr, each with the seconds since the start of the command.
class Steps {
 public:
  explicit Steps(bool on) : on_(on) {}
  void show(const std::string& what) const {
    if (!on_) return;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "[%5.1f s] %s\n", passed.count(), what.c_str());
  }

 private:
  bool on_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ivgpu
