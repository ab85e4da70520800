// Ids: a guest's handles, on the wire and in the program. The guest chooses them, so that creating can be posted; the
// host keeps a table and believes only its entries.
//
//   bits 0-3    0, so that an id is never one of CUDA's special streams (0, 1, 2)
//   bits 4-23   index into the session's table, from 1
//   bits 24-42  generation: how often the index has been used, so that a stale handle is known as one
//   bits 43-46  kind (api::Handle)
//
// An id is below 2^47, so it looks like a pointer to programs that look.
#pragma once

#include <cstdint>

#include "ring/api/types.h"

namespace api {

struct Id {
  Handle kind = Handle::None;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;

  static constexpr std::uint32_t max_index = (1u << 20) - 1;
  static constexpr std::uint32_t generations = 1u << 19;

  constexpr std::uint64_t value() const {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 43 | std::uint64_t{generation} << 24 |
           std::uint64_t{index} << 4;
  }
  // Any number gives an Id; one with kind None or index 0 is none of ours.
  static constexpr Id of(std::uint64_t value) {
    if ((value & 0xf) != 0 || value >> 47 != 0 || (value >> 43) >= handle_kinds) return {};
    return {static_cast<Handle>(value >> 43), static_cast<std::uint32_t>(value >> 4) & max_index,
            static_cast<std::uint32_t>(value >> 24) & (generations - 1)};
  }
};

// CUDA's streams that are no objects: 0 (NULL, its meaning depends on the entry point), 1 (legacy), 2 (per-thread).
constexpr bool special_stream(std::uint64_t value) { return value <= 2; }

static_assert(Id::of(Id{Handle::Event, 7, 3}.value()).index == 7 && Id::of(1).index == 0);

}  // namespace api
