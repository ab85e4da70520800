// The differences between a configuration that was read again and the one that runs, found key by key by the table of
// all keys, so that none can be forgotten. Each key has its own mark for when a change of it counts
// (host/broker/config/config_keys.h).
#pragma once

#include <string>
#include <vector>

#include "host/broker/config/config.h"

namespace host::broker {

// Of one table. `lines`: one for each key that is another, with both values where the new one counts without a restart:
// "session_objects 100 -> 200 for sessions that start from now on", "region_size needs a restart of ivgpud".
struct Changes {
  std::vector<std::string> lines;
  bool now = false, new_sessions = false;  // one of that kind is among them
};

// The keys of a VM whose change needs a restart, with their values, a line each.
std::string restart_keys_in_words(const VmOptions& options);

// Takes over into `running` the changes that count without a restart.
Changes take_over(BrokerOptions& running, const BrokerOptions& wanted);
Changes take_over(GpuOptions& running, const GpuOptions& wanted);
// The bound of the workers' memory stays where the region that it was worked out for does, and the GPUs stay where the VM
// keeps those that it has (`keeps_gpus`).
Changes take_over(VmOptions& running, const VmOptions& wanted, bool keeps_gpus = false);

}  // namespace host::broker
