// A running grid: blocks, their warps, and the paths and frames of a warp.
//
// The lanes of a warp that stand at the same place run together as one *path*; they part at a branch that they do not
// take alike and become one again when they meet. A *frame* holds the registers of one call for the lanes that made it
// together. Of a warp's paths the deepest frame's and then the lowest instruction's runs first, so that those behind
// catch up.
//
// A Cluster belongs to the worker thread that runs it; between two turns it lies in its grid's queue. All blocks of a
// cluster run on that thread, so they reach each other's shared memory without races. A Grid is shared: members of it
// that are not atomic are under its mutex.
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
  std::uint32_t lanes = 0;         // that have not returned
  std::uint32_t depth = 0;
  std::uint64_t local_base = 0;
  std::array<std::uint32_t, warp_size>
      stack_tops{};  // of its lanes when they came, if the function takes room by alloca
  std::byte* registers = nullptr;
  std::vector<Lanes64> storage;  // of a callee's registers; a root frame's lie in the block
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
  std::array<Path, warp_size + 1> paths;  // disjoint and never empty; one more while a path is being split
  Frame root;
  // Frames grow from the beginning of a lane's local memory, its alloca from the end: down to here.
  std::array<std::uint32_t, warp_size> stack_tops{};
  std::uint64_t turn = 0;
  std::uint32_t idle_slices = 0;  // in a row that ended with lanes apart and nothing that waits
  bool rotate = false;            // the next path is the one that waited longest, not the lowest
  bool forced = false;            // see Ctx::forced
};

struct Barrier {
  std::uint32_t arrived = 0;   // threads
  std::uint32_t expected = 0;  // threads; 0: all that have not exited
  std::uint32_t votes = 0;     // true predicates
  std::uint32_t voters = 0;
  std::array<std::uint32_t, 32> lanes{};  // that have arrived, by warp
};

struct Grid;
struct Cluster;

struct Block {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;  // in its cluster
  Dim3 index;
  std::uint64_t number = 0;
  std::uint32_t alive = 0;  // threads
  std::vector<Warp> warps;
  std::array<Barrier, named_barriers + 1> barriers;  // the last is this block's part of the cluster's
  std::vector<Lanes64> registers;
  std::vector<Lanes64> shared;
  std::unique_ptr<std::byte[]> local;
  std::size_t local_size = 0;
  std::vector<std::unique_ptr<Frame>> frames;  // of callees, all there are
  std::vector<Frame*> free_frames;             // of them those not in use
  std::size_t next_warp = 0;
};

// Blocks that run together. A launch without clusters has one of each block.
struct Cluster {
  std::vector<Block> blocks;  // by rank
  Dim3 index;
  std::uint32_t alive = 0;    // threads of all blocks
  std::uint32_t arrived = 0;  // threads that have arrived at the cluster's barrier since it was last completed
  std::size_t next_block = 0;
};

// The data that a worker thread keeps between clusters.
struct Worker {
  Ctx ctx;
  AddressSpace::Impl* space = nullptr;
  std::uint64_t generation = 0;
  std::shared_ptr<const RangeList> ranges;
  std::uint64_t texture_generation = 0;
  std::shared_ptr<const TextureList> textures;  // held during a turn only, because it keeps the objects' memory
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
  std::uint32_t dynamic_base = 0;  // where the dynamic part begins
  std::uint32_t stack_bytes = 0;   // of a thread
  std::uint64_t workspace = 0;     // of a cooperative grid's own barrier
  Heap* heap = nullptr;
  std::uint64_t max_resident = 0;  // that may be under way at once

  std::atomic<std::uint64_t> started{0};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<bool> stopped{false};

  std::mutex mutex;  // for the members below
  std::condition_variable done;
  std::deque<std::unique_ptr<Cluster>> waiting;  // begun and put aside
  std::uint32_t helpers = 0;                     // workers that hold a pointer to this grid
  Fault fault;
};

// cluster.cc: a cluster from its beginning to its end, or to the end of its turn.
enum class Outcome : std::uint8_t { Done, Paused };
void begin_cluster(Cluster& cluster, Grid& grid, std::uint64_t number);
Outcome run_cluster(Worker& worker, Cluster& cluster);
void check_cluster_barrier(Cluster& cluster);
// The host address of `bytes` bytes in the shared memory of the block that an offset with a rank names; 0 if there is no
// such block, if its threads have exited, or if its memory ends before.
std::uint64_t in_cluster(const Cluster& cluster, std::uint64_t offset, std::uint32_t bytes);

// block.cc
// The block's index in the grid and its rank are set before.
void begin_block(Block& block, Grid& grid);
// Lanes that wait for lanes of their warp go on without them once nothing else can run: on a device their result is
// undefined, and a block must end. False if there are none.
bool force_rendezvous(Block& block);
void end_threads(Ctx& c, std::uint32_t mask);  // the lanes exit
void check_barriers(Block& block);
void release_barrier(Block& block, std::uint8_t id);  // the paths that wait there go on
void fill_specials(const Block& block, const Warp& warp, const Code& code, std::byte* registers);

// warp.cc
// Runs the warp's paths until its fuel is used up or none is ready. True if any ran.
bool run_warp(Worker& worker, Block& block, Warp& warp);
void merge_paths(Warp& warp);
Path& add_path(Warp& warp, const Path& path);
// Makes one frame of two that are the same call, made apart; false when they are not the same call.
bool join_frames(Block& block, Warp& warp, Frame& into, Frame& from);
Frame* make_frame(Block& block, const Code& code);
void release_frame(Block& block, Frame* frame);

// stack.cc
// True if the local memory of the lanes of the mask is free up to `end`: no lane has taken room there.
bool stack_holds(const Ctx& c, std::uint64_t end);
// The lanes leave the frame: the room that its function took by alloca is free again.
void give_back_stack(Warp& warp, const Frame& frame, std::uint32_t mask);

// access.cc: takes the ranges as they are now; false if the worker has the same.
bool refresh_ranges(Worker& worker);

// async.cc: so many bytes are complete at the mbarrier that lies at this host address.
void complete_bytes(std::uint64_t barrier, std::uint32_t bytes);

// engine.cc, special.cc
std::uint64_t device_clock();
void print(Ctx& c, const std::string& text);
std::uint64_t device_malloc(Ctx& c, std::uint64_t size);
bool device_free(Ctx& c, std::uint64_t address);

}  // namespace simgpu
