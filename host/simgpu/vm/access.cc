#include "host/simgpu/vm/access.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "host/simgpu/vm/rights.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/windows.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string triple(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

bool in_window(std::uint64_t address, std::uint64_t window) { return address - window < window_size; }

std::uint64_t in_space(const Ctx& c, const SpaceView& space, unsigned lane, std::uint64_t offset, std::uint32_t bytes) {
  if (bytes <= space.size && offset <= space.size - bytes) {
    return reinterpret_cast<std::uint64_t>(space.base) + lane * space.stride + offset;
  }
  return &space == &c.spaces[space_shared] ? in_cluster(*c.block->cluster, offset, bytes) : 0;
}

const SpaceView* space_at(const Ctx& c, std::uint64_t address, std::uint64_t& offset) {
  constexpr std::uint64_t windows[] = {shared_window, local_window, param_window};
  for (unsigned k = 0; k < 3; ++k) {
    if (!in_window(address, windows[k])) continue;
    offset = address - windows[k];
    return &c.spaces[k];
  }
  return nullptr;
}

// The worker's list may be out of date: device malloc or another thread of the program may have added a range.
const Range* find_range(Ctx& c, std::uint64_t address) {
  const Range* range = find_in(*c.worker->ranges, address);
  if (range != nullptr || !refresh_ranges(*c.worker)) return range;
  return find_in(*c.worker->ranges, address);
}

const Ins* constant(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes) {
  return raise_fault(
      c, i, CUDA_ERROR_ILLEGAL_ADDRESS, lane,
      "a write of " + std::to_string(bytes) + " bytes at " + hex(address) + ", which the device may only read");
}

}  // namespace

const Ins* raise_fault(Ctx& c, const Ins* i, CUresult code, unsigned lane, const std::string& what) {
  Grid& grid = *c.block->grid;
  const Dim3& block = c.block->index;
  const Dim3& size = grid.launch.block;
  const std::uint32_t thread = c.warp->index * warp_size + lane;
  const auto number = static_cast<std::size_t>(i - c.code->body.data());
  const ring::MutexLock lock(grid.mutex);
  if (!grid.fault) {
    grid.fault.code = code;
    grid.fault.what = "kernel " + grid.code->name + ", block " + triple(block.x, block.y, block.z) + ", thread " +
                      triple(thread % size.x, thread / size.x % size.y, thread / size.x / size.y) + ": " + what +
                      " (line " + std::to_string(c.code->lines[number]) + " of the PTX text)";
  }
  grid.stopped.store(true, std::memory_order_relaxed);
  c.event = Event::Fault;
  return c.stop;
}

const Ins* illegal_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes) {
  return raise_fault(
      c, i, CUDA_ERROR_ILLEGAL_ADDRESS, lane,
      "access of " + std::to_string(bytes) + " bytes at " + hex(address) + ", which no allocation of the device holds");
}

const Ins* misaligned_access(Ctx& c, const Ins* i, unsigned lane, std::uint64_t address, std::uint32_t bytes) {
  return raise_fault(
      c, i, CUDA_ERROR_MISALIGNED_ADDRESS, lane,
      "access of " + std::to_string(bytes) + " bytes at " + hex(address) + ", which is no multiple of that size");
}

bool refresh_ranges(Worker& worker) {
  const std::uint64_t generation = worker.space->generation.load(std::memory_order_acquire);  // A in address_space.h
  if (generation == worker.generation) return false;
  worker.generation = generation;
  worker.ranges = worker.space->snapshot();
  for (auto& windows : worker.windows) std::fill(windows.second.begin(), windows.second.end(), Window{});
  return true;
}

bool resolve_global(Ctx& c, const Ins* i, const std::uint64_t* addresses, std::uint32_t bytes, std::uint64_t* host) {
  Window& window = c.windows[i->window];
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t address = addresses[lane];
    if ((address & (bytes - 1)) != 0) return misaligned_access(c, i, lane, address, bytes), false;
    if (address >= window.lo && address <= window.last) {
      host[lane] = address;
      continue;
    }
    std::uint64_t offset = 0;
    if (const SpaceView* space = space_at(c, address, offset)) {
      host[lane] = in_space(c, *space, lane, offset, bytes);
      if (host[lane] == 0) return illegal_access(c, i, lane, address, bytes), false;
      continue;
    }
    const Range* range = find_range(c, address);
    if (range == nullptr || bytes > range->size - (address - range->start)) {
      return illegal_access(c, i, lane, address, bytes), false;
    }
    if (range->read_only && (i->flags & flag_writes) != 0) return constant(c, i, lane, address, bytes), false;
    window = {range->start, range->start + range->size - bytes};
    host[lane] = address;
  }
  return true;
}

bool resolve_offsets(Ctx& c, const Ins* i, const std::uint64_t* offsets, std::uint32_t bytes, std::uint64_t* host) {
  const SpaceView& space = c.spaces[i->space];
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if ((offsets[lane] & (bytes - 1)) != 0) return misaligned_access(c, i, lane, offsets[lane], bytes), false;
    host[lane] = in_space(c, space, lane, offsets[lane], bytes);
    if (host[lane] == 0) return illegal_access(c, i, lane, offsets[lane], bytes), false;
  }
  return true;
}

std::uint64_t bytes_held(Ctx& c, std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t held = 0;
  while (held < bytes) {
    const Range* const range = find_range(c, address + held);
    if (range == nullptr) return held;
    held = range->start + range->size - address;
  }
  return bytes;
}

std::uint64_t resolve_one(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes) {
  std::uint64_t offset = 0;
  if (const SpaceView* space = space_at(c, address, offset)) return in_space(c, *space, lane, offset, bytes);
  const Range* range = find_range(c, address);
  if (range == nullptr || bytes > range->size - (address - range->start)) return 0;
  return address;
}

std::uint64_t resolve_one_to_write(Ctx& c, unsigned lane, std::uint64_t address, std::uint32_t bytes) {
  const std::uint64_t host = resolve_one(c, lane, address, bytes);
  if (host != address) return host;  // invalid, or not in a range of the device
  return find_range(c, address)->read_only ? 0 : host;
}

}  // namespace simgpu
