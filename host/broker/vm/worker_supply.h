// Decides how many workers a VM has: `spare` of them ready ahead, and more for programs that wait. Owns the count of
// waiting programs.
//
// Callers: the other parts of the same Vm, in the broker's event loop. What the constructor takes outlives it.
//
// Trust: guests count their waiting programs themselves. More than the VM has slots are never counted, and StartPace
// limits the starts.
#pragma once

#include <cstdint>
#include <functional>

#include "host/broker/region/region.h"
#include "host/broker/vm/session_log.h"
#include "host/broker/vm/slot_table.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_memory.h"
#include "host/broker/vm/vm_mps.h"
#include "host/broker/vm/vm_record.h"
#include "host/broker/vm/worker_pool.h"
#include "host/broker/worker/start_pace.h"

namespace host::broker {

class WorkerSupply {
 public:
  WorkerSupply(const VmContext& context, const Region& region, SlotTable& slots, WorkerPool& workers, StartPace& pace,
               VmMemory& memory, const VmMps& mps, SessionLog& log)
      : context_(context),
        region_(region),
        slots_(slots),
        workers_(workers),
        pace_(pace),
        memory_(memory),
        mps_(mps),
        log_(log) {}

  // Counts the programs that have found no Ready slot, and informs the operator if all slots are taken.
  void count_waiting();
  // A program has found a slot.
  void serve_one();
  // Starts the next worker if one is missing.
  void refill();
  // The last guest has gone: ends the workers started for waiting programs, but keeps `spare` workers that guests have
  // not written into.
  void end_surplus();
  // The options have changed. `new_sessions`: unclaimed workers are replaced.
  void apply(bool new_sessions);
  // Ends all workers without a session.
  void end_all_unclaimed();
  // Ends the Ready workers for whose slots `ends` is true. A worker that a guest has claimed meanwhile stays.
  void end_unclaimed_where(const std::function<bool(std::uint32_t)>& ends);
  // Ends Ready workers without a session, except `keep`.
  void end_unclaimed(std::uint32_t keep);

  // Its part of the record for the next broker (host/broker/vm/vm_persistence.h).
  std::uint32_t wanted_seen() const { return wanted_seen_; }
  std::uint32_t demand() const { return demand_; }
  void adopt(const SavedVm& was);

 private:
  bool is_full() const;
  std::uint32_t spare() const { return static_cast<std::uint32_t>(context_.options.spare); }
  void end_starting(std::uint32_t keep);

  const VmContext& context_;
  const Region& region_;
  SlotTable& slots_;
  WorkerPool& workers_;
  StartPace& pace_;
  VmMemory& memory_;
  const VmMps& mps_;
  SessionLog& log_;
  std::uint32_t wanted_seen_ = 0;  // of RegionHeader::wanted
  std::uint32_t demand_ = 0;       // programs that found no Ready slot and have not been served yet
};

}  // namespace host::broker
