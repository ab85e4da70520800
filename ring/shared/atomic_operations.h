// The atomic operations on one word of shared memory. Only ring/shared/shared.h uses them.
//
// The schedule explorer replaces these functions by its own (tests/models/explored.h). For the explorer, each operation
// has a parameter with its place in the code (Site); without the explorer, Site is empty. A word is an integer of 4 or
// 8 bytes, aligned to its size, in memory that the caller has mapped. The operations never fail and are lock-free.
//
// ```cpp
// std::uint32_t count_up(std::uint32_t* word) {
//   using namespace ring::atomics;
//   const std::uint32_t found = load(word, Order::relaxed, Site::current());  // the word's only writer
//   store(word, found + 1, Order::release, Site::current());
//   return found + 1;
// }
// ```
#pragma once

#ifndef IVGPU_EXPLORED

#include <atomic>
#include <cstdint>

namespace ring::atomics {

using Order = std::memory_order;
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free &&
              std::atomic_ref<std::uint64_t>::is_always_lock_free);

struct Site {
  static constexpr Site current() { return {}; }
};

template <class T>
T load(const T* at, Order order, Site) {
  return std::atomic_ref<T>(*const_cast<T*>(at)).load(order);
}
template <class T>
void store(T* at, T value, Order order, Site) {
  std::atomic_ref<T>(*at).store(value, order);
}
template <class T>
T exchange(T* at, T value, Order order, Site) {
  return std::atomic_ref<T>(*at).exchange(value, order);
}
template <class T>
T fetch_add(T* at, T value, Order order, Site) {
  return std::atomic_ref<T>(*at).fetch_add(value, order);
}
template <class T>
T fetch_or(T* at, T value, Order order, Site) {
  return std::atomic_ref<T>(*at).fetch_or(value, order);
}
template <class T>
bool compare_exchange(T* at, T& expected, T desired, Order order, Site) {
  return std::atomic_ref<T>(*at).compare_exchange_strong(expected, desired, order);
}

}  // namespace ring::atomics

#endif
