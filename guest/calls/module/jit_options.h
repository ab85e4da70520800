// The JIT options of a load: which options cross to the worker, what the guest sends, and what the driver writes back.
// Only the files that load images use this file. An option's value is a number, or the caller's buffer for a log; the
// buffer's address never crosses.
//
// Invariant: the guest writes nothing beyond the caller's values and buffers. Trust: the worker reports the length of a
// log. The guest checks this length against the reply and reduces it to the size of the caller's buffer.
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

// Returns false if there are too many options, or if an option is not served; the log then names the option.
bool are_served(const JitOptions& options);
// Appends the options' names and then their values, in the order in which they follow the record.
void append(const JitOptions& options, std::vector<std::uint64_t>& words);
// Copies values and logs from a reply to the caller's values and buffers.
void take(const JitOptions& options, ring::SharedReader& reply);
// Like take() above, for options whose values may have been overwritten since the call. `asked`: the values at the time
// of the call.
void take(const JitOptions& options, void* const* asked, ring::SharedReader& reply);

}  // namespace guest
