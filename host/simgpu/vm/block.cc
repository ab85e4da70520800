// A block of threads: its memory, its barriers and its warps.
#include <algorithm>
#include <bit>

#include "host/simgpu/vm/state.h"

namespace simgpu {
namespace {

std::size_t lines(std::size_t bytes) { return (bytes + sizeof(Lanes64) - 1) / sizeof(Lanes64); }

void make_room(Block& block, const Grid& grid) {
  const std::size_t warps = (grid.threads + warp_size - 1) / warp_size;
  if (block.warps.size() != warps) block.warps = std::vector<Warp>(warps);
  const std::size_t registers = warps * lines(grid.code->frame_bytes());
  if (block.registers.size() < registers) block.registers.resize(registers);
  const std::size_t shared = lines(grid.shared_bytes) + 1;
  if (block.shared.size() < shared) block.shared.resize(shared);
  const std::size_t local = warps * warp_size * std::size_t{grid.stack_bytes};
  if (block.local_size < local) {
    block.local = std::make_unique_for_overwrite<std::byte[]>(local);
    block.local_size = local;
  }
}

template <class F>
void fill(std::byte* registers, const SpecialPlace& place, F value) {
  if (place.wide) {
    auto* const lanes = reinterpret_cast<std::uint64_t*>(registers + place.place);
    for (unsigned l = 0; l < warp_size; ++l) lanes[l] = value(l);
  } else {
    auto* const lanes = reinterpret_cast<std::uint32_t*>(registers + place.place);
    for (unsigned l = 0; l < warp_size; ++l) lanes[l] = static_cast<std::uint32_t>(value(l));
  }
}

std::uint64_t multiprocessor_of(const Block& block) {
  const Launch& launch = block.grid->launch;
  const std::uint64_t count = launch.multiprocessors == 0 ? engine_multiprocessors : launch.multiprocessors;
  return launch.first_multiprocessor + block.number % count;
}

// Returns the value of a special register that is equal for all lanes of a warp.
std::uint64_t uniform_value(const Block& block, const Warp& warp, Special which) {
  const Grid& grid = *block.grid;
  switch (which) {
    case Special::NtidX: return grid.launch.block.x;
    case Special::NtidY: return grid.launch.block.y;
    case Special::NtidZ: return grid.launch.block.z;
    case Special::CtaidX: return block.index.x;
    case Special::CtaidY: return block.index.y;
    case Special::CtaidZ: return block.index.z;
    case Special::NctaidX: return grid.launch.grid.x;
    case Special::NctaidY: return grid.launch.grid.y;
    case Special::NctaidZ: return grid.launch.grid.z;
    case Special::WarpId: return warp.index;
    case Special::NwarpId: return 1024 / warp_size;
    case Special::SmId: return multiprocessor_of(block);
    case Special::NsmId: return engine_multiprocessors;
    case Special::GridId: return grid.id;
    case Special::DynamicShared: return grid.launch.dynamic_shared;
    case Special::DynamicBase: return grid.dynamic_base;
    case Special::TotalShared: return grid.shared_bytes;
    case Special::EnvReg1: return grid.workspace >> 32;
    case Special::EnvReg2: return grid.workspace & 0xffff'ffff;
    case Special::ClusterIdX: return block.cluster->index.x;
    case Special::ClusterIdY: return block.cluster->index.y;
    case Special::ClusterIdZ: return block.cluster->index.z;
    case Special::NclusterIdX: return grid.clusters.x;
    case Special::NclusterIdY: return grid.clusters.y;
    case Special::NclusterIdZ: return grid.clusters.z;
    case Special::ClusterCtaidX: return block.index.x % grid.cluster.x;
    case Special::ClusterCtaidY: return block.index.y % grid.cluster.y;
    case Special::ClusterCtaidZ: return block.index.z % grid.cluster.z;
    case Special::ClusterNctaidX: return grid.cluster.x;
    case Special::ClusterNctaidY: return grid.cluster.y;
    case Special::ClusterNctaidZ: return grid.cluster.z;
    case Special::ClusterCtarank: return block.rank;
    case Special::ClusterNctarank: return block.cluster->blocks.size();
    case Special::IsExplicitCluster: return grid.launch.cluster.has_value();
    default: return 0;
  }
}

// Computes the thread index along one axis by counting up from the warp's first thread. This avoids divisions in blocks
// of many small warps.
void fill_index(const Block& block, const Warp& warp, const SpecialPlace& place, std::byte* registers) {
  const Dim3& size = block.grid->launch.block;
  const std::uint32_t first = warp.index * warp_size;
  Dim3 at{first % size.x, first / size.x % size.y, first / size.x / size.y};
  fill(registers, place, [&](unsigned) {
    const std::uint32_t value = place.which == Special::TidX ? at.x : place.which == Special::TidY ? at.y : at.z;
    if (++at.x == size.x) {
      at.x = 0;
      if (++at.y == size.y) {
        at.y = 0;
        ++at.z;
      }
    }
    return value;
  });
}

void fill_special(const Block& block, const Warp& warp, const SpecialPlace& place, std::byte* registers) {
  switch (place.which) {
    case Special::TidX:
    case Special::TidY:
    case Special::TidZ: return fill_index(block, warp, place, registers);
    case Special::LaneId: return fill(registers, place, [](unsigned l) { return l; });
    case Special::MaskEq: return fill(registers, place, [](unsigned l) { return 1U << l; });
    case Special::MaskLt: return fill(registers, place, [](unsigned l) { return (1U << l) - 1; });
    case Special::MaskLe: return fill(registers, place, [](unsigned l) { return (2U << l) - 1; });
    case Special::MaskGt: return fill(registers, place, [](unsigned l) { return ~((2U << l) - 1); });
    case Special::MaskGe: return fill(registers, place, [](unsigned l) { return ~((1U << l) - 1); });
    default: break;
  }
  const std::uint64_t value = uniform_value(block, warp, place.which);
  fill(registers, place, [value](unsigned) { return value; });
}

void begin_warp(Block& block, Warp& warp, std::uint32_t index) {
  const Grid& grid = *block.grid;
  const std::uint32_t threads = std::min(grid.threads - index * warp_size, warp_size);
  warp.index = index;
  warp.alive = threads == warp_size ? ~0U : (1U << threads) - 1;
  warp.turn = 0;
  warp.idle_slices = 0;
  warp.rotate = false;
  warp.forced = false;
  warp.root = Frame{};
  warp.root.code = grid.code;
  warp.root.lanes = warp.alive;
  warp.stack_tops.fill(grid.stack_bytes);
  warp.root.registers = reinterpret_cast<std::byte*>(block.registers.data() + index * lines(grid.code->frame_bytes()));
  warp.path_count = 0;
  add_path(warp, Path{warp.alive, 0, &warp.root, PathState::Ready, 0, 0});
  fill_specials(block, warp, *grid.code, warp.root.registers);
}

// Returns true if a barrier is complete. A barrier with a thread count counts whole warps: for an arrived warp, exited
// and missing lanes count as well.
bool complete(const Block& block, const Barrier& barrier) {
  if (barrier.arrived == 0) return false;
  if (barrier.expected == 0) return barrier.arrived >= block.alive;
  std::uint32_t count = 0;
  for (const Warp& warp : block.warps) {
    const std::uint32_t lanes = barrier.lanes[warp.index];
    if (lanes != 0) count += static_cast<std::uint32_t>(std::popcount(lanes | ~warp.alive));
  }
  return count >= barrier.expected;
}

// Writes the result of bar.red to every lane that waited.
void write_result(const Path& path, const Ins* i, const Barrier& barrier) {
  if (i->count < 2) return;
  std::byte* const place = path.frame->registers + i->d;
  const bool all = barrier.votes == barrier.voters;
  std::uint32_t* const words = reinterpret_cast<std::uint32_t*>(place);
  if (i->count == 2) {
    for (std::uint32_t left = path.mask; left != 0; left &= left - 1) words[std::countr_zero(left)] = barrier.votes;
  } else {
    const bool value = i->count == 3 ? all : barrier.votes != 0;
    *words = (*words & ~path.mask) | (value ? path.mask : 0);
  }
}

}  // namespace

void release_barrier(Block& block, std::uint8_t id) {
  const Barrier barrier = block.barriers[id];
  block.barriers[id] = Barrier{};
  for (Warp& warp : block.warps) {
    for (std::uint32_t k = 0; k < warp.path_count; ++k) {
      Path& path = warp.paths[k];
      if (path.state != PathState::Barrier || path.barrier != id || path.mask == 0) continue;
      write_result(path, &path.frame->code->body[path.pc - 1], barrier);
      path.state = PathState::Ready;
    }
    if (warp.path_count > 1) merge_paths(warp);
  }
}

bool force_rendezvous(Block& block) {
  for (Warp& warp : block.warps) {
    for (std::uint32_t k = 0; k < warp.path_count; ++k) {
      if (warp.paths[k].state != PathState::Rendezvous) continue;
      warp.paths[k].state = PathState::Ready;
      warp.forced = true;
      return true;
    }
  }
  return false;
}

void fill_specials(const Block& block, const Warp& warp, const Code& code, std::byte* registers) {
  for (const SpecialPlace& place : code.specials) fill_special(block, warp, place, registers);
}

void begin_block(Block& block, Grid& grid) {
  block.grid = &grid;
  const Dim3& size = grid.launch.grid;
  block.number = block.index.x + std::uint64_t{size.x} * (block.index.y + std::uint64_t{size.y} * block.index.z);
  block.alive = grid.threads;
  block.barriers.fill(Barrier{});
  block.next_warp = 0;
  block.free_frames.clear();
  block.frames.clear();
  make_room(block, grid);
  for (std::uint32_t k = 0; k < block.warps.size(); ++k) begin_warp(block, block.warps[k], k);
}

void check_barriers(Block& block) {
  for (std::uint8_t id = 0; id < named_barriers; ++id) {
    if (complete(block, block.barriers[id])) release_barrier(block, id);
  }
}

void end_threads(Ctx& c, std::uint32_t mask) {
  Warp& warp = *c.warp;
  Block& block = *c.block;
  warp.alive &= ~mask;
  block.alive -= static_cast<std::uint32_t>(std::popcount(mask));
  block.cluster->alive -= static_cast<std::uint32_t>(std::popcount(mask));
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    if (warp.paths[k].state == PathState::Rendezvous) warp.paths[k].state = PathState::Ready;
  }
  check_barriers(block);
  check_cluster_barrier(*block.cluster);
}

}  // namespace simgpu
