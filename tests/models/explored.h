// Replaces the atomics of the project's headers by the explorer's (tests/models/explore.h). Include this file after all
// headers of the standard library and before the project's headers, in every file of a program. It may affect only the
// product's own headers, and sources that the program includes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/models/explore.h"

// Replaces ring/shared/atomic_operations.h.
#define IVGPU_EXPLORED
namespace ring::atomics {
using explore::Order, explore::Site;
template <class T>
T load(const T* at, Order order, Site site) {
  return static_cast<T>(explore::machine::load(at, explore::machine::step("load", order, site)));
}
template <class T>
void store(T* at, T value, Order order, Site site) {
  explore::machine::store(at, static_cast<std::uint64_t>(value), explore::machine::step("store", order, site));
}
template <class T, class F>
T update(const char* what, T* at, F f, Order order, Site site) {
  const Order o = explore::machine::step(what, order, site);
  const T old = static_cast<T>(explore::machine::read_last(at, o));
  explore::machine::store_after_read(at, static_cast<std::uint64_t>(f(old)), o);
  return old;
}
template <class T>
T exchange(T* at, T value, Order order, Site site) {
  return update(
      "exchange", at, [&](T) { return value; }, order, site);
}
template <class T>
T fetch_add(T* at, T value, Order order, Site site) {
  return update(
      "fetch_add", at, [&](T old) { return static_cast<T>(old + value); }, order, site);
}
template <class T>
T fetch_or(T* at, T value, Order order, Site site) {
  return update(
      "fetch_or", at, [&](T old) { return static_cast<T>(old | value); }, order, site);
}
template <class T>
bool compare_exchange(T* at, T& expected, T desired, Order order, Site site) {
  const Order o = explore::machine::step("compare_exchange", order, site);
  const T old = static_cast<T>(explore::machine::read_last(at, o));
  if (old != expected) return expected = old, false;
  explore::machine::store_after_read(at, static_cast<std::uint64_t>(desired), o);
  return true;
}
}  // namespace ring::atomics

namespace std {
template <class T>
using explored_atomic = explore::Atomic<T>;
inline void explored_fence(memory_order order, explore::Site site = explore::Site::current()) {
  explore::fence(order, site);
}
inline void* explored_copy(void* to, const void* from, size_t bytes) { return explore::copy(to, from, bytes); }
}  // namespace std

#define atomic explored_atomic
#define atomic_thread_fence explored_fence
#define memcpy explored_copy
