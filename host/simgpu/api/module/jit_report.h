// The logs and the duration that a program requests from a load or link through JIT options.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <chrono>
#include <string>

namespace simgpu {

// The JIT options of a call.
struct JitOptions {
  unsigned count = 0;
  CUjit_option* names = nullptr;
  void** values = nullptr;
};

// Returns false if options exist but their names or values are missing.
inline bool are_there(const JitOptions& options) {
  return options.count == 0 || (options.names != nullptr && options.values != nullptr);
}

// Writes to the program's buffers. The buffers and the array of values must outlive this object.
class JitReport {
 public:
  using Milliseconds = std::chrono::duration<float, std::milli>;

  explicit JitReport(const JitOptions& options);
  // Writes the duration, and as much of each text as fits. The size options receive the written lengths.
  void write(const std::string& info, const std::string& error, Milliseconds took) const;

 private:
  struct Log {
    char* buffer = nullptr;
    void** size = nullptr;
    std::size_t room = 0;
  };
  static void write(const Log& log, const std::string& text);

  void** wall_time_ = nullptr;
  Log info_, error_;
};

}  // namespace simgpu
