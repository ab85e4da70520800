// A session's telemetry: the session's counters, and the memory for its channels' trace. The broker provides the
// memory; a session without a broker uses private memory.
#pragma once

#include <cstddef>

#include "ring/ops/telemetry.h"

namespace host {

class Telemetry {
 public:
  // `mapped`: ring::telemetry_bytes of memory that the caller owns. Null: the object allocates its own memory.
  explicit Telemetry(std::byte* mapped);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  bool tracing() const { return page().tracing.load(std::memory_order_relaxed) != 0; }
  ring::TelemetryPage& page() const { return ring::TelemetryView(base_).page(); }
  ring::ChannelCounters& channel(std::uint32_t index) const { return page().channel[index]; }
  ring::TraceWriter writer(std::uint32_t index) const {
    return {channel(index).written, ring::TelemetryView(base_).cells(index)};
  }

 private:
  const bool own_;
  std::byte* const base_;
};

}  // namespace host
