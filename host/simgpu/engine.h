// The simulated GPU's engine: device memory, compiled modules and the execution of grids. The driver calls
// (host/simgpu/api/) use this page, and below it the heap alone (vm/heap.h).
//
// Units: sizes in bytes, addresses as 64-bit numbers. An address of device memory is also a valid host address of this
// process (the address space is one mapping), so a copy is a memcpy once check() has agreed.
// Errors: never thrown across this page; a Fault carries the CUresult that a real driver reports and one sentence.
// Threads: an AddressSpace and an Engine may be used from any thread; a Module is immutable after load().
// Ownership: an Engine refers to its AddressSpace, and a Function belongs to its Module: each must outlive its users.
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
  std::string what;  // one sentence, names kernel, block, thread and address where there are such
  explicit operator bool() const { return code != CUDA_SUCCESS; }
};

class TextureTable;  // host/simgpu/texture/texture.h
class Heap;          // host/simgpu/vm/heap.h

enum class RangeKind : std::uint8_t { Device, Host, Mapped };

struct Range {
  Address start = 0;
  std::size_t size = 0;
  RangeKind kind = RangeKind::Device;
  std::uint64_t id = 0;    // unique for the process's lifetime: CU_POINTER_ATTRIBUTE_BUFFER_ID
  bool leaving = false;    // freed in the order of a stream: work in flight reaches it, calls of the host do not
  bool read_only = false;  // Mapped only
};

// Device memory: a reserved range of the process's address space (0x7ee0'0000'0000 where it is free) in which
// allocations are committed, plus the host ranges that were pinned for the device and the mappings of virtual memory.
// Every access of a kernel or copy is held against it. Adjacent mappings are one range to an access.
class AddressSpace {
 public:
  explicit AddressSpace(std::size_t capacity);  // cuMemGetInfo's total
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  Address allocate(
      std::size_t size);     // 256-byte aligned at least; 0 when the capacity is exhausted; contents undefined
  bool free(Address start);  // false unless `start` is the start of a live allocation; the pages go back
  bool add_host(void* start, std::size_t size);  // false when it overlaps a range that is already there
  bool remove_host(void* start);

  // Memory that no access reaches yet, 512-byte aligned: the caller adds ranges in it, and removes all of them before
  // it gives the memory back.
  Address claim(std::size_t size);
  void give_back_claim(Address start, std::size_t size);
  // A part of claimed memory, or a mapping: neither takes memory. False when it overlaps another range.
  bool add(const Range& range);  // its id is given here
  bool remove(Address start);
  bool set_leaving(Address start, bool leaving);  // a range that comes back so is another one, with a new id
  // Memory that lies elsewhere counts as the device's. False when there is not so much.
  bool charge(std::size_t size);
  void discharge(std::size_t size);
  // Each of the two also adds to this, or takes away from it. Call it before the first.
  void tell_use(std::atomic<std::uint64_t>* told);

  std::optional<Range> find(Address inside) const;
  // True if [start, start+size) lies in one live range, or in adjacent mappings, and may be read, or written.
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

// A kernel. Owned by its Module.
struct Function {
  std::string name;
  std::vector<ParamInfo> params;
  std::size_t param_bytes = 0;
  std::uint32_t max_threads_per_block = 1024;  // .maxntid/.reqntid, else the device's 1024
  std::optional<Dim3> required_block;          // .reqntid
  std::optional<Dim3> cluster;                 // .reqnctapercluster: blocks of each cluster
  std::uint32_t max_cluster = 0;               // .maxclusterrank: most blocks of a cluster; 0: the device's bound
  bool explicit_cluster = false;               // .explicitcluster: a launch must give the clusters' size
  bool grid_of_clusters = false;               // .blocksareclusters: a launch's grid counts clusters
  std::size_t static_shared = 0;
  std::size_t local_bytes = 0;  // per thread
  std::size_t const_bytes = 0;  // of the module
  int registers = 0;            // plausible, for attributes and occupancy
  bool prints = false;          // it, or a function that it may call, calls printf
  bool allocates = false;       // the same of malloc and free
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

// An image made ready to run: its globals lie in device memory, initialised.
class Module {
 public:
  struct Loaded {
    std::unique_ptr<Module> module;  // null on failure
    CUresult code =
        CUDA_SUCCESS;  // INVALID_PTX, INVALID_IMAGE, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION, OUT_OF_MEMORY...
    std::string log;   // for a JIT log: "line 12: opcode foo.bar is not served"
  };
  // `image` as cuModuleLoadData gets it: a fat binary wrapper or container, a cubin, or NUL-terminated PTX text. Its
  // length is not known beforehand, as in the driver; it is read to the end that its own headers give and no further.
  static Loaded load(const void* image, AddressSpace& space);
  ~Module();

  const Function* function(std::string_view name) const;
  std::vector<const Function*> functions() const;
  const Global* global(std::string_view name) const;
  std::vector<const Global*> globals() const;
  // Texture and surface references: variables of 8 bytes with a number of the space's textures(), 0 for none.
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
  bool cooperative = false;           // all blocks must be able to be resident together
  // Where it says that it runs; 0: on all.
  std::uint32_t first_multiprocessor = 0, multiprocessors = 0;
  std::optional<Dim3> cluster = {};  // blocks of each cluster; none: each block is a cluster by itself
  // The context's: memory of malloc, receiver of printed text, bytes of each thread's stack. Null or 0: the engine's own.
  Heap* heap = nullptr;
  const std::function<void(std::string_view)>* print = nullptr;
  std::uint32_t stack = 0;  // for kernels whose need is not known when they are loaded
  // Receives the numbers and values of graphs' conditions that the kernel sets. Null: they are lost.
  const std::function<void(std::uint64_t, std::uint32_t)>* set_condition = nullptr;
};

class Engine {
 public:
  // `workers` threads execute blocks (0: as many as there are cores). `print` receives the text of device printf. If
  // the system gives fewer threads, the engine works with those.
  Engine(AddressSpace& space, unsigned workers, std::function<void(std::string_view)> print);
  ~Engine();

  // Runs a grid to its end; blocks the caller, which may be one of several (streams). The caller checks limits (grid,
  // block, cluster, shared memory). The fault is the first one found; the grid's other blocks are stopped.
  Fault run(const Launch& launch);

  unsigned missing_workers() const;  // threads that the system did not give

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace simgpu
