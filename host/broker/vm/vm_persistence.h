// What the next broker needs of a VM: owns the VM's record and its part of the descriptor store. If any part of an
// earlier broker's VM is missing, or differs from what this broker would have made, its sessions end and nothing of it
// is adopted (docs/design/034-restart.md).
//
// Callers: the other parts of the same Vm, in the broker's event loop. The context outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "host/base/process/fd_store.h"
#include "host/base/result.h"
#include "host/broker/region/region.h"
#include "host/broker/transport/transport.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_record.h"

namespace host::broker {

class VmPersistence {
 public:
  // Writes the present state of slot k to the record.
  using Fill = std::function<void(std::uint32_t k, SavedSlot& to)>;
  // The region, and what an earlier broker left of the VM; null: nothing was adopted.
  struct Opened {
    std::unique_ptr<Region> region;
    std::unique_ptr<SavedVm> left;
  };
  // -1: none.
  struct WorkerDescriptors {
    int control, output, process, telemetry, orders, use, doorbell, proxy;
  };

  VmPersistence(const VmContext& context, Fill fill)
      : context_(context), fill_(std::move(fill)), store_(context.program.store, context.options.name) {}

  // False if its sessions end with the broker; then nothing is saved.
  bool outlives_broker() const { return static_cast<bool>(store_); }
  bool has_adopted() const { return adopted_; }

  // Adopts the earlier broker's region, or makes a new one. The error is one sentence.
  Result<Opened> open();
  // What the transport keeps and adopts. Numbers new connections above those that slots name.
  KeptTransport kept_transport(const SavedVm* left) const;

  void save(std::uint32_t k);
  void save_counts(std::uint32_t wanted_seen, std::uint32_t demand);
  void save_channel(std::uint32_t k, std::uint64_t channel);
  void save_ready(std::uint32_t k, const worker::ReadyMessage& reported);

  // Keeps the descriptors of a ready worker: an unready worker dies with its broker.
  void keep_worker(std::uint32_t k, const WorkerDescriptors& descriptors);
  void forget_worker(std::uint32_t k);
  // Takes a descriptor of an earlier broker's worker by its name in the store.
  Fd take(std::uint32_t k, const char* what) const { return store_.take(name_in_store(k, what)); }
  void end_process(Fd process) const { store_.all()->end_process(std::move(process)); }
  // The next broker finds nothing.
  void forget_all() const { store_.forget_all(); }

 private:
  std::uint64_t mark() const;
  std::unique_ptr<Region> adopt_region();
  Result<std::unique_ptr<Region>> take_region();
  Result<std::unique_ptr<Region>> make_region();

  const VmContext& context_;
  const Fill fill_;
  const VmStore store_;
  std::unique_ptr<VmRecord> record_;  // null without a store
  bool adopted_ = false;              // an earlier broker's sessions were adopted
};

}  // namespace host::broker
