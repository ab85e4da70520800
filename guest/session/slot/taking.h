// How a slot changes hands. This process makes the steps of slot_step.h itself, or the guest's kernel module makes
// them, if loaded: then only it may write the directory. A process never changes the way. One thread at a time.
//
// Trust: the broker writes the directory, and without the module every program of the VM. Entries of others decide only
// about their slots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "guest/region/region.h"
#include "ring/layout/layout.h"

namespace guest {

class Taking {
 public:
  virtual ~Taking() = default;

  struct Taken {
    std::uint32_t slot;
    ring::SlotWord word;  // Claimed
  };
  // Takes a slot if one is Ready.
  virtual std::optional<Taken> try_take() = 0;
  // Reports to the broker that a slot is wanted. Called once per claim, after a try that found none.
  virtual void want() = 0;
  // Gives back the slots of processes that have ended without giving them back.
  virtual void bury_dead() = 0;
  virtual void give_back(const Taken& taken) = 0;
};

std::unique_ptr<Taking> make_taking(Region& region, const CheckedRegion& checked);

}  // namespace guest
