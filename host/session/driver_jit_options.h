// JIT options for the driver: the guest's numbers, and the worker's log buffers in place of the program's. The driver
// writes to the buffers and to some of the values.
//
// The caller must have checked the options. A driver may keep the addresses until the load or link ends, so this object
// must exist until then and must not move.
#pragma once

#include <cstdint>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/wire/record.h"

namespace host {

class DriverJitOptions {
 public:
  DriverJitOptions(std::vector<CUjit_option> names, const std::vector<std::uint64_t>& values);
  DriverJitOptions(const DriverJitOptions&) = delete;
  DriverJitOptions& operator=(const DriverJitOptions&) = delete;

  unsigned count() const { return static_cast<unsigned>(names_.size()); }
  CUjit_option* names() { return names_.data(); }
  void** values() { return values_.data(); }
  std::uint64_t log_bytes() const { return info_.size() + error_.size(); }

  // Appends the values and logs that the driver has written to a reply.
  void report(ring::Writer& reply) const;

 private:
  void add_log_buffers();

  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
  std::vector<char> info_, error_;
};

}  // namespace host
