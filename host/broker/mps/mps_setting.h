// What a configuration with policy = "mps" needs of this machine and of its own other keys, and what workers get for it.
#pragma once

#include <string>
#include <vector>

#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"

namespace host::broker {

// The path of nvidia-cuda-mps-control: what the key mps_control says, else found in PATH; "" without the policy. False if
// it is not there, and `error` is one sentence.
bool find_mps_control(const GpuOptions& gpu, std::string& path, std::string& error);

// Whether MPS can serve these VMs: each has one GPU, whose UUID is known, and on one GPU all workers have one user. True
// without the policy. False if not, and `error` is one sentence. `gpus`: of each VM.
bool mps_fits(const Config& config, const std::vector<VmGpus>& gpus, std::string& error);

// What VMs give up by the policy, in words for an operator.
std::string mps_in_words();

// Makes a worker a client of its GPU's daemon; `environment` is NAME=value. Preconditions: mps_fits().
void share_by_mps(const std::string& runtime_dir, const VmGpus& gpus, std::int64_t active_threads,
                  std::vector<std::string>& environment);

}  // namespace host::broker
