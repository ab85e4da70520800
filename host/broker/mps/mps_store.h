// What the next broker must have of an MPS daemon (docs/design/034-restart.md): the control socket, output and pidfd of its
// keeper (host/broker/mps/mps_keeper_main.cc), and a record that the broker keeps current. All four have names of their own in
// the store of descriptors, "mps-control-GPU" and so on: no VM's, since these have a slash.
//
// Trust: as of a VM's record. It is taken as a whole or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/base/fd.h"
#include "host/base/process/fd_store.h"

namespace host::broker {

struct SavedMps {
  std::uint64_t magic = 0;
  std::uint32_t version = 0, bytes = 0;
  std::uint64_t place = 0;        // mark_of() its folders, its GPU and its clients' user
  std::uint64_t up_since_ns = 0;  // CLOCK_MONOTONIC; 0: it is not up yet
  std::uint64_t is_lost = 0;      // whether its clients are lost, and not all of them have gone
};

class MpsStore {
 public:
  struct Kept {
    Fd control, output, process;
  };

  // `store`: null keeps nothing, and finds nothing. `gpu`: as its folder is called.
  MpsStore(FdStore* store, std::string gpu) : store_(store), gpu_(std::move(gpu)) {}
  ~MpsStore() { forget(); }
  MpsStore(const MpsStore&) = delete;
  MpsStore& operator=(const MpsStore&) = delete;

  explicit operator bool() const { return store_ != nullptr; }
  bool keep(std::uint64_t place, int control, int output, int process);
  // It has ended.
  void forget();
  // What an earlier broker has left. False where there is nothing, and `why` is empty then, or where it cannot be gone by: the
  // daemon ends then, which may take some seconds, and `why` is half a sentence.
  bool take(std::uint64_t place, Kept& kept, std::string& why);
  // Of one that is kept; for others nobody reads it.
  SavedMps& saved() { return record_ != nullptr ? *record_ : unkept_; }

 private:
  bool find_record(std::uint64_t place, std::string& why);
  void forget_record();

  FdStore* const store_;
  const std::string gpu_;
  SavedMps* record_ = nullptr;
  SavedMps unkept_;
  bool kept_ = false;
};

// What its keeper has said last, fit for the log: how the daemon ended; "" where it has said nothing.
std::string last_word(int control);

// Ends the daemons of an earlier broker that nobody has taken over.
void end_left_mps(FdStore& store);

}  // namespace host::broker
