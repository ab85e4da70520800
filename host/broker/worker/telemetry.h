// The broker's side of a worker's telemetry: the memfd, the mapped counters, and the trace switch.
//
// Trust: the worker writes this memory, and a guest may control it. The size is sealed, so reading never faults.
// Counters are copied once, are only shown, and decide nothing. Its use of device memory is trusted up to its lease
// (host/broker/alloc/memory_reservations.h). The broker reads no trace entries: a tracing client gets a descriptor for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "host/base/fd.h"
#include "host/base/result.h"
#include "ring/ops/telemetry.h"

namespace host::broker {

// A worker's own counters.
struct Counters {
  std::uint64_t calls = 0, waited = 0, submitted = 0, record_bytes = 0, reply_bytes = 0, to_device = 0, from_device = 0;
  std::uint64_t spun = 0, parked = 0, woken = 0;
  std::uint64_t device_memory = 0;  // bytes in use

  Counters& operator+=(const Counters& other);
};

class Telemetry {
 public:
  // The error is one sentence. `name` is shown in /proc.
  static Result<std::unique_ptr<Telemetry>> create(const std::string& name);
  // Takes the memfd of an earlier broker, which must be writable for this one. Null on failure.
  [[nodiscard]] static std::unique_ptr<Telemetry> adopt(Fd memfd);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  int memfd() const { return memfd_.get(); }
  // Forbids writing except through the existing mappings, those of this broker and its worker, even to root. False if
  // the kernel cannot do that. `kept`: the next broker must map it, too, so only the file's mode protects it.
  [[nodiscard]] bool seal(bool kept = false) const;
  // Returns a read-only descriptor, which until seal() only the broker's user can reopen for writing. Empty on failure.
  [[nodiscard]] Fd read_only() const;
  void trace(bool on) const { page().tracing.store(on ? 1 : 0, std::memory_order_relaxed); }
  Counters counters() const;
  // Bytes of a device in use, by the worker's own account. Precondition: device < ring::max_devices.
  std::uint64_t taken(unsigned device) const { return page().taken[device].load(std::memory_order_relaxed); }
  // The session's fault as a CUresult; 0: none.
  std::uint32_t fault() const { return page().fault.load(std::memory_order_relaxed); }

 private:
  Telemetry(Fd memfd, std::byte* base) : memfd_(std::move(memfd)), base_(base) {}
  ring::TelemetryPage& page() const { return ring::TelemetryView(base_).page(); }

  Fd memfd_;
  std::byte* const base_;  // of ring::trace_offset bytes
};

}  // namespace host::broker
