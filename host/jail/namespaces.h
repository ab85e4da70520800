// The layer that hides the machine's mounts, network and System V objects from the worker. The caller must have one
// thread, because a process with several threads cannot make a user namespace. The caller must not have loaded a
// driver.
#pragma once

#include <string>
#include <vector>

#include "host/jail/layer.h"

namespace host::jail {

// Enters new mount, network and IPC namespaces; without root, inside a new user namespace that keeps the user's ID. All
// mounts become read-only except the folders in `writable`, which may be missing, and /proc, where the driver names its
// threads (/proc/self/task). As root, /proc shows no other process. There is no new PID namespace: the driver composes
// paths below /proc from its thread IDs, so these IDs must match the IDs in /proc.
Result apply_namespaces(const std::vector<std::string>& writable = {});

}  // namespace host::jail
