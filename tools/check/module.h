// A guest that has the kernel module: its node, who may open it, and what the module gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ring/module_c.h"
#include "tools/check/machine.h"

namespace check {

// Whether the module has one of these devices, or there is a node of it. Then the device is not reached by its files.
bool module_is_there(const Machine& machine, const std::vector<std::string>& devices);

Findings check_module(const Machine& machine);

// Which interrupts wake the programs of a region of so many slots, for each of which its worker raises interrupt
// slot % guest_vectors.
Finding judge_wakes(const std::string& node, const IvgpuModuleInfo& info, std::uint32_t slots,
                    std::uint32_t guest_vectors);

}  // namespace check
