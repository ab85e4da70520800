// The layer that takes the machine's mounts, network and System V objects out of the worker's sight.
// Called by a process with one thread (a process with threads cannot make a user namespace), before a driver is loaded.
#pragma once

#include <string>
#include <vector>

#include "host/jail/layer.h"

namespace host::jail {

// New mount, network and IPC namespaces; without root, inside a new user namespace in which the user keeps its id.
// All mounts become read-only but those of `writable`, folders which need not be there, and /proc (the driver names its
// threads through /proc/self/task), which, made by root, shows no other process. There is no new pid namespace: the
// driver composes paths below /proc from its thread ids, which must be those that /proc shows.
Result apply_namespaces(const std::vector<std::string>& writable = {});

}  // namespace host::jail
