// Chooses a GPU for each VM whose key `placement` asks for one of several, and checks that all VMs' needs fit together.
// The choice is made when the VM is added, and holds while it is served.
//
// Pure: the result depends on the arguments alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

// The VM gets all GPUs that its key `gpus` names.
inline constexpr const char* fixed_placement = "fixed";

// `gpus`: each VM's GPUs as find_gpus() found them; a VM whose placement chooses is left with one. `kept`: the GPUs of
// VMs already served, by name. `known`: sizes of GPUs, if known. VMs choose in the order of `config`, after all VMs
// that do not choose have been counted. False if a VM finds no room, or quotas or MPS do not fit; `error` is one
// sentence.
bool place_gpus(const Config& config, const std::map<std::string, GpuAccount>& known,
                const std::map<std::string, VmGpus>& kept, std::vector<VmGpus>& gpus, std::string& error);

}  // namespace host::broker
