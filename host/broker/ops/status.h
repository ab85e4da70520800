// The JSON document of `ivgpu status`: the broker's own view of its VMs, slots and workers.
//
// Trust: a guest writes its owner fields and a worker its counters; they are shown as numbers. A worker's text was
// escaped on arrival.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/broker/alloc/memory_reservations.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/worker/cgroup.h"
#include "host/broker/worker/telemetry.h"
#include "host/scheduler/scheduler.h"
#include "ring/layout/layout.h"

namespace host::broker {

// The jail that a worker has reported when it was ready.
struct WorkerJail {
  bool reported = false;
  std::uint32_t layers = 0;  // bits of jail::Layer
  std::string missing;       // missing layers and the reasons
  bool operator==(const WorkerJail&) const = default;
};

struct SlotStatus {
  ring::SlotWord word;
  pid_t worker = 0;  // 0: none
  WorkerJail jail;
  ring::SlotOwner owner{};  // of a claimed or dead slot
  Clock::duration claimed_for{};
  Counters counters;    // of its worker
  std::string program;  // of a claimed or dead slot: the program's own name, escaped
  bool pinned = false;  // released, but the guest's kernel still uses its pages
};

// A worker that died of a signal not sent by the broker, or with an unexpected exit code.
struct WorkerFailure {
  pid_t worker = 0;
  std::uint32_t slot = 0;
  bool by_signal = false;
  int number = 0;  // signal number or exit code
  std::string how;
};

// The VM's ended workers, counted by WorkerProcess::End, and the reason of the last abnormal end.
struct WorkerEnds {
  std::uint64_t orderly = 0, protocol_broken = 0, killed_by_broker = 0, signal = 0, other_code = 0;
  std::string last_reason;  // "": all ended in order
  std::string last_signal;  // of the last worker that died of a signal not sent by the broker
  // The last workers that `signal` and `other_code` count, oldest first.
  static constexpr std::size_t most_failures = 16;  // bounds the list, however often a guest crashes workers
  std::deque<WorkerFailure> failures;
};

// Limits of a VM's sessions and workers, as configured, and its workers' present use.
struct BoundsStatus {
  std::int64_t session_image_bytes = 0, session_objects = 0;
  std::int64_t memory_max = 0, pids_max = 0, cpu_max = 0;
  std::string group;    // path of the control group; "": none, and the three limits above do not apply
  std::string missing;  // why there is none; "": not wanted
  GroupUse use;         // use of the control group
};

// A VM's GPU time, over all its GPUs.
struct GpuTimeStatus {
  scheduler::Scheduler::Share share;
  scheduler::Account account;
};
// How VMs share a GPU now.
struct GpuSharing {
  std::string gpu;
  scheduler::Scheduler::Sharing sharing = scheduler::Scheduler::Sharing::Unswitched;
};

struct VmStatus {
  std::string name;
  std::string socket;  // "": none
  std::string memory;  // path of an ivshmem-plain device's memory; "": passed through the socket
  std::uint64_t region_bytes = 0, slot_bytes = 0;
  std::string jail;  // as configured, like the next three
  std::int64_t spin_threads = 0, spin_us = 0, wait_spin_ms = 0;
  std::size_t connections = 0;
  Counters counters;  // of all its workers, including ended ones
  WorkerEnds ends;
  std::vector<SlotStatus> slots;
  VmGpus gpus;  // as configured
  BoundsStatus bounds;
  std::uint64_t gpu_memory = 0;          // of all its GPUs, as a worker's driver reports; 0: unknown
  std::vector<QuotaStatus> quotas = {};  // an entry for each known GPU
  std::optional<GpuTimeStatus> gpu_time = {};
  std::uint64_t gpus_missing = 0;
};

struct BrokerStatus {
  std::string version;
  std::string library;
  Clock::duration up{};
  EventLoop::Iterations iterations;
  std::vector<VmStatus> vms;
  std::vector<GpuSharing> gpus = {};  // those that workers see
  std::string gpu_time_missing = {};  // why leases are impossible; "": they are possible
};

const char* name_of(ring::SlotState state);
// "leases", "alone" or "time slices"
const char* name_of(scheduler::Scheduler::Sharing sharing);

// The layers whose bits are set.
std::vector<std::string> names_of_layers(std::uint32_t layers);

// One line. `format` increases when a field changes its meaning; new fields may be added without that.
std::string status_as_json(const BrokerStatus& status);

// The path of the status socket, which no VM's socket can have.
std::string status_path(const std::string& runtime_dir);

}  // namespace host::broker
