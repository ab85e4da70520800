// Lets the fuzzers act between two reads or writes of shared memory.
//
// In a build with IVGPU_OBSERVED (the preset asan), each read and write of ring/shared/shared.h first calls an
// observer. The observer may count the access or change any byte of the memory. In other builds the two functions are
// empty. An observer is called in the thread that reads or writes; set the observer only while no thread reads or
// writes.
//
// ```cpp
// std::size_t reads = 0;
// void count_reads_of(void (*run)()) {
//   ring::observer = [](const void*, std::size_t) { ++reads; };  // IVGPU_OBSERVED
//   run();
//   ring::observer = nullptr;
// }
// ```
#pragma once

#include <cstddef>

namespace ring {

#ifdef IVGPU_OBSERVED
// Called in the thread that reads or writes [at, at + bytes), before the access. Null: no observer. Set the observer
// only while no thread reads or writes. An operation that both reads and writes counts as a read.
using Observer = void (*)(const void* at, std::size_t bytes);
inline Observer observer = nullptr;
inline Observer write_observer = nullptr;
inline void observe_read(const void* at, std::size_t bytes) {
  if (observer != nullptr) observer(at, bytes);
}
inline void observe_write(const void* at, std::size_t bytes) {
  if (write_observer != nullptr) write_observer(at, bytes);
}
#else
inline void observe_read(const void*, std::size_t) {}
inline void observe_write(const void*, std::size_t) {}
#endif

}  // namespace ring
