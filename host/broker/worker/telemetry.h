// A worker's telemetry as the broker has it: the memfd, its counters mapped, and the switch of its trace.
//
// Trust: the worker writes this memory and may be controlled by its guest. Its size is sealed, so reading never faults.
// The counters are numbers to show, copied once, and decide nothing; what it has taken of device memory is
// believed up to what it was lent (host/broker/alloc/memory_leases.h). Trace entries are not read here: a client that
// traces gets a descriptor and reads them itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "host/base/fd.h"
#include "ring/ops/telemetry.h"

namespace host::broker {

// A worker's own account of its work.
struct Counters {
  std::uint64_t calls = 0, waited = 0, submitted = 0, record_bytes = 0, reply_bytes = 0, to_device = 0, from_device = 0;
  std::uint64_t spun = 0, parked = 0, woken = 0;
  std::uint64_t device_memory = 0;  // held now

  Counters& operator+=(const Counters& other);
};

class Telemetry {
 public:
  // Null on failure, and `error` is one sentence. `name` is shown in /proc.
  static std::unique_ptr<Telemetry> create(const std::string& name, std::string& error);
  // The memfd of one that an earlier broker has made, and that seal() has not closed to this one. Null on failure.
  static std::unique_ptr<Telemetry> adopt(Fd memfd);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  int memfd() const { return memfd_.get(); }
  // From now on only the holders of a mapping write it: this broker and its worker. The holder of a descriptor cannot,
  // root included. False if the kernel cannot do that.
  // `kept`: the next broker is to map it, too, so what keeps holders from writing is the file's mode.
  bool seal(bool kept = false) const;
  // A descriptor of the same memory that cannot write it, and of which none but the broker's user can make one that
  // does, until seal(); empty when there is none to be had.
  Fd read_only() const;
  void trace(bool on) const { page().tracing.store(on ? 1 : 0, std::memory_order_relaxed); }
  Counters counters() const;
  // What it counts of a device against what it was lent. Preconditions: device < ring::max_devices.
  std::uint64_t taken(unsigned device) const { return page().taken[device].load(std::memory_order_relaxed); }
  // The fault that its session has had, as a CUresult; 0: none.
  std::uint32_t fault() const { return page().fault.load(std::memory_order_relaxed); }

 private:
  Telemetry(Fd memfd, std::byte* base) : memfd_(std::move(memfd)), base_(base) {}
  ring::TelemetryPage& page() const { return ring::TelemetryView(base_).page(); }

  Fd memfd_;
  std::byte* const base_;  // of ring::trace_offset bytes
};

}  // namespace host::broker
