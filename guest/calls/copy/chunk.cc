#include "guest/calls/copy/chunk.h"

#include "guest/calls/captured.h"
#include "guest/marshal/custom.h"

namespace guest {
CUresult await_chunk(Arena::Chunk& chunk) {
  if (chunk.last != 0) {
    const Use use = Use::of(chunk.last);
    if (!session()->channels().at(use.channel).await_executed(use.position)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    chunk.last = 0;
  }
  if (chunk.unfinished == nullptr || !chunk.unfinished->lives()) return CUDA_SUCCESS;
  // The worker executes the record of an asynchronous copy before the copy is complete.
  const CUresult result = await_context(*chunk.unfinished);
  if (result == CUDA_SUCCESS) chunk.unfinished = nullptr;
  return result;
}

}  // namespace guest
