// The paths of a warp: selects the path to run, runs it for a limited time, and merges paths.
#include <algorithm>
#include <bit>
#include <cstring>

#include "host/simgpu/vm/state.h"

namespace simgpu {
namespace {

// The number of backward branches after which another warp runs. An instruction through which lanes may wait for each
// other costs 64 branches (ops/memory.cc, ops/atomic.cc), so that the warp soon switches from a loop that waits.
constexpr std::int64_t slice_fuel = 4096;
// Diverged lanes alternate after this number of slices, even if no lane appears to wait for another.
constexpr std::uint32_t patience = 16;

bool runs_before(const Path& a, const Path& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.pc < b.pc;
}

Path* choose(Warp& warp) {
  Path* best = nullptr;
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    Path& path = warp.paths[k];
    if (path.state != PathState::Ready) continue;
    const bool first = best == nullptr;
    if (first || (warp.rotate ? path.last_turn < best->last_turn : runs_before(path, *best))) best = &path;
  }
  return best;
}

// Returns the next instruction at which another path of the same frame waits: when this path reaches it, the two paths
// merge.
const Ins* limit_of(const Warp& warp, const Path& path) {
  const std::vector<Ins>& body = path.frame->code->body;
  std::size_t limit = body.size();
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    const Path& other = warp.paths[k];
    if (other.state == PathState::Ready && other.frame == path.frame && other.pc > path.pc) {
      limit = std::min<std::size_t>(limit, other.pc);
    }
  }
  return body.data() + limit;
}

Window* windows_of(Worker& worker, const Code& code) {
  if (worker.windows.size() > 1024) worker.windows.clear();
  std::vector<Window>& windows = worker.windows[code.id];
  if (windows.size() < code.windows) windows.resize(code.windows);
  return windows.data();
}

void enter(Worker& worker, Warp& warp, Path& path) {
  Ctx& c = worker.ctx;
  const Code& code = *path.frame->code;
  if (c.code != &code) {
    c.code = &code;
    c.windows = windows_of(worker, code);
    // never written, since no destination is a constant
    c.base[1] = const_cast<std::byte*>(code.constants.data()->bytes);
  }
  c.base[0] = path.frame->registers;
  c.local_base = path.frame->local_base;
  c.path = &path;
  c.mask = path.mask;
  c.masked = path.mask != warp.alive;
  c.forced = warp.forced;
  for (unsigned l = 0; l < warp_size; ++l) c.lanes[l] = -static_cast<std::int32_t>(path.mask >> l & 1);
}

const Ins* run_path(Ctx& c, const Ins* i, const Ins* limit) {
  if (c.masked == 0) {
    while (i < limit) i = i->run[0](c, i);
  } else {
    while (i < limit) i = i->run[1](c, i);
  }
  return i;
}

void end_slice(Ctx& c, Warp& warp) {
  if (warp.path_count < 2) return;
  const bool waiting = c.sync_uses != 0;
  warp.idle_slices = waiting ? 0 : warp.idle_slices + 1;
  warp.rotate = waiting || warp.idle_slices >= patience;
}

}  // namespace

Path& add_path(Warp& warp, const Path& path) {
  Path& added = warp.paths[warp.path_count++];
  added = path;
  return added;
}

void merge_paths(Warp& warp) {
  std::uint32_t kept = 0;
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    const Path path = warp.paths[k];
    if (path.mask == 0) continue;
    bool merged = false;
    for (std::uint32_t j = 0; j < kept && !merged && path.state == PathState::Ready; ++j) {
      Path& other = warp.paths[j];
      if (other.state != PathState::Ready || other.frame != path.frame || other.pc != path.pc) continue;
      other.mask |= path.mask;
      other.last_turn = std::max(other.last_turn, path.last_turn);
      merged = true;
    }
    if (!merged) warp.paths[kept++] = path;
  }
  warp.path_count = kept;
}

bool run_warp(Worker& worker, Block& block, Warp& warp) {
  Ctx& c = worker.ctx;
  c.warp = &warp;
  c.block = &block;
  c.fuel = slice_fuel;
  c.sync_uses = 0;
  const std::uint32_t stack = block.grid->stack_bytes;
  c.spaces[space_shared] = {block.shared.data()->bytes, block.grid->shared_bytes, 0};
  c.spaces[space_local] = {block.local.get() + std::size_t{warp.index} * warp_size * stack, stack, stack};
  bool ran = false;
  for (;;) {
    Path* const path = choose(warp);
    if (path == nullptr) break;
    ran = true;
    enter(worker, warp, *path);
    path->last_turn = ++warp.turn;
    c.event = Event::None;
    const Ins* const first = c.code->body.data();
    const Ins* const i = run_path(c, first + path->pc, limit_of(warp, *path));
    if (i < c.stop) path->pc = static_cast<std::uint32_t>(i - first);
    if (c.event == Event::Fault) return true;
    if (warp.path_count > 1 || c.event != Event::None) merge_paths(warp);
    warp.forced = false;
    if (c.event == Event::Slice) {
      end_slice(c, warp);
      return true;
    }
    if (c.event == Event::Blocked) warp.rotate = false;
  }
  return ran;
}

Frame* make_frame(Block& block, const Code& code) {
  const auto same = [&](const Frame* frame) { return frame->code == &code; };
  const auto found = std::find_if(block.free_frames.rbegin(), block.free_frames.rend(), same);
  if (found != block.free_frames.rend()) {
    Frame* const frame = *found;
    block.free_frames.erase(std::next(found).base());
    return frame;
  }
  Frame& frame = *block.frames.emplace_back(std::make_unique<Frame>());
  frame.code = &code;
  frame.storage.resize(code.frame_bytes() / sizeof(Lanes64) + 1);
  frame.registers = frame.storage.data()->bytes;
  return &frame;
}

void release_frame(Block& block, Frame* frame) { block.free_frames.push_back(frame); }

namespace {

template <class T>
void copy_lanes(std::byte* into, const std::byte* from, std::uint32_t begin, std::uint32_t end, std::uint32_t mask) {
  for (std::uint32_t offset = begin; offset < end; offset += sizeof(T) * warp_size) {
    T* to = reinterpret_cast<T*>(into + offset);
    const T* source = reinterpret_cast<const T*>(from + offset);
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const int l = std::countr_zero(left);
      to[l] = source[l];
    }
  }
}

void copy_predicates(std::byte* into, const std::byte* from, std::uint32_t size, std::uint32_t mask) {
  for (std::uint32_t offset = 0; offset < size; offset += sizeof(std::uint32_t)) {
    std::uint32_t to = 0;
    std::uint32_t source = 0;
    std::memcpy(&to, into + offset, sizeof to);
    std::memcpy(&source, from + offset, sizeof source);
    to = (to & ~mask) | (source & mask);
    std::memcpy(into + offset, &to, sizeof to);
  }
}

}  // namespace

bool join_frames(Block& block, Warp& warp, Frame& into, Frame& from) {
  if (&into == &from) return true;
  if (into.code != from.code || into.parent == nullptr || from.parent == nullptr) return false;
  if (into.return_pc != from.return_pc || into.local_base != from.local_base) return false;
  if (!join_frames(block, warp, *into.parent, *from.parent)) return false;
  const std::array<std::uint32_t, 5>& parts = into.code->parts;
  copy_predicates(into.registers, from.registers, parts[1], from.lanes);
  copy_lanes<std::uint16_t>(into.registers, from.registers, parts[1], parts[2], from.lanes);
  copy_lanes<std::uint32_t>(into.registers, from.registers, parts[2], parts[3], from.lanes);
  copy_lanes<std::uint64_t>(into.registers, from.registers, parts[3], parts[4], from.lanes);
  for (std::uint32_t left = from.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    into.stack_tops[lane] = from.stack_tops[lane];
  }
  into.lanes |= from.lanes;
  from.lanes = 0;
  for (std::uint32_t k = 0; k < warp.path_count; ++k) {
    Path& path = warp.paths[k];
    if (path.frame == &from) path.frame = &into;
    for (Frame* frame = path.frame; frame != nullptr; frame = frame->parent) {
      if (frame->parent == &from) frame->parent = &into;
    }
  }
  release_frame(block, &from);
  return true;
}

}  // namespace simgpu
