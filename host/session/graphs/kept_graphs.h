// The graphs of kernels that a session's channels keep, so that a launch costs less than cuLaunchKernel
// (docs/design/055-launch-graphs.md): what all channels share. Each channel has a cache of its own graphs
// (host/untrusted/launches/graph_cache.h).
//
// A kept graph must not outlive its functions or its context. end_all() therefore ends the graphs of all channels
// before an unload, a reset or the end of a context. outdate() makes each channel end its graphs before the channel's
// next launch; it serves calls that change how later launches run.
//
// Thread-safety: any thread. Lock order: caches_mutex_; a cache's mutex; accounts_mutex_; an account's mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "host/session/memory/device_memory.h"
#include "ring/base/mutex.h"
#include "ring/layout/layout.h"
#include "ring/wire/worker_switches.h"

namespace host {

// A channel's cache. Its mutex guards it against end_all() on another channel.
class GraphCacheOfChannel {
 public:
  virtual ~GraphCacheOfChannel() = default;
  virtual void end_all() = 0;
};

class KeptGraphs {
 public:
  // The number of graphs that a session keeps at most.
  static constexpr std::uint32_t most = 128;
  // The device memory of one executable graph. Measured on an H200 with 128 and with 512 executables of one kernel.
  static constexpr std::uint64_t graph_bytes = 112 << 10;

  explicit KeptGraphs(DeviceMemory& memory) : memory_(memory) {}
  KeptGraphs(const KeptGraphs&) = delete;
  KeptGraphs& operator=(const KeptGraphs&) = delete;

  void add(GraphCacheOfChannel& cache) EXCLUDES(caches_mutex_);
  void remove(GraphCacheOfChannel& cache) EXCLUDES(caches_mutex_);
  // Precondition: the caller holds no cache's mutex.
  void end_all() EXCLUDES(caches_mutex_);

  // Graphs of an older generation must be ended before the next launch.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  void outdate() { generation_.fetch_add(1, std::memory_order_release); }
  // Keeps all later launches of the session out of graphs. Must be called for a call after which a graph may run a
  // kernel differently from cuLaunchKernel.
  void forbid() {
    forbidden_.store(true, std::memory_order_relaxed);
    outdate();
  }

  // The place and the memory of one graph.
  struct Place {
    unsigned device = 0;
    std::uint64_t era = 0;  // how often make_room() was called before
  };
  // Returns nothing if the session has too many graphs or too little memory.
  std::optional<Place> reserve(unsigned device) EXCLUDES(accounts_mutex_);
  void give_back(Place place) EXCLUDES(accounts_mutex_);
  // Gives up the memory of all graphs of a device. Called when the session finds no memory for the program. No graph is
  // reserved until the program has freed memory.
  void make_room(unsigned device) EXCLUDES(accounts_mutex_);

  void switch_off(std::uint64_t switches) { off_.fetch_or(switches, std::memory_order_relaxed); }
  bool may_use_graphs() const {
    return (off_.load(std::memory_order_relaxed) & ring::switch_launch_graphs) == 0 &&
           !forbidden_.load(std::memory_order_relaxed);
  }
  bool may_use_chains() const { return (off_.load(std::memory_order_relaxed) & ring::switch_launch_chains) == 0; }

  // A channel is busy from its first record until its ring is empty.
  void channel_is_busy() { busy_.fetch_add(1, std::memory_order_relaxed); }
  void channel_is_idle() { busy_.fetch_sub(1, std::memory_order_relaxed); }
  // Launches of graphs do not run side by side in the driver, unlike launches of kernels. Measured on an H200: of four
  // threads, a graph of one kernel costs 2.08 us and a kernel 1.73 us; of two threads, 2.38 us and 3.52 us.
  bool may_launch_single() const { return busy_.load(std::memory_order_relaxed) <= 2; }

  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  DeviceMemory& memory_;
  ring::Mutex caches_mutex_;
  std::vector<GraphCacheOfChannel*> caches_ GUARDED_BY(caches_mutex_);
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> off_{0};
  std::atomic<bool> forbidden_{false};
  std::atomic<std::uint32_t> busy_{0};
  std::atomic<std::uint32_t> count_{0};
  ring::Mutex accounts_mutex_;
  struct Account {
    std::uint64_t charged = 0;     // bytes of the graphs of this era
    std::uint64_t era = 0;         // how often make_room() was called
    std::uint64_t taken_full = 0;  // the session's bytes when make_room() was called last
  };
  std::array<Account, ring::max_devices> accounts_ GUARDED_BY(accounts_mutex_);
};

}  // namespace host
