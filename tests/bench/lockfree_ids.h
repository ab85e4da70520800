// Lock-free variants of two of the product's tables, for comparison: the guest's reused ids (guest/objects/objects.h),
// and free entries of the simulated GPU's handles (host/simgpu/api/handles.h). Both variants create and end objects as
// the product does, without the rest of its classes.
//
// These variants are not ready for the product: docs/design/017-lockfree-between-threads.md has the measurements and
// the decision.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <boost/lockfree/queue.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <vector>

#include "guest/objects/objects.h"
#include "host/simgpu/api/handles.h"

namespace handover {

// Numbers that wait for reuse, first in, first out. The first `room` of them need no lock; a list holds any further
// ones.
class WaitingNumbers {
 public:
  explicit WaitingNumbers(std::size_t room = 1024) : queue_(room) {}

  void push(std::uint32_t number) {
    if (queue_.push(number)) return;
    const std::lock_guard lock(mutex_);
    more_.push_back(number);
    in_list_.store(more_.size(), std::memory_order_relaxed);
  }
  // Returns false if no number waits.
  bool pop(std::uint32_t& number) {
    if (queue_.pop(number)) return true;
    if (in_list_.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(mutex_);
    if (more_.empty()) return false;
    number = more_.front();
    more_.pop_front();
    in_list_.store(more_.size(), std::memory_order_relaxed);
    return true;
  }

 private:
  boost::lockfree::queue<std::uint32_t, boost::lockfree::fixed_sized<true>> queue_;
  std::atomic<std::size_t> in_list_{0};
  std::mutex mutex_;
  std::deque<std::uint32_t> more_;
};

// A queue with several consumers has no operation that reads the front. A thread therefore takes a number out and keeps
// it in `first_` if the number's last use is not yet executed. The rest of an entry belongs to the thread that took the
// number; `first_` and the queue pass it on.
class LockfreeObjects {
 public:
  explicit LockfreeObjects(guest::Executed executed)
      : executed_(executed), table_(map<guest::Object>()), kept_(map<Keeping>()) {}
  ~LockfreeObjects() {
    munmap(table_, places * sizeof(guest::Object));
    munmap(kept_, places * sizeof(Keeping));
  }
  LockfreeObjects(const LockfreeObjects&) = delete;
  LockfreeObjects& operator=(const LockfreeObjects&) = delete;

  guest::Object* create(api::Handle kind, guest::Context* context) {
    std::uint32_t index = reuse();
    if (index == 0) index = fresh();
    if (index == 0) return nullptr;
    guest::Object& object = table_[index];
    const api::Id id{kind, index, kept_[index].generation++ % api::Id::generations};
    object.last_use.forget();
    object.done.forget();
    object.owner = 0, object.function = nullptr, object.flags = 0, object.priority = 0,
    object.context = api::ends_with_context(kind) ? context : nullptr;
    object.id.store(id.value(), std::memory_order_release);
    return &object;
  }
  // Only for kinds without an owner and without owned objects.
  void retire(guest::Object& object, guest::Use last) {
    const auto index = static_cast<std::uint32_t>(&object - table_);
    object.id.store(0, std::memory_order_release);
    kept_[index].last = last;
    waiting_.push(index);
  }

 private:
  static constexpr std::size_t places = std::size_t{api::Id::max_index} + 1;
  struct Keeping {
    guest::Use last;
    std::uint32_t generation;
  };
  template <class T>
  static T* map() {
    return static_cast<T*>(
        mmap(nullptr, places * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }

  std::uint32_t reuse() {
    std::uint32_t index = 0;
    if (first_.load(std::memory_order_relaxed) != 0) index = first_.exchange(0, std::memory_order_acquire);
    if (index == 0 && !waiting_.pop(index)) return 0;
    if (executed_(kept_[index].last)) return index;
    std::uint32_t none = 0;
    if (!first_.compare_exchange_strong(none, index, std::memory_order_release, std::memory_order_relaxed))
      waiting_.push(index);  // another thread has filled first_, so this number goes to the end of the queue
    return 0;
  }
  std::uint32_t fresh() {
    std::uint32_t next = next_index_.load(std::memory_order_relaxed);
    do {
      if (!api::Id::of_guest(next)) return 0;
    } while (!next_index_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
    return next;
  }

  const guest::Executed executed_;
  guest::Object* const table_;
  Keeping* const kept_;
  WaitingNumbers waiting_;
  std::atomic<std::uint32_t> first_{0};
  std::atomic<std::uint32_t> next_index_{1};
};

// The same queue for a single thread.
class ListedNumbers {
 public:
  void push(std::uint32_t number) { numbers_.push_back(number); }
  bool pop(std::uint32_t& number) {
    if (numbers_.empty()) return false;
    number = numbers_.front();
    numbers_.pop_front();
    return true;
  }

 private:
  std::deque<std::uint32_t> numbers_;
};

// Several threads may copy an entry's value, so entries keep a lock. If the queue of free entries is lock-free, an
// entry is taken from it before the lock and returned after the lock.
template <class T, class Handle, simgpu::HandleKind kind, class Lock, class Free>
class Handles {
 public:
  Handle insert(std::shared_ptr<T> object) {
    std::uint32_t index = 0;
    bool again = false;
    if constexpr (!under_lock) again = free_.pop(index);
    const std::unique_lock lock(mutex_);
    if constexpr (under_lock) again = free_.pop(index);
    if (!again) {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back({});
    }
    slots_[index].object = std::move(object);
    const simgpu::HandleBits bits{.index = index, .generation = slots_[index].generation, .kind = kind};
    return reinterpret_cast<Handle>(bits.pack());
  }
  std::shared_ptr<T> find(Handle handle) {
    const SharedLock lock(mutex_);
    const Slot* slot = slot_of(handle);
    return slot == nullptr ? nullptr : slot->object;
  }
  std::shared_ptr<T> remove(Handle handle) {
    std::unique_lock lock(mutex_);
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->object == nullptr) return nullptr;
    std::shared_ptr<T> object = std::move(slot->object);
    slot->object = nullptr;
    const bool usable = ++slot->generation < simgpu::HandleBits::limit;
    if constexpr (!under_lock) lock.unlock();
    if (usable) free_.push(given(handle).index);
    return object;
  }

 private:
  static constexpr bool under_lock = std::is_same_v<Free, ListedNumbers>;
  using SharedLock = std::conditional_t<std::is_same_v<Lock, std::shared_mutex>, std::shared_lock<std::shared_mutex>,
                                        std::unique_lock<Lock>>;
  struct Slot {
    std::shared_ptr<T> object;
    std::uint32_t generation = 0;
  };
  static simgpu::HandleBits given(Handle handle) {
    return simgpu::HandleBits::unpack(reinterpret_cast<std::uint64_t>(handle));
  }
  Slot* slot_of(Handle handle) {
    const simgpu::HandleBits bits = given(handle);
    if (!simgpu::is_kind(handle, kind) || bits.index >= slots_.size() ||
        bits.generation > slots_[bits.index].generation)
      simgpu::never_issued(handle, kind);
    return bits.generation < slots_[bits.index].generation ? nullptr : &slots_[bits.index];
  }

  Lock mutex_;
  std::deque<Slot> slots_;
  Free free_;
};

}  // namespace handover
