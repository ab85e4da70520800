// In which stream a record's work is, before the record is taken: the GPU that works for a call is that of its stream's
// context, which need not be the current one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace host {

// The id that the record names as its stream; 0: the call names none, or the record is too short. The record may be a hostile
// guest's, so it may be the id of anything.
std::uint64_t stream_of_call(std::uint16_t call, std::span<const std::byte> payload);

}  // namespace host
