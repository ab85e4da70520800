// Device memory at addresses as the real driver (580.159.04) chooses them: pieces below 1 MiB are cut from blocks of 2 MiB,
// the first that fits, others are whole multiples of 2 MiB from chunks of 32 MiB, and a new chunk lies as high as there is
// room in the process, around what is mapped there. For host/simgpu only.
//
// What was a chunk once stays memory, as a kernel that runs may still use what the program has freed.
// Threads: the caller sees to it that one at a time calls.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "host/simgpu/engine.h"

namespace simgpu {

class Chunks {
 public:
  // Below this address, a multiple of 2 MiB.
  explicit Chunks(Address below) : below_(below) {}
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  Address take(std::size_t size);  // 0 when no place is left
  void put_back(Address start, std::size_t size);

 private:
  using Holes = std::map<Address, std::size_t>;  // adjacent ones are one

  static Address first_fit(Holes& holes, std::size_t size);
  static void put(Holes& holes, Address start, std::size_t size);
  Address take_large(std::size_t size);
  Address new_chunk(std::size_t size);

  const Address below_;
  Holes small_, large_;
  std::vector<Range> chunks_;
};

}  // namespace simgpu
