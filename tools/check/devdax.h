// Checks a guest whose region is persistent memory: the devdax device, its access rights and the doorbell channels.
#pragma once

#include <string>
#include <vector>

#include "tools/check/machine.h"

namespace check {

// The number of virtio-serial ports that are doorbell channels. A host has none.
unsigned doorbell_channels(const Machine& machine);

// The names of the devdax devices below /dev.
std::vector<std::string> devdax_devices(const Machine& machine);

// Findings of the first device that holds a region, or of the first device if none does.
Findings check_devdax(const Machine& machine, const std::vector<std::string>& devices);

}  // namespace check
