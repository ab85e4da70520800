// One record on its way through the worker: what the guest sent, copied to private memory, and the reply being built,
// private as well: the driver writes real pointers into it before they become ids.
//
// Its way, for a CALL line in unmarshal.h, for every other in asked.h. The guest's half takes the same steps backwards, by
// the same words where it has the same step (guest/marshal/marshal.h):
//
//   take    bytes become values; what no correct guest sends ends the session
//   check   values become the driver's: handles, memory; what is not the session's is the driver's error
//   call    the driver does it
//   settle  what was made is known under its id from now on, and what has ended is not
//   answer  the reply is written
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "host/session/session.h"
#include "ring/wire/record.h"

namespace host {

class Request {
 public:
  Request(Session& owner, const ring::RecordHeader& record, std::span<const std::byte> payload,
          std::span<std::byte> reply)
      : session(owner), header(record), in(payload), out(reply) {}

  // Where what this call creates belongs.
  Objects::Place place(std::uint64_t owner = 0) const { return {ring::context_of(header.flags), owner}; }
  bool per_thread() const { return (header.flags & ring::flag_per_thread) != 0; }
  // The guest broke the protocol: no program can do this through our library, so the session ends.
  CUresult broken() {
    session.broken.store(true, std::memory_order_relaxed);
    return CUDA_ERROR_UNKNOWN;
  }
  // Preconditions for calling the driver: everything the record holds has been read, and nothing failed.
  bool complete() const { return in.ok() && in.left() < 16 && out.ok(); }

  Session& session;
  const ring::RecordHeader header;
  ring::Reader in;
  ring::Writer out;                              // failed: the reply does not fit
  std::size_t out_on_error = 0;                  // how much of it the guest gets although the call failed (JIT logs)
  std::uint64_t to_device = 0, from_device = 0;  // bytes that the call has copied, for the counters
};

// What stands behind a call's id. Returns the driver's result, or broken().
using Handler = CUresult (*)(Request&);

}  // namespace host
