// Which of a VM's GPUs its workers find. A GPU may disappear while the broker runs, and come back: the kernel driver loses
// it, or the operator takes it away.
//
// Trust: a worker says what it finds before a guest has it. It is read as one that a guest controls all the same: its words
// count for its own VM alone, and their number is bounded. Thread: the broker's.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "host/base/process/control.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

class GpuPresence {
 public:
  // What a worker that has just started finds of the VM's GPUs. True: others are missing than the last one missed.
  bool heard(const VmGpus& gpus, const worker::ReadyMessage& said);
  // What the last one missed, in words; empty: nothing. Where a VM has all GPUs that the driver shows, what one of its workers
  // has found before.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  std::vector<std::string> missed(const VmGpus& gpus, const std::set<std::string>& found);

  std::set<std::string> seen_;  // by key_of() of their names, where the VM has all that the driver shows
  std::vector<std::string> missing_;
};

}  // namespace host::broker
