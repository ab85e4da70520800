// Copies between the GPU and the program's own memory inside a graph. Each run of the graph must read and write the
// program's bytes anew. The GPU copies from or to a block of the arena. A further node of the graph calls a function of
// this library, which copies between the block and the program's memory (docs/design/050-pageable-copies-in-graphs.md).
#pragma once

#include <cstdint>
#include <span>

#include "guest/marshal/custom.h"
#include "guest/session/callbacks.h"
#include "ring/api/cuda.h"
#include "ring/api/records.h"

namespace guest {

// The program's side of a copy, and the arena block that the GPU uses instead. Exists until the token of the callback
// ends.
struct PageableCopy {
  CUDA_MEMCPY3D as_given;
  bool to_device = false;
  std::byte* program = nullptr;  // the first byte in the program's memory
  std::uint64_t pitch = 0, slice = 0;
  std::byte* block = nullptr;
  std::uint64_t width = 0, height = 0, depth = 0;

  static CUresult move(const Callback& callback, CUresult);
  static void end(const Callback& callback);
};

// Describes a copy with the program's own memory on one side, and creates the token of its callback. Returns
// CUDA_ERROR_NOT_SUPPORTED if both sides are the program's own memory. Preconditions: a context is current.
CUresult describe_pageable(const CUDA_MEMCPY3D& c, api::PageableCopyRecord& record);

// Sends a SESSION record that describe_pageable() has filled. Ends the token if nothing was sent.
template <class Record, class Read = decltype(read_nothing)>
Sent send_with_token(int call, const Context& context, const Record& record, Read read = read_nothing,
                     std::span<const Part> parts = {}) {
  const Sent sent = send_own(call, context, record, read, parts);
  if (sent.use.position == 0) session()->callbacks().end(record.token);
  return sent;
}

// Returns whether at least one side of a copy is the program's own memory.
bool is_pageable(const CUDA_MEMCPY3D& c);

namespace calls {
// Adds the copy to a captured stream.
CUresult capture_pageable(const CUDA_MEMCPY3D& c, CUstream stream);
}  // namespace calls

}  // namespace guest
