// Device memory at the addresses that NVIDIA's driver (580.159.04) would choose. Allocations below 1 MiB come first-fit
// from blocks of 2 MiB. Larger allocations are multiples of 2 MiB in chunks of 32 MiB. A new chunk has the highest
// address that the process's mappings allow. Private to host/simgpu.
//
// Chunks are never unmapped, since a running kernel may still use freed memory.
// Not thread-safe: the caller serialises calls.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "host/simgpu/engine.h"

namespace simgpu {

class Chunks {
 public:
  // `below` is a multiple of 2 MiB. All chunks have lower addresses.
  explicit Chunks(Address below) : below_(below) {}
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  Address take(std::size_t size);  // 0 if no space is left
  void put_back(Address start, std::size_t size);

 private:
  using Holes = std::map<Address, std::size_t>;  // adjacent holes are merged

  static Address first_fit(Holes& holes, std::size_t size);
  static void put(Holes& holes, Address start, std::size_t size);
  Address take_large(std::size_t size);
  Address new_chunk(std::size_t size);

  const Address below_;
  Holes small_, large_;
  std::vector<Range> chunks_;
};

}  // namespace simgpu
