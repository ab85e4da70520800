// The pool allocates first-fit in chunks. Between two allocations it leaves a gap, so that overruns are detected.
#include "host/simgpu/api/memory/memory_pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "host/simgpu/api/driver.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr std::size_t granule = 512, gap = 512;
constexpr std::size_t least_chunk = std::size_t{32} << 20;  // NVIDIA's driver reserves this much for the first byte

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

// The number of chunks without allocations in all pools; if 0, a wait of the host skips trimming.
std::atomic<std::size_t> unused_chunks{0};

}  // namespace

MemoryPool::~MemoryPool() {
  const ring::MutexLock lock(mutex_);
  trim_locked(0);
}

Address MemoryPool::allocate(std::size_t size, const std::shared_ptr<Stream>& stream, Ticket& after) {
  if (size > device_.space.capacity()) return 0;
  const ring::MutexLock lock(mutex_);
  Address start = reuse(size, stream, after);
  if (start == 0) {
    start = room_for(size);
    if (start != 0) device_.space.add({.start = start, .size = size});
  }
  if (start == 0) return 0;
  used_ += size;
  used_high_ = std::max(used_high_, used_);
  return start;
}

// Reuses memory whose free has not executed: at once in the same stream, and after the free in another stream.
Address MemoryPool::reuse(std::size_t size, const std::shared_ptr<Stream>& stream, Ticket& after) {
  const auto fits = [&](const auto& l) { return l->size == size && !l->taken && l->ticket != nullptr; };
  auto found =
      std::find_if(leaving_.begin(), leaving_.end(), [&](const auto& l) { return fits(l) && l->stream == stream; });
  if (found == leaving_.end() && reuse_[2] != 0) {
    found = std::find_if(leaving_.begin(), leaving_.end(), fits);
    if (found != leaving_.end()) after = (*found)->ticket;
  }
  if (found == leaving_.end()) return 0;
  (*found)->taken = true;
  device_.space.set_leaving((*found)->start, false);
  return (*found)->start;
}

Address MemoryPool::room_for(std::size_t size) {
  for (auto& [start, chunk] : chunks_)
    if (const Address room = room_in(chunk, size); room != 0) return room;
  // If a whole chunk does not fit on a small device, a chunk of the exact size may fit.
  if (!add_chunk(round_up(size, least_chunk)) && !add_chunk(round_up(size, granule))) return 0;
  for (auto& [start, chunk] : chunks_)
    if (const Address room = room_in(chunk, size); room != 0) return room;
  return 0;
}

bool MemoryPool::add_chunk(std::size_t size) {
  const std::size_t most = round_up(properties_.maxSize, least_chunk);
  if (most != 0 && (reserved_ > most || size > most - reserved_)) return false;
  const Address start = device_.space.claim(size);
  if (start == 0) return false;
  chunks_[start] = {.size = size, .holes = {{start, size + gap}}};
  unused_chunks.fetch_add(1, std::memory_order_relaxed);
  reserved_ += size;
  reserved_high_ = std::max(reserved_high_, reserved_);
  return true;
}

Address MemoryPool::room_in(Chunk& chunk, std::size_t size) {
  const std::size_t wanted = round_up(size, granule) + gap;
  for (auto hole = chunk.holes.begin(); hole != chunk.holes.end(); ++hole) {
    const auto [start, bytes] = *hole;
    if (bytes < wanted) continue;
    if (bytes == chunk.size + gap) unused_chunks.fetch_sub(1, std::memory_order_relaxed);
    chunk.holes.erase(hole);
    if (bytes > wanted) chunk.holes[start + wanted] = bytes - wanted;
    return start;
  }
  return 0;
}

void MemoryPool::put_back(Address start, std::size_t size) {
  device_.space.remove(start);
  Chunk& chunk = std::prev(chunks_.upper_bound(start))->second;
  std::size_t bytes = round_up(size, granule) + gap;
  auto after = chunk.holes.lower_bound(start);
  if (after != chunk.holes.end() && after->first == start + bytes) {
    bytes += after->second;
    after = chunk.holes.erase(after);
  }
  if (after != chunk.holes.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
    }
  }
  chunk.holes[start] = bytes;
  if (bytes == chunk.size + gap) unused_chunks.fetch_add(1, std::memory_order_relaxed);
}

void MemoryPool::free(Address start, std::size_t size) {
  const ring::MutexLock lock(mutex_);
  used_ -= size;
  put_back(start, size);
}

std::shared_ptr<Leaving> MemoryPool::leave(Address start, std::size_t size, const std::shared_ptr<Stream>& stream) {
  auto leaving = std::make_shared<Leaving>();
  leaving->start = start;
  leaving->size = size;
  leaving->stream = stream;
  const ring::MutexLock lock(mutex_);
  device_.space.set_leaving(start, true);
  used_ -= size;
  leaving_.push_back(leaving);
  return leaving;
}

void MemoryPool::set_ticket(Leaving& leaving, const Ticket& ticket) {
  const ring::MutexLock lock(mutex_);
  if (!leaving.over) leaving.ticket = ticket;
}

void MemoryPool::leave_now(const std::shared_ptr<Leaving>& leaving) {
  const ring::MutexLock lock(mutex_);
  leaving->over = true;
  leaving->ticket = nullptr;
  std::erase(leaving_, leaving);
  if (!leaving->taken) put_back(leaving->start, leaving->size);
}

bool MemoryPool::awaits_frees() {
  const ring::MutexLock lock(mutex_);
  return !leaving_.empty();
}

std::pair<Address, std::size_t> MemoryPool::chunk_of(Address inside) {
  const ring::MutexLock lock(mutex_);
  const auto after = chunks_.upper_bound(inside);
  if (after == chunks_.begin()) return {0, 0};
  const auto& [start, chunk] = *std::prev(after);
  return {start, chunk.size};
}

void MemoryPool::trim(std::size_t keep) {
  const ring::MutexLock lock(mutex_);
  trim_locked(keep);
}

void MemoryPool::trim_to_threshold() {
  const ring::MutexLock lock(mutex_);
  trim_locked(release_threshold_);
}

void MemoryPool::trim_locked(std::size_t keep) {
  for (auto at = chunks_.begin(); at != chunks_.end() && reserved_ > keep;) {
    const auto& [start, chunk] = *at;
    const bool unused = chunk.holes.size() == 1 && chunk.holes.begin()->second == chunk.size + gap;
    if (!unused) {
      ++at;
      continue;
    }
    device_.space.give_back_claim(start, chunk.size);
    reserved_ -= chunk.size;
    unused_chunks.fetch_sub(1, std::memory_order_relaxed);
    at = chunks_.erase(at);
  }
}

CUresult MemoryPool::attribute(CUmemPool_attribute which, void* value) {
  const ring::MutexLock lock(mutex_);
  const auto put = [&](const auto& found) {
    std::memcpy(value, &found, sizeof found);
    return CUDA_SUCCESS;
  };
  switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return put(reuse_[0]);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return put(reuse_[1]);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return put(reuse_[2]);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return put(release_threshold_);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return put(reserved_);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return put(reserved_high_);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return put(used_);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return put(used_high_);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult MemoryPool::set_attribute(CUmemPool_attribute which, const void* value) {
  const ring::MutexLock lock(mutex_);
  const auto set_reuse = [&](int& field) {
    int given = 0;
    std::memcpy(&given, value, sizeof given);
    field = given != 0 ? 1 : 0;
    return CUDA_SUCCESS;
  };
  const auto set_back = [&](std::uint64_t& high, std::uint64_t current) {
    std::uint64_t given = 0;
    std::memcpy(&given, value, sizeof given);
    if (given != 0) return CUDA_ERROR_INVALID_VALUE;
    high = current;
    return CUDA_SUCCESS;
  };
  switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return set_reuse(reuse_[0]);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return set_reuse(reuse_[1]);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return set_reuse(reuse_[2]);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      std::memcpy(&release_threshold_, value, sizeof release_threshold_);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return set_back(reserved_high_, reserved_);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return set_back(used_high_, used_);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

std::shared_ptr<MemoryPool> make_pool(Driver& driver, Device& device, const CUmemPoolProps& properties) {
  auto pool = std::make_shared<MemoryPool>(device, properties);
  pool->handle = driver.pools.insert(pool);
  return pool;
}

void trim_pools(Driver& driver) {
  if (unused_chunks.load(std::memory_order_relaxed) == 0) return;
  for (const auto& pool : driver.pools.all()) pool->trim_to_threshold();
}

}  // namespace simgpu
