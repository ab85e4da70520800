// How a CUSTOM call sends its record: the struct, then what follows it.
#pragma once

#include <cstring>
#include <mutex>
#include <span>

#include "guest/marshal/marshal.h"
#include "guest/session/channel.h"
#include "guest/session/session.h"
#include "ring/api/call.h"

namespace guest {

struct Part {
  const void* at = nullptr;
  std::size_t bytes = 0;
};

// What becomes of an earlier posted call's error that is known when a waited call's reply comes. Left: it waits for the
// next call, so that nothing that this one has made or ended on the host is unknown to the guest. Told: it is this
// call's answer.
enum class Earlier : std::uint8_t { Left, Told };

struct Sent {
  CUresult result = CUDA_SUCCESS;
  Use use;  // position 0: nothing was sent
  // The record was sent and the wait for its reply was given up: what becomes of it nobody knows, so what it names is
  // held as for a posted call (guest/session/channel.cc).
  bool unanswered = false;
};

// Sends `record` and the parts after it, each padded to 8, as the call with this id. Waited: `on_reply(CUresult,
// SharedReader&)` sees the reply while the channel's lock is held, failed or not. The caller has waited for the order
// the table's line asks for.
template <class Record, class OnReply>
Sent send_record(int call, api::Way way, Context& context, const Record& record, std::span<const Part> parts,
                 OnReply on_reply, Earlier earlier_error = Earlier::Left) {
  Channel& channel = this_channel();
  std::lock_guard lock(channel.mutex());
  const bool waits = way == api::Way::Waited;
  if (!waits)
    if (const CUresult earlier = channel.take_deferred(); earlier != CUDA_SUCCESS) return {earlier, {}};
  std::size_t payload = ring::padded(sizeof record);
  for (const Part& part : parts) payload += part.bytes > ring::max_record ? ring::max_record : ring::padded(part.bytes);
  ring::Writer w({});
  if (const CUresult r = channel.begin(call, payload, w); r != CUDA_SUCCESS) return {r, {}};
  w.bytes(&record, sizeof record);
  for (const Part& part : parts) w.bytes(part.at, part.bytes);
  const Use use{channel.index(), channel.publish(record_flags(context, waits))};
  if (!waits) return {CUDA_SUCCESS, use};
  const Reply reply = channel.await_reply(use.position);
  ring::SharedReader reader(reply.payload);
  on_reply(reply.result, reader);
  if (reply.result != CUDA_SUCCESS) return {reply.result, use, !reply.came};
  if (!reader.ok()) return {session()->lose_to_nonsense(), use};
  return {earlier_error == Earlier::Told ? channel.take_deferred() : CUDA_SUCCESS, use};
}

template <class Record>
Sent send_record(int call, api::Way way, Context& context, const Record& record, std::span<const Part> parts = {},
                 Earlier earlier_error = Earlier::Left) {
  return send_record(
      call, way, context, record, parts, [](CUresult, ring::SharedReader&) {}, earlier_error);
}

}  // namespace guest
