// Copies between the GPU and the program's own memory that are part of a graph: the bytes are read and written each time that the
// graph runs. They lie in a block of the arena meanwhile, and a function of this library moves them, which the driver has called by a
// node of its own (docs/design/050-pageable-copies-in-graphs.md).
#pragma once

#include <cstdint>
#include <span>

#include "guest/marshal/custom.h"
#include "guest/session/callbacks.h"
#include "ring/api/cuda.h"
#include "ring/api/records.h"

namespace guest {

// The program's side of a copy, and the block that stands for it. It lives until its token ends.
struct PageableCopy {
  CUDA_MEMCPY3D as_given;
  bool to_device = false;
  std::byte* program = nullptr;  // its first byte there
  std::uint64_t pitch = 0, slice = 0;
  std::byte* block = nullptr;
  std::uint64_t width = 0, height = 0, depth = 0;

  static CUresult move(const Callback& callback, CUresult);
  static void end(const Callback& callback);
};

// Describes a copy whose one side is the program's own memory, and issues the token for it. CUDA_ERROR_NOT_SUPPORTED: both are.
// Preconditions: a context is current.
CUresult describe_pageable(const CUDA_MEMCPY3D& c, api::PageableCopyRecord& record);

// Sends a record of the session's own that describe_pageable() has filled. The token ends here if nothing was sent.
template <class Record, class Read = decltype(read_nothing)>
Sent send_with_token(int call, const Context& context, const Record& record, Read read = read_nothing,
                     std::span<const Part> parts = {}) {
  const Sent sent = send_own(call, context, record, read, parts);
  if (sent.use.position == 0) session()->callbacks().end(record.token);
  return sent;
}

// Whether some bytes of a copy are the program's own.
bool is_pageable(const CUDA_MEMCPY3D& c);

namespace calls {
// Puts such a copy into a captured stream.
CUresult capture_pageable(const CUDA_MEMCPY3D& c, CUstream stream);
}  // namespace calls

}  // namespace guest
