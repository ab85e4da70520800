#include "host/session/memory/device_memory.h"

#include "ring/base/mutex.h"

namespace host {
namespace {

// More memory than any GPU has. Sums of a few such numbers do not overflow.
constexpr std::uint64_t absurd = std::uint64_t{1} << 56;

}  // namespace

bool Charge::take(DeviceMemory& memory, unsigned device, std::uint64_t bytes) {
  if (!memory.take(device, bytes)) return false;
  memory_ = &memory, device_ = device, bytes_ = bytes;
  return true;
}

void Charge::give_back() { std::exchange(memory_, nullptr)->give_back(device_, std::exchange(bytes_, 0)); }

bool DeviceMemory::take(unsigned device, std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (device >= accounts_.size() || bytes > absurd) return false;
  if (take_reserved(device, bytes)) return true;
  // One thread at a time asks the lender. Threads that waited can then use the grant of the first thread, and the
  // lender gets only one question.
  const ring::MutexLock one_at_a_time(asking_);
  if (take_reserved(device, bytes) || reserve(device, bytes)) return true;
  if (make_room_) make_room_(device);
  return take_reserved(device, bytes) || reserve(device, bytes);
}

bool DeviceMemory::take_reserved(unsigned device, std::uint64_t bytes) {
  Account& a = accounts_[device];
  const ring::MutexLock lock(a.mutex);
  if (!fits(a, bytes)) return false;
  change(device, a, a.taken + bytes);
  return true;
}

// The bytes count as taken during the question, so that no other thread takes memory that this thread waits for.
bool DeviceMemory::reserve(unsigned device, std::uint64_t bytes) {
  Account& a = accounts_[device];
  std::uint64_t missing = 0;
  {
    const ring::MutexLock lock(a.mutex);
    change(device, a, a.taken + bytes);
    if (a.taken <= a.reserved) return true;  // another thread has given memory back in the meantime
    missing = a.taken - a.reserved;
  }
  const std::uint64_t reserved = reserver_->reserve(device, missing);
  const ring::MutexLock lock(a.mutex);
  a.reserved += reserved;
  if (a.taken <= a.reserved) return true;
  change(device, a, a.taken - bytes);
  return false;
}

void DeviceMemory::take_anyway(unsigned device, std::uint64_t bytes) {
  Account& a = accounts_[device];
  const ring::MutexLock lock(a.mutex);
  change(device, a, a.taken + bytes);
}

void DeviceMemory::give_back(unsigned device, std::uint64_t bytes) {
  if (bytes == 0) return;
  Account& a = accounts_[device];
  const ring::MutexLock lock(a.mutex);
  change(device, a, a.taken - bytes);
}

std::uint64_t DeviceMemory::collect(unsigned device) {
  if (device >= accounts_.size()) return 0;
  Account& a = accounts_[device];
  const ring::MutexLock lock(a.mutex);
  if (a.reserved <= a.taken) return 0;
  const std::uint64_t unused = a.reserved - a.taken;
  a.reserved = a.taken;
  return unused;
}

std::optional<MemoryReserver::Headroom> DeviceMemory::headroom(unsigned device) {
  if (reserver_ == nullptr || device >= accounts_.size()) return std::nullopt;
  const ring::MutexLock one_at_a_time(asking_);
  auto headroom = reserver_->headroom(device);
  if (!headroom) return headroom;
  const Account& a = accounts_[device];
  const ring::MutexLock lock(a.mutex);
  if (a.reserved > a.taken) headroom->free += a.reserved - a.taken;
  return headroom;
}

std::uint64_t DeviceMemory::taken(unsigned device) const {
  const Account& a = accounts_[device];
  const ring::MutexLock lock(a.mutex);
  return a.taken;
}

}  // namespace host
