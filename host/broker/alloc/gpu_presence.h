// Tracks the GPUs of a VM that its workers do not find. A GPU may disappear while the broker runs, and come back: the
// kernel driver loses it, or the operator removes it.
//
// Trust: a worker reports its GPUs before a guest can use it, but the report is still read as hostile. It affects its
// own VM alone, and the number of GPUs is bounded. Thread: the broker's event loop.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "host/base/process/control.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

class GpuPresence {
 public:
  // Takes the report of a new worker. True if the set of missing GPUs has changed.
  bool heard(const VmGpus& gpus, const worker::ReadyMessage& reported);
  // GPUs that the last worker did not find, as text. If the VM has every GPU that the driver shows, these are GPUs that
  // an earlier worker of the VM has found.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  std::vector<std::string> missed(const VmGpus& gpus, const std::set<std::string>& found);

  std::set<std::string> seen_;  // key_of() of the GPUs found, if the VM has every GPU that the driver shows
  std::vector<std::string> missing_;
};

}  // namespace host::broker
