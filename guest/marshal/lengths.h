// Finds the memory that each parameter of a CALL line refers to, and the length of this memory (ring/api/arg.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "guest/session/session.h"
#include "ring/api/call.h"
#include "ring/wire/record.h"

namespace guest {

template <class T>
std::uint64_t to_slot(T v) {
  return api::number_of(v);  // sign-extends, so that a negative length becomes a huge length
}

template <api::Arg a, class Params>
std::uint64_t element_count(const Params& params) {
  if constexpr (a.extent == api::Extent::Counted)
    return to_slot(std::get<static_cast<std::size_t>(a.count)>(params));
  else
    return 1;
}

// A device address in a call's parameters, translated to the host's address.
struct DeviceArgument {
  std::uint64_t at = 0;
  bool nothing = false;  // the length is 0, so CUDA ignores the address
  CUresult refused = CUDA_SUCCESS;
};
template <api::Arg a, class Params>
DeviceArgument device_argument(CUdeviceptr p, const Params& params) {
  if (a.may_be_null && p == 0) return {};
  const std::array slots = std::apply([](auto... v) { return std::array{to_slot(v)...}; }, params);
  const auto bytes = api::device_bytes<a>([&](int n) { return slots[static_cast<std::size_t>(n)]; });
  const bool aligned = p % a.bytes == 0;
  if (bytes == std::uint64_t{0} && (aligned || a.extent != api::Extent::Rows)) return {.nothing = true};
  if (!bytes || !aligned) return {.refused = CUDA_ERROR_INVALID_VALUE};
  if (const auto at = session()->memory.addresses.device_view(p, *bytes)) return {.at = *at};
  if (a.judged_later && session()->graphs.captures.any()) return {.at = p};
  return {.refused = CUDA_ERROR_INVALID_VALUE};
}

// Returns the length of the memory behind a pointer; ring::absent for null.
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
