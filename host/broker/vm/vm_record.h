// The state of a VM that the next broker needs and cannot read from its region, pages or descriptors
// (docs/design/034-restart.md). It is a page of the broker's own memory, kept current so that a killed broker leaves
// it, too. No guest and no worker can access it.
//
// Trust: a broker wrote it, of any release and configuration. The next broker therefore uses it as a whole or not at
// all, after checking size, version, the VM's configuration, and the range of every number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/base/fd.h"
#include "host/base/process/control.h"
#include "host/base/result.h"
#include "ring/layout/layout.h"

namespace host::broker {

// State of a slot's worker. A reader takes any value but `not_ready` as ready.
inline constexpr std::uint8_t not_ready = 0, ready_without_proxy = 1,
                              ready_with_proxy = 2;  // host/broker/mps/mps_connect_proxy.h

// The name of a worker's descriptor in the store of its VM.
inline std::string name_in_store(std::uint32_t slot, const char* what) { return std::to_string(slot) + "/" + what; }

struct SavedSlot {
  std::uint32_t word = 0;  // SlotWord::word(), the broker's own state
  std::uint32_t peer = 0;
  std::uint64_t claimed_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t channel = 0;     // the doorbell channel that gets its worker's interrupts; 0: none
  std::int32_t worker = 0;       // process ID; 0: none
  std::uint8_t ready = 0, may_spin = 0, start_logged = 0, ended = 0;
  std::uint64_t reserved[ring::max_devices] = {};  // device memory granted to the worker
  worker::ReadyMessage reported = {};              // the worker's ready message
};

struct SavedVm {
  std::uint64_t magic = 0;
  std::uint32_t version = 0, bytes = 0;
  std::uint64_t configuration = 0;  // mark_of() the VM's configuration
  std::uint64_t generation = 0;     // of the region
  std::uint32_t slots = 0;
  std::uint32_t wanted_seen = 0, demand = 0;
  SavedSlot slot[ring::max_slots] = {};
};

class VmRecord {
 public:
  // Makes an empty record of a VM. The error is one sentence.
  static Result<std::unique_ptr<VmRecord>> create(const std::string& vm, std::uint64_t configuration,
                                                  std::uint32_t slots, std::uint64_t generation);
  // Takes the record of a descriptor. An error, half a sentence, if it is unusable.
  static Result<std::unique_ptr<VmRecord>> adopt(Fd memfd, std::uint64_t configuration, std::uint32_t slots);
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
