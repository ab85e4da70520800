// Registered memory: the program's pages become part of an arena block without moving
// (guest/objects/memory/registered.h). The map of addresses has two entries for the memory: one at the program's
// addresses and one at the block's addresses.
#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/process/process.h"

namespace guest::calls {
namespace {

using Outcome = Registered::Outcome;

constexpr unsigned known_flags =
    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

void add_places(std::uint64_t start, std::size_t bytes, unsigned flags, std::byte* block_at, Context& context) {
  Session& s = *session();
  Place place{.kind = Place::Kind::Pinned,
              .flags = flags,
              .start = start,
              .bytes = bytes,
              .registered_at = start,
              .block_at = reinterpret_cast<std::uint64_t>(block_at),
              .id = s.memory.arena->offset(block_at) | 1ULL << 62,  // no id of device memory has this bit
              .context = context.home};
  s.memory.addresses.add(place);
  place.start = place.block_at;
  s.memory.addresses.add(place);
}

const char* why_not(Outcome outcome) {
  switch (outcome) {
    case Outcome::Unfit: return "only private anonymous memory can be registered, and no stack; allocate it otherwise";
    case Outcome::Apart:
      return "it shares a page with registered memory that its own cannot follow on the device; align it to pages";
    case Outcome::NoRoom:
      return "this session's arena has no room for it; give the VM a larger region_size, or fewer slots";
    case Outcome::ThreadsRun:
      return "the process has several threads, and userfaultfd, which makes them wait, is refused: it takes Linux "
             "5.11, "
             "a container that allows it, or the sysctl vm.unprivileged_userfaultfd=1; or register before threads "
             "start";
    default: return "the pages cannot be replaced";
  }
}

CUresult result_of(Outcome outcome, std::size_t bytes) {
  switch (outcome) {
    case Outcome::Done: return CUDA_SUCCESS;
    case Outcome::Already: return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    case Outcome::Absent: return CUDA_ERROR_INVALID_VALUE;
    default: log(Level::Warn, "cuMemHostRegister of %zu bytes: %s", bytes, why_not(outcome));
  }
  return outcome == Outcome::NoRoom ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
}

// Two threads may end the same registration. Only one of the threads finds the place.
bool end_registration(const Place& place) {
  Session& s = *session();
  if (!s.memory.addresses.take(place.registered_at, Place::Kind::Pinned)) return false;
  s.memory.addresses.take(place.block_at, Place::Kind::Pinned);
  return s.memory.registered->remove(place.registered_at);
}

}  // namespace

CUresult cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
  const auto start = reinterpret_cast<std::uint64_t>(at);
  if (at == nullptr || bytes == 0 || bytes > ~start || (flags & ~known_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
  Session& s = *session();
  const Place known = s.memory.addresses.find(start);
  if (known.kind != Place::Kind::Unknown && known.registered_at == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto added = s.memory.registered->add(start, bytes, (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0, context);
  if (added.outcome == Outcome::Done) add_places(start, bytes, flags, added.block_at, *context);
  if (!s.liveness().usable()) return CUDA_ERROR_DEVICE_UNAVAILABLE;  // the worker could not register more of the arena
  return result_of(added.outcome, bytes);
}

CUresult cuMemHostUnregister(void* at) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
  if (at == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto start = reinterpret_cast<std::uint64_t>(at);
  const Place place = session()->memory.addresses.find(start);
  if (place.kind == Place::Kind::Unknown) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (place.registered_at != start) return CUDA_ERROR_INVALID_VALUE;
  // Running copies and kernels may still use the block.
  if (place.context->lives())
    if (const CUresult r = await_context(*place.context); r != CUDA_SUCCESS) return r;
  return end_registration(place) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

}  // namespace guest::calls
