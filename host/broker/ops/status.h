// The document behind `ivgpu status`: the broker's own idea of its VMs, slots and workers, as JSON.
//
// Trust: the guest itself fills in an owner, and a worker its counters; they are numbers here and shown as such. A
// worker's text was escaped when it came.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/broker/alloc/memory_leases.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/worker/cgroup.h"
#include "host/broker/worker/telemetry.h"
#include "host/scheduler/scheduler.h"
#include "ring/layout/layout.h"

namespace host::broker {

// The worker's report of its jail when it was ready.
struct WorkerJail {
  bool reported = false;
  std::uint32_t layers = 0;  // bits of jail::Layer
  std::string missing;       // which layers are not there, and why
  bool operator==(const WorkerJail&) const = default;
};

struct SlotStatus {
  ring::SlotWord word;
  pid_t worker = 0;  // 0: none
  WorkerJail jail;
  ring::SlotOwner owner{};  // of a claimed or dead slot
  Clock::duration claimed_for{};
  Counters counters;    // of its worker
  std::string program;  // of a claimed or dead slot, as it calls itself; fit for a log
  bool pinned = false;  // released, and kept from the next program by pages that the guest's kernel still uses
};

// A worker that ended by a signal that the broker has not sent, or with a code that it has no reason for.
struct WorkerFailure {
  pid_t worker = 0;
  std::uint32_t slot = 0;
  bool by_signal = false;
  int number = 0;  // of the signal, or the exit code
  std::string how;
};

// The number of a VM's workers that have ended, by WorkerProcess::End, and a sentence about the last that did not end
// in order.
struct WorkerEnds {
  std::uint64_t orderly = 0, protocol_broken = 0, killed_by_broker = 0, signal = 0, other_code = 0;
  std::string last_reason;  // "": all have
  std::string last_signal;  // of the last that a signal ended which the broker has not sent
  // The last that `signal` and `other_code` count, the oldest first.
  static constexpr std::size_t most_failures = 16;  // one fault or many; no guest makes it longer
  std::deque<WorkerFailure> failures;
};

// The bounds of a VM's sessions and workers, as configured, and the sums that its workers have reached.
struct BoundsStatus {
  std::int64_t session_image_bytes = 0, session_objects = 0;
  std::int64_t memory_max = 0, pids_max = 0, cpu_max = 0;
  std::string group;    // the path of its control group; "": none, so that the three above bind nobody
  std::string missing;  // why there is none; "": it is not wanted
  GroupUse use;         // of the group
};

// Of the time of a VM's GPUs, on all of these together.
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
  std::string memory;  // the path of an ivshmem-plain device's memory; "": it comes through the socket
  std::uint64_t region_bytes = 0, slot_bytes = 0;
  std::string jail;  // as configured, like the next three
  std::int64_t spin_threads = 0, spin_us = 0, wait_spin_ms = 0;
  std::size_t connections = 0;
  Counters counters;  // of all its workers, those that have ended included
  WorkerEnds ends;
  std::vector<SlotStatus> slots;
  VmGpus gpus;  // as configured
  BoundsStatus bounds;
  std::uint64_t gpu_memory = 0;  // of its GPUs together, from a worker's driver; 0: no worker has reported it yet
  std::vector<QuotaStatus> quotas = {};  // a line for each of its GPUs that is known
  std::optional<GpuTimeStatus> gpu_time = {};
  std::uint64_t gpus_missing = 0;
};

struct BrokerStatus {
  std::string version;
  std::string library;
  Clock::duration up{};
  EventLoop::Turns turns;
  std::vector<VmStatus> vms;
  std::vector<GpuSharing> gpus = {};  // those that workers see
  std::string gpu_time_missing = {};  // why no lease can be given; "": leases can
};

const char* name_of(ring::SlotState state);
// "leases", "alone" or "time slices"
const char* name_of(scheduler::Scheduler::Sharing sharing);

// Names of the layers whose bits are set.
std::vector<std::string> names_of_layers(std::uint32_t layers);

// One line. `format` counts up when a field changes its meaning; new ones may come.
std::string status_as_json(const BrokerStatus& status);

// The path of the status socket: no VM's socket has this name.
std::string status_path(const std::string& runtime_dir);

}  // namespace host::broker
