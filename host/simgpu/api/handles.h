// Handles of the simulated driver: numbers that encode a kind, a slot and the slot's generation.
//
// Invariant: each number is issued once. A destroyed handle therefore differs from a number that was never issued. A
// call on a destroyed handle returns the documented error. A call on a number that was never issued is a bug in the
// caller and aborts the process. A handle is not a readable address.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ring/base/mutex.h"

namespace simgpu {

enum class HandleKind : std::uint8_t {
  Context = 1,
  Stream,
  Event,
  Module,
  Function,
  Library,
  Kernel,
  MemoryPool,
  Array,
  MipmappedArray,
  TextureReference,
  GreenContext,
  ResourceDescription,
  Link,
  SurfaceReference,
  Graph,
  GraphNode,
  GraphExec,
  UserObject
};

struct HandleBits {
  static constexpr std::uint64_t tag = 0x51;  // no canonical address has this top byte
  std::uint32_t index = 0;                    // 24 bits
  std::uint32_t generation = 0;               // 24 bits
  HandleKind kind{};

  static constexpr std::uint32_t limit = 1U << 24;
  std::uint64_t pack() const {
    return tag << 56 | std::uint64_t{static_cast<std::uint8_t>(kind)} << 48 | std::uint64_t{generation} << 24 | index;
  }
  static HandleBits unpack(std::uint64_t value) {
    return {.index = static_cast<std::uint32_t>(value & (limit - 1)),
            .generation = static_cast<std::uint32_t>(value >> 24 & (limit - 1)),
            .kind = static_cast<HandleKind>(value >> 48 & 0xff)};
  }
};

// Returns true if the bits of `handle` encode this kind.
inline bool is_kind(const void* handle, HandleKind kind) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  return value >> 56 == HandleBits::tag && HandleBits::unpack(value).kind == kind;
}

// Reports on stderr a handle that was never issued, and aborts the process.
[[noreturn]] void never_issued(const void* handle, HandleKind expected);

// The live objects of one kind. Thread-safe.
template <class T, class Handle, HandleKind kind>
class HandleTable {
 public:
  Handle insert(std::shared_ptr<T> object) {
    const ring::WriterLock lock(mutex_);
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.push_back({});
    }
    // Free slots are reused first in, first out, so that a slot is reused as late as possible.
    const std::uint32_t index = free_.front();
    free_.pop_front();
    slots_[index].object = std::move(object);
    return handle_at(index);
  }

  // Returns the object of a handle; null for NULL and for a destroyed object.
  std::shared_ptr<T> find(Handle handle) const {
    if (handle == nullptr) return nullptr;
    const ring::ReaderLock lock(mutex_);
    const Slot* slot = slot_of(handle);
    return slot == nullptr ? nullptr : slot->object;
  }

  // Returns the object and invalidates the handle.
  std::shared_ptr<T> remove(Handle handle) {
    if (handle == nullptr) return nullptr;
    const ring::WriterLock lock(mutex_);
    Slot* slot = const_cast<Slot*>(slot_of(handle));
    if (slot == nullptr || slot->object == nullptr) return nullptr;
    std::shared_ptr<T> object = std::move(slot->object);
    slot->object = nullptr;
    if (++slot->generation < HandleBits::limit) free_.push_back(HandleBits::unpack(number(handle)).index);
    return object;
  }

  std::vector<std::shared_ptr<T>> all() const {
    const ring::ReaderLock lock(mutex_);
    std::vector<std::shared_ptr<T>> out;
    for (const Slot& slot : slots_)
      if (slot.object != nullptr) out.push_back(slot.object);
    return out;
  }

 private:
  struct Slot {
    std::shared_ptr<T> object;
    std::uint32_t generation = 0;
  };

  static std::uint64_t number(Handle handle) { return reinterpret_cast<std::uint64_t>(handle); }
  Handle handle_at(std::uint32_t index) const REQUIRES(mutex_) {
    const HandleBits bits{.index = index, .generation = slots_[index].generation, .kind = kind};
    return reinterpret_cast<Handle>(bits.pack());
  }

  // Returns the slot of a live handle; null if the object is destroyed.
  const Slot* slot_of(Handle handle) const REQUIRES_SHARED(mutex_) {
    const HandleBits bits = HandleBits::unpack(number(handle));
    if (!is_kind(handle, kind) || bits.index >= slots_.size() || bits.generation > slots_[bits.index].generation)
      never_issued(handle, kind);
    const Slot& slot = slots_[bits.index];
    if (bits.generation < slot.generation) return nullptr;
    if (slot.object == nullptr) never_issued(handle, kind);  // this generation was never issued
    return &slot;
  }

  mutable ring::SharedMutex mutex_;
  std::deque<Slot> slots_ GUARDED_BY(mutex_);
  std::deque<std::uint32_t> free_ GUARDED_BY(mutex_);
};

}  // namespace simgpu
