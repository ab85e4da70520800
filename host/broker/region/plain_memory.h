// The memory of an ivshmem-plain device, which QEMU opens by path: a file in a memory file system, or a memfd opened as
// /proc/PID/fd/N.
//
// No event reports that a VM comes or goes. The broker tests it by a file lease: the kernel grants a write lease only
// if no other process has the file open.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "host/base/fd.h"
#include "host/base/owner.h"
#include "host/base/result.h"

namespace host::broker {

struct PlainFile {
  Fd fd;
  bool is_huge = false;  // it has huge pages
};

// Makes a new file of `bytes`, locked while it is open; it replaces a dead broker's file. The broker stays its owner
// even if `access.owner` differs, which distinguishes it from a file that QEMU made. The error is the reason without
// the file's name.
Result<PlainFile> make_plain_file(const std::string& path, std::size_t bytes, const FileAccess& access);

// An error, as there, unless make_plain_file() would probably succeed. A file that an ivgpud serves now counts as
// removable.
Result<void> may_make_plain_file(const std::string& path, const FileAccess& access);

// True if `memory` is the file at `path`; `huge` is then set to whether the file has huge pages.
[[nodiscard]] bool is_plain_file(const Fd& memory, const std::string& path, bool& huge);

// The path by which QEMU opens a memfd: a link into the process that has it, which each broker makes anew. Between two
// brokers it dangles, so QEMU finds no memory and cannot create a file of its own there.
class MemoryLink {
 public:
  // The error is one sentence.
  static Result<std::unique_ptr<MemoryLink>> make(const std::string& path, int memory);
  ~MemoryLink();
  MemoryLink(const MemoryLink&) = delete;
  MemoryLink& operator=(const MemoryLink&) = delete;

 private:
  explicit MemoryLink(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

// Opens the memory again. open_elsewhere() needs this descriptor: the kernel does not count a memfd's first descriptor
// as an opening.
[[nodiscard]] Fd reopened(const Fd& memory);

// True if another process has the memory open, apart from holders of this very opening (the broker and its workers), or
// if the kernel cannot tell.
[[nodiscard]] bool open_elsewhere(int fd);

}  // namespace host::broker
