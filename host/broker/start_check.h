// `ivgpud --check`: finds what would keep an ivgpud that this user starts now from serving. It checks users and groups,
// control groups, sizes, huge pages and plain files, as the start does, and changes nothing.
#pragma once

#include <string>
#include <vector>

#include "host/broker/config/config.h"

namespace host::broker {

struct StartCheck {
  std::vector<std::string> wrong;  // one sentence each: ivgpud would not start, or not serve a VM
  std::vector<std::string> notes;  // surprising effects, and checks that were not possible
};

// `huge_pages`: the kernel's folder of pools. Precondition: parse_config() accepted `config`.
StartCheck check_start(const Config& config, const std::string& huge_pages = "/sys/kernel/mm/hugepages");

}  // namespace host::broker
