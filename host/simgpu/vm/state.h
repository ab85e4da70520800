// A running grid: its blocks, their warps, and the paths and frames of each warp.
//
// Lanes of a warp that are at the same instruction run together as a *path*. A divergent branch splits a path, and
// paths merge when they meet. A *frame* holds the registers of one call, for the lanes that made the call together. The
// path with the deepest frame runs first, then the path at the lowest instruction, so that lagging lanes catch up.
//
// A Cluster belongs to the worker thread that runs it, and is in its grid's queue between time slices. All blocks of a
// cluster run on the same thread, so they access each other's shared memory without races. A Grid is shared: its mutex
// protects its non-atomic members.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "host/simgpu/engine.h"
#include "host/simgpu/memory/address_space.h"
#include "host/simgpu/vm/ctx.h"
#include "ring/base/mutex.h"

namespace simgpu {

inline constexpr std::uint32_t engine_multiprocessors = 16;  // value of %nsmid, and of the device attribute
inline constexpr std::uint64_t ticks_per_nanosecond = 2;     // frequency of %clock64, equal to the device's clock rate

struct Frame {
  const Code* code = nullptr;
  Frame* parent = nullptr;
  const CallSite* site = nullptr;  // call site in the parent's code
  std::uint32_t return_pc = 0;     // instruction in the parent's code to return to
  std::uint32_t lanes = 0;         // lanes that have not returned
  std::uint32_t depth = 0;
  std::uint64_t local_base = 0;
  std::array<std::uint32_t, warp_size> stack_tops{};  // by lane: the value at entry, if the function uses alloca
  std::byte* registers = nullptr;
  std::vector<Lanes64> storage;  // registers of a callee; the registers of a root frame belong to the block
};

inline constexpr std::uint32_t named_barriers = 16;

enum class PathState : std::uint8_t {
  Ready,
  Barrier,     // waits for other warps of the block
  Rendezvous,  // waits for other lanes of its warp
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
  std::array<Path, warp_size + 1> paths;  // disjoint and not empty; one entry more than lanes, for use during a split
  Frame root;
  // For each lane, the lower end of its alloca memory, which grows down from the end of local memory. Frames grow up
  // from the start.
  std::array<std::uint32_t, warp_size> stack_tops{};
  std::uint64_t turn = 0;
  std::uint32_t idle_slices = 0;  // consecutive slices at whose end the lanes were diverged and no path was waiting
  bool rotate = false;            // the path that has waited longest runs next, instead of the lowest
  bool forced = false;            // copied to Ctx::forced
};

struct Barrier {
  std::uint32_t arrived = 0;   // threads that have arrived
  std::uint32_t expected = 0;  // threads to wait for; 0: all that have not exited
  std::uint32_t votes = 0;     // threads with a true predicate
  std::uint32_t voters = 0;
  std::array<std::uint32_t, 32> lanes{};  // the lanes that have arrived, by warp
};

struct Grid;
struct Cluster;

struct Block {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;  // rank within the cluster
  Dim3 index;
  std::uint64_t number = 0;
  std::uint32_t alive = 0;  // threads that have not exited
  std::vector<Warp> warps;
  std::array<Barrier, named_barriers + 1> barriers;  // the last entry is this block's part of the cluster barrier
  std::vector<Lanes64> registers;
  std::vector<Lanes64> shared;
  std::unique_ptr<std::byte[]> local;
  std::size_t local_size = 0;
  std::vector<std::unique_ptr<Frame>> frames;  // all frames of callees
  std::vector<Frame*> free_frames;             // the unused frames among `frames`
  std::size_t next_warp = 0;
};

// Blocks that run together; a single block if the launch has no clusters.
struct Cluster {
  std::vector<Block> blocks;  // indexed by rank
  Dim3 index;
  std::uint32_t alive = 0;    // threads of all blocks that have not exited
  std::uint32_t arrived = 0;  // threads that have arrived at the current phase of the cluster barrier
  std::size_t next_block = 0;
};

// Data of a worker thread that is kept between clusters.
struct Worker {
  Ctx ctx;
  AddressSpace::Impl* space = nullptr;
  std::uint64_t generation = 0;
  std::shared_ptr<const RangeList> ranges;
  std::uint64_t texture_generation = 0;
  // set only during a slice, since the list keeps the memory of its objects
  std::shared_ptr<const TextureList> textures;
  std::unordered_map<std::uint64_t, std::vector<Window>> windows;  // keyed by Code::id
  std::vector<std::unique_ptr<Cluster>> spare;
  Engine::Impl* engine = nullptr;
};

struct Grid {
  Launch launch;
  const Code* code = nullptr;
  std::uint64_t id = 0;
  Dim3 cluster;                    // blocks per cluster
  Dim3 clusters;                   // clusters of the grid
  std::uint64_t total = 0;         // number of clusters; the counters below also count clusters
  std::uint32_t threads = 0;       // threads per block
  std::uint32_t shared_bytes = 0;  // bytes per block
  std::uint32_t dynamic_base = 0;  // offset of dynamic shared memory
  std::uint32_t stack_bytes = 0;   // bytes per thread
  std::uint64_t workspace = 0;     // address of the barrier memory of a cooperative grid
  Heap* heap = nullptr;
  std::uint64_t max_resident = 0;  // limit of clusters that have started and not ended

  std::atomic<std::uint64_t> started{0};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<bool> stopped{false};

  ring::Mutex mutex;
  std::condition_variable done;
  std::deque<std::unique_ptr<Cluster>> waiting GUARDED_BY(mutex);  // started clusters that are suspended
  std::uint32_t helpers GUARDED_BY(mutex) = 0;                     // workers that hold a pointer to this grid
  Fault fault GUARDED_BY(mutex);
};

// cluster.cc: run_cluster() runs a cluster to its end or to the end of its slice.
enum class Outcome : std::uint8_t { Done, Paused };
void begin_cluster(Cluster& cluster, Grid& grid, std::uint64_t number);
Outcome run_cluster(Worker& worker, Cluster& cluster);
void check_cluster_barrier(Cluster& cluster);
// Returns the host address of `bytes` in the shared memory of the block whose rank is in `offset`. Returns 0 if the
// block does not exist, has exited, or has less memory.
std::uint64_t in_cluster(const Cluster& cluster, std::uint64_t offset, std::uint32_t bytes);

// block.cc: the caller must have set the block's index in the grid and its rank.
void begin_block(Block& block, Grid& grid);
// If nothing else can run, releases lanes that wait for other lanes of their warp. On a device the result is undefined,
// but here a block must end. Returns false if no lanes wait.
bool force_rendezvous(Block& block);
void end_threads(Ctx& c, std::uint32_t mask);  // marks the lanes as exited
void check_barriers(Block& block);
void release_barrier(Block& block, std::uint8_t id);  // resumes the paths that wait at this barrier
void fill_specials(const Block& block, const Warp& warp, const Code& code, std::byte* registers);

// warp.cc: runs the paths of the warp until its fuel is used up or no path is ready. Returns true if any path ran.
bool run_warp(Worker& worker, Block& block, Warp& warp);
void merge_paths(Warp& warp);
Path& add_path(Warp& warp, const Path& path);
// Merges two frames of the same call. Returns false if the frames belong to different calls.
bool join_frames(Block& block, Warp& warp, Frame& into, Frame& from);
Frame* make_frame(Block& block, const Code& code);
void release_frame(Block& block, Frame* frame);

// stack.cc: returns true if the local memory of the masked lanes is unused up to `end`.
bool stack_holds(const Ctx& c, std::uint64_t end);
// Frees the alloca memory of the lanes that leave the frame.
void give_back_stack(Warp& warp, const Frame& frame, std::uint32_t mask);

// access.cc: takes a new snapshot of the ranges. Returns false if the ranges have not changed.
bool refresh_ranges(Worker& worker);

// async.cc: adds completed bytes to the mbarrier at this host address.
void complete_bytes(std::uint64_t barrier, std::uint32_t bytes);

// engine.cc and special.cc define these functions.
std::uint64_t device_clock();
void print(Ctx& c, const std::string& text);
std::uint64_t device_malloc(Ctx& c, std::uint64_t size);
bool device_free(Ctx& c, std::uint64_t address);

}  // namespace simgpu
