// The access to memory that the other side can write at any moment. Code accesses such memory only through this file.
//
// Shared<T> is a typed pointer into such memory. It returns and accepts values, and gives out no reference or pointer
// into the memory. Hence a checked value cannot change after the check: to read the memory again, code must call load()
// or copy_out() again. The fuzzers change the memory between any two of these calls (ring/shared/observed.h).
//
//   Shared<uint32_t> or similar     one word: load, store, exchange, compare_exchange, fetch_add, fetch_or
//   Shared<Struct>                  a struct of ring/layout/layout_c.h: [&Struct::member] is the member's place;
//                                   copy_out and copy_in for all of it, which is not atomic
//   Shared<T[n]>                    [i] is an element's place
//   SharedBytes                     a range: copy_out, copy_in
//
// The structs of ring/layout/layout_c.h are plain, so that C can read them; this file has the atomic operations on a
// word. Copy a Shared<T> freely, and unmap the memory only when no copy is used again. Shared<T> checks no index, since
// offsets are constants of the layout or were checked before. No function fails, and any thread may use a Shared<T>.
// Sizes are in bytes.
//
// Three functions are exceptions and return a pointer: write_only() for records that are built in the ring,
// for_driver() for the arena's bytes that a driver copies, and futex_word() for the kernel. tools/boundary-check lists
// the files that may use them.
//
// ```cpp
// struct Mailbox { std::uint32_t ready, length; };
// std::size_t receive(ring::Shared<Mailbox> box, ring::SharedBytes from, std::span<std::byte> to) {
//   if (box[&Mailbox::ready].load(std::memory_order_acquire) == 0) return 0;
//   const std::uint32_t length = box[&Mailbox::length].load(std::memory_order_relaxed);
//   if (length > from.size() || length > to.size()) return 0;  // the copy is checked, and never read again
//   from.copy_out(to.data(), 0, length);
//   return length;
// }
// ```
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "ring/shared/atomic_operations.h"
#include "ring/shared/observed.h"

namespace ring {

using atomics::Order, atomics::Site;

// Keeps the compiler from reading a copy's source again, and from delaying a copy into shared memory.
inline void copied(const void* at) { asm volatile("" ::"r"(at) : "memory"); }

// Bytes of shared memory.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(std::byte* at, std::size_t bytes) : at_(at), bytes_(bytes) {}

  std::size_t size() const { return bytes_; }
  // Preconditions: offset and offset + bytes are at most size().
  SharedBytes sub(std::size_t offset, std::size_t bytes) const { return {at_ + offset, bytes}; }

  // Preconditions: [offset, offset + bytes) lies inside this range.
  void copy_out(void* to, std::size_t offset, std::size_t bytes) const {
    if (bytes == 0) return;
    observe_read(at_ + offset, bytes);
    std::memcpy(to, at_ + offset, bytes);
    copied(to);
  }
  void copy_in(std::size_t offset, const void* from, std::size_t bytes) const {
    if (bytes == 0) return;
    observe_write(at_ + offset, bytes);
    std::memcpy(at_ + offset, from, bytes);
    copied(at_ + offset);
  }

  // Loads the cache line of a byte that will soon be read, unless the offset is outside this range.
  void prefetch(std::size_t offset) const {
    if (offset < bytes_) __builtin_prefetch(at_ + offset);
  }

  // Returns a pointer for writing. Nothing may read through this pointer.
  std::byte* write_only(std::size_t offset) const { return at_ + offset; }
  // Returns the address for a driver, which copies from and to these bytes itself.
  void* for_driver() const { return at_; }
  bool there() const { return at_ != nullptr; }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class T>
class Shared;

// One word of shared memory.
template <class T>
requires(std::is_integral_v<T> && sizeof(T) >= 4) class Shared<T> {
 public:
  Shared() = default;
  explicit Shared(T* at) : at_(at) {}

  T load(Order order = Order::seq_cst, Site site = Site::current()) const {
    observe_read(at_, sizeof(T));
    return atomics::load(at_, order, site);
  }
  void store(T value, Order order = Order::seq_cst, Site site = Site::current()) const {
    observe_write(at_, sizeof(T));
    atomics::store(at_, value, order, site);
  }
  T exchange(T value, Order order = Order::seq_cst, Site site = Site::current()) const {
    observe_read(at_, sizeof(T));
    return atomics::exchange(at_, value, order, site);
  }
  T fetch_add(T value, Order order = Order::seq_cst, Site site = Site::current()) const {
    observe_read(at_, sizeof(T));
    return atomics::fetch_add(at_, value, order, site);
  }
  T fetch_or(T value, Order order = Order::seq_cst, Site site = Site::current()) const {
    observe_read(at_, sizeof(T));
    return atomics::fetch_or(at_, value, order, site);
  }
  // On failure `expected` becomes the current value.
  bool compare_exchange(T& expected, T desired, Order order = Order::seq_cst, Site site = Site::current()) const {
    observe_read(at_, sizeof(T));
    return atomics::compare_exchange(at_, expected, desired, order, site);
  }

  // Returns the word's address for futex calls.
  T* futex_word() const { return at_; }

 private:
  T* at_ = nullptr;
};

// An array in shared memory.
template <class T, std::size_t n>
class Shared<T[n]> {
 public:
  explicit Shared(T (*at)[n]) : at_(*at) {}
  // Preconditions: i < n.
  Shared<T> operator[](std::size_t i) const { return Shared<T>(at_ + i); }
  void copy_in(const T (&from)[n]) const {
    observe_write(at_, sizeof from);
    std::memcpy(at_, from, sizeof from);
    copied(at_);
  }
  void copy_out(T (&to)[n]) const {
    observe_read(at_, sizeof to);
    std::memcpy(to, at_, sizeof to);
    copied(to);
  }

 private:
  T* at_;
};

// A struct in shared memory.
template <class T>
requires(std::is_class_v<T>&& std::is_trivially_copyable_v<T>) class Shared<T> {
 public:
  Shared() = default;
  explicit Shared(T* at) : at_(at) {}

  template <class M>
  Shared<M> operator[](M T::*member) const {
    return Shared<M>(&(at_->*member));
  }
  T copy_out() const {
    T value;
    observe_read(at_, sizeof value);
    std::memcpy(&value, at_, sizeof value);
    copied(&value);
    return value;
  }
  void copy_in(const T& value) const {
    observe_write(at_, sizeof value);
    std::memcpy(static_cast<void*>(at_), &value, sizeof value);
    copied(at_);
  }
  bool there() const { return at_ != nullptr; }

 private:
  T* at_ = nullptr;
};

// Returns access to a T at an offset in mapped memory. The caller has checked offset and size.
template <class T>
Shared<T> shared_at(std::byte* base, std::size_t offset) {
  return Shared<T>(reinterpret_cast<T*>(base + offset));
}

}  // namespace ring
