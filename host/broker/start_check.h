// `ivgpud --check` finds the obstacles to serving for an ivgpud that this user would start now. It looks, as the start
// does, at users and groups, control groups, sizes, huge pages and plain files; it makes nothing and changes nothing.
#pragma once

#include <string>
#include <vector>

#include "host/broker/config/config.h"

namespace host::broker {

struct StartCheck {
  std::vector<std::string> wrong;  // a sentence each: it would not start, or not serve a VM
  std::vector<std::string> notes;  // effects that an operator may not expect, and checks that were not possible
};

// `huge_pages`: where the kernel shows its pools. Preconditions: `config` is one that parse_config() took.
StartCheck check_start(const Config& config, const std::string& huge_pages = "/sys/kernel/mm/hugepages");

}  // namespace host::broker
