// Maps a range of a region's file. For all kinds of regions.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace guest {

// Maps at `address` if that is not null, but never over another mapping. Null: the mapping failed, and errno says why.
inline std::byte* map_shared(int fd, std::uint64_t offset, std::size_t bytes, void* address,
                             int protection = PROT_READ | PROT_WRITE) {
  const int flags = MAP_SHARED | (address != nullptr ? MAP_FIXED_NOREPLACE : 0);
  void* at = mmap(address, bytes, protection, flags, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  if (address == nullptr || at == address) return static_cast<std::byte*>(at);
  munmap(at, bytes);  // an old kernel takes the address as a hint and ignores the flag
  return nullptr;
}

}  // namespace guest
