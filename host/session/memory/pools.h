// Counts the GPU memory of a session's memory pools in its account (device_memory.h).
//
// A pool reserves memory in pieces, serves allocations from them, and keeps freed memory as long as the driver likes.
// An allocation from a pool is therefore not counted itself; the pool counts as its reserved size. Before an allocation
// its maximum growth is charged, and afterwards the real growth. Allocations from pools run one at a time, because two
// concurrent allocations would each count the growth of both. A pool shrinks when the host waits, so a wait counts the
// pools again (refresh()).
//
// Thread-safety: any thread. Lock order: growing_; the lock of DeviceMemory's questions, under which trim() runs;
// mutex_; an account's mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "host/driver/driver.h"
#include "host/session/memory/device_memory.h"
#include "ring/base/mutex.h"

namespace host {

class Pools {
 public:
  Pools(const Driver& driver, DeviceMemory& memory) : driver_(driver), memory_(memory) {}
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  // An allocation of `bytes`. `device`: where the pool's memory is, if not known yet. `pool`: null if the driver
  // chooses the pool. `allocate` calls the driver, `undo` frees the allocation.
  struct Allocation {
    unsigned device;
    std::uint64_t bytes;
    CUmemoryPool pool;
  };
  struct Made {
    CUresult result = CUDA_SUCCESS;
    std::uint32_t number = 0;  // the pool's number, for ended(); 0: the driver does not report the pool
  };
  Made allocate(const Allocation& wanted, CUdeviceptr& at, const std::function<CUresult()>& allocate,
                const std::function<void()>& undo);
  // Records the end of an allocation from the pool with this number.
  void ended(std::uint32_t number);

  // Records a pool that the driver has made or reported. `device` has the pool's memory.
  void made(CUmemoryPool pool, unsigned device);
  void found(CUmemoryPool pool, unsigned device);
  // Ends a pool by `destroy`, which calls the driver. The pool's memory is freed with its last allocation. No other
  // thread queries the pool meanwhile.
  CUresult end(CUmemoryPool pool, const std::function<CUresult()>& destroy);

  // Counts the pools again, because a wait may have let them shrink.
  void refresh();
  // Makes a device's pools release all unused memory.
  void trim(unsigned device);

 private:
  struct Pool {
    CUmemoryPool handle = nullptr;
    unsigned device = 0;
    std::uint64_t counted = 0;  // bytes counted in the account
    std::uint64_t live = 0;     // number of allocations
    bool destroyed = false;
  };
  std::optional<std::uint64_t> asked(CUmemoryPool pool, CUmemPool_attribute which) const;
  std::optional<unsigned> known_device(CUmemoryPool pool);
  bool has_room(CUmemoryPool pool, std::uint64_t bytes) const;
  CUmemoryPool chosen(unsigned device) const;
  std::uint32_t add(CUmemoryPool pool, unsigned device) REQUIRES(mutex_);
  std::uint32_t number_of(CUmemoryPool pool, CUdeviceptr at, unsigned device);
  bool count_growth(std::uint32_t number, Charge& most);
  void recount(Pool& pool, std::uint64_t ahead) REQUIRES(mutex_);

  const Driver& driver_;
  DeviceMemory& memory_;
  ring::Mutex growing_ ACQUIRED_BEFORE(mutex_);
  ring::Mutex mutex_;
  std::map<std::uint32_t, Pool> pools_ GUARDED_BY(mutex_);  // keyed by number
  std::unordered_map<CUmemoryPool, std::uint32_t> numbers_ GUARDED_BY(mutex_);
  std::uint32_t next_ GUARDED_BY(mutex_) = 1;
  std::atomic<bool> any_{false};  // true if a pool may have memory
};

}  // namespace host
