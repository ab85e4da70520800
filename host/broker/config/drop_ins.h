// Files of single VMs, beside the broker's own: NAME.toml with the table [vm.NAME] and nothing else. Those of the
// operator lie in vms.d beside the broker's file; those that are added while the machine runs, as by libvirt's hook, in
// vms.d in its runtime_dir.
//
// Such a file concerns its VM alone. Where it has a mistake, or asks for what is not possible beside the others, the other
// VMs are served, and a VM that is served already stays as it is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

struct DropIn {
  std::string vm, path;
};

struct DropIns {
  std::vector<DropIn> files;  // the operator's first, each folder's by name
  std::vector<RefusedFile> refused;
  int folders = 0;  // that are there
};

// In the folders of the broker's file at `path`. Whatever is not called *.toml is none, nor is a hidden file.
DropIns find_drop_ins(const std::string& path, const std::string& runtime_dir);

// True if this configuration can be served; else `error` is one sentence. `gpus`: of each VM, empty before.
using Possible = std::function<bool(Config&, std::vector<VmGpus>& gpus, std::string& error)>;

// Asks whether the configuration is possible. Where it is not, VMs with files of their own are added to the others one
// by one, and those that do not fit become refused ones. False if it is not possible without them either.
bool take_possible(Config& config, std::vector<VmGpus>& gpus, const Possible& possible, std::string& error);

}  // namespace host::broker
