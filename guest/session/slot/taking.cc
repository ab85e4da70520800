#include "guest/session/slot/taking.h"

#include "guest/region/cache_probe.h"
#include "guest/region/module.h"
#include "guest/region/slot_owner.h"
#include "guest/session/slot/slot_step.h"

namespace guest {
namespace {

class ByDirectory final : public Taking {
 public:
  ByDirectory(Region& region, const CheckedRegion& checked) : region_(region), checked_(checked) {}

  std::optional<Taken> try_take() override {
    for (std::uint32_t slot = 0; slot < checked_.slot_count; ++slot)
      if (const auto claimed = claim(entry(slot), self_)) {
        entry(slot)[&ring::SlotEntry::program].copy_in(this_program().text);
        region_.ring(ring::peer_broker);
        return Taken{slot, *claimed};
      }
    return std::nullopt;
  }
  void want() override {
    checked_.view.header()[&ring::RegionHeader::wanted].fetch_add(1, std::memory_order_relaxed);
    region_.ring(ring::peer_broker);
  }
  void bury_dead() override {
    const auto dead = [&](const ring::SlotOwner& owner) { return certainly_dead(owner, self_); };
    for (std::uint32_t slot = 0; slot < checked_.slot_count; ++slot)
      if (bury(entry(slot), dead)) region_.ring(ring::peer_broker);
  }
  void give_back(const Taken& taken) override {
    if (release(entry(taken.slot), taken.word)) region_.ring(ring::peer_broker);
  }

 private:
  ring::Shared<ring::SlotEntry> entry(std::uint32_t slot) const { return checked_.view.entry(slot); }

  Region& region_;
  const CheckedRegion& checked_;
  const ring::SlotOwner self_ = this_process(region_.peer());
};

// The module reports each failed claim to the broker. After the first claim, this class therefore claims only if the
// directory shows a Ready slot. If the module still has no slot to give, the class waits a while: another process was
// faster, or the kernel still uses pages of the slot.
class ByModule final : public Taking {
 public:
  ByModule(Module& module, const CheckedRegion& checked) : module_(module), checked_(checked) {}

  std::optional<Taken> try_take() override {
    const std::uint64_t now = monotonic_nanoseconds();
    if (next_try_ != 0 && (now < next_try_ || !any_ready())) return std::nullopt;
    next_try_ = now + between_tries_ns;
    const auto claimed = module_.claim(this_program().text);
    if (!claimed || claimed->slot >= checked_.slot_count) return std::nullopt;
    return Taken{claimed->slot, claimed->word};
  }
  void want() override {}       // empty, because the module has reported the first failed claim
  void bury_dead() override {}  // empty, because the kernel gives back the slots of dead processes
  void give_back(const Taken&) override { module_.release(); }

 private:
  static constexpr std::uint64_t between_tries_ns = 10'000'000;

  bool any_ready() const {
    for (std::uint32_t slot = 0; slot < checked_.slot_count; ++slot) {
      const std::uint32_t word = checked_.view.entry(slot)[&ring::SlotEntry::state].load(std::memory_order_relaxed);
      if (ring::SlotWord::of(word).state == ring::SlotState::Ready) return true;
    }
    return false;
  }

  Module& module_;
  const CheckedRegion& checked_;
  std::uint64_t next_try_ = 0;
};

}  // namespace

std::unique_ptr<Taking> make_taking(Region& region, const CheckedRegion& checked) {
  if (Module* module = region.module()) return std::make_unique<ByModule>(*module, checked);
  return std::make_unique<ByDirectory>(region, checked);
}

}  // namespace guest
