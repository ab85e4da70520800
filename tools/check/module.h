// A guest that has the kernel module: its node, who may open it, and what the module gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ring/layout/module_c.h"
#include "tools/check/machine.h"

namespace check {

// Whether the module has one of these devices, or there is a node of it. Then the device is not reached by its files.
bool module_is_there(const Machine& machine, const std::vector<std::string>& devices);

Findings check_module(const Machine& machine);

// What the region's header says of how its programs are woken.
struct Wakers {
  std::uint32_t slots, guest_vectors;  // the worker of a slot raises interrupt slot % guest_vectors; 0: none
  bool no_doorbell;
};

// Which interrupts wake the programs of such a region.
Finding judge_wakes(const std::string& node, const IvgpuModuleInfo& info, const Wakers& wakers);

}  // namespace check
