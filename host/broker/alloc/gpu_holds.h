// A machine-wide lock for each GPU. Only one broker at a time may divide a GPU by leases, quotas or MPS, since two
// would not know each other's promises. The lock is an abstract Unix socket, which the kernel releases when the process
// ends.
//
// Trust: any process of the machine may take the socket's name and so keep a broker from starting. The error names that
// process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/base/fd.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

class GpuHolds {
 public:
  // Locks these GPUs as well, until this object ends. It skips GPUs without a UUID, which the kernel does not know yet,
  // and simulated GPUs, which every process has for itself. An error, one sentence, if another process holds a lock or
  // the kernel refuses; earlier locks stay.
  Result<void> take(const std::vector<Gpu>& gpus);
  // Locks the GPUs of all VMs (`gpus` has an entry per VM), if the configuration divides them that way.
  Result<void> take_for(const Config& config, const std::vector<VmGpus>& gpus);

 private:
  std::map<std::string, Fd> held_;  // by UUID
};

}  // namespace host::broker
