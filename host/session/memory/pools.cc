#include "host/session/memory/pools.h"

#include "ring/base/mutex.h"

namespace host {
namespace {

// An H200's driver reserves this much for a pool's first byte (docs/design/022-memory-asked-first.md).
constexpr std::uint64_t piece = std::uint64_t{32} << 20;

std::uint64_t most_growth(std::uint64_t bytes) {
  return bytes > ~std::uint64_t{0} - piece ? bytes : (bytes + piece - 1) / piece * piece;
}

}  // namespace

std::optional<std::uint64_t> Pools::asked(CUmemoryPool pool, CUmemPool_attribute which) const {
  cuuint64_t value = 0;
  if (pool == nullptr || driver_.cuMemPoolGetAttribute == nullptr ||
      driver_.cuMemPoolGetAttribute(pool, which, &value) != CUDA_SUCCESS)
    return std::nullopt;
  return value;
}

// ---- an allocation -------------------------------------------------------------------------------------------------

Pools::Made Pools::allocate(const Allocation& wanted, CUdeviceptr& at, const std::function<CUresult()>& allocate,
                            const std::function<void()>& undo) {
  const ring::MutexLock one_at_a_time(growing_);
  const unsigned device = known_device(wanted.pool).value_or(wanted.device);
  Charge most;
  // If the charge fails but the pool has space, tries the allocation anyway, and undoes the allocation if the pool
  // grows.
  if (!most.take(memory_, device, most_growth(wanted.bytes)) &&
      !has_room(wanted.pool != nullptr ? wanted.pool : chosen(device), wanted.bytes))
    return {CUDA_ERROR_OUT_OF_MEMORY, 0};
  if (const CUresult result = allocate(); result != CUDA_SUCCESS) return {result, 0};
  if (at == 0) return {};  // an allocation of no bytes
  const std::uint32_t number = number_of(wanted.pool, at, device);
  if (number == 0 || count_growth(number, most)) return {CUDA_SUCCESS, number};
  undo();
  return {CUDA_ERROR_OUT_OF_MEMORY, 0};
}

std::optional<unsigned> Pools::known_device(CUmemoryPool pool) {
  const ring::MutexLock lock(mutex_);
  const auto known = numbers_.find(pool);
  return known == numbers_.end() ? std::nullopt : std::optional(pools_.at(known->second).device);
}

bool Pools::has_room(CUmemoryPool pool, std::uint64_t bytes) const {
  const auto reserved = asked(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  const auto used = asked(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  return reserved && used && *used <= *reserved && bytes <= *reserved - *used;
}

CUmemoryPool Pools::chosen(unsigned device) const {
  CUmemoryPool pool = nullptr;
  CUdevice handle = 0;
  if (driver_.cuDeviceGetMemPool == nullptr || driver_.cuDeviceGet(&handle, static_cast<int>(device)) != CUDA_SUCCESS ||
      driver_.cuDeviceGetMemPool(&pool, handle) != CUDA_SUCCESS)
    return nullptr;
  return pool;
}

// Returns the number of the allocation's pool, and counts the allocation in this pool. Returns 0 if the driver does not
// report the pool.
std::uint32_t Pools::number_of(CUmemoryPool pool, CUdeviceptr at, unsigned device) {
  const auto ask = driver_.cuPointerGetAttribute;
  if (pool == nullptr &&
      (ask == nullptr || ask(static_cast<void*>(&pool), CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at) != CUDA_SUCCESS))
    pool = chosen(device);
  if (pool == nullptr) return 0;
  const ring::MutexLock lock(mutex_);
  std::uint32_t& number = numbers_[pool];
  if (number == 0) {  // the pool belongs to the driver
    int ordinal = -1;
    const bool answered = ask != nullptr && ask(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) == CUDA_SUCCESS;
    number = add(pool, answered && ordinal >= 0 ? static_cast<unsigned>(ordinal) : device);
  }
  any_.store(true, std::memory_order_relaxed);
  ++pools_[number].live;
  return number;
}

// Replaces the charge for the maximum growth by the pool's real size. Returns false if the real size does not fit: the
// caller must undo the allocation, and until the pool shrinks the session exceeds its limit.
bool Pools::count_growth(std::uint32_t number, Charge& most) {
  ring::UniqueLock lock(mutex_);
  Pool& pool = pools_[number];  // the pool cannot be removed meanwhile, because it has an allocation
  const std::uint64_t reserved = asked(pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT).value_or(pool.counted);
  const std::uint64_t grown = reserved > pool.counted ? reserved - pool.counted : 0;
  if (pool.device == most.device() && grown <= most.bytes()) {
    recount(pool, most.hand_over());
    return true;
  }
  most.let_go();
  lock.unlock();  // unlocks first, because take() may trim the pools
  Charge more;
  const bool there = more.take(memory_, pool.device, grown);
  lock.lock();
  recount(pool, more.hand_over());
  if (!there) --pool.live;
  return there;
}

void Pools::ended(std::uint32_t number) {
  if (number == 0) return;
  const ring::MutexLock lock(mutex_);
  const auto at = pools_.find(number);
  if (at == pools_.end() || at->second.live == 0) return;
  Pool& pool = at->second;
  if (--pool.live != 0 || !pool.destroyed) return;
  memory_.give_back(pool.device, pool.counted);
  pools_.erase(at);
}

// Assigns a number to a new pool.
std::uint32_t Pools::add(CUmemoryPool pool, unsigned device) {
  pools_[next_] = {.handle = pool, .device = device};
  return next_++;
}

// ---- pools ---------------------------------------------------------------------------------------------------------

void Pools::made(CUmemoryPool pool, unsigned device) {
  const ring::MutexLock lock(mutex_);
  numbers_[pool] = add(pool, device);
  any_.store(true, std::memory_order_relaxed);
}

void Pools::found(CUmemoryPool pool, unsigned device) {
  const ring::MutexLock lock(mutex_);
  std::uint32_t& number = numbers_[pool];
  if (number == 0) number = add(pool, device);
}

CUresult Pools::end(CUmemoryPool pool, const std::function<CUresult()>& destroy) {
  const ring::MutexLock lock(mutex_);
  const CUresult result = destroy();
  const auto known = numbers_.find(pool);
  if (result != CUDA_SUCCESS || known == numbers_.end()) return result;
  const auto at = pools_.find(known->second);
  numbers_.erase(known);
  at->second.destroyed = true;
  if (at->second.live != 0) return result;
  memory_.give_back(at->second.device, at->second.counted);
  pools_.erase(at);
  return result;
}

// Counts a pool again. `ahead`: bytes already charged for the pool beyond `counted`.
void Pools::recount(Pool& pool, std::uint64_t ahead) {
  const std::uint64_t before = pool.counted + ahead;
  if (!pool.destroyed)  // the driver does not know a destroyed pool
    pool.counted = asked(pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT).value_or(pool.counted);
  if (pool.counted > before) memory_.take_anyway(pool.device, pool.counted - before);
  if (pool.counted < before) memory_.give_back(pool.device, before - pool.counted);
}

void Pools::refresh() {
  if (!any_.load(std::memory_order_relaxed)) return;
  const ring::MutexLock lock(mutex_);
  for (auto& [number, pool] : pools_)
    if (pool.counted != 0) recount(pool, 0);
}

void Pools::trim(unsigned device) {
  if (!any_.load(std::memory_order_relaxed)) return;
  const ring::MutexLock lock(mutex_);
  for (auto& [number, pool] : pools_) {
    if (pool.device != device || pool.counted == 0 || pool.destroyed) continue;
    if (driver_.cuMemPoolTrimTo != nullptr) driver_.cuMemPoolTrimTo(pool.handle, 0);
    recount(pool, 0);
  }
}

}  // namespace host
