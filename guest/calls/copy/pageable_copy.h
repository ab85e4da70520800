// Copies between the GPU and the program's own memory inside a graph: each run of the graph reads and writes the bytes
// anew. Between, the bytes lie in a block of the arena. The driver calls a function of this library, by a node of its
// own, which moves them (docs/design/050-pageable-copies-in-graphs.md).
#pragma once

#include <cstdint>
#include <span>

#include "guest/marshal/custom.h"
#include "guest/session/callbacks.h"
#include "ring/api/cuda.h"
#include "ring/api/records.h"

namespace guest {

// The program's side of a copy, and the block that stands in for it. Lives until its token ends.
struct PageableCopy {
  CUDA_MEMCPY3D as_given;
  bool to_device = false;
  std::byte* program = nullptr;  // the first byte in the program
  std::uint64_t pitch = 0, slice = 0;
  std::byte* block = nullptr;
  std::uint64_t width = 0, height = 0, depth = 0;

  static CUresult move(const Callback& callback, CUresult);
  static void end(const Callback& callback);
};

// Describes a copy with the program's own memory on one side, and issues its token. CUDA_ERROR_NOT_SUPPORTED: both
// sides are. Preconditions: a context is current.
CUresult describe_pageable(const CUDA_MEMCPY3D& c, api::PageableCopyRecord& record);

// Sends a SESSION record that describe_pageable() has filled. Ends the token if nothing was sent.
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
// Adds the copy to a captured stream.
CUresult capture_pageable(const CUDA_MEMCPY3D& c, CUstream stream);
}  // namespace calls

}  // namespace guest
