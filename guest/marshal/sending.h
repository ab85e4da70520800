// For CALL and CUSTOM lines: the flags in the header of a call's record, and how the call handles the error of an
// earlier posted call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest/marshal/order.h"
#include "guest/session/send.h"
#include "ring/api/call.h"

namespace guest {

// Returns the flags for the header of a record that the calling thread sends.
inline std::uint16_t record_flags(const Context& context, bool waits) {
  return static_cast<std::uint16_t>(
      ring::context_flags(context.number) | (waits ? ring::flag_wants_reply : 0) |
      (this_thread().per_thread ? ring::flag_per_thread : 0) |
      (session()->graphs.captures.any() ? ring::capture_mode_flags(this_thread().capture_mode) : 0));
}

// Decides how a call is sent. By CUDA's rule, a posted call returns the error of an earlier posted call, and the call
// is not made. A waited call that succeeds returns the earlier error if `after` says so.
inline Sending sending(int call, api::Way way, const Context& context, std::size_t payload, Earlier after) {
  const bool waits = way == api::Way::Waited;
  return {.call = call,
          .flags = record_flags(context, waits),
          .payload = payload,
          .before = waits ? Earlier::Left : Earlier::Returned,
          .after = after};
}

// Called with the result of each call of the program.
inline void note_answer(CUresult result) {
  const bool refused = result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY && result != CUDA_ERROR_NOT_FOUND;
  if (refused) session()->graphs.captures.disturb();
}

}  // namespace guest
