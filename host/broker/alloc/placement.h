// Chooses a GPU for each VM whose key `placement` asks for one of several, and checks that all VMs' needs fit together.
// The choice is made when the VM is added, and holds while it is served.
//
// Pure: the result depends on the arguments alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/base/result.h"
#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

// The VM gets all GPUs that its key `gpus` names.
inline constexpr const char* fixed_placement = "fixed";

// Returns `gpus`, each VM's GPUs as find_gpus() found them, with one GPU for each VM whose placement chooses. `kept`: the
// GPUs of VMs already served, by name. `known`: sizes of GPUs, if known. VMs choose in the order of `config`, after all
// VMs that do not choose have been counted. An error, one sentence, if a VM finds no room, or quotas or MPS do not fit.
Result<std::vector<VmGpus>> place_gpus(const Config& config, const std::map<std::string, GpuAccount>& known,
                                       const std::map<std::string, VmGpus>& kept, std::vector<VmGpus> gpus);

}  // namespace host::broker
