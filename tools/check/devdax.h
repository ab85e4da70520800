// A guest whose region is persistent memory: its devdax device, who may open it, and the bell channels.
#pragma once

#include <string>
#include <vector>

#include "tools/check/machine.h"

namespace check {

// How many ports of virtio-serial are bell channels. No host has one.
unsigned bell_channels(const Machine& machine);

// The devdax devices, as names below /dev.
std::vector<std::string> devdax_devices(const Machine& machine);

// The first of them that holds a region, or else the first.
Findings check_devdax(const Machine& machine, const std::vector<std::string>& devices);

}  // namespace check
