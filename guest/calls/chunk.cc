#include "guest/calls/chunk.h"

#include "guest/marshal/custom.h"

namespace guest {
namespace {

// As cuCtxSynchronize of that context, whichever context is current in this thread. It is needed because the record of
// an asynchronous copy is executed before the copy is done.
CUresult synchronize(Context& context) {
  const Sending how{.call = api::id_of::cuCtxSynchronize, .flags = record_flags(context, true)};
  return send(this_channel(), how, write_nothing, read_nothing).result;
}

}  // namespace

CUresult await_chunk(Arena::Chunk& chunk) {
  if (chunk.last != 0) {
    const Use use = Use::of(chunk.last);
    if (!session()->channel(use.channel).await_executed(use.position)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    chunk.last = 0;
  }
  if (chunk.unfinished == nullptr || !chunk.unfinished->lives()) return CUDA_SUCCESS;
  const CUresult result = synchronize(*chunk.unfinished);
  if (result == CUDA_SUCCESS) chunk.unfinished = nullptr;
  return result;
}

}  // namespace guest
