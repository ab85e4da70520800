// The objects that the handles of the simulated driver refer to. They are plain data; the files of each subject define
// the calls.
//
// Lifetime: all objects are held by shared pointers, so work in flight keeps the objects that it uses. Calls do not
// find an object whose handle has been destroyed or whose context has ended. Locks: Schedule::order() may be locked
// while an object's mutex is held, but never the reverse.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/simgpu/api/device/time_slices.h"
#include "host/simgpu/api/stream/schedule.h"
#include "host/simgpu/engine.h"
#include "host/simgpu/vm/heap.h"
#include "ring/abi/old_launch.h"

namespace simgpu {

struct Context;
struct GreenContext;
struct Stream;
struct LoadedLibrary;
struct LinkState;
struct StreamCapture;
struct EventCapture;
struct TextureReference;
struct SurfaceReference;
class MemoryPool;

// The default and the current pool of a location (pool_places.h).
struct PoolsOfPlace {
  CUmemoryPool standard = nullptr, current = nullptr;
};

struct Device {
  Device(int ordinal_, std::size_t memory) : ordinal(ordinal_), space(memory), engine(space, 0, {}) {}

  const int ordinal;
  AddressSpace space;
  Engine engine;
  TimeSlices time;
  std::shared_ptr<Context> primary;  // like the next two members: set once, before the device is published
  std::size_t context_memory = 0;    // bytes of device memory that each context occupies
  bool pageable = false;             // the device reports that kernels can access all memory of the process

  ring::RecursiveMutex mutex;  // recursive, since ending a context runs code of the runtime that may call the driver
  unsigned primary_references GUARDED_BY(mutex) = 0;
  unsigned primary_flags GUARDED_BY(mutex) = 0;
  PoolsOfPlace pools GUARDED_BY(mutex);
};

struct Context {
  explicit Context(Device& device_) : device(device_) {}

  Device& device;
  CUcontext handle = nullptr;
  std::uint64_t id = 0;
  std::atomic<unsigned> api_version{3020};  // version of the cuCtxCreate call that created the context
  bool is_primary = false;
  std::atomic<bool> active{false};  // false: destroyed, or a primary context that is not retained
  std::atomic<bool> ending{false};  // waits in the context's streams must stop
  std::size_t memory = 0;           // bytes of device memory that the context itself occupies

  ring::Mutex mutex;
  unsigned flags GUARDED_BY(mutex) = 0;
  unsigned attached GUARDED_BY(mutex) = 1;  // for a created context: the number of cuCtxDetach calls that end it
  CUfunc_cache cache_config GUARDED_BY(mutex) = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config GUARDED_BY(mutex) = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  std::array<std::size_t, CU_LIMIT_MAX> limits GUARDED_BY(mutex){};
  // A kernel was launched that may call printf, or malloc.
  bool prints GUARDED_BY(mutex) = false, allocates GUARDED_BY(mutex) = false;

  std::unique_ptr<Heap> heap;  // exists while the context is active, like `print`
  std::function<void(std::string_view)> print;

  // Schedule::order() protects the members below.
  std::shared_ptr<Stream> legacy;
  Ticket recorded;  // work of the newest cuCtxRecordEvent
  Ticket gate;      // set by cuCtxWaitEvent: all later work waits for this ticket
  // all streams except legacy; a destroyed stream stays until its work is done
  std::vector<std::shared_ptr<Stream>> streams;
};

// Stream attributes other than flags and priority. They have no effect in the simulation.
struct StreamAttributes {
  CUaccessPolicyWindow window{};
  std::uint32_t policy = ~0U;  // a CUsynchronizationPolicy; ~0: not set
  CUlaunchMemSyncDomainMap domains{.default_ = 0, .remote = 1};
  CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
};

struct Stream {
  std::shared_ptr<Context> context;
  std::shared_ptr<GreenContext> green;  // the green context that owns the stream; null if none does
  CUstream handle = nullptr;            // for the special streams: 1 or 2
  std::uint64_t id = 0;
  unsigned flags = 0;
  std::atomic<int> priority{0};

  // Schedule::order() protects these members.
  StreamAttributes attributes;
  Ticket last;  // the newest work of the stream
  bool destroyed = false;

  std::shared_ptr<StreamCapture> captured;  // set while the stream is captured; protected by Driver::graph_mutex
};

struct Event {
  std::shared_ptr<Context> context;
  CUevent handle = nullptr;
  unsigned flags = 0;
  ring::Mutex mutex;
  Ticket record GUARDED_BY(mutex);  // work of the newest cuEventRecord

  // set if the event was last recorded in a captured stream; protected by Driver::graph_mutex
  std::shared_ptr<EventCapture> captured;
};

// A kernel's attributes and old launch state, in addition to the engine's description. Each function of a module has
// one object.
struct LoadedFunction {
  const Function* code = nullptr;
  CUfunction handle = nullptr;  // created at first use; protected by LoadedModule::mutex
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
  // values set for CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, _HEIGHT, _DEPTH
  std::array<std::atomic<int>, 3> cluster{};
  std::atomic<int> non_portable_clusters{0};
  std::atomic<int> cluster_scheduling{CU_CLUSTER_SCHEDULING_POLICY_DEFAULT};  // a hint without effect
  cuabi::OldLaunch old_launch;
};

// A module in a context: either loaded there, or the part of a library. Work in flight holds a reference.
struct LoadedModule {
  std::shared_ptr<Context> context;
  std::shared_ptr<Module> module;
  std::map<std::string_view, std::unique_ptr<LoadedFunction>> functions;  // constant once loaded
  // the library of which this module is a part; empty if none
  std::weak_ptr<LoadedLibrary> library;
  ring::Mutex mutex;
  CUmodule handle GUARDED_BY(mutex) = nullptr;  // for a library's part: created at first use
  // References by variable. They are created at first use.
  std::map<const Global*, std::shared_ptr<TextureReference>> texture_references GUARDED_BY(mutex);
  std::map<const Global*, std::shared_ptr<SurfaceReference>> surface_references GUARDED_BY(mutex);
};

// The function to which a handle refers.
struct FunctionReference {
  std::shared_ptr<LoadedModule> module;
  LoadedFunction* function = nullptr;
};

struct Kernel {
  std::weak_ptr<LoadedLibrary> library;
  CUkernel handle = nullptr;
  std::string name;
};

}  // namespace simgpu
