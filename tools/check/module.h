// Checks a guest that has the kernel module: its node, the node's access rights, and the module's features.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ring/layout/module_c.h"
#include "tools/check/machine.h"

namespace check {

// True if the module drives one of these devices or provides a node. Then the library does not use the device's files.
bool module_is_there(const Machine& machine, const std::vector<std::string>& devices);

Findings check_module(const Machine& machine);

// Header fields of the region that determine how the worker wakes programs.
struct Wakers {
  std::uint32_t slots, guest_vectors;  // the worker of a slot raises interrupt slot % guest_vectors; 0: none
  bool no_doorbell;
};

// Reports which interrupts wake the programs of this region.
Finding judge_wakes(const std::string& node, const IvgpuModuleInfo& info, const Wakers& wakers);

}  // namespace check
