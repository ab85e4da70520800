#include "host/broker/telemetry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

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

std::unique_ptr<Telemetry> Telemetry::create(const std::string& name, std::string& error) {
  const auto fail = [&](const char* what) {
    error = fmt::format("cannot be given its telemetry: {}: {}", what, std::strerror(errno));
    return nullptr;
  };
  Fd memfd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) return fail("memfd_create");
  // A memfd's mode is 0777: the holder of a descriptor that only reads could open another through /proc that writes.
  if (fchmod(memfd.get(), 0600) != 0 || ftruncate(memfd.get(), ring::telemetry_bytes) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return fail("sizing and sealing");
  void* base = mmap(nullptr, ring::trace_offset, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (base == MAP_FAILED) return fail("mmap");
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(memfd), static_cast<std::byte*>(base)));
}

std::unique_ptr<Telemetry> Telemetry::adopt(Fd memfd) {
  struct stat status {};
  if (fstat(memfd.get(), &status) != 0 || status.st_size != static_cast<off_t>(ring::telemetry_bytes)) return nullptr;
  void* base = mmap(nullptr, ring::trace_offset, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (base == MAP_FAILED) return nullptr;
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(memfd), static_cast<std::byte*>(base)));
}

Telemetry::~Telemetry() { munmap(base_, ring::trace_offset); }

bool Telemetry::seal(bool kept) const {
  return fcntl(memfd_.get(), F_ADD_SEALS, (kept ? 0 : F_SEAL_FUTURE_WRITE) | F_SEAL_SEAL) == 0;
}

Fd Telemetry::read_only() const {
  return Fd(open(("/proc/self/fd/" + std::to_string(memfd_.get())).c_str(), O_RDONLY | O_CLOEXEC));
}

Counters Telemetry::counters() const {
  Counters sum;
  for (const ring::ChannelCounters& channel : page().channel) sum += counters_of(channel);
  sum.device_memory = read_of(page().device_memory);
  return sum;
}

}  // namespace host::broker
