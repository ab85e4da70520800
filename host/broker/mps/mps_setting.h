// Requirements of policy = "mps" on the machine and the configuration, and the environment that it gives workers.
#pragma once

#include <string>
#include <vector>

#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

// The path of nvidia-cuda-mps-control: the key mps_control, else found in PATH; "" for other policies. False if it is
// missing, and `error` is one sentence.
bool find_mps_control(const GpuOptions& gpu, std::string& path, std::string& error);

// True if MPS can serve these VMs, or the policy is another. Each VM needs one GPU of known UUID, and all workers of a
// GPU one user. If false, `error` is one sentence. `gpus` has an entry per VM.
bool mps_fits(const Config& config, const std::vector<VmGpus>& gpus, std::string& error);

// The isolation that VMs lose under this policy, as text for the operator.
std::string mps_in_words();

// Makes a worker a client of its GPU's daemon; `environment` is NAME=value. Precondition: mps_fits().
void share_by_mps(const std::string& runtime_dir, const VmGpus& gpus, std::int64_t active_threads,
                  std::vector<std::string>& environment);

}  // namespace host::broker
