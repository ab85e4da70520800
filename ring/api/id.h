// Ids: a guest's handles, on the wire and in the program. The guest chooses the id in a call that creates an object, so
// that the call can be posted. The host keeps a table and accepts only ids in it.
//
//   bits 0-3     0, so that an id is never one of CUDA's special streams (0, 1, 2)
//   bits 4-25    index into the session's table, from 1
//   bits 26-41   generation: how often the index has been used; a stale handle has an old generation
//   bits 42-46   kind (api::Handle)
//
// An id is below 2^47, so that it looks like a pointer to programs that check. The guest uses the lower half of the
// indices. The worker uses the upper half, for objects that the driver finds and that no call has made. Hence neither
// side waits for an id from the other side.
//
// ```cpp
// bool is_stream(std::uint64_t from_a_guest) {
//   const api::Id id = api::Id::of(from_a_guest);  // any number; the caller then looks the id up in its table
//   return id.kind == api::Handle::Stream && api::Id::of_guest(id.index);
// }
// ```
#pragma once

#include <cstdint>

#include "ring/api/types.h"

namespace api {

struct Id {
  Handle kind = Handle::None;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;

  static constexpr unsigned index_bits = 22, generation_bits = 16, kind_bits = 5;
  static constexpr unsigned index_at = 4;
  static constexpr unsigned generation_at = index_at + index_bits;
  static constexpr unsigned kind_at = generation_at + generation_bits;
  static constexpr unsigned bits = kind_at + kind_bits;

  static constexpr std::uint32_t max_index = (1u << index_bits) - 1;
  static constexpr std::uint32_t first_of_worker = 1u << (index_bits - 1);
  static constexpr std::uint32_t generations = 1u << generation_bits;

  // Returns whether the guest may choose this index.
  static constexpr bool of_guest(std::uint32_t index) { return index != 0 && index < first_of_worker; }

  constexpr std::uint64_t value() const {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << kind_at | std::uint64_t{generation} << generation_at |
           std::uint64_t{index} << index_at;
  }
  // Splits any number into the parts of an id. If the kind is None or the index is 0, the number is no id.
  static constexpr Id of(std::uint64_t value) {
    constexpr std::uint64_t low = (1u << index_at) - 1;
    if ((value & low) != 0 || value >> kind_at >= handle_kinds) return {};
    return {static_cast<Handle>(value >> kind_at), static_cast<std::uint32_t>(value >> index_at) & max_index,
            static_cast<std::uint32_t>(value >> generation_at) & (generations - 1)};
  }
};

// Returns whether the value is one of CUDA's special streams, which are no objects: 0 (NULL; the meaning depends on the
// entry point), 1 (legacy), 2 (per-thread).
constexpr bool special_stream(std::uint64_t value) { return value <= 2; }

static_assert(Id::bits == 47 && handle_kinds <= 1u << Id::kind_bits);
static_assert(Id::of(Id{Handle::Event, 7, 3}.value()).index == 7 && Id::of(1).index == 0);

}  // namespace api
