// Copies into memory that this processor will not read soon: a staging chunk, which the GPU reads. The stores go past
// the caches, so that the chunk's old lines are not fetched first, and the program's own data stay cached.
#pragma once

#include <cstddef>
#include <cstring>

namespace guest {

// As memcpy. What was written is visible to others before what the caller stores next.
void streaming_copy(void* to, const void* from, std::size_t bytes);

inline void copy_bytes(void* to, const void* from, std::size_t bytes, bool streamed) {
  if (streamed)
    streaming_copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace guest
