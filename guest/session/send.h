// Sends a record to the worker. For every record, the steps are: check for an earlier call's error, make space in the
// ring, write the record, publish it, wait for the reply. Calls of the table are sent through guest/marshal/; SESSION
// records are sent directly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest/objects/memory/last_use.h"
#include "guest/session/channel.h"
#include "ring/api/cuda.h"
#include "ring/wire/record.h"
#include "ring/wire/shared_reader.h"

namespace guest {

// How a call handles an earlier posted call's error. Left: the error waits for the next call. Returned: this call
// returns the error.
enum class Earlier : std::uint8_t { Left, Returned };

struct Sending {
  int call = 0;
  std::uint16_t flags = 0;         // flags of the record's header; with ring::flag_wants_reply the call waits
  std::size_t payload = 0;         // number of bytes after the header
  Earlier before = Earlier::Left;  // for an error known before the record is written; Returned: nothing is sent
  Earlier after = Earlier::Left;   // for an error known when the reply has arrived
};

struct Sent {
  CUresult result = CUDA_SUCCESS;
  Use use;  // position 0: nothing was sent
  // The record was sent, but the guest gave up waiting for the reply. The worker may still execute the record, so the
  // guest keeps the objects that the record names, as for a posted call (guest/session/channel.cc).
  bool unanswered = false;
};

inline constexpr auto write_nothing = [](ring::Writer&) {};
inline constexpr auto read_nothing = [](CUresult, ring::SharedReader&) {};

// Sends a record. `write`: void(ring::Writer&), fills the payload in the ring. `read`: void(CUresult,
// ring::SharedReader&), reads the reply to a waited call, even if the call failed, under the channel's lock. A reply
// shorter than `read` expects ends the session. Preconditions: the caller has waited for the calls that this call must
// not overtake, and holds no channel's lock.
template <class Write, class Read>
Sent send(Channel& channel, const Sending& s, Write write, Read read) {
  const ChannelLock lock(channel.mutex());
  if (s.before == Earlier::Returned)
    if (const CUresult earlier = channel.take_deferred(); earlier != CUDA_SUCCESS) return {earlier, {}};
  ring::Writer w({});
  if (const CUresult r = channel.begin(s.call, s.payload, w); r != CUDA_SUCCESS) return {r, {}};
  write(w);
  const Use use{channel.index(), channel.publish(s.flags)};
  if ((s.flags & ring::flag_wants_reply) == 0) return {CUDA_SUCCESS, use};
  const Reply reply = channel.await_reply(use.position);
  ring::SharedReader reader(reply.payload);
  read(reply.result, reader);
  if (reply.came && !channel.read_is_good()) return {CUDA_ERROR_DEVICE_UNAVAILABLE, use};
  if (reply.result != CUDA_SUCCESS) return {reply.result, use, !reply.came};
  if (!reader.ok()) return {channel.lose_to_short_reply(), use};
  return {s.after == Earlier::Returned ? channel.take_deferred() : CUDA_SUCCESS, use};
}

}  // namespace guest
