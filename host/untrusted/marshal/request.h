// One record while the worker serves it: the record, copied to private memory, and the reply. The reply is also built
// in private memory, because the driver writes pointers into the reply, which the worker then replaces by ids.
//
// A record passes through these steps. unmarshal.h has the steps for a CALL line, and call_context.h for all other
// lines. The guest's half has the same steps in the opposite direction, under the same names (guest/marshal/marshal.h):
//
//   take    decode bytes into values; bytes that no correct guest sends end the session
//   check   turn values into the driver's handles and memory; an unknown value yields the driver's error
//   call    call the driver
//   settle  commit: record what the call has made under its id, and forget what the call has ended
//   answer  write the reply
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "host/session/memory/footprint.h"
#include "host/session/session.h"
#include "host/untrusted/marshal/stream_of_call.h"
#include "ring/wire/record.h"

namespace host {

class Request {
 public:
  // `name`: the string of the channel in which bring_name stores a name for the next lookup; null: bring_name is not
  // possible.
  Request(Session& owner, const ring::RecordHeader& record, std::span<const std::byte> payload,
          std::span<std::byte> reply, std::string* name = nullptr)
      : session(owner),
        header(record),
        in(payload),
        out(reply),
        context(ring::context_of(record.flags)),
        brought_name(name),
        payload_(payload) {}

  // Returns the owners of an object of this kind that the call creates. Of a green context's objects, only streams
  // belong to the green context itself.
  Objects::Place place(api::Handle kind, std::uint64_t owner = 0) const {
    return {api::ends_with_green_context(kind) ? context : session.contexts.home_of(context), owner};
  }
  // Returns the id that the record gives as its stream; 0: none.
  std::uint64_t stream() const { return stream_of_call(header.call, payload_); }
  // working_context() returns the context whose GPU works for the call, which is the context of the call's stream.
  // working_device() returns that GPU.
  unsigned working_context() const { return session.objects.context_of(stream(), context); }
  unsigned working_device() const { return static_cast<unsigned>(session.contexts.device_of(working_context())); }
  // Returns the context of memory that the call makes.
  std::uint16_t context_of_memory() const { return home_of(working_context()); }
  // Returns the context of memory that the call finds in the object `owner`; 0: no object.
  std::uint16_t context_of_memory(std::uint64_t owner) const {
    return home_of(session.objects.context_of(owner, context));
  }
  unsigned capture_mode() const { return ring::capture_mode_of(header.flags); }
  bool per_thread() const { return (header.flags & ring::flag_per_thread) != 0; }
  // Must be called if the guest has broken the protocol. No program can do that through our library, so the session
  // ends.
  CUresult broken() {
    session.protocol.broken.store(true, std::memory_order_relaxed);
    return CUDA_ERROR_UNKNOWN;
  }
  // Counts device memory that the call is about to take. Returns false if there is not enough.
  bool may_take(Footprint bytes) { return may_take(working_device(), bytes); }
  bool may_take(unsigned device, Footprint bytes) {
    return bytes.is_absurd() || charge.take(session.memory.device, device, bytes.bytes());
  }

  // Returns whether the driver may be called: the whole record was read without failure, and the reply fits. At most 15
  // bytes of padding may be left.
  bool complete() const { return in.ok() && in.left() < 16 && out.ok(); }

  Session& session;
  const ring::RecordHeader header;
  ring::Reader in;
  ring::Writer out;                              // if ok() is false, the reply does not fit
  unsigned context;                              // the record's context, or the green context that the call names
  std::string* const brought_name;               // the channel's string, or null; an empty string means no name
  std::size_t out_on_error = 0;                  // reply bytes that the guest gets even if the call failed (JIT logs)
  std::uint64_t to_device = 0, from_device = 0;  // number of bytes copied by the call, for the counters
  Charge charge;             // device memory that the call has taken, until the created object takes over the charge
  std::uint64_t ending = 0;  // id of the object that a CALL line's call ends
  std::uint32_t pool = 0;    // number of the pool from which the call has allocated

 private:
  std::uint16_t home_of(unsigned number) const { return static_cast<std::uint16_t>(session.contexts.home_of(number)); }

  const std::span<const std::byte> payload_;
};

// A function that serves a call. Returns the driver's result, or broken().
using Handler = CUresult (*)(Request&);

}  // namespace host
