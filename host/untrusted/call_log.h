// Records a channel's calls for the host: updates the counters and, while a client traces the session, the trace.
//
// Only the channel's thread uses this class, one call at a time. Trust: counters and trace go only to the broker's
// side. A record's bytes are copied unchanged, for a reader that treats them as hostile.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "host/session/telemetry.h"
#include "host/untrusted/marshal/request.h"
#include "ring/api/cuda.h"
#include "ring/ops/telemetry.h"

namespace host {

class CallLog {
 public:
  CallLog(const Telemetry& telemetry, std::uint32_t channel)
      : counters(telemetry.channel(channel)), telemetry_(telemetry), trace_(telemetry.writer(channel)) {}

  // Must be called before each call. The call is traced if the trace is on at this moment.
  void begin() {
    is_traced_ = telemetry_.tracing();
    if (is_traced_) [[unlikely]]
      begin_ns_ = now_ns();
  }
  // Must be called before the guest sees the result, so that the trace contains even the last call of a program.
  // `record`: the whole record; `reply`: bytes of the reply; `submitted`: the GPU has got work.
  void end(const Request& request, CUresult result, std::span<const std::byte> record, std::span<const std::byte> reply,
           bool submitted) {
    end(request.header, result, record, reply, submitted);
    if (request.to_device != 0) ring::count(counters.to_device, request.to_device);
    if (request.from_device != 0) ring::count(counters.from_device, request.from_device);
  }
  // Of calls that a graph makes together, begin() is called once, and this function for each call.
  void end(const ring::RecordHeader& header, CUresult result, std::span<const std::byte> record,
           std::span<const std::byte> reply, bool submitted) {
    ring::count(counters.calls);
    if (submitted) ring::count(counters.submitted);
    ring::count(counters.record_bytes, record.size());
    if (is_traced_) [[unlikely]]
      trace(header, result, record.subspan(sizeof header), reply);
  }

  ring::ChannelCounters& counters;

 private:
  static std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  void trace(const ring::RecordHeader& header, CUresult result, std::span<const std::byte> payload,
             std::span<const std::byte> reply) {
    ring::TraceEntry entry{.begin_ns = begin_ns_,
                           .end_ns = now_ns(),
                           .position = header.position,
                           .call = header.call,
                           .flags = header.flags,
                           .payload_bytes = static_cast<std::uint32_t>(payload.size()),
                           .result = static_cast<std::int32_t>(result),
                           .reply_bytes = static_cast<std::uint32_t>(reply.size()),
                           .payload = {},
                           .reply = {}};
    std::memcpy(entry.payload, payload.data(), std::min(payload.size(), sizeof entry.payload));
    std::memcpy(entry.reply, reply.data(), std::min(reply.size(), sizeof entry.reply));
    trace_.put(entry);
  }

  const Telemetry& telemetry_;
  ring::TraceWriter trace_;
  bool is_traced_ = false;
  std::uint64_t begin_ns_ = 0;
};

}  // namespace host
