// A worker's telemetry as the broker has it: the memfd, its counters mapped, and the switch of its trace.
//
// Trust: the worker writes this memory and may be controlled by its guest. Its size is sealed, so reading never faults;
// who traces gets a descriptor and reads;
// the counters are numbers to show, copied once, and nothing is decided by them. Trace entries are not read here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/broker/fd.h"
#include "ring/telemetry.h"

namespace host::broker {

// What a worker says that it has done.
struct Counters {
  std::uint64_t calls = 0, waited = 0, record_bytes = 0, reply_bytes = 0, to_device = 0, from_device = 0;
  std::uint64_t spun = 0, parked = 0, woken = 0;
  std::uint64_t device_memory = 0;  // held now

  Counters& operator+=(const Counters& other);
};

class Telemetry {
 public:
  // Null on failure, and `error` is one sentence. `name` is for who looks into /proc.
  static std::unique_ptr<Telemetry> create(const std::string& name, std::string& error);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  int memfd() const { return memfd_.get(); }
  // From now on only those write it who have it mapped already: this broker and its worker. Who has a descriptor of it
  // cannot, root included. False where that cannot be had.
  bool seal() const;
  // A descriptor of the same memory that cannot write it, and of which none but the broker's user can make one that
  // does, until seal(); empty when there is none to be had.
  Fd read_only() const;
  void trace(bool on) const { page().tracing.store(on ? 1 : 0, std::memory_order_relaxed); }
  Counters counters() const;

 private:
  Telemetry(Fd memfd, std::byte* base) : memfd_(std::move(memfd)), base_(base) {}
  ring::TelemetryPage& page() const { return ring::TelemetryView(base_).page(); }

  Fd memfd_;
  std::byte* const base_;  // of ring::trace_offset bytes
};

}  // namespace host::broker
