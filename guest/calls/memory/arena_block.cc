#include "guest/calls/memory/arena_block.h"

#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/captured.h"

namespace guest::calls {

std::byte* allocate_block(Place::Kind kind, std::size_t bytes, unsigned flags, Context& context) {
  Session& s = *session();
  std::byte* at = s.memory.arena->allocate(bytes);
  if (at != nullptr) {
    s.memory.addresses.add({.kind = kind,
                            .flags = flags,
                            .start = reinterpret_cast<std::uint64_t>(at),
                            .bytes = bytes,
                            .id = s.memory.arena->offset(at) | 1ULL << 62,  // no id of device memory has this bit
                            .context = context.home});
    return at;
  }
  if (!s.liveness().usable()) return nullptr;
  const Arena::Room room = s.memory.arena->room();
  log(Level::Warn,
      "no room for %zu bytes of %s memory: %llu bytes of this session's arena are free, the largest piece has %llu; "
      "give the VM a larger region_size, or fewer slots",
      bytes, kind == Place::Kind::Managed ? "managed" : "pinned", static_cast<unsigned long long>(room.bytes),
      static_cast<unsigned long long>(room.largest));
  return nullptr;
}

CUresult no_block() {
  return session()->liveness().usable() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUresult free_block(std::uint64_t start, Place::Kind kind, const Context* current) {
  Session& s = *session();
  const Place block = s.memory.addresses.find(start);
  if (block.kind != kind || block.start != start) return CUDA_ERROR_INVALID_VALUE;
  const Context* const user = current == nullptr ? block.context : current;
  if (user != nullptr && user->lives())
    if (const CUresult r = await_context(*user); r != CUDA_SUCCESS) return r;
  if (!s.memory.addresses.take(start, kind)) return CUDA_ERROR_INVALID_VALUE;
  // Another thread may allocate the block's space from here on.
  s.memory.arena->free(reinterpret_cast<const void*>(start));
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
