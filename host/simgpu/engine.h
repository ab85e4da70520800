// The engine of the simulated GPU: device memory, compiled modules and grid execution. The driver calls
// (host/simgpu/api/) use only this header and the heap (vm/heap.h).
//
// Units: sizes are in bytes, addresses are 64-bit numbers. A device address is also a valid host address in this
// process, so a copy is a memcpy after check() has succeeded.
// Errors: no function throws; a Fault holds the CUresult that NVIDIA's driver would return, and one sentence.
// Threads: an AddressSpace and an Engine are thread-safe; a Module is immutable after load().
// Ownership: an Engine refers to its AddressSpace, and a Function belongs to its Module. The AddressSpace and the
// Module must outlive their users.
//
// ```cpp
// simgpu::Fault run(simgpu::AddressSpace& space, simgpu::Engine& engine, const char* ptx, const char* kernel) {
//   const simgpu::Module::Loaded loaded = simgpu::Module::load(ptx, space);
//   if (loaded.module == nullptr) return {loaded.code, loaded.log};
//   simgpu::Launch launch;  // one block of one thread, without parameters
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
  std::string what;  // one sentence, with kernel, block, thread and address if they are known
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
  bool leaving = false;    // freed in stream order: work in flight may use the range, host calls may not
  bool read_only = false;  // only for kind Mapped
};

// Device memory: a reserved address range of the process (at 0x7ee0'0000'0000 if that is free) in which allocations are
// committed. The space also contains host ranges pinned for the device, and mappings of virtual memory. Each access of
// a kernel or copy is checked. Adjacent mappings count as one range.
class AddressSpace {
 public:
  explicit AddressSpace(std::size_t capacity);  // `capacity` is the total that cuMemGetInfo reports
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  Address allocate(
      std::size_t size);     // aligned to at least 256 bytes; 0 if the capacity is exhausted; contents undefined
  bool free(Address start);  // false if no live allocation starts at `start`
  bool add_host(void* start, std::size_t size);  // false if the range overlaps an existing range
  bool remove_host(void* start);

  // Reserves inaccessible memory that is aligned to 512 bytes. The caller adds ranges within this memory, and removes
  // all of these ranges before give_back_claim().
  Address claim(std::size_t size);
  void give_back_claim(Address start, std::size_t size);
  // Adds a part of claimed memory, or a mapping, without using up capacity. Returns false if the range overlaps
  // another.
  bool add(const Range& range);  // assigns the range's id
  bool remove(Address start);
  bool set_leaving(Address start, bool leaving);  // a range whose leaving is reset gets a new id
  // Counts memory outside this space as used memory of the device. Returns false if too little memory is left.
  bool charge(std::size_t size);
  void discharge(std::size_t size);
  // From now on, charge() and discharge() also update this counter. Call this function before either of them.
  void publish_use(std::atomic<std::uint64_t>* published);

  std::optional<Range> find(Address inside) const;
  // Returns true if [start, start+size) lies in one live range or in adjacent mappings that permit the access.
  bool check(Address start, std::size_t size, bool to_write = false) const;
  std::size_t capacity() const;
  std::size_t used() const;
  TextureTable& textures();  // the texture and surface objects of the device

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

// A kernel. Its Module owns it.
struct Function {
  std::string name;
  std::vector<ParamInfo> params;
  std::size_t param_bytes = 0;
  std::uint32_t max_threads_per_block = 1024;  // from .maxntid or .reqntid, else the device's limit of 1024
  std::optional<Dim3> required_block;          // from .reqntid
  std::optional<Dim3> cluster;                 // from .reqnctapercluster: blocks of each cluster
  // from .maxclusterrank: blocks of the largest cluster; 0: the device's limit
  std::uint32_t max_cluster = 0;
  bool explicit_cluster = false;  // from .explicitcluster: a launch must give the cluster size
  bool grid_of_clusters = false;  // from .blocksareclusters: the grid size counts clusters
  std::size_t static_shared = 0;
  std::size_t local_bytes = 0;  // bytes per thread
  std::size_t const_bytes = 0;  // bytes of the module's constant memory
  int registers = 0;            // an estimate for attributes and occupancy
  bool prints = false;          // the kernel, or a function that it may call, uses printf
  bool allocates = false;       // the kernel, or a function that it may call, uses malloc or free
  int ptx_version = 0;          // PTX target times ten, as CU_FUNC_ATTRIBUTE_PTX_VERSION reports it: 75, 90, 120
  const struct Code* code = nullptr;
};

struct Global {
  std::string name;
  Address address = 0;
  std::size_t size = 0;
  bool constant = false;
  bool managed = false;
};

// A loaded image. Its global variables are in device memory and initialised.
class Module {
 public:
  struct Loaded {
    std::unique_ptr<Module> module;  // null on failure
    CUresult code =
        CUDA_SUCCESS;  // INVALID_PTX, INVALID_IMAGE, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION, OUT_OF_MEMORY...
    std::string log;   // text for a JIT log: "line 12: opcode foo.bar is not served"
  };
  // `image` has the forms that cuModuleLoadData accepts: a fat binary wrapper or container, a cubin, or NUL-terminated
  // PTX text. As in the driver, the caller passes no length: the function reads only bytes that the image's headers
  // describe.
  static Loaded load(const void* image, AddressSpace& space);
  ~Module();

  const Function* function(std::string_view name) const;
  std::vector<const Function*> functions() const;
  const Global* global(std::string_view name) const;
  std::vector<const Global*> globals() const;
  // Return the variable of a texture or surface reference: 8 bytes that hold a number of the space's textures(), or 0.
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
  std::span<const std::byte> params;  // param_bytes bytes, laid out by Function::params
  bool cooperative = false;           // all blocks must be resident at the same time
  // The multiprocessors that %smid reports; a count of 0 means all.
  std::uint32_t first_multiprocessor = 0, multiprocessors = 0;
  std::optional<Dim3> cluster = {};  // blocks per cluster; nullopt: each block is a cluster of its own
  // The context's heap for device malloc, receiver of printf text, and stack bytes per thread; null or 0: the engine's
  // defaults.
  Heap* heap = nullptr;
  const std::function<void(std::string_view)>* print = nullptr;
  std::uint32_t stack = 0;  // used for kernels whose stack size is unknown when they are loaded
  // Receives the handle and the value of each graph condition that the kernel sets; null: the values are ignored.
  const std::function<void(std::uint64_t, std::uint32_t)>* set_condition = nullptr;
};

class Engine {
 public:
  // `workers` is the number of threads that execute blocks. 0 means one per core, or fewer if the system refuses
  // threads. `print` receives the text of device printf.
  Engine(AddressSpace& space, unsigned workers, std::function<void(std::string_view)> print);
  ~Engine();

  // Runs a grid and returns when it has ended; several threads may call this function. The caller checks limits (grid,
  // block, cluster, shared memory). Returns the first fault, which also stops the other blocks of the grid.
  Fault run(const Launch& launch);

  unsigned missing_workers() const;  // number of threads that the system refused to create

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace simgpu
