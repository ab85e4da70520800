// Finds out whether a record's call is in a captured stream. Such a call adds to a graph, and gives the GPU no work.
#pragma once

#include "host/untrusted/marshal/request.h"

namespace host {

inline bool is_captured(const Driver& driver, CUstream stream) {
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// Precondition: the record's context is current.
inline bool is_on_captured_stream(const Request& r) {
  if (!r.session.graphs.captures.any()) return false;
  const std::uint64_t id = r.stream();
  auto stream = reinterpret_cast<CUstream>(id);
  if (!api::special_stream(id)) {
    stream = static_cast<CUstream>(r.session.objects.find(id, api::Handle::Stream));
    if (stream == nullptr) return false;
  }
  return is_captured(r.session.driver, Captures::in_thread(stream, r.per_thread()));
}

}  // namespace host
