// A worker's command line, which the broker writes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/result.h"

namespace host::worker {

enum class JailMode { Off, BestEffort, Required };

struct Options {
  int control_fd = -1;
  int region_fd = -1;
  int doorbell_fd = -1;
  int interrupt_fd = -1;  // an eventfd; -1: the guest cannot be interrupted
  int telemetry_fd = -1;
  int group_fd = -1;  // cgroup.procs of the VM's control group; -1: the worker stays in its group
  // orders_fd and the next two members are for GPU time (ring/ops/gpu_use.h); -1: the worker is not scheduled
  int orders_fd = -1;
  int use_fd = -1;
  int scheduler_doorbell_fd = -1;
  // A pipe that ends with the broker (host/base/process/liveness_pipe.h); -1: the worker is killed when the broker
  // ends.
  int life_fd = -1;
  std::uint32_t outlive_ms = 0;     // how long the worker serves without a broker
  bool doorbell_by_broker = false;  // the guest has no doorbell, so the broker wakes the worker
  std::uint32_t gpus = 0;           // the number of GPUs that the VM sees
  int nice = 0;
  pid_t broker = 0;
  std::uint64_t slot_offset = 0;  // offset of the slot in the region
  std::uint64_t slot_bytes = 0;
  std::string library;               // the libcuda.so.1 to load
  std::vector<std::string> devices;  // device files that the worker may open; empty: all device files of NVIDIA's
  JailMode jail = JailMode::BestEffort;
  bool any_ioctl = false;        // allow every request to the GPU's kernel modules
  bool asks_to_connect = false;  // the broker answers the worker's connect() (host/broker/mps/mps_connect_proxy.h)
  uid_t uid = 65534;
  gid_t gid = 65534;
  std::uint32_t spin_us = 0;        // how long the worker's threads poll
  std::uint32_t wait_spin_ms = 20;  // how long the worker's threads may spin in the driver (host/session/long_waits.h)
  std::uint32_t guest_spin_us = 0;  // how long the guest's threads poll
  std::uint32_t chaos_delay_us = 0;
  std::uint64_t image_bytes = std::uint64_t{2} << 30;  // limits of the session, as in host/session/session.h
  std::uint64_t objects = 262144;
  bool borrows = false;             // the worker reserves device memory from the broker, through the control socket
  std::uint64_t gpu_memory = 0;     // the memory of each GPU that the guest sees; 0: the GPU's real size
  std::uint64_t context_bytes = 0;  // GPU memory that a context takes
  std::uint32_t max_threads = 0;    // limit for the worker's user, which only its VM uses; 0: no limit
};

// Parses the command line. Returns an error of one sentence if it is malformed.
Result<Options> parse(int argc, char** argv);

}  // namespace host::worker
