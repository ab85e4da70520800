// What a session's memory pools hold of its GPUs' memory, counted in the session's account (device_memory.h).
//
// A pool takes memory in pieces, gives allocations out of them, and keeps what is freed as long as the driver likes. So
// an allocation from a pool counts nothing: the pool counts as much as the driver says that it reserves. Before an
// allocation the most that it can make the pool grow is counted, and after it what the pool has become. One allocation of
// a session grows pools at a time, or two that count at once would each count the other's growth. A pool shrinks in a wait
// of the host, so waits look again (refresh()).
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "host/driver/driver.h"
#include "host/session/memory/device_memory.h"

namespace host {

class Pools {
 public:
  Pools(const Driver& driver, DeviceMemory& memory) : driver_(driver), memory_(memory) {}
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  // Makes an allocation of `bytes`. `device`: where the pool's memory lies, unless it is known already. `pool`: null for
  // the one that the driver chooses. `allocate` calls the driver, `undo` gives its allocation back.
  struct Allocation {
    unsigned device;
    std::uint64_t bytes;
    CUmemoryPool pool;
  };
  struct Made {
    CUresult result = CUDA_SUCCESS;
    std::uint32_t number = 0;  // the pool's, for ended(); 0: the driver does not say which it is
  };
  Made allocate(const Allocation& wanted, CUdeviceptr& at, const std::function<CUresult()>& allocate,
                const std::function<void()>& undo);
  // An allocation from the pool with this number has ended.
  void ended(std::uint32_t number);

  // The driver has made a pool, which has its memory on that device, or has named one that it had.
  void made(CUmemoryPool pool, unsigned device);
  void found(CUmemoryPool pool, unsigned device);
  // Ends one by `destroy`, which calls the driver. Its memory goes with the last allocation from it. Nobody asks the driver
  // about it meanwhile.
  CUresult end(CUmemoryPool pool, const std::function<CUresult()>& destroy);

  // Counts again what the pools hold, where a wait may have let them give memory back.
  void refresh();
  // Has the pools of a device give back all that they can do without.
  void trim(unsigned device);

 private:
  struct Pool {
    CUmemoryPool handle = nullptr;
    unsigned device = 0;
    std::uint64_t counted = 0;  // bytes in the account
    std::uint64_t live = 0;     // allocations
    bool destroyed = false;
  };
  std::optional<std::uint64_t> asked(CUmemoryPool pool, CUmemPool_attribute which) const;
  std::optional<unsigned> known_device(CUmemoryPool pool);
  bool has_room(CUmemoryPool pool, std::uint64_t bytes) const;
  CUmemoryPool chosen(unsigned device) const;
  std::uint32_t add(CUmemoryPool pool, unsigned device);
  std::uint32_t number_of(CUmemoryPool pool, CUdeviceptr at, unsigned device);
  bool count_growth(std::uint32_t number, Charge& most);
  void recount(Pool& pool, std::uint64_t ahead);

  const Driver& driver_;
  DeviceMemory& memory_;
  std::mutex growing_;                   // taken before mutex_
  std::mutex mutex_;                     // for the members below
  std::map<std::uint32_t, Pool> pools_;  // by number
  std::unordered_map<CUmemoryPool, std::uint32_t> numbers_;
  std::uint32_t next_ = 1;
  std::atomic<bool> any_{false};  // a pool that may have memory
};

}  // namespace host
