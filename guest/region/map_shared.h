// Maps a range of a region's file, for regions of all kinds.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace guest {

// Maps the range at `address` if that is not null, but never over another mapping. Returns null if the mapping failed,
// and sets errno.
inline std::byte* map_shared(int fd, std::uint64_t offset, std::size_t bytes, void* address,
                             int protection = PROT_READ | PROT_WRITE) {
  const int flags = MAP_SHARED | (address != nullptr ? MAP_FIXED_NOREPLACE : 0);
  void* at = mmap(address, bytes, protection, flags, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  if (address == nullptr || at == address) return static_cast<std::byte*>(at);
  munmap(at, bytes);  // an old kernel treats the address as a hint and ignores MAP_FIXED_NOREPLACE
  return nullptr;
}

}  // namespace guest
