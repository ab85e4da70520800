#include "host/broker/worker/telemetry.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "host/base/sealed_memory.h"

namespace host::broker {
namespace {

std::uint64_t read_of(const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

Counters counters_of(const ring::ChannelCounters& c) {
  return {.calls = read_of(c.calls),
          .waited = read_of(c.waited),
          .submitted = read_of(c.submitted),
          .record_bytes = read_of(c.record_bytes),
          .reply_bytes = read_of(c.reply_bytes),
          .to_device = read_of(c.to_device),
          .from_device = read_of(c.from_device),
          .spun = read_of(c.spun),
          .parked = read_of(c.parked),
          .woken = read_of(c.woken)};
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
  calls += other.calls, waited += other.waited, submitted += other.submitted;
  record_bytes += other.record_bytes, reply_bytes += other.reply_bytes;
  to_device += other.to_device, from_device += other.from_device;
  spun += other.spun, parked += other.parked, woken += other.woken;
  device_memory += other.device_memory;
  return *this;
}

Result<std::unique_ptr<Telemetry>> Telemetry::create(const std::string& name) {
  const auto failure = [](const char* what) {
    return Error{fmt::format("cannot be given its telemetry: {}: {}", what, std::strerror(errno))};
  };
  Fd memfd = make_sealed_memory(name, ring::telemetry_bytes);
  if (!memfd) return failure("memfd_create, sizing and sealing");
  void* const base = map_memory(memfd, ring::trace_offset);
  if (base == nullptr) return failure("mmap");
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(memfd), static_cast<std::byte*>(base)));
}

std::unique_ptr<Telemetry> Telemetry::adopt(Fd memfd) {
  void* const base = has_size(memfd, ring::telemetry_bytes) ? map_memory(memfd, ring::trace_offset) : nullptr;
  if (base == nullptr) return nullptr;
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(memfd), static_cast<std::byte*>(base)));
}

Telemetry::~Telemetry() { munmap(base_, ring::trace_offset); }

bool Telemetry::seal(bool kept) const { return seal_for_good(memfd_, kept); }

Fd Telemetry::read_only() const { return reader_of(memfd_); }

Counters Telemetry::counters() const {
  Counters sum;
  for (const ring::ChannelCounters& channel : page().channel) sum += counters_of(channel);
  sum.device_memory = read_of(page().device_memory);
  return sum;
}

}  // namespace host::broker
