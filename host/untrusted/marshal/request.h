// One record on its way through the worker: the record, copied to private memory, and the reply. The reply is built in
// private memory, too, because the driver writes pointers into it before they become ids.
//
// A record goes through these steps, a CALL line's in unmarshal.h and every other in asked.h. The guest's half has the
// same steps in the other direction, under the same names (guest/marshal/marshal.h):
//
//   take    turn bytes into values; bytes that no correct guest sends end the session
//   check   turn values into the driver's handles and memory; one that the session does not have is the driver's error
//   call    call the driver
//   settle  note what the call has made under its id, and forget what it has ended
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
  // `name`: the channel's, for what bring_name brings to its next lookup; null: nothing can be brought.
  Request(Session& owner, const ring::RecordHeader& record, std::span<const std::byte> payload,
          std::span<std::byte> reply, std::string* name = nullptr)
      : session(owner),
        header(record),
        in(payload),
        out(reply),
        context(ring::context_of(record.flags)),
        brought_name(name),
        payload_(payload) {}

  // The owners of an object of this kind that the call creates. Of a green context are its streams alone.
  Objects::Place place(api::Handle kind, std::uint64_t owner = 0) const {
    return {api::ends_with_green_context(kind) ? context : session.contexts.home_of(context), owner};
  }
  // The id that the record names as its stream; 0: none.
  std::uint64_t stream() const { return stream_of_call(header.call, payload_); }
  // The context whose GPU works for the call: its stream's, whichever is current. And that GPU.
  unsigned working_context() const { return session.objects.context_of(stream(), context); }
  unsigned working_device() const { return static_cast<unsigned>(session.contexts.device_of(working_context())); }
  // The context of memory that the call makes.
  std::uint16_t context_of_memory() const { return home_of(working_context()); }
  // The same of memory that it finds in an object. `owner` is 0 where it names none.
  std::uint16_t context_of_memory(std::uint64_t owner) const {
    return home_of(session.objects.context_of(owner, context));
  }
  unsigned capture_mode() const { return ring::capture_mode_of(header.flags); }
  bool per_thread() const { return (header.flags & ring::flag_per_thread) != 0; }
  // Call it if the guest has broken the protocol. No program can do that through our library, so the session ends.
  CUresult broken() {
    session.protocol.broken.store(true, std::memory_order_relaxed);
    return CUDA_ERROR_UNKNOWN;
  }
  // Counts device memory that the call is about to take. False: there is not so much.
  bool may_take(Footprint bytes) { return may_take(working_device(), bytes); }
  bool may_take(unsigned device, Footprint bytes) {
    return bytes.is_absurd() || charge.take(session.memory.device, device, bytes.bytes());
  }

  // Whether the driver may be called: the whole record has been read, and nothing has failed. Up to 15 bytes of padding
  // may be left.
  bool complete() const { return in.ok() && in.left() < 16 && out.ok(); }

  Session& session;
  const ring::RecordHeader header;
  ring::Reader in;
  ring::Writer out;                              // not ok(): the reply does not fit
  unsigned context;                              // the record's, or the green one that the call names
  std::string* const brought_name;               // the channel's, or null; empty: there is none
  std::size_t out_on_error = 0;                  // its bytes that the guest gets even if the call failed (JIT logs)
  std::uint64_t to_device = 0, from_device = 0;  // bytes that the call has copied, for the counters
  Charge charge;             // the device memory that the call takes, until it is what the call has made that has it
  std::uint64_t ending = 0;  // the id of the object that the call of a CALL line ends
  std::uint32_t pool = 0;    // by number, which it has made an allocation from

 private:
  std::uint16_t home_of(unsigned number) const { return static_cast<std::uint16_t>(session.contexts.home_of(number)); }

  const std::span<const std::byte> payload_;
};

// The function that serves a call. Returns the driver's result, or broken().
using Handler = CUresult (*)(Request&);

}  // namespace host
