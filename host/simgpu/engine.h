// The simulated GPU's engine: device memory, compiled modules and grid execution. The driver calls (host/simgpu/api/)
// use only this header and the heap (vm/heap.h).
//
// Units: sizes in bytes, addresses as 64-bit numbers. A device address is also a valid host address of this process, so
// a copy is a memcpy after check() succeeds.
// Errors: functions throw nothing; a Fault carries the CUresult of a real driver and one sentence.
// Threads: an AddressSpace and an Engine are thread-safe; a Module is immutable after load().
// Ownership: an Engine refers to its AddressSpace, and a Function belongs to its Module. Both must outlive their users.
//
// ```cpp
// simgpu::Fault run(simgpu::AddressSpace& space, simgpu::Engine& engine, const char* ptx, const char* kernel) {
//   const simgpu::Module::Loaded loaded = simgpu::Module::load(ptx, space);
//   if (loaded.module == nullptr) return {loaded.code, loaded.log};
//   simgpu::Launch launch;  // of one block of one thread, without parameters
//   launch.function = loaded.module->function(kernel);
//   if (launch.function == nullptr) return {CUDA_ERROR_NOT_FOUND, kernel};
//   return engine.run(launch);
// }
// ```
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

using Address = std::uint64_t;

struct Fault {
  CUresult code = CUDA_SUCCESS;
  std::string what;  // one sentence; names kernel, block, thread and address if known
  explicit operator bool() const { return code != CUDA_SUCCESS; }
};

class TextureTable;  // host/simgpu/texture/texture.h
class Heap;          // host/simgpu/vm/heap.h

enum class RangeKind : std::uint8_t { Device, Host, Mapped };

struct Range {
  Address start = 0;
  std::size_t size = 0;
  RangeKind kind = RangeKind::Device;
  std::uint64_t id = 0;    // unique in the process: CU_POINTER_ATTRIBUTE_BUFFER_ID
  bool leaving = false;    // freed in stream order: work in flight may use it, host calls may not
  bool read_only = false;  // Mapped only
};

// Device memory: a reserved address range of the process (at 0x7ee0'0000'0000 if free) in which allocations are
// committed. Also host ranges pinned for the device, and mappings of virtual memory. Each access of a kernel or copy is
// checked. Adjacent mappings count as one range.
class AddressSpace {
 public:
  explicit AddressSpace(std::size_t capacity);  // cuMemGetInfo's total
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  Address allocate(
      std::size_t size);     // 256-byte aligned at least; 0 when the capacity is exhausted; contents undefined
  bool free(Address start);  // false unless a live allocation starts at `start`
  bool add_host(void* start, std::size_t size);  // false if it overlaps an existing range
  bool remove_host(void* start);

  // Reserves inaccessible memory, 512-byte aligned. The caller adds ranges in it, and removes all of them before
  // give_back_claim().
  Address claim(std::size_t size);
  void give_back_claim(Address start, std::size_t size);
  // Adds a part of claimed memory or a mapping; takes no memory. Returns false if it overlaps another range.
  bool add(const Range& range);  // assigns its id
  bool remove(Address start);
  bool set_leaving(Address start, bool leaving);  // a range that returns from leaving gets a new id
  // Counts memory outside this space as the device's. Returns false if there is not enough.
  bool charge(std::size_t size);
  void discharge(std::size_t size);
  // charge() and discharge() also update this counter. Call before either.
  void publish_use(std::atomic<std::uint64_t>* published);

  std::optional<Range> find(Address inside) const;
  // True if [start, start+size) lies in one live range or adjacent mappings that permit the access.
  bool check(Address start, std::size_t size, bool to_write = false) const;
  std::size_t capacity() const;
  std::size_t used() const;
  TextureTable& textures();  // the device's texture and surface objects

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct ParamInfo {
  std::size_t offset = 0;
  std::size_t size = 0;
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// A kernel; its Module owns it.
struct Function {
  std::string name;
  std::vector<ParamInfo> params;
  std::size_t param_bytes = 0;
  std::uint32_t max_threads_per_block = 1024;  // .maxntid/.reqntid, else the device's 1024
  std::optional<Dim3> required_block;          // .reqntid
  std::optional<Dim3> cluster;                 // .reqnctapercluster: blocks of each cluster
  std::uint32_t max_cluster = 0;               // .maxclusterrank: largest cluster in blocks; 0: the device's limit
  bool explicit_cluster = false;               // .explicitcluster: a launch must give the cluster size
  bool grid_of_clusters = false;               // .blocksareclusters: the grid counts clusters
  std::size_t static_shared = 0;
  std::size_t local_bytes = 0;  // per thread
  std::size_t const_bytes = 0;  // of the module
  int registers = 0;            // plausible, for attributes and occupancy
  bool prints = false;          // it or a function that it may call uses printf
  bool allocates = false;       // same for malloc and free
  int ptx_version = 0;          // target times ten, as CU_FUNC_ATTRIBUTE_PTX_VERSION: 75, 90, 120
  const struct Code* code = nullptr;
};

struct Global {
  std::string name;
  Address address = 0;
  std::size_t size = 0;
  bool constant = false;
  bool managed = false;
};

// A loaded image: its global variables lie in device memory, initialised.
class Module {
 public:
  struct Loaded {
    std::unique_ptr<Module> module;  // null on failure
    CUresult code =
        CUDA_SUCCESS;  // INVALID_PTX, INVALID_IMAGE, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION, OUT_OF_MEMORY...
    std::string log;   // for a JIT log: "line 12: opcode foo.bar is not served"
  };
  // `image` as for cuModuleLoadData: a fat binary wrapper or container, a cubin, or NUL-terminated PTX text. As in the
  // driver no length is passed; only the bytes that the image's headers describe are read.
  static Loaded load(const void* image, AddressSpace& space);
  ~Module();

  const Function* function(std::string_view name) const;
  std::vector<const Function*> functions() const;
  const Global* global(std::string_view name) const;
  std::vector<const Global*> globals() const;
  // Texture and surface references: 8-byte variables that hold a number of the space's textures(), or 0.
  const Global* texture_reference(std::string_view name) const;
  const Global* surface_reference(std::string_view name) const;

  struct Impl;
  explicit Module(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

struct Launch {
  const Function* function = nullptr;
  Dim3 grid, block;
  std::size_t dynamic_shared = 0;
  std::span<const std::byte> params;  // packed by Function::params, param_bytes long
  bool cooperative = false;           // all blocks must be resident at once
  // The multiprocessors that %smid reports; 0: all.
  std::uint32_t first_multiprocessor = 0, multiprocessors = 0;
  std::optional<Dim3> cluster = {};  // blocks per cluster; nullopt: each block is its own cluster
  // The context's malloc heap, printf receiver and stack bytes per thread. Null or 0: the engine's defaults.
  Heap* heap = nullptr;
  const std::function<void(std::string_view)>* print = nullptr;
  std::uint32_t stack = 0;  // for kernels whose stack size is unknown at load time
  // Receives the handle and value of each graph condition that the kernel sets. Null: ignored.
  const std::function<void(std::uint64_t, std::uint32_t)>* set_condition = nullptr;
};

class Engine {
 public:
  // `workers` threads execute blocks; 0: one per core, and fewer if the system refuses threads. `print` receives device
  // printf text.
  Engine(AddressSpace& space, unsigned workers, std::function<void(std::string_view)> print);
  ~Engine();

  // Runs a grid and blocks the caller; several threads may call it. The caller checks limits (grid, block, cluster,
  // shared memory). Returns the first fault, which stops the grid's other blocks.
  Fault run(const Launch& launch);

  unsigned missing_workers() const;  // threads that the system refused

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace simgpu
