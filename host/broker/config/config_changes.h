// The differences between the running configuration and a reloaded one. The table of all keys drives the comparison, so
// that no key is forgotten; it also says when each key takes effect (host/broker/config/config_keys.h).
#pragma once

#include <string>
#include <vector>

#include "host/broker/config/config.h"

namespace host::broker {

// The changes of one table. `lines` has one line per changed key, with both values if no restart is needed:
// "session_objects 100 -> 200 for sessions that start from now on", "region_size needs a restart of ivgpud".
struct Changes {
  std::vector<std::string> lines;
  bool now = false, new_sessions = false;  // some key has this effect
};

// The VM's keys that need a restart, with their values, one per line.
std::string restart_keys_in_words(const VmOptions& options);

// Copies into `running` the changes that need no restart.
Changes take_over(BrokerOptions& running, const BrokerOptions& wanted);
Changes take_over(GpuOptions& running, const GpuOptions& wanted);
// Keeps memory_max unless the region stays the same, because its default depends on the region. Keeps the GPUs if
// `keeps_gpus`.
Changes take_over(VmOptions& running, const VmOptions& wanted, bool keeps_gpus = false);

}  // namespace host::broker
