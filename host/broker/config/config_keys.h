// The table of ivgpud's keys: name, allowed values, meaning, and the member that holds the value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "host/broker/config/config.h"

namespace host::broker {

enum class KeyKind { Integer, Size, Mode, Boolean, Text, Choice, Users, List, Limit, Processors, Quota, Address };

using Member = std::variant<std::string BrokerOptions::*, std::int64_t BrokerOptions::*, std::string GpuOptions::*,
                            std::int64_t GpuOptions::*, bool GpuOptions::*, std::int64_t VmOptions::*,
                            std::string VmOptions::*, bool VmOptions::*, std::vector<std::string> VmOptions::*>;

// When a changed key takes effect after a reload (SIGHUP).
enum class Reload {
  Now,
  NewSessions,  // for sessions that start later; spare workers are replaced
  NewVms,       // for VMs added later
  Restart,      // after a restart of ivgpud
};

struct Key {
  const char* table;  // broker or gpu; vm stands for [defaults] and every [vm.NAME]
  const char* name;
  KeyKind kind;
  const char* fallback;  // the default in TOML; a description if `by_cores` computes it
  std::int64_t (*by_cores)(unsigned cores);
  std::int64_t least, most;  // for numbers
  const char* allowed;       // completes "KEY takes ..."
  const char* help;
  Reload reload;
  Member member;
};

// All keys, table by table.
std::span<const Key> all_keys();

// The default in TOML on a machine with this many processors.
std::string fallback_of(const Key& key, unsigned cores);

}  // namespace host::broker
