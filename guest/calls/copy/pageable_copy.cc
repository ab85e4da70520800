#include "guest/calls/copy/pageable_copy.h"

#include <cstring>

#include "guest/calls/find_stream.h"
#include "guest/marshal/custom.h"

namespace guest {

CUresult PageableCopy::move(const Callback& callback, CUresult) {
  const auto& copy = *static_cast<const PageableCopy*>(callback.argument);
  for (std::uint64_t z = 0; z < copy.depth; ++z)
    for (std::uint64_t y = 0; y < copy.height; ++y) {
      std::byte* const theirs = copy.program + z * copy.slice + y * copy.pitch;
      std::byte* const ours = copy.block + (z * copy.height + y) * copy.width;
      std::memcpy(copy.to_device ? ours : theirs, copy.to_device ? theirs : ours, copy.width);
    }
  return CUDA_SUCCESS;
}

void PageableCopy::end(const Callback& callback) {
  auto* const copy = static_cast<PageableCopy*>(callback.argument);
  session()->memory.arena->free(copy->block);
  delete copy;
}

CUresult calls::capture_pageable(const CUDA_MEMCPY3D& c, CUstream stream) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  api::CapturePageableRecord record{};
  if (const CUresult r = describe_pageable(c, record); r != CUDA_SUCCESS) return r;
  record.stream = reinterpret_cast<std::uint64_t>(stream);
  if (!wait_for_stream(ref, this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  return send_with_token(api::id_of::capture_pageable, *ref.context, record).result;
}

}  // namespace guest
