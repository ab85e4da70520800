// Requirements of policy = "mps" on the machine and the configuration, and the environment that it gives workers.
#pragma once

#include <string>
#include <vector>

#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

// The path of nvidia-cuda-mps-control: the key mps_control, else found in PATH; "" for other policies. An error, one
// sentence, if it is missing.
Result<std::string> find_mps_control(const GpuOptions& gpu);

// An error, one sentence, unless MPS can serve these VMs or the policy is another. Each VM needs one GPU of known UUID,
// and all workers of a GPU one user. `gpus` has an entry per VM.
Result<void> mps_fits(const Config& config, const std::vector<VmGpus>& gpus);

// The isolation that VMs lose under this policy, as text for the operator.
std::string mps_in_words();

// Makes a worker a client of its GPU's daemon; `environment` is NAME=value. Precondition: mps_fits().
void share_by_mps(const std::string& runtime_dir, const VmGpus& gpus, std::int64_t active_threads,
                  std::vector<std::string>& environment);

}  // namespace host::broker
