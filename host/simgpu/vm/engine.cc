// The engine: grids in execution, and the threads that run their blocks.
//
// The launching thread works on its own grid. Helper threads alternate between grids every few milliseconds, so that
// streams share the processors. At the end of its time slice, a cluster may be suspended in favour of a new or a
// waiting cluster. The number of started clusters is limited to those that a device could hold at once. Blocks that
// wait for each other therefore make progress.
//
// Lock order: Engine::Impl::mutex before Grid::mutex.
#include <xmmintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <list>
#include <new>
#include <system_error>
#include <thread>

#include "host/simgpu/vm/heap.h"
#include "host/simgpu/vm/state.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr std::uint64_t helper_turn = 2'000'000 * ticks_per_nanosecond;
constexpr std::size_t spare_clusters = 2;    // a worker caches this many clusters for the next grid
constexpr std::size_t workspace_size = 256;  // bytes for a cooperative grid's size and barrier
constexpr std::uint64_t max_resident_bytes = std::uint64_t{1} << 30;

std::uint64_t blocks_of(const Dim3& grid) { return std::uint64_t{grid.x} * grid.y * grid.z; }

bool divides(const Dim3& part, const Dim3& whole) {
  return part.x != 0 && part.y != 0 && part.z != 0 && whole.x % part.x == 0 && whole.y % part.y == 0 &&
         whole.z % part.z == 0;
}

// Returns the number of clusters that a device with this many multiprocessors holds at once.
std::uint64_t resident_clusters(const Grid& grid) {
  if (grid.launch.cooperative) return grid.total;
  const std::uint64_t threads = std::max(1U, grid.threads);
  const std::uint64_t bytes =
      threads * (grid.code->frame_bytes() / warp_size + grid.stack_bytes) + grid.shared_bytes + 4096;
  const std::uint64_t hardware = engine_multiprocessors * std::clamp<std::uint64_t>(1536 / threads, 1, 24);
  return std::max<std::uint64_t>(1, std::min(hardware, max_resident_bytes / bytes) / blocks_of(grid.cluster));
}

// Saves the caller's floating-point mode, which the interpreter changes, and restores it.
class ModeGuard {
 public:
  explicit ModeGuard(Worker& worker) : saved_(_mm_getcsr()) { worker.ctx.csr = saved_; }
  ~ModeGuard() { _mm_setcsr(saved_); }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  unsigned saved_;
};

bool has_work(Grid& grid) {
  if (grid.stopped.load(std::memory_order_relaxed)) return false;
  if (grid.started.load(std::memory_order_relaxed) < grid.total) return true;
  const ring::MutexLock lock(grid.mutex);
  return !grid.waiting.empty();
}

}  // namespace

struct Engine::Impl {
  Impl(AddressSpace& memory, unsigned count, std::function<void(std::string_view)> sink)
      : space(memory), print_sink(std::move(sink)), heap(memory) {
    if (count == 0) count = std::max(1U, std::thread::hardware_concurrency());
    missing = count - 1;
    try {
      for (; missing != 0; --missing) threads.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      // If the system refuses helper threads, the launching threads do all the work.
    }
  }

  ~Impl() {
    {
      const ring::MutexLock lock(mutex);
      closing = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<Worker> take_worker() {
    const ring::MutexLock lock(mutex);
    if (workers.empty()) return make_worker();
    std::unique_ptr<Worker> worker = std::move(workers.back());
    workers.pop_back();
    return worker;
  }

  std::unique_ptr<Worker> make_worker() {
    auto worker = std::make_unique<Worker>();
    worker->space = &space.impl();
    worker->ranges = std::make_shared<const RangeList>();
    worker->engine = this;
    return worker;
  }

  void return_worker(std::unique_ptr<Worker> worker) {
    const ring::MutexLock lock(mutex);
    workers.push_back(std::move(worker));
  }

  // Returns a cluster to run, or null: a new cluster while the grid may start more, else the one that has waited
  // longest.
  std::unique_ptr<Cluster> take_cluster(Worker& worker, Grid& grid, bool prefer_waiting) {
    {
      const ring::MutexLock lock(grid.mutex);
      const std::uint64_t resident =
          grid.started.load(std::memory_order_relaxed) - grid.finished.load(std::memory_order_relaxed);
      if (!grid.waiting.empty() && (prefer_waiting || resident >= grid.max_resident ||
                                    grid.started.load(std::memory_order_relaxed) >= grid.total)) {
        std::unique_ptr<Cluster> cluster = std::move(grid.waiting.front());
        grid.waiting.pop_front();
        return cluster;
      }
    }
    return begin(worker, grid);
  }

  static std::unique_ptr<Cluster> begin(Worker& worker, Grid& grid) {
    if (grid.started.load(std::memory_order_relaxed) >= grid.total) return nullptr;
    const std::uint64_t number = grid.started.fetch_add(1, std::memory_order_relaxed);
    if (number >= grid.total) return nullptr;
    std::unique_ptr<Cluster> cluster;
    if (worker.spare.empty()) {
      cluster = std::make_unique<Cluster>();
    } else {
      cluster = std::move(worker.spare.back());
      worker.spare.pop_back();
    }
    begin_cluster(*cluster, grid, number);
    return cluster;
  }

  // If the host has too little memory, the grid fails and the process continues.
  static void out_of_memory(Grid& grid) {
    const ring::MutexLock lock(grid.mutex);
    if (!grid.fault) {
      grid.fault = {CUDA_ERROR_OUT_OF_MEMORY, "kernel " + grid.code->name + ": the host has no memory for its threads"};
    }
    grid.stopped.store(true, std::memory_order_relaxed);
  }

  void serve(Worker& worker, Grid& grid, bool limited) {
    try {
      work_on(worker, grid, limited);
    } catch (const std::bad_alloc&) {
      out_of_memory(grid);
    }
    worker.textures.reset();
  }

  // Works on the grid until no cluster is left, or if `limited` until the time slice ends.
  void work_on(Worker& worker, Grid& grid, bool limited) {
    const ModeGuard mode(worker);
    const std::uint64_t end = device_clock() + helper_turn;
    bool paused = false;  // clusters are waiting, so continue one before starting the next
    while (!grid.stopped.load(std::memory_order_relaxed)) {
      std::unique_ptr<Cluster> cluster = paused || grid.started.load(std::memory_order_relaxed) >= grid.total
                                             ? take_cluster(worker, grid, paused)
                                             : begin(worker, grid);
      if (!cluster) break;
      const bool resumed = paused;
      if (run_cluster(worker, *cluster) == Outcome::Paused) {
        const ring::MutexLock lock(grid.mutex);
        grid.waiting.push_back(std::move(cluster));
        paused = !resumed;
      } else {
        grid.finished.fetch_add(1, std::memory_order_relaxed);
        if (worker.spare.size() < spare_clusters) worker.spare.push_back(std::move(cluster));
        paused = false;
      }
      if (limited && device_clock() > end) break;
    }
  }

  void help() {
    std::unique_ptr<Worker> worker = take_worker();
    ring::UniqueLock lock(mutex);
    for (;;) {
      Grid* grid = nullptr;
      wake.wait(lock.native(), [&]() REQUIRES(mutex) {
        grid = closing ? nullptr : next_grid();
        return closing || grid != nullptr;
      });
      if (closing) return;
      {
        const ring::MutexLock grid_lock(grid->mutex);
        ++grid->helpers;
      }
      lock.unlock();
      serve(*worker, *grid, true);
      {
        // This is the last access to the grid: its launcher may continue as soon as the lock is released.
        const ring::MutexLock grid_lock(grid->mutex);
        --grid->helpers;
        grid->done.notify_all();
      }
      lock.lock();
    }
  }

  // Returns the first grid that has work, and moves it to the end of the queue.
  Grid* next_grid() REQUIRES(mutex) {
    for (auto at = grids.begin(); at != grids.end(); ++at) {
      if (!has_work(**at)) continue;
      grids.splice(grids.end(), grids, at);
      return grids.back();
    }
    return nullptr;
  }

  void finish(Worker& worker, Grid& grid) {
    for (;;) {
      serve(worker, grid, false);
      ring::UniqueLock lock(grid.mutex);
      const auto stopped = [&] { return grid.stopped.load(std::memory_order_relaxed); };
      grid.done.wait(lock.native(),
                     [&]() REQUIRES(grid.mutex) { return grid.helpers == 0 || (!grid.waiting.empty() && !stopped()); });
      if (grid.helpers == 0 && (grid.waiting.empty() || stopped())) return;
    }
  }

  void run_grid(Grid& grid) {
    std::unique_ptr<Worker> worker = take_worker();
    const bool shared = grid.total > 1 && !threads.empty();
    if (shared) {
      const ring::MutexLock lock(mutex);
      grids.push_back(&grid);
    }
    if (shared) wake.notify_all();
    finish(*worker, grid);
    if (shared) {
      // A helper may have taken the grid again before the grid is removed from the queue.
      {
        const ring::MutexLock lock(mutex);
        grids.remove(&grid);
      }
      finish(*worker, grid);
    }
    return_worker(std::move(worker));
  }

  AddressSpace& space;
  std::function<void(std::string_view)> print_sink;
  ring::Mutex print_mutex;
  Heap heap;
  std::atomic<std::uint64_t> next_grid_id{1};

  ring::Mutex mutex;
  std::condition_variable wake;
  std::list<Grid*> grids GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Worker>> workers GUARDED_BY(mutex);
  bool closing GUARDED_BY(mutex) = false;
  std::vector<std::thread> threads;
  unsigned missing = 0;  // constant after construction
};

Engine::Engine(AddressSpace& space, unsigned workers, std::function<void(std::string_view)> print)
    : impl_(std::make_unique<Impl>(space, workers, std::move(print))) {}
Engine::~Engine() = default;

unsigned Engine::missing_workers() const { return impl_->missing; }

Fault Engine::run(const Launch& launch) {
  Grid grid;
  grid.launch = launch;
  grid.code = launch.function->code;
  grid.cluster = launch.cluster.value_or(Dim3{});
  if (!divides(grid.cluster, launch.grid)) {
    return {CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel " + grid.code->name + ": the grid is no multiple of the cluster"};
  }
  grid.clusters = {launch.grid.x / grid.cluster.x, launch.grid.y / grid.cluster.y, launch.grid.z / grid.cluster.z};
  grid.total = blocks_of(grid.clusters);
  const std::uint64_t threads = blocks_of(launch.block);
  if (grid.total == 0 || threads == 0 || threads > 1024) {
    return {CUDA_ERROR_INVALID_VALUE, "kernel " + grid.code->name + ": the size of the grid or block is out of range"};
  }
  if (launch.params.size() < grid.code->param_bytes) {
    return {CUDA_ERROR_INVALID_VALUE, "kernel " + grid.code->name + ": parameters are missing"};
  }
  grid.id = impl_->next_grid_id.fetch_add(1, std::memory_order_relaxed);
  grid.threads = static_cast<std::uint32_t>(threads);
  grid.dynamic_base = (grid.code->static_shared + 15) / 16 * 16;
  const std::size_t shared =
      launch.dynamic_shared == 0 ? grid.code->static_shared : grid.dynamic_base + launch.dynamic_shared;
  grid.shared_bytes = static_cast<std::uint32_t>(shared);
  grid.stack_bytes = grid.code->stack_bytes;
  if (grid.code->open_stack) grid.stack_bytes = std::max(grid.stack_bytes, launch.stack);
  grid.heap = launch.heap != nullptr ? launch.heap : &impl_->heap;
  grid.max_resident = resident_clusters(grid);
  if (launch.cooperative) {
    grid.workspace = impl_->space.allocate(workspace_size);
    if (grid.workspace == 0) return {CUDA_ERROR_OUT_OF_MEMORY, "no memory for a cooperative grid's barrier"};
    std::memset(reinterpret_cast<void*>(grid.workspace), 0, workspace_size);
    const std::uint32_t size = workspace_size;
    std::memcpy(reinterpret_cast<void*>(grid.workspace), &size, sizeof size);
  }
  impl_->run_grid(grid);
  if (grid.workspace != 0) impl_->space.free(grid.workspace);
  const ring::MutexLock lock(grid.mutex);
  return grid.fault;
}

void print(Ctx& c, const std::string& text) {
  Engine::Impl& engine = *c.worker->engine;
  const ring::MutexLock lock(engine.print_mutex);
  const std::function<void(std::string_view)>* const sink = c.block->grid->launch.print;
  if (sink != nullptr) return (*sink)(text);
  if (engine.print_sink) engine.print_sink(text);
}

std::uint64_t device_malloc(Ctx& c, std::uint64_t size) { return c.block->grid->heap->allocate(size); }

bool device_free(Ctx& c, std::uint64_t address) { return c.block->grid->heap->free(address); }

}  // namespace simgpu
