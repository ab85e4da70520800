// The logs and the time that a program requests from a load or link by JIT options.
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

// False if there are options, but no names or values.
inline bool are_there(const JitOptions& options) {
  return options.count == 0 || (options.names != nullptr && options.values != nullptr);
}

// Writes to the program's buffers. They and the array of values must outlive this object.
class JitReport {
 public:
  using Milliseconds = std::chrono::duration<float, std::milli>;

  explicit JitReport(const JitOptions& options);
  // Writes as much of each text as fits, and the time. The size options become the written lengths.
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
