// Checks that the files of all VMs with an ivshmem-plain device have room together. A file on tmpfs is sparse: its
// pages are taken when a guest first writes them, and if there are none left the kernel sends SIGBUS to the process
// that writes, which may be another VM's QEMU or worker.
//
// The room is compared with the sum at the start and not reserved. Reserving (fallocate) would take all memory of all
// regions at once, and wiping a slot gives its pages back, so it would have to be done again each time. Other files
// that are written to the file system later can still use it up; one mounted for these files alone, or hugetlbfs, whose
// pages are taken at the start, is safe from that.
#pragma once

#include <string>
#include <vector>

#include "host/broker/config/config.h"

namespace host::broker {

// False if some do not fit, and `error` is one sentence. A file system that cannot be asked is no error here: making
// the files will show it.
bool plain_files_fit(const std::vector<VmOptions>& vms, std::string& error);

}  // namespace host::broker
