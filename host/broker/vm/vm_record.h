// What the next broker must know of a VM and cannot see in its region, its pages or its descriptors
// (docs/design/034-restart.md): a page of the broker's own memory that it keeps current, so that one that is killed
// leaves it as well. No guest and no worker reaches it.
//
// Trust: it was written by a broker, of whatever release and configuration. So it is taken as a whole or not at all: size,
// version, what the VM was configured to be, and every number's range are looked at first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/base/fd.h"
#include "host/base/process/control.h"
#include "ring/layout/layout.h"

namespace host::broker {

// Of a slot's worker. Whoever reads it takes what is not `not_ready` for ready.
inline constexpr std::uint8_t not_ready = 0, ready_without_door = 1, ready_with_door = 2;  // host/broker/mps/mps_door.h

// A worker's descriptor in the store of its VM.
inline std::string name_in_store(std::uint32_t slot, const char* what) { return std::to_string(slot) + "/" + what; }

struct SavedSlot {
  std::uint32_t word = 0;  // SlotWord::word(), as the broker believes it
  std::uint32_t peer = 0;
  std::uint64_t claimed_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t channel = 0;     // the bell channel that has its worker's interrupts; 0: none
  std::int32_t worker = 0;       // its process; 0: none
  std::uint8_t ready = 0, may_spin = 0, start_logged = 0, ended = 0;
  std::uint64_t lent[ring::max_devices] = {};  // of device memory, to the worker
  worker::ReadyMessage said = {};              // by the worker, when it was ready
};

struct SavedVm {
  std::uint64_t magic = 0;
  std::uint32_t version = 0, bytes = 0;
  std::uint64_t configuration = 0;  // mark_of() what the VM was configured to be
  std::uint64_t generation = 0;     // of the region
  std::uint32_t slots = 0;
  std::uint32_t wanted_seen = 0, demand = 0;
  SavedSlot slot[ring::max_slots] = {};
};

class VmRecord {
 public:
  // An empty one of a VM. Null on failure, and `error` is one sentence.
  static std::unique_ptr<VmRecord> create(const std::string& vm, std::uint64_t configuration, std::uint32_t slots,
                                          std::uint64_t generation, std::string& error);
  // The one behind a descriptor. Null where it cannot be gone by, and `why` is half a sentence.
  static std::unique_ptr<VmRecord> adopt(Fd memfd, std::uint64_t configuration, std::uint32_t slots, std::string& why);
  ~VmRecord();
  VmRecord(const VmRecord&) = delete;
  VmRecord& operator=(const VmRecord&) = delete;

  int memfd() const { return memfd_.get(); }
  SavedVm& saved() const { return *saved_; }

 private:
  VmRecord(Fd memfd, SavedVm* saved) : memfd_(std::move(memfd)), saved_(saved) {}
  static SavedVm* map(const Fd& memfd);

  Fd memfd_;
  SavedVm* const saved_;
};

}  // namespace host::broker
