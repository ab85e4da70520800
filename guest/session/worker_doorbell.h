// Wakes the worker: by a futex if both run on one kernel, else by the slot's doorbell.
//
// Any thread may call this class. Waking orders no memory and reads nothing: the worker itself looks at the rings.
#pragma once

#include <cstdint>

#include "guest/region/region.h"
#include "guest/session/slot/claim.h"
#include "ring/shared/shared.h"

namespace guest {

class WorkerDoorbell {
 public:
  WorkerDoorbell(Region& region, const SlotClaim& claim)
      : region_(region), claim_(claim), futexes_(region.same_kernel()) {}

  // Wakes the worker's thread that sleeps on this word.
  void wake(ring::Shared<std::uint32_t> word);
  // Rings the doorbell of the worker's doorbell thread.
  void ring() { region_.ring(ring::peer_of_slot(claim_.slot())); }

 private:
  Region& region_;
  const SlotClaim& claim_;
  const bool futexes_;
};

}  // namespace guest
