// The atomic operations on one word of shared memory, for ring/shared/shared.h alone. The schedule explorer puts its own in
// their place (tests/models/explored.h) and asks for the place of each operation in the code; otherwise that is not
// asked.
#pragma once

#ifndef IVGPU_EXPLORED

#include <atomic>
#include <cstdint>

namespace ring::words {

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

}  // namespace ring::words

#endif
