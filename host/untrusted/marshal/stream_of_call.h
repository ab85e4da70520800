// Finds a record's stream before the record is decoded. The GPU that works for a call is the GPU of the stream's
// context, and this context need not be current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace host {

// Returns the id that the record gives as its stream; 0 if the call has none, or if the record is too short. A hostile
// guest's record may contain any id.
std::uint64_t stream_of_call(std::uint16_t call, std::span<const std::byte> payload);

}  // namespace host
