// Copies into memory that this processor will not read soon, such as a staging chunk that the GPU reads. The stores
// bypass the caches. The processor therefore need not load the chunk's old cache lines, and the program's own data stay
// cached.
#pragma once

#include <cstddef>
#include <cstring>

namespace guest {

// Copies like memcpy. Another thread that sees a later store of the caller also sees the copied bytes.
void streaming_copy(void* to, const void* from, std::size_t bytes);

inline void copy_bytes(void* to, const void* from, std::size_t bytes, bool streamed) {
  if (streamed)
    streaming_copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace guest
