// Device malloc: a heap in device memory, shared by all kernels of a context, made when first asked for.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "host/simgpu/engine.h"

namespace simgpu {

class Heap {
 public:
  static constexpr std::uint64_t default_size = std::uint64_t{8} << 20;  // the driver's own

  explicit Heap(AddressSpace& space) : space_(space) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  std::uint64_t allocate(std::uint64_t size);  // 0 when there is no room
  bool free(std::uint64_t address);            // 0 is freed in vain, as by the standard
  void set_size(std::uint64_t size);           // of a heap that is not made yet

 private:
  AddressSpace& space_;
  std::mutex mutex_;  // for the members below
  std::uint64_t size_ = default_size;
  Address base_ = 0;
  std::map<std::uint64_t, std::uint64_t> holes_;  // start and size
  std::map<std::uint64_t, std::uint64_t> used_;
};

}  // namespace simgpu
