// A memfd of the broker's with a sealed size, which other processes map. Seals and mode keep them from writing to it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "host/base/fd.h"

namespace host::broker {

// Empty on failure, and errno has the reason. memfd_create() gives mode 0777, so a holder of a read-only descriptor
// could reopen it for writing through /proc; mode 0600 prevents that.
[[nodiscard]] inline Fd make_sealed_memory(const std::string& name, std::size_t bytes) {
  Fd memfd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd || fchmod(memfd.get(), 0600) != 0 || ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return Fd();
  return memfd;
}

// Forbids further writable mappings and seals. A memfd kept for the next broker stays writable, since that broker maps
// it.
[[nodiscard]] inline bool seal_for_good(const Fd& memfd, bool kept) {
  return fcntl(memfd.get(), F_ADD_SEALS, (kept ? 0 : F_SEAL_FUTURE_WRITE) | F_SEAL_SEAL) == 0;
}

[[nodiscard]] inline bool has_size(const Fd& memfd, std::size_t bytes) {
  struct stat status {};
  return memfd && fstat(memfd.get(), &status) == 0 && status.st_size == static_cast<off_t>(bytes);
}

// Maps the memory for writing. Null on failure, and errno has the reason.
[[nodiscard]] inline void* map_memory(const Fd& memfd, std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  return at == MAP_FAILED ? nullptr : at;
}

// Returns a read-only descriptor of the same memory; empty on failure.
[[nodiscard]] inline Fd reader_of(const Fd& memfd) {
  return Fd(open(("/proc/self/fd/" + std::to_string(memfd.get())).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace host::broker
