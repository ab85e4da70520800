// The memory of an ivshmem-plain device: QEMU opens it itself, by a path. Either a file in a file system that lives in
// memory, or a memfd that is opened as /proc/PID/fd/N.
//
// Nothing announces that a VM comes or goes. The kernel knows: it gives a write lease only on a file that no other
// process has open.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "host/base/fd.h"
#include "host/base/owner.h"

namespace host::broker {

// A new file of `bytes`, locked as long as it is open; one that a dead broker left is replaced. It stays the broker's
// own, even with another `access.owner`: this distinguishes it from a file that QEMU has made. `huge` becomes true if
// it has huge pages. Empty on failure, and `error` is the reason without the file's name.
Fd make_plain_file(const std::string& path, std::size_t bytes, const FileAccess& access, bool& huge,
                   std::string& error);

// True if make_plain_file() could make it, as far as that can be seen without making it; `error` as there. A file that
// an ivgpud serves now is taken for one that it will have let go of.
bool may_make_plain_file(const std::string& path, const FileAccess& access, std::string& error);

// True if `memory` is the file at that path. `huge` as in make_plain_file().
bool is_plain_file(const Fd& memory, const std::string& path, bool& huge);

// The path by which QEMU opens a memfd: a link to the process that has it, which the next broker makes anew. Between two
// of them it leads nowhere, so that QEMU finds neither memory nor a place to make a file of its own.
class MemoryLink {
 public:
  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<MemoryLink> make(const std::string& path, int memory, std::string& error);
  ~MemoryLink();
  MemoryLink(const MemoryLink&) = delete;
  MemoryLink& operator=(const MemoryLink&) = delete;

 private:
  explicit MemoryLink(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

// The same memory under a descriptor of its own that the kernel counts as an opening of it, which a memfd's first does
// not: only so can open_elsewhere() be asked.
Fd reopened(const Fd& memory);

// True if a process other than the holders of this very opening (the broker and its workers) has the memory open, and
// if the kernel cannot answer.
bool open_elsewhere(int fd);

}  // namespace host::broker
