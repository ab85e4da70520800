// Drop-in files of single VMs: NAME.toml with the table [vm.NAME] and nothing else. The operator's files are in vms.d
// beside the broker's file. Files added while the machine runs, by libvirt's hook for example, are in vms.d in the
// runtime_dir.
//
// A drop-in file affects its VM alone. A mistake in it, or a conflict with other VMs, leaves those and a VM that is
// already served as they are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

struct DropIn {
  std::string vm, path;
};

struct DropIns {
  std::vector<DropIn> files;  // the operator's folder first; sorted by name within a folder
  std::vector<RefusedFile> refused;
  int folders = 0;  // that exist
};

// Searches both folders; `path` is the broker's file. Ignores hidden files and names that do not end in .toml.
DropIns find_drop_ins(const std::string& path, const std::string& runtime_dir);

// For the log: why the file was rejected, and what becomes of its VM. `served`: the VM is served already.
std::string in_words(const RefusedFile& file, bool served);

// Returns each VM's GPUs if the configuration can be served. The error is one sentence.
using Possible = std::function<Result<std::vector<VmGpus>>(Config&)>;

// If the configuration is not possible, adds VMs with drop-in files one by one, and moves those that do not fit to
// `refused`. An error if it is not possible without them either.
Result<std::vector<VmGpus>> take_possible(Config& config, const Possible& possible);

}  // namespace host::broker
