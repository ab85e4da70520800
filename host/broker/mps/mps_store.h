// The state of an MPS daemon that the next broker needs (docs/design/034-restart.md): its keeper's control socket,
// output and pidfd (host/broker/mps/mps_supervisor_main.cc), and a record that the broker updates. The store holds them as
// "mps-control-GPU" and so on; names of VMs' descriptors contain a slash instead.
//
// Trust: as for a VM's record. The state is used as a whole or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/base/fd.h"
#include "host/base/process/fd_store.h"
#include "host/base/result.h"

namespace host::broker {

struct SavedMps {
  std::uint64_t magic = 0;
  std::uint32_t version = 0, bytes = 0;
  std::uint64_t place = 0;        // mark_of() folders, GPU and the clients' user
  std::uint64_t up_since_ns = 0;  // CLOCK_MONOTONIC; 0: not up yet
  std::uint64_t is_lost = 0;      // 1 while the clients are lost and some have not gone
};

class MpsStore {
 public:
  struct Kept {
    Fd control, output, process;
  };

  // `store`: null keeps and finds nothing. `gpu`: as in its folder's name.
  MpsStore(FdStore* store, std::string gpu) : store_(store), gpu_(std::move(gpu)) {}
  ~MpsStore() { forget(); }
  MpsStore(const MpsStore&) = delete;
  MpsStore& operator=(const MpsStore&) = delete;

  explicit operator bool() const { return store_ != nullptr; }
  [[nodiscard]] bool keep(std::uint64_t place, int control, int output, int process);
  // Called when the keeper has ended.
  void forget();
  // Takes the state of an earlier broker, if there is any. An error, half a sentence, if the state is unusable; the
  // daemon then ends, which may take seconds.
  Result<std::optional<Kept>> take(std::uint64_t place);
  // The record of a kept daemon; else a dummy that no broker reads.
  SavedMps& saved() { return record_ != nullptr ? *record_ : unkept_; }

 private:
  Result<void> check(std::uint64_t place, const Kept& kept);
  Result<void> find_record(std::uint64_t place);
  void forget_record();

  FdStore* const store_;
  const std::string gpu_;
  SavedMps* record_ = nullptr;
  SavedMps unkept_;
  bool kept_ = false;
};

// The keeper's last message, fit for the log: how the daemon ended; "" if there is none.
std::string last_word(int control);

// Ends the daemons of an earlier broker that were not adopted.
void end_left_mps(FdStore& store);

}  // namespace host::broker
