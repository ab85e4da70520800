// Copies into memory that this processor will not read soon: a staging chunk, which the GPU reads. The stores go past
// the caches, so that the chunk's old lines are not fetched first, and the program's own data stay cached.
#pragma once

#include <cstddef>

namespace guest {

// As memcpy. What was written is visible to others before what the caller stores next.
void streaming_copy(void* to, const void* from, std::size_t bytes);

}  // namespace guest
