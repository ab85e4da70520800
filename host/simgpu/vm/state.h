// A running grid: its blocks, their warps, and each warp's paths and frames.
//
// Lanes of a warp at the same instruction run together as a *path*. A divergent branch splits a path, and paths merge
// when they meet. A *frame* holds the registers of one call for the lanes that made it together. The path with the
// deepest frame runs first, then the lowest instruction, so that lagging lanes catch up.
//
// A Cluster belongs to the worker thread that runs it, and lies in its grid's queue between slices. All blocks of a
// cluster run on that thread, so they access each other's shared memory without races. A Grid is shared: its mutex
// protects its non-atomic members.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "host/simgpu/engine.h"
#include "host/simgpu/memory/address_space.h"
#include "host/simgpu/vm/ctx.h"

namespace simgpu {

inline constexpr std::uint32_t engine_multiprocessors = 16;  // %nsmid; the same as in the device's attributes
inline constexpr std::uint64_t ticks_per_nanosecond = 2;     // of %clock64; the same as the device's clock rate

struct Frame {
  const Code* code = nullptr;
  Frame* parent = nullptr;
  const CallSite* site = nullptr;  // of the parent
  std::uint32_t return_pc = 0;     // in the parent's code
  std::uint32_t lanes = 0;         // lanes that have not returned
  std::uint32_t depth = 0;
  std::uint64_t local_base = 0;
  std::array<std::uint32_t, warp_size> stack_tops{};  // at entry, by lane, if the function uses alloca
  std::byte* registers = nullptr;
  std::vector<Lanes64> storage;  // a callee's registers; a root frame's lie in the block
};

inline constexpr std::uint32_t named_barriers = 16;

enum class PathState : std::uint8_t {
  Ready,
  Barrier,     // waits for the block
  Rendezvous,  // waits for lanes of its warp
};

struct Path {
  std::uint32_t mask = 0;
  std::uint32_t pc = 0;
  Frame* frame = nullptr;
  PathState state = PathState::Ready;
  std::uint8_t barrier = 0;
  std::uint64_t last_turn = 0;
};

struct Warp {
  std::uint32_t index = 0;
  std::uint32_t alive = 0;  // lanes that have not exited
  std::uint32_t path_count = 0;
  std::array<Path, warp_size + 1> paths;  // disjoint, nonempty; one more during a split
  Frame root;
  // Frames grow from the start of a lane's local memory, alloca from the end down to here.
  std::array<std::uint32_t, warp_size> stack_tops{};
  std::uint64_t turn = 0;
  std::uint32_t idle_slices = 0;  // consecutive slices that ended diverged with no waiting path
  bool rotate = false;            // run the longest-waiting path next, not the lowest
  bool forced = false;            // see Ctx::forced
};

struct Barrier {
  std::uint32_t arrived = 0;   // threads
  std::uint32_t expected = 0;  // threads; 0: all that have not exited
  std::uint32_t votes = 0;     // true predicates
  std::uint32_t voters = 0;
  std::array<std::uint32_t, 32> lanes{};  // arrived lanes, by warp
};

struct Grid;
struct Cluster;

struct Block {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;  // within its cluster
  Dim3 index;
  std::uint64_t number = 0;
  std::uint32_t alive = 0;  // threads
  std::vector<Warp> warps;
  std::array<Barrier, named_barriers + 1> barriers;  // the last is this block's part of the cluster barrier
  std::vector<Lanes64> registers;
  std::vector<Lanes64> shared;
  std::unique_ptr<std::byte[]> local;
  std::size_t local_size = 0;
  std::vector<std::unique_ptr<Frame>> frames;  // all callee frames
  std::vector<Frame*> free_frames;             // unused ones among `frames`
  std::size_t next_warp = 0;
};

// Blocks that run together; a single block if the launch has no clusters.
struct Cluster {
  std::vector<Block> blocks;  // by rank
  Dim3 index;
  std::uint32_t alive = 0;    // threads of all blocks
  std::uint32_t arrived = 0;  // threads at the cluster barrier in its current phase
  std::size_t next_block = 0;
};

// Data of a worker thread that outlives clusters.
struct Worker {
  Ctx ctx;
  AddressSpace::Impl* space = nullptr;
  std::uint64_t generation = 0;
  std::shared_ptr<const RangeList> ranges;
  std::uint64_t texture_generation = 0;
  std::shared_ptr<const TextureList> textures;  // held only during a slice, since it keeps the objects' memory
  std::unordered_map<std::uint64_t, std::vector<Window>> windows;  // by Code::id
  std::vector<std::unique_ptr<Cluster>> spare;
  Engine::Impl* engine = nullptr;
};

struct Grid {
  Launch launch;
  const Code* code = nullptr;
  std::uint64_t id = 0;
  Dim3 cluster;                    // blocks of each cluster
  Dim3 clusters;                   // of the grid
  std::uint64_t total = 0;         // clusters, as in all counts below
  std::uint32_t threads = 0;       // of a block
  std::uint32_t shared_bytes = 0;  // of a block
  std::uint32_t dynamic_base = 0;  // offset of dynamic shared memory
  std::uint32_t stack_bytes = 0;   // of a thread
  std::uint64_t workspace = 0;     // of a cooperative grid's own barrier
  Heap* heap = nullptr;
  std::uint64_t max_resident = 0;  // limit of clusters in progress

  std::atomic<std::uint64_t> started{0};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<bool> stopped{false};

  std::mutex mutex;  // for the members below
  std::condition_variable done;
  std::deque<std::unique_ptr<Cluster>> waiting;  // started and set aside
  std::uint32_t helpers = 0;                     // workers that hold a pointer to this grid
  Fault fault;
};

// cluster.cc: runs a cluster to its end or to the end of its slice.
enum class Outcome : std::uint8_t { Done, Paused };
void begin_cluster(Cluster& cluster, Grid& grid, std::uint64_t number);
Outcome run_cluster(Worker& worker, Cluster& cluster);
void check_cluster_barrier(Cluster& cluster);
// The host address of `bytes` in the shared memory of the block whose rank is in `offset`. 0 if the block does not
// exist, has exited, or has less memory.
std::uint64_t in_cluster(const Cluster& cluster, std::uint64_t offset, std::uint32_t bytes);

// block.cc
// The block's index in the grid and its rank must be set.
void begin_block(Block& block, Grid& grid);
// When nothing else can run, releases lanes that wait for lanes of their warp: a block must end, though the result is
// undefined on a device. Returns false if no lanes wait.
bool force_rendezvous(Block& block);
void end_threads(Ctx& c, std::uint32_t mask);  // the lanes exit
void check_barriers(Block& block);
void release_barrier(Block& block, std::uint8_t id);  // resumes the paths that wait there
void fill_specials(const Block& block, const Warp& warp, const Code& code, std::byte* registers);

// warp.cc
// Runs the warp's paths until its fuel is used up or none is ready. Returns true if any ran.
bool run_warp(Worker& worker, Block& block, Warp& warp);
void merge_paths(Warp& warp);
Path& add_path(Warp& warp, const Path& path);
// Merges two frames of the same call; returns false if the calls differ.
bool join_frames(Block& block, Warp& warp, Frame& into, Frame& from);
Frame* make_frame(Block& block, const Code& code);
void release_frame(Block& block, Frame* frame);

// stack.cc
// True if the local memory of the masked lanes is unused up to `end`.
bool stack_holds(const Ctx& c, std::uint64_t end);
// Frees the alloca memory of lanes that leave the frame.
void give_back_stack(Warp& warp, const Frame& frame, std::uint32_t mask);

// access.cc: takes a new snapshot of the ranges; false if nothing changed.
bool refresh_ranges(Worker& worker);

// async.cc: adds completed bytes to the mbarrier at this host address.
void complete_bytes(std::uint64_t barrier, std::uint32_t bytes);

// engine.cc, special.cc
std::uint64_t device_clock();
void print(Ctx& c, const std::string& text);
std::uint64_t device_malloc(Ctx& c, std::uint64_t size);
bool device_free(Ctx& c, std::uint64_t address);

}  // namespace simgpu
