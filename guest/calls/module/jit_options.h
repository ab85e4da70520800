// The JIT options of a load: which ones cross to the worker, what is sent, and what the driver writes back. Only the
// files that load images call this. An option's value is a number, or the caller's buffer for a log; the buffer's
// address never crosses.
//
// Invariant: nothing is written past the caller's values and buffers. Trust: the worker reports a log's length, which
// is checked against the reply and cut to the caller's buffer.
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

// False: there are too many options, or one is not served and named in the log.
bool are_served(const JitOptions& options);
// Appends the names, then the values, as they follow the record.
void append(const JitOptions& options, std::vector<std::uint64_t>& words);
// Copies the values and logs from a reply to the caller's.
void take(const JitOptions& options, ring::SharedReader& reply);
// The same for options whose values may have been overwritten since the call. `asked`: the values at the call.
void take(const JitOptions& options, void* const* asked, ring::SharedReader& reply);

}  // namespace guest
