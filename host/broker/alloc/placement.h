// Which of the host's GPUs a VM gets that is to have one of several (the key `placement`), and whether what all VMs have
// is possible together. The choice is made when the VM is added, and stays while it is served.
//
// Pure: what is known comes in, and nothing is asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

// The VM has all GPUs that `gpus` says.
inline constexpr const char* fixed_placement = "fixed";

// `gpus`: of each VM as find_gpus() found them; of those whose placement chooses, one is left. `kept`: by name, what served
// VMs have and keep. `known`: how much memory GPUs have, as far as it is known. VMs choose one after the other in the order
// of `config`, when those that do not choose have theirs. False where a VM finds no room, or quotas or MPS do not
// fit, and `error` is one sentence.
bool settle_gpus(const Config& config, const std::map<std::string, GpuAccount>& known,
                 const std::map<std::string, VmGpus>& kept, std::vector<VmGpus>& gpus, std::string& error);

}  // namespace host::broker
