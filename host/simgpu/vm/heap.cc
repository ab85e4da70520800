#include "host/simgpu/vm/heap.h"

#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr std::uint64_t block_unit = 16;

}  // namespace

Heap::~Heap() {
  if (base_ != 0) space_.free(base_);
}

std::uint64_t Heap::allocate(std::uint64_t size) {
  const ring::MutexLock lock(mutex_);
  if (size == 0 || size > size_) return 0;
  const std::uint64_t wanted = (size + block_unit - 1) / block_unit * block_unit;
  if (base_ == 0) {
    base_ = space_.allocate(size_);
    if (base_ == 0) return 0;
    holes_[base_] = size_;
  }
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second < wanted) continue;
    const std::uint64_t start = hole->first;
    const std::uint64_t rest = hole->second - wanted;
    holes_.erase(hole);
    if (rest != 0) holes_[start + wanted] = rest;
    used_[start] = wanted;
    return start;
  }
  return 0;
}

void Heap::set_size(std::uint64_t size) {
  const ring::MutexLock lock(mutex_);
  size_ = size;
}

bool Heap::free(std::uint64_t address) {
  if (address == 0) return true;
  const ring::MutexLock lock(mutex_);
  const auto found = used_.find(address);
  if (found == used_.end()) return false;
  std::uint64_t start = address;
  std::uint64_t size = found->second;
  used_.erase(found);
  auto after = holes_.lower_bound(start);
  if (after != holes_.end() && after->first == start + size) {
    size += after->second;
    after = holes_.erase(after);
  }
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == start) {
      start = before->first;
      size += before->second;
      holes_.erase(before);
    }
  }
  holes_[start] = size;
  return true;
}

}  // namespace simgpu
