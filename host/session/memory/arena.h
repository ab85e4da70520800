// The session's arena in the worker: the arena's address, and the pieces that are registered with the GPU.
//
// Trust: offsets and lengths come from the guest. bytes_at() checks them; callers check them before they register
// memory. Any thread may query the arena and register pieces; only the channel with hello calls bind().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "host/driver/driver.h"
#include "host/session/memory/addresses.h"
#include "ring/base/mutex.h"
#include "ring/shared/shared.h"
#include "ring/view.h"

namespace host {

class Arena {
 public:
  // `windows`: one bit for each window that the process has reserved. `may_register` returns whether the session may
  // have one more range.
  Arena(const ring::SlotView& slot, std::uint32_t windows, const Driver& driver, Addresses& addresses,
        std::function<bool()> may_register)
      : start_(slot.base() + ring::arena_offset),
        bytes_(slot.arena_bytes()),
        windows_(windows),
        driver_(driver),
        addresses_(addresses),
        may_register_(std::move(may_register)) {}

  // Moves the arena to a window's address. The guest has mapped the arena at the same address. Returns false if the
  // window was not reserved, if it was tried before, or if the move failed.
  bool bind(std::uint64_t window);

  // Returns the bytes [offset, offset + bytes). The result is there() only if all bytes are inside the arena.
  ring::SharedBytes bytes_at(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset > bytes_ || bytes > bytes_ - offset) return {};
    return {start_.load(std::memory_order_relaxed) + offset, bytes};
  }
  bool holds(std::uint64_t at) const { return at - address() < bytes_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(start_.load(std::memory_order_relaxed)); }

  // Registers [offset, offset + bytes) with the GPU. Precondition: the range is in the arena.
  CUresult pin(std::uint64_t offset, std::uint64_t bytes);
  // Registers the range in place of all registrations inside it. On failure none of these registrations is left.
  // CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: a registration extends beyond the range, and nothing has changed.
  CUresult join_pins(std::uint64_t offset, std::uint64_t bytes);

  // While a caller holds this mutex, no other thread registers memory.
  ring::Mutex& registering() RETURN_CAPABILITY(mutex_) { return mutex_; }
  // Registers every piece again after a reset of the context.
  CUresult register_again() REQUIRES(mutex_);

 private:
  CUresult register_piece(std::uint64_t offset, std::uint64_t bytes) REQUIRES(mutex_);
  CUresult unregister_piece(std::uint64_t offset, std::uint64_t bytes) REQUIRES(mutex_);

  std::atomic<std::byte*> start_;
  const std::size_t bytes_;
  std::uint32_t windows_;  // reserved windows that were not tried yet
  const Driver& driver_;
  Addresses& addresses_;
  const std::function<bool()> may_register_;
  ring::Mutex mutex_;  // guards the registered pieces
};

}  // namespace host
