// Settings that all workers of this host share: program, driver library, environment, and the services of the broker.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/base/process/fd_store.h"
#include "host/base/result.h"
#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/mps/mps.h"
#include "host/broker/worker/cgroup.h"
#include "host/scheduler/scheduler.h"

namespace host::broker {

class GpuFactCache;

struct WorkerProgram {
  std::string path;     // path of ivgpu-worker
  std::string library;  // the libcuda.so.1 to load
  std::vector<std::string> environment;
  int priority = 0;                           // nice value of workers
  std::string mps_control;                    // path of nvidia-cuda-mps-control; "": other policy
  std::string mps_supervisor;                 // path of ivgpu-mps
  std::string gputime;                        // path of ivgpu-gputime
  GpuAccounts* accounts = nullptr;            // grants device memory; null: it is not counted
  const Groups* groups = nullptr;             // makes control groups; null: none
  scheduler::Scheduler* scheduler = nullptr;  // schedules GPU time; null: not scheduled
  GpuFactCache* facts = nullptr;              // GPU facts for guests; null: none
  FdStore* store = nullptr;                   // keeps state for the next broker; null: not kept
  int life_fd = -1;              // for workers that may outlive the broker (host/base/process/liveness_pipe.h)
  std::uint32_t outlive_ms = 0;  // how long they may
  Mps* mps = nullptr;            // null: workers are no MPS clients
  VmGpus gpus;                   // the VM's; `environment` hides others from its workers
};

// Fills all but `accounts`, `groups`, `scheduler`, `facts`, `store`, `life_fd`, `outlive_ms`, `mps` and `gpus`.
// `own_folder`: the folder of ivgpud. The error is one sentence.
Result<WorkerProgram> find_worker(const Config& config, const std::filesystem::path& own_folder);

// The GPUs of each VM, in the order of `config.vms`. A VM whose `placement` chooses gets all candidates (place_gpus()
// in host/broker/alloc/placement.h picks one). An error if a VM names a missing GPU; it names both.
Result<std::vector<VmGpus>> find_gpus(const Config& config);

}  // namespace host::broker
