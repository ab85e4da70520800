#include "host/session/gpu_use.h"

#include <unistd.h>

#include "host/session/session.h"

namespace host {

std::uint32_t GpuUse::device_of(unsigned context) const {
  const auto number = static_cast<std::uint32_t>(session_.contexts.device_of(context));
  return number < ring::max_devices ? number : pages_.devices;
}

void GpuUse::submitted(std::uint32_t channel, unsigned context) {
  const std::uint32_t device = device_of(context);
  if (device >= pages_.devices) return;
  ring::count_submission(pages_.use->device[device], channel);
  const std::uint32_t wake = pages_.orders->device[device].wake.load(std::memory_order_relaxed);
  if (wake != signalled_[device].load(std::memory_order_relaxed)) ring_scheduler(device, wake);
}

void GpuUse::ring_scheduler(std::uint32_t device, std::uint32_t wake) {
  if (signalled_[device].exchange(wake, std::memory_order_relaxed) == wake || wake == 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(pages_.scheduler_doorbell_fd, &one, sizeof one);
}

std::uint64_t GpuUse::submissions(unsigned context) const {
  const std::uint32_t device = device_of(context);
  return device < pages_.devices ? ring::submissions(pages_.use->device[device]) : 0;
}

void GpuUse::waited(unsigned context, std::uint64_t covered) {
  const std::uint32_t device = device_of(context);
  if (device >= pages_.devices) return;
  ring::DeviceUse& use = pages_.use->device[device];
  // An older wait may return after a newer one, so the number may only grow.
  if (use.settled.load(std::memory_order_relaxed) < covered) use.settled.store(covered, std::memory_order_relaxed);
  use.waits.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace host
