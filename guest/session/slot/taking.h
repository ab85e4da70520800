// How a slot is claimed and given back. If the guest's kernel module is loaded, the module makes the steps of
// slot_step.h, and only the module may write the directory. Otherwise this process makes the steps itself. A process
// never changes between the two. One thread at a time may call this class.
//
// Trust: the broker writes the directory, and without the module every program of the VM can. The entries of other
// processes decide only about their slots.
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
    ring::SlotWord word;  // a word with the state Claimed
  };
  // Takes a Ready slot, if there is one.
  virtual std::optional<Taken> try_take() = 0;
  // Reports to the broker that a slot is wanted. Called once per claim, after a try that found no slot.
  virtual void want() = 0;
  // Gives back the slots of processes that ended without giving them back.
  virtual void bury_dead() = 0;
  virtual void give_back(const Taken& taken) = 0;
};

std::unique_ptr<Taking> make_taking(Region& region, const CheckedRegion& checked);

}  // namespace guest
