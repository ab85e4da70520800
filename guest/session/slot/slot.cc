#include "guest/session/slot/slot.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "guest/base/log.h"
#include "guest/base/switches.h"
#include "ring/api/known_ids.h"
#include "ring/layout/release.h"
#include "ring/verify/mutants.h"

namespace guest {
namespace {

// A worker serves nothing before hello, so any change in the slot comes from another program.
bool untouched(const ring::SlotView& slot) {
  using Header = ring::SlotHeader;
  using Control = ring::ChannelControl;
  using Entry = ring::CallbackSlot;
  const auto zero = [](auto place, auto... words) {
    return ((place[words].load(std::memory_order_relaxed) == 0) && ...);
  };
  bool all = zero(slot.header(), &Header::fault, &Header::output, &Header::opened);
  for (std::uint32_t c = 0; c < ring::max_channels; ++c) {
    all &= zero(slot.control(c), &Control::tail, &Control::head, &Control::executed, &Control::reply_position,
                &Control::deferred_count);
  }
  for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k)
    all &= zero(slot.callback_slot(k), &Entry::sequence, &Entry::done);
  return all;
}

}  // namespace

Entered Slot::map(Region& region, const CheckedRegion& checked, std::uint32_t index) {
  std::byte* control = region.map(checked.start_of(index), ring::arena_offset, nullptr);
  if (control == nullptr) {
    log(Level::Error, "cannot map the session slot: %s", std::strerror(errno));
    return Entered::Refused;
  }
  if (region.module() != nullptr) madvise(control, ring::arena_offset, MADV_DONTFORK);
  view_ = ring::SlotView(control, ring::arena_offset);
  host_release_ = checked.release;
  return check(checked, index);
}

Entered Slot::check(const CheckedRegion& checked, std::uint32_t index) {
  const std::uint64_t magic = view_.header()[&ring::SlotHeader::magic].load(std::memory_order_acquire);  // edge M
  ring::SlotHeader header = view_.copy_terms();
  if (magic != ring::slot_magic || header.version != ring::layout_version) {
    log(Level::Info, "session slot %u has magic %llx and layout version %u", index,
        static_cast<unsigned long long>(magic), header.version);
    return Entered::Spoilt;
  }  // the region's header had the right version
  if (!untouched(view_)) {
    log(Level::Info, "session slot %u is not as a worker leaves it", index);
    return Entered::Spoilt;
  }
  const std::uint64_t spin_us = std::uint64_t{header.spin_us} * ring::guest_spin_factor;
  if (ring::wrong(ring::Mutant::slot_twice)) header = view_.copy_terms();
  copy_devices();
  most_channels_ = std::clamp(header.channels, 1u, ring::max_channels);
  worker_knows_ = {header.driver_calls, header.session_calls};
  if (header.driver_calls == 0 || header.session_calls == 0) worker_knows_ = api::silent_workers_ids;
  if (worker_knows_.driver < api::known_ids.driver || worker_knows_.session < api::known_ids.session)
    log(Level::Info, "the host is of release %s and knows fewer calls than this library, of release %s",
        checked.release, ring::this_release);
  spin_ns_ = switches().spin ? std::min<std::uint64_t>(spin_us, ring::longest_spin_us) * 1000 : 0;
  return Entered::Yes;
}

CUresult Slot::refuse_unserved(int call) const {
  static std::atomic<bool> reported[api::driver_ids];
  const bool first = call >= api::driver_ids || !reported[call].exchange(true, std::memory_order_relaxed);
  if (first)
    log(Level::Warn,
        "%s is not served by this host (release %s): install ivgpu %s there, or a library of the host's release here",
        api::name_of(call).data(), host_release_, ring::this_release);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Copies the device page, and terminates each text.
void Slot::copy_devices() {
  devices_ = view_.device_page().copy_out();
  if (ring::wrong(ring::Mutant::page_twice)) devices_ = view_.device_page().copy_out();
  for (ring::DeviceInfo& device : devices_.device)
    device.name[sizeof device.name - 1] = device.bus_id[sizeof device.bus_id - 1] = '\0';
}

void Slot::unmap() {
  if (view_.base() != nullptr) munmap(view_.base(), ring::arena_offset);
}

}  // namespace guest
