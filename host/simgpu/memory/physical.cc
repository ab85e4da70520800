#include "host/simgpu/memory/physical.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ring/abi/descriptor.h"
#include "ring/base/mutex.h"

namespace simgpu {

namespace {

// Returns false if RLIMIT_FSIZE forbids a file of this size. Exceeding the limit would end the process by SIGXFSZ.
bool may_have(std::size_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur);
}

}  // namespace

PhysicalMemory::PhysicalMemory(std::size_t size)
    : file_(cuabi::above_standard(memfd_create("ivgpu-simulated-memory", MFD_CLOEXEC))), allowed_(may_have(size)) {
  if (file_ >= 0 && allowed_ && ftruncate(file_, static_cast<off_t>(size)) == 0) holes_[0] = size;
}

PhysicalMemory::~PhysicalMemory() {
  if (file_ >= 0) close(file_);
}

std::optional<std::uint64_t> PhysicalMemory::take(std::size_t size) {
  const ring::MutexLock lock(mutex_);
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const auto [offset, bytes] = *hole;
    if (bytes < size) continue;
    holes_.erase(hole);
    if (bytes > size) holes_[offset + size] = bytes - size;
    return offset;
  }
  return std::nullopt;
}

// Frees pages of the file through a temporary mapping, because a worker's jail allows madvise() but no call that frees
// pages through the file descriptor.
void PhysicalMemory::give_back(std::uint64_t offset, std::size_t size) {
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(offset));
  if (pages != MAP_FAILED) {
    madvise(pages, size, MADV_REMOVE);
    munmap(pages, size);
  }
  const ring::MutexLock lock(mutex_);
  auto after = holes_.lower_bound(offset);
  if (after != holes_.end() && after->first == offset + size) {
    size += after->second;
    after = holes_.erase(after);
  }
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  holes_[offset] = size;
}

bool PhysicalMemory::map(Address at, std::uint64_t offset, std::size_t size) {
  return mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
              static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace simgpu
