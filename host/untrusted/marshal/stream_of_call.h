// Finds a record's stream before the record is decoded: the GPU that works for a call is that of its stream's context,
// which need not be current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace host {

// The id that the record names as its stream; 0 if the call has none, or the record is too short. A hostile guest's
// record may name any id.
std::uint64_t stream_of_call(std::uint16_t call, std::span<const std::byte> payload);

}  // namespace host
