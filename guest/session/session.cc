#include "guest/session/session.h"

#include <utility>

#include "guest/base/log.h"
#include "guest/objects/copy/copiers.h"
#include "guest/region/cache_probe.h"
#include "guest/session/order.h"
#include "ring/api/call.h"
#include "ring/layout/module_c.h"

namespace guest {

std::atomic<Session*> the_session{nullptr};

namespace {

// The kernel may take the slot away from this process. This library reads these pages of a slot while that happens.
static_assert(ring::arena_offset + Arena::staging_bytes == IVGPU_QUIET_BYTES);

// Maps memory over the program's own memory, which a forked child must keep.
std::byte* map_for_program(Region& region, std::uint64_t offset, std::size_t bytes) {
  return region.same_address_space() ? nullptr : region.map(offset, bytes, nullptr);
}

}  // namespace

// Another program of this VM may have overwritten a Ready slot. The broker scrubs a slot that is given back. The loop
// therefore tries one slot more than the region has.
std::unique_ptr<Session> Session::open(std::unique_ptr<Region> region, bool reserve_device) {
  const std::optional<CheckedRegion> checked = check_region(*region);
  if (!checked) return nullptr;
  const std::uint64_t until = monotonic_nanoseconds() + SlotClaim::patience_ns;
  const std::uint32_t tries = checked->slot_count + 1;
  for (std::uint32_t i = 0; i < tries; ++i) {
    std::unique_ptr<Session> s(new Session(std::move(region), *checked, reserve_device));
    if (!s->claim_.take(until)) return nullptr;
    const Entered entered = s->enter_slot();
    if (entered == Entered::Yes) return s;
    s->leave();
    s->unmap_slot();
    if (entered == Entered::Refused) return nullptr;
    log(Level::Info, "session slot %u was spoilt by somebody: another is tried", s->claim_.slot());
    region = std::move(s->place_.region);
  }
  log(Level::Error, "%u session slots were spoilt, one after the other", tries);
  return nullptr;
}

Session::Session(std::unique_ptr<Region> region, const CheckedRegion& checked, bool reserve_device)
    : objects(executed),
      memory(reserve_device),
      textures(objects),
      place_{std::move(region), checked},
      heartbeat_(*place_.region, place_.checked),
      claim_(*place_.region, place_.checked, heartbeat_),
      liveness_(*place_.region, claim_, heartbeat_),
      doorbell_(*place_.region, claim_),
      sleeper_(*place_.region),
      channels_(liveness_, slot_, doorbell_, sleeper_),
      binding_(liveness_, slot_, channels_),
      callbacks_(liveness_, slot_, doorbell_, sleeper_) {}

Session::~Session() { leave(); }

Entered Session::enter_slot() {
  if (const Entered mapped = slot_.map(*place_.region, place_.checked, claim_.slot()); mapped != Entered::Yes)
    return mapped;
  heartbeat_.ask_worker(slot_.view(), claim_.slot());
  sleeper_.begin(place_.checked, claim_.slot(), slot_.view().base());
  const std::uint64_t arena_start = place_.checked.start_of(claim_.slot()) + ring::arena_offset;
  if (!binding_.map(*place_.region, arena_start, place_.checked.slot_bytes - ring::arena_offset))
    return Entered::Refused;
  if (!binding_.bind()) return liveness_.lost() ? Entered::Spoilt : Entered::Refused;
  memory.arena = binding_.make();
  const auto map_again = [this, arena_start](std::uint64_t offset, std::size_t bytes) {
    return map_for_program(*place_.region, arena_start + offset, bytes);
  };
  memory.registered = std::make_unique<Registered>(*memory.arena, map_again, copiers().threads());
  const auto reserve = [this](std::uint64_t at, std::uint64_t bytes) { return memory.addresses.reserve(at, bytes); };
  code.variables = std::make_unique<Variables>(*memory.arena, place_.region->same_address_space(), map_again, reserve);
  memory.addresses.set_arena(reinterpret_cast<std::uint64_t>(memory.arena->at(0)), binding_.device_address(),
                             memory.arena->bytes());
  return Entered::Yes;
}

void Session::unmap_slot() {
  if (place_.region->same_address_space()) return;
  binding_.unmap();
  slot_.unmap();
}

// Ends the session. The program's other threads may still run. The session therefore counts as lost from here on, and
// stop_senders() waits for threads that are sending.
void Session::leave() {
  if (!claim_.held()) return;
  liveness_.leave();
  channels_.stop_senders();
  callbacks_.stop();
  claim_.give_back();
}

}  // namespace guest
