// JIT options as the driver gets them: the guest's numbers, and log buffers of the worker in place of the program's. The
// driver writes to the buffers and to some of the values.
//
// It takes only checked options. A driver may keep the addresses for as long as the load or link lasts: so must this
// object, and it stays where it is.
#pragma once

#include <cstdint>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/wire/record.h"

namespace host {

class LentOptions {
 public:
  LentOptions(std::vector<CUjit_option> names, const std::vector<std::uint64_t>& values);
  LentOptions(const LentOptions&) = delete;
  LentOptions& operator=(const LentOptions&) = delete;

  unsigned count() const { return static_cast<unsigned>(names_.size()); }
  CUjit_option* names() { return names_.data(); }
  void** values() { return values_.data(); }
  std::uint64_t log_bytes() const { return info_.size() + error_.size(); }

  // Appends to a reply: the values as the driver has left them, and the logs.
  void report(ring::Writer& reply) const;

 private:
  void lend_logs();

  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
  std::vector<char> info_, error_;
};

}  // namespace host
