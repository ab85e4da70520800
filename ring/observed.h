// Where the fuzzers get between two reads of shared memory. Built with IVGPU_OBSERVED (the preset asan), each read of
// ring/shared.h calls an observer first, which may count it or change any byte of the memory; otherwise this is
// nothing.
#pragma once

#include <cstddef>

namespace ring {

#ifdef IVGPU_OBSERVED
// Called in the thread that reads, before [at, at + bytes) is read. Null: nobody observes. Set while nothing reads.
using Observer = void (*)(const void* at, std::size_t bytes);
inline Observer observer = nullptr;
inline void observe_read(const void* at, std::size_t bytes) {
  if (observer != nullptr) observer(at, bytes);
}
#else
inline void observe_read(const void*, std::size_t) {}
#endif

}  // namespace ring
