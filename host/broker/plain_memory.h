// The memory of an ivshmem-plain device: QEMU opens it itself, by a path. Either a file in a file system that lives in
// memory, or a memfd that is opened as /proc/PID/fd/N.
//
// Nothing announces that a VM comes or goes. The kernel knows: it gives a write lease only on a file that no other
// process has open.
#pragma once

#include <cstddef>
#include <string>

#include "host/broker/fd.h"
#include "host/broker/owner.h"

namespace host::broker {

// A new file of `bytes`, locked as long as it is open; one that a dead broker left is replaced. It stays the broker's
// own, even with another `access.owner`: this distinguishes it from a file that QEMU has made. `huge` becomes true if
// it has huge pages. Empty on failure, and `error` is the reason without the file's name.
Fd make_plain_file(const std::string& path, std::size_t bytes, const FileAccess& access, bool& huge,
                   std::string& error);

// True if make_plain_file() could make it, as far as that can be seen without making it; `error` as there. A file that
// an ivgpud serves now is taken for one that it will have let go of.
bool may_make_plain_file(const std::string& path, const FileAccess& access, std::string& error);

// The same memory under a descriptor of its own that the kernel counts as an opening of it, which a memfd's first does
// not: only so can open_elsewhere() be asked.
Fd reopened(const Fd& memory);

// True if a process other than the holders of this very opening (the broker and its workers) has the memory open, and
// if the kernel cannot answer.
bool open_elsewhere(int fd);

}  // namespace host::broker
