// How much memory the parameters of a CALL line name, by the words of the line (ring/api/arg.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <tuple>

#include "ring/api/call.h"
#include "ring/wire/record.h"

namespace guest {

template <class T>
std::uint64_t to_slot(T v) {
  return api::number_of(v);  // sign-extends, so a negative length becomes a huge one
}

template <api::Arg a, class Params>
std::uint64_t element_count(const Params& params) {
  if constexpr (a.extent == api::Extent::Counted)
    return to_slot(std::get<static_cast<std::size_t>(a.count)>(params));
  else
    return 1;
}

// Of the memory behind a pointer, in bytes; null: ring::absent.
template <api::Arg a, class Pointer, class Params>
std::uint64_t byte_length(Pointer p, const Params& params) {
  using T = api::Pointee<Pointer>;
  if (p == nullptr) return ring::absent;
  if constexpr (a.extent == api::Extent::One) {
    return sizeof(T);
  } else if constexpr (a.extent == api::Extent::Row) {
    return sizeof(T) * std::size_t{a.count};
  } else if constexpr (a.extent == api::Extent::String) {
    return std::strlen(p) + 1;
  } else if constexpr (a.extent == api::Extent::Valued) {
    return api::value_bytes(std::get<static_cast<std::size_t>(a.count)>(params));
  } else {
    const std::uint64_t n = to_slot(std::get<static_cast<std::size_t>(a.count)>(params));
    return n > ring::max_record ? n : n * sizeof(T);
  }
}

}  // namespace guest
