// Whether the files of VMs with an ivshmem-plain device have room, all of them together. A file on tmpfs is sparse: its
// pages are taken when a guest first writes them, and where there are none left the kernel ends who writes, which may
// be another VM's QEMU or worker, by SIGBUS.
//
// The room is held against the sum at the start and not reserved. Reserving (fallocate) would take all memory of all
// regions at once, and wiping a slot gives its pages back, so it would have to be done again each time. What else is
// written to the file system later can still use it up; one mounted for these files alone, or hugetlbfs, whose pages
// are taken at the start, is safe from that.
#pragma once

#include <string>
#include <vector>

#include "host/broker/config.h"

namespace host::broker {

// False where some do not fit, and `error` is one sentence. What cannot be asked is left to who makes the files.
bool plain_files_fit(const std::vector<VmOptions>& vms, std::string& error);

}  // namespace host::broker
