// The table of ivgpud's keys: the name of each, the values that it takes, its meaning, and the place of its value.
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

// The effect of a changed key when ivgpud reads its file again (SIGHUP).
enum class Reload {
  Now,
  NewSessions,  // for sessions that start from now on; workers that were started ahead are replaced
  NewVms,       // for VMs that are added from now on
  Restart,      // nothing, before ivgpud starts anew
};

struct Key {
  const char* table;  // broker, gpu; vm stands for [defaults] and every [vm.NAME]
  const char* name;
  KeyKind kind;
  const char* fallback;  // the default as it would stand in the file; in words where `by_cores` gives it
  std::int64_t (*by_cores)(unsigned cores);
  std::int64_t least, most;  // of numbers
  const char* allowed;       // completes "KEY takes ..."
  const char* help;
  Reload reload;
  Member member;
};

// Every key there is, table by table.
std::span<const Key> all_keys();

// The default as it would stand in the file of a machine with so many processors.
std::string fallback_of(const Key& key, unsigned cores);

}  // namespace host::broker
