// The memory of an ivshmem-plain device: QEMU opens it itself, by a path. Either a file in a file system that lives in
// memory, or a memfd that is opened as /proc/PID/fd/N.
//
// Nobody tells when a VM comes or goes. The kernel does: it gives a write lease only on a file that nobody else has
// open.
#pragma once

#include <cstddef>
#include <string>

#include "host/broker/fd.h"
#include "host/broker/owner.h"

namespace host::broker {

// A new file of `bytes`, locked as long as it is open; one that a dead broker left is replaced. It stays the broker's
// own, whatever `access.owner` says: by that it is told from one that QEMU has made. `huge`: whether it has huge pages.
// Empty on failure, and `error` says why without naming the file.
Fd make_plain_file(const std::string& path, std::size_t bytes, const FileAccess& access, bool& huge,
                   std::string& error);

// Whether make_plain_file() could make it, as far as that can be seen without making it; `error` as there. A file that
// an ivgpud serves now is taken for one that it will have let go of.
bool may_make_plain_file(const std::string& path, const FileAccess& access, std::string& error);

// The same memory under a descriptor of its own that the kernel counts as an opening of it, which a memfd's first does
// not: only so can open_elsewhere() be asked.
Fd reopened(const Fd& memory);

// Whether anybody but the holders of this very opening (the broker and its workers) has the memory open. True where the
// kernel does not say.
bool open_elsewhere(int fd);

}  // namespace host::broker
