// Maps a part of a region's file. For the regions, each of which has such a file.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace guest {

// At `address` if that is not null, but never over another mapping. Null: that failed, and errno says why.
inline std::byte* map_shared(int fd, std::uint64_t offset, std::size_t bytes, void* address,
                             int protection = PROT_READ | PROT_WRITE) {
  const int flags = MAP_SHARED | (address != nullptr ? MAP_FIXED_NOREPLACE : 0);
  void* at = mmap(address, bytes, protection, flags, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  if (address == nullptr || at == address) return static_cast<std::byte*>(at);
  munmap(at, bytes);  // an old kernel ignores the flag and takes the address as a hint
  return nullptr;
}

}  // namespace guest
