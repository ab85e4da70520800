// The heap for device malloc. It is device memory that all kernels of a context share, and is created at first use.
#pragma once

#include <cstdint>
#include <map>

#include "host/simgpu/engine.h"
#include "ring/base/mutex.h"

namespace simgpu {

class Heap {
 public:
  static constexpr std::uint64_t default_size = std::uint64_t{8} << 20;  // the default of NVIDIA's driver

  explicit Heap(AddressSpace& space) : space_(space) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  std::uint64_t allocate(std::uint64_t size);  // 0 if too little space is left
  bool free(std::uint64_t address);            // freeing 0 does nothing, as in the C standard
  void set_size(std::uint64_t size);           // call before the heap is created

 private:
  AddressSpace& space_;
  ring::Mutex mutex_;
  std::uint64_t size_ GUARDED_BY(mutex_) = default_size;
  Address base_ GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::uint64_t> holes_ GUARDED_BY(mutex_);  // start to size
  std::map<std::uint64_t, std::uint64_t> used_ GUARDED_BY(mutex_);
};

}  // namespace simgpu
