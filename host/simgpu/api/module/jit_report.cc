#include "host/simgpu/api/module/jit_report.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace simgpu {

JitReport::JitReport(const JitOptions& options) {
  const auto size_in = [](Log& log, void** value) {
    log.size = value;
    log.room = reinterpret_cast<std::uintptr_t>(*value) & 0xffffffff;
  };
  for (unsigned i = 0; i < options.count; ++i) {
    void** value = &options.values[i];
    switch (options.names[i]) {
      case CU_JIT_WALL_TIME: wall_time_ = value; break;
      case CU_JIT_INFO_LOG_BUFFER: info_.buffer = static_cast<char*>(*value); break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: size_in(info_, value); break;
      case CU_JIT_ERROR_LOG_BUFFER: error_.buffer = static_cast<char*>(*value); break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: size_in(error_, value); break;
      default: break;  // optimisation and similar options have no effect
    }
  }
}

void JitReport::write(const std::string& info, const std::string& error, Milliseconds took) const {
  write(info_, info);
  write(error_, error);
  if (wall_time_ == nullptr) return;
  const float milliseconds = took.count();
  std::memcpy(wall_time_, &milliseconds, sizeof milliseconds);
}

// Writes a terminated text. The size option receives the number of bytes written before the terminating zero byte.
void JitReport::write(const Log& log, const std::string& text) {
  if (log.buffer == nullptr || log.room == 0) return;
  const std::size_t written = std::min(log.room - 1, text.size());
  std::memcpy(log.buffer, text.data(), written);
  log.buffer[written] = '\0';
  *log.size = reinterpret_cast<void*>(written);
}

}  // namespace simgpu
