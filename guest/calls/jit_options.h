// The JIT options of a load: which cross the boundary, what is sent of them, and what the driver writes back. Loading
// alone calls this. A value is a number, or the caller's buffer for a log, whose address never crosses.
//
// Invariant: nothing is written to the caller's values or buffers beyond what it has made room for.
// Trust: the worker says how long a log is, which is held against the reply and cut to the caller's room.
#pragma once

#include <cstdint>
#include <vector>

#include "ring/api/cuda.h"
#include "ring/wire/shared_reader.h"

namespace guest {

struct JitOptions {
  unsigned count = 0;
  CUjit_option* names = nullptr;
  void** values = nullptr;
};

// False: one of them is not served, which the log names, or they are too many.
bool are_served(const JitOptions& options);
// Appends the names, then the values, as they follow the record.
void append(const JitOptions& options, std::vector<std::uint64_t>& words);
// Takes the values and logs from a reply.
void take(const JitOptions& options, ring::SharedReader& reply);

}  // namespace guest
