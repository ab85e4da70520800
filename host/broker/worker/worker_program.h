// The same for all workers of this host: the program, the driver behind it, their environment, and the GPUs of each VM.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/base/process/fd_store.h"
#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/mps/mps.h"
#include "host/broker/worker/cgroup.h"
#include "host/scheduler/scheduler.h"

namespace host::broker {

class GpuFactCache;

struct WorkerProgram {
  std::string path;     // of ivgpu-worker
  std::string library;  // the libcuda.so.1 it drives
  std::vector<std::string> environment;
  int priority = 0;                           // of workers, as nice(1) counts
  std::string mps_control;                    // of nvidia-cuda-mps-control; "": the policy is another
  std::string mps_keeper;                     // of ivgpu-mps
  std::string gputime;                        // of ivgpu-gputime
  GpuAccounts* accounts = nullptr;            // of which VMs get device memory; null: nobody counts it
  const Groups* groups = nullptr;             // where VMs get theirs; null: nowhere
  scheduler::Scheduler* scheduler = nullptr;  // of their GPU time; null: nobody schedules them
  GpuFactCache* facts = nullptr;              // who tells their guests of the GPUs; null: nobody
  FdStore* store = nullptr;                   // where VMs keep what the next broker goes on with; null: nowhere
  int life_fd = -1;              // of the workers that may outlive the broker (host/base/process/life_line.h)
  std::uint32_t outlive_ms = 0;  // by so much
  Mps* mps = nullptr;            // whose clients workers are; null: nobody's
  VmGpus gpus;                   // the VM's; `environment` shows its workers no others
};

// All but `accounts`, `groups`, `scheduler`, `facts`, `store` and the next two, `mps` and `gpus`. `own_folder`:
// where ivgpud lies. False on failure, and `error` is one sentence.
bool find_worker(const Config& config, const std::filesystem::path& own_folder, WorkerProgram& program,
                 std::string& error);

// Those of each VM, in the order of `config.vms`; of one whose `placement` chooses, all of which it can have one
// (settle_gpus() in host/broker/alloc/placement.h). False if a VM names one that does not exist, and `error` names it.
bool find_gpus(const Config& config, std::vector<VmGpus>& all, std::string& error);

}  // namespace host::broker
