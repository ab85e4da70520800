#include "host/session/driver_jit_options.h"

#include <algorithm>
#include <cstring>

#include "ring/api/jit_options.h"

namespace host {

DriverJitOptions::DriverJitOptions(std::vector<CUjit_option> names, const std::vector<std::uint64_t>& values)
    : names_(std::move(names)) {
  for (const std::uint64_t value : values) values_.push_back(reinterpret_cast<void*>(value));
  add_log_buffers();
}

// The buffers have the lengths of the program's buffers.
void DriverJitOptions::add_log_buffers() {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto size = static_cast<std::size_t>(
        std::min(reinterpret_cast<std::uint64_t>(values_[i]), std::uint64_t{api::max_jit_log}));
    if (names_[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_.assign(size + 1, 0);
    if (names_[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_.assign(size + 1, 0);
  }
  info_.resize(std::max<std::size_t>(info_.size(), 1));
  error_.resize(std::max<std::size_t>(error_.size(), 1));
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == CU_JIT_INFO_LOG_BUFFER) values_[i] = info_.data();
    if (names_[i] == CU_JIT_ERROR_LOG_BUFFER) values_[i] = error_.data();
    if (names_[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) values_[i] = reinterpret_cast<void*>(info_.size() - 1);
    if (names_[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) values_[i] = reinterpret_cast<void*>(error_.size() - 1);
  }
}

void DriverJitOptions::report(ring::Writer& reply) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    reply.slot(api::is_log_buffer(names_[i]) ? 0 : reinterpret_cast<std::uint64_t>(values_[i]));
  for (const std::vector<char>* log : {&info_, &error_}) {
    const std::size_t length = strnlen(log->data(), log->size());
    reply.slot(length);
    reply.bytes(log->data(), length);
  }
}

}  // namespace host
