// One broker at a time gives out a GPU by leases, by quotas or by MPS: two would not know of each other, and neither could keep
// what it has promised. Who does so holds a name of the machine for each GPU, an abstract UNIX socket. The kernel takes
// the name back when the process ends, however it ends.
//
// Trust: any process of the machine may take such a name, and keep a broker from starting with it; the sentence says
// which process that is.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/base/fd.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

class GpuHolds {
 public:
  // Holds these, too, until this object ends. Nobody holds those without a UUID, which the kernel does not know yet, nor
  // simulated ones, which every process has for itself. False: another process holds one of them, or the kernel refuses;
  // `error` is one sentence, and what was held before is held.
  bool take(const std::vector<Gpu>& gpus, std::string& error);
  // The same of all GPUs of these VMs (`gpus`: of each), where the file shares them so.
  bool take_for(const Config& config, const std::vector<VmGpus>& gpus, std::string& error);

 private:
  std::map<std::string, Fd> held_;  // by UUID
};

}  // namespace host::broker
