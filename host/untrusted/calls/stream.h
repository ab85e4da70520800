// The stream that a record names.
#pragma once

#include "host/untrusted/request.h"
#include "ring/api/id.h"

namespace host::calls {

// The driver's stream behind a slot; CUDA_ERROR_INVALID_HANDLE when the session has no such stream.
inline CUresult find_stream(Request& r, std::uint64_t slot, CUstream& stream) {
  stream = reinterpret_cast<CUstream>(slot);
  if (api::special_stream(slot)) return CUDA_SUCCESS;
  stream = static_cast<CUstream>(r.session.objects.find(slot, api::Handle::Stream));
  return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace host::calls
