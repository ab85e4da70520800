// Checks that the files of all ivshmem-plain VMs fit into their file systems together. A tmpfs file is sparse: a page
// is allocated when a guest first writes it. If none is left, the kernel sends SIGBUS to the writer, which may be
// another VM's QEMU or worker.
//
// The check compares sizes at the start and reserves nothing. fallocate() would take all memory of all regions at once,
// and again after each scrub, which frees a slot's pages. Later files can still use up the space. A file system mounted
// for these files alone is safe from that, and so is hugetlbfs, whose pages are taken at the start.
#pragma once

#include <string>
#include <vector>

#include "host/base/result.h"
#include "host/broker/config/config.h"

namespace host::broker {

// An error, one sentence, if some files do not fit. A file system that cannot be queried is no error here: making the
// file will fail.
Result<void> plain_files_fit(const std::vector<VmOptions>& vms);

}  // namespace host::broker
