// A cluster of blocks: its barrier, its shared memory, and the slices of its warps on one worker thread.
#include <algorithm>
#include <bit>
#include <utility>

#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/windows.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

// The time slice of a cluster on its worker. While the cluster computes, the clock limits the slice; while its warps
// wait, a number of warp slices does.
constexpr std::uint64_t visit = 2'000'000 * ticks_per_nanosecond;
constexpr unsigned waiting_slices = 8;

// Converts a number to a position. Numbers count along x first, then along y, then along z.
Dim3 unrolled(std::uint64_t number, const Dim3& size) {
  return {static_cast<std::uint32_t>(number % size.x), static_cast<std::uint32_t>(number / size.x % size.y),
          static_cast<std::uint32_t>(number / size.x / size.y)};
}

// Returns true if all live threads of the cluster have arrived. The function compares lanes instead of counts, since a
// thread may arrive and then exit.
bool complete(const Cluster& cluster) {
  if (cluster.arrived == 0) return false;
  for (const Block& block : cluster.blocks) {
    const Barrier& barrier = block.barriers[named_barriers];
    for (const Warp& warp : block.warps) {
      if ((warp.alive & ~barrier.lanes[warp.index]) != 0) return false;
    }
  }
  return true;
}

bool force_one(Cluster& cluster) {
  for (Block& block : cluster.blocks) {
    if (force_rendezvous(block)) return true;
  }
  return false;
}

void record_deadlock(Cluster& cluster) {
  const Block* waiting = &cluster.blocks.front();
  for (const Block& block : cluster.blocks) {
    if (block.alive != 0) waiting = &block;
  }
  Grid& grid = *waiting->grid;
  const ring::MutexLock lock(grid.mutex);
  if (!grid.fault) {
    grid.fault.code = CUDA_ERROR_LAUNCH_TIMEOUT;
    grid.fault.what = "kernel " + grid.code->name + ": the threads of block " + std::to_string(waiting->number) +
                      " wait at barriers that cannot be completed";
  }
  grid.stopped.store(true, std::memory_order_relaxed);
}

// Returns the next warp, cycling through the warps of all blocks.
std::pair<Block&, Warp&> next_warp(Cluster& cluster) {
  Block& block = cluster.blocks[cluster.next_block];
  Warp& warp = block.warps[block.next_warp];
  if (++block.next_warp == block.warps.size()) {
    block.next_warp = 0;
    if (++cluster.next_block == cluster.blocks.size()) cluster.next_block = 0;
  }
  return {block, warp};
}

// ---- instructions ---------------------------------------------------------------------------------------------------

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

const Ins* leave(Ctx& c, const Ins* i, Event event) {
  c.path->pc = static_cast<std::uint32_t>(i - c.code->body.data()) + 1;
  c.event = event;
  return c.stop;
}

// Records the arrival of the lanes, which continue and wait in a later instruction.
const Ins* arrive(Ctx& c, const Ins* i) {
  c.block->cluster->arrived += static_cast<std::uint32_t>(std::popcount(c.mask));
  c.block->barriers[named_barriers].lanes[c.warp->index] |= c.mask;
  leave(c, i, Event::Moved);
  check_cluster_barrier(*c.block->cluster);
  return c.stop;
}

// When all lanes have arrived, the barrier clears its arrivals; a lane without a recorded arrival therefore need not
// wait. Lanes of one path may have arrived for different phases: the lanes of the completed phase continue.
const Ins* wait(Ctx& c, const Ins* i) {
  const std::uint32_t waiting = c.block->barriers[named_barriers].lanes[c.warp->index] & c.mask;
  if (waiting == 0) return i + 1;
  leave(c, i, Event::Blocked);
  if (waiting != c.mask) {
    Path free = *c.path;
    free.mask = c.mask & ~waiting;
    add_path(*c.warp, free);
    c.path->mask = waiting;
  }
  c.path->state = PathState::Barrier;
  c.path->barrier = named_barriers;
  return c.stop;
}

// Ins::a holds addresses or offsets, Ins::b ranks. For the block's own rank the result is the plain address.
template <class T>
const Ins* map_address(Ctx& c, const Ins* i) {
  constexpr T rank_bits = T{most_rank_code} << rank_shift;
  const T* address = lanes<T>(c, i->a);
  const std::uint32_t* rank = lanes<std::uint32_t>(c, i->b);
  T* d = lanes<T>(c, i->d);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    // A rank that does not exist yields an invalid address.
    const std::uint32_t code = rank[l] == c.block->rank ? 0 : std::min(rank[l], most_rank_code - 1) + 1;
    d[l] = (address[l] & ~rank_bits) | T{code} << rank_shift;
  }
  return i + 1;
}

template <class T>
const Ins* rank_of(Ctx& c, const Ins* i) {
  const T* address = lanes<T>(c, i->a);
  std::uint32_t* d = lanes<std::uint32_t>(c, i->d);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const auto code = static_cast<std::uint32_t>(address[l] >> rank_shift & most_rank_code);
    d[l] = code == 0 ? c.block->rank : code - 1;
  }
  return i + 1;
}

template <const Ins* (*function)(Ctx&, const Ins*)>
Handlers one() {
  return {function, function};
}

}  // namespace

Handlers cluster_arrive_handler() { return one<&arrive>(); }
Handlers cluster_wait_handler() { return one<&wait>(); }
Handlers map_address_handler(bool wide) {
  return wide ? one<&map_address<std::uint64_t>>() : one<&map_address<std::uint32_t>>();
}
Handlers rank_of_handler(bool wide) { return wide ? one<&rank_of<std::uint64_t>>() : one<&rank_of<std::uint32_t>>(); }

std::uint64_t in_cluster(const Cluster& cluster, std::uint64_t offset, std::uint32_t bytes) {
  const std::uint64_t code = offset >> rank_shift;
  if (code == 0 || code > cluster.blocks.size()) return 0;
  const Block& block = cluster.blocks[code - 1];
  const std::uint64_t inside = offset & ((std::uint64_t{1} << rank_shift) - 1);
  const std::uint64_t size = block.grid->shared_bytes;
  if (block.alive == 0 || size < bytes || inside > size - bytes) return 0;
  return reinterpret_cast<std::uint64_t>(block.shared.data()->bytes) + inside;
}

void check_cluster_barrier(Cluster& cluster) {
  if (!complete(cluster)) return;
  cluster.arrived = 0;
  for (Block& block : cluster.blocks) release_barrier(block, named_barriers);
}

void begin_cluster(Cluster& cluster, Grid& grid, std::uint64_t number) {
  cluster.index = unrolled(number, grid.clusters);
  cluster.blocks.resize(std::size_t{grid.cluster.x} * grid.cluster.y * grid.cluster.z);
  cluster.alive = grid.threads * static_cast<std::uint32_t>(cluster.blocks.size());
  cluster.arrived = 0;
  cluster.next_block = 0;
  for (std::uint32_t rank = 0; rank < cluster.blocks.size(); ++rank) {
    Block& block = cluster.blocks[rank];
    const Dim3 inside = unrolled(rank, grid.cluster);
    block.cluster = &cluster;
    block.rank = rank;
    block.index = {cluster.index.x * grid.cluster.x + inside.x, cluster.index.y * grid.cluster.y + inside.y,
                   cluster.index.z * grid.cluster.z + inside.z};
    begin_block(block, grid);
  }
}

Outcome run_cluster(Worker& worker, Cluster& cluster) {
  Grid& grid = *cluster.blocks.front().grid;
  Ctx& c = worker.ctx;
  refresh_ranges(worker);
  c.worker = &worker;
  c.code = nullptr;
  c.spaces[space_param] = {const_cast<std::byte*>(grid.launch.params.data()), grid.launch.params.size(), 0};
  const std::size_t warps = cluster.blocks.size() * cluster.blocks.front().warps.size();
  const std::uint64_t end = device_clock() + visit;
  unsigned waited = 0;
  std::size_t idle = 0;  // consecutive warps that had no path to run
  while (cluster.alive != 0) {
    if (grid.stopped.load(std::memory_order_relaxed)) return Outcome::Done;
    const auto [block, warp] = next_warp(cluster);
    if (run_warp(worker, block, warp)) {
      idle = 0;
      if (c.event == Event::Fault) return Outcome::Done;
      if (c.event != Event::Slice) continue;
      if (c.sync_uses != 0 && ++waited == waiting_slices) return Outcome::Paused;
      if (device_clock() > end) return Outcome::Paused;
    } else if (++idle >= warps) {
      if (!force_one(cluster)) {
        record_deadlock(cluster);
        return Outcome::Done;
      }
      idle = 0;
    }
  }
  return Outcome::Done;
}

}  // namespace simgpu
