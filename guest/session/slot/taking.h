// How a slot changes hands: by the steps of slot_step.h, which this process makes in the directory itself, or by the
// guest's kernel module, which alone may write there. One of the two, for the process's lifetime. One thread at a time.
//
// Trust: the broker writes the directory, and without the module every program of the VM. What is read about others
// only decides about their slots.
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
  // Tells the broker that a slot is wanted. Call it once for each wish, after a try that took none.
  virtual void want() = 0;
  // Gives back the slots of processes that have ended without giving them back.
  virtual void bury_dead() = 0;
  virtual void give_back(const Taken& taken) = 0;
};

std::unique_ptr<Taking> make_taking(Region& region, const CheckedRegion& checked);

}  // namespace guest
