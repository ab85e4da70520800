#include "host/session/memory/arena.h"

#include <sys/mman.h>

#include <vector>

#include "ring/base/mutex.h"
#include "ring/layout/layout.h"
#include "ring/verify/mutants.h"

namespace host {
namespace {

constexpr unsigned register_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

}  // namespace

bool Arena::bind(std::uint64_t window) {
  if (window >= ring::window_count || bytes_ > ring::window_bytes) return false;
  // The move may only replace the worker's own empty reservation, which was made before the driver was loaded. Even a
  // failed move has removed the reservation, and another mapping may take its place. Each window is therefore tried
  // only once.
  const std::uint32_t bit = 1u << window;
  if ((windows_ & bit) == 0) return false;
  windows_ &= ~bit;
  void* wanted = reinterpret_cast<void*>(ring::window_address(static_cast<std::uint32_t>(window)));
  void* at = mremap(start_.load(std::memory_order_relaxed), bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, wanted);
  if (at == MAP_FAILED) return false;
  start_.store(static_cast<std::byte*>(at), std::memory_order_relaxed);
  return true;
}

CUresult Arena::pin(std::uint64_t offset, std::uint64_t bytes) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!ring::wrong(ring::Mutant::pinning_unlocked)) lock.lock();
  mutex_.assume_held();  // true except in the mutant
  if (!addresses_.pinned_in(address() + offset, bytes).empty()) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  return register_piece(offset, bytes);
}

CUresult Arena::join_pins(std::uint64_t offset, std::uint64_t bytes) {
  ring::MutexLock lock(mutex_);
  const std::uint64_t start = address() + offset;
  const std::vector<Range> inside = addresses_.pinned_in(start, bytes);
  for (const Range& piece : inside)
    if (piece.start < start || piece.start + piece.bytes > start + bytes)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  // The driver waits here until the GPU no longer uses the memory.
  for (const Range& piece : inside)
    if (const CUresult r = unregister_piece(piece.start - address(), piece.bytes); r != CUDA_SUCCESS) return r;
  return register_piece(offset, bytes);
}

CUresult Arena::register_piece(std::uint64_t offset, std::uint64_t bytes) {
  if (!may_register_()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = driver_.cuMemHostRegister_v2(bytes_at(offset, bytes).for_driver(), bytes, register_flags);
  if (result != CUDA_SUCCESS) return result;
  addresses_.add({.start = address() + offset, .bytes = bytes, .kind = Memory::Pinned});
  return result;
}

// Unregisters a piece. The session forgets the registration even if the driver reports an error: in a context with a
// fault the driver reports only the fault.
CUresult Arena::unregister_piece(std::uint64_t offset, std::uint64_t bytes) {
  addresses_.unpin(address() + offset);
  return driver_.cuMemHostUnregister(bytes_at(offset, bytes).for_driver());
}

CUresult Arena::register_again() {
  for (const Range& piece : addresses_.pinned_in(address(), bytes_))
    if (const CUresult r = driver_.cuMemHostRegister_v2(bytes_at(piece.start - address(), piece.bytes).for_driver(),
                                                        piece.bytes, register_flags);
        r != CUDA_SUCCESS && r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
      return r;
  return CUDA_SUCCESS;
}

}  // namespace host
