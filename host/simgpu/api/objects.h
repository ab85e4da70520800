// The objects behind the simulated driver's handles. Plain data: the files of each subject define the calls.
//
// Lifetime: shared pointers hold all objects, so work in flight keeps what it uses. Calls do not find an object whose
// handle or context is gone. Locks: an object's mutex may be held when taking Schedule::order(), never the reverse.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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

// The pools of a location (pool_places.h).
struct PoolsOfPlace {
  CUmemoryPool standard = nullptr, current = nullptr;
};

struct Device {
  Device(int ordinal_, std::size_t memory) : ordinal(ordinal_), space(memory), engine(space, 0, {}) {}

  const int ordinal;
  AddressSpace space;
  Engine engine;
  TimeSlices time;
  std::shared_ptr<Context> primary;  // this and the next two: set once, before the device is published
  std::size_t context_memory = 0;    // bytes that each context takes
  bool pageable = false;             // report that kernels reach all process memory

  std::recursive_mutex
      mutex;  // for the members below; recursive, since ending a context runs runtime code that may call back
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  PoolsOfPlace pools;
};

struct Context {
  explicit Context(Device& device_) : device(device_) {}

  Device& device;
  CUcontext handle = nullptr;
  std::uint64_t id = 0;
  std::atomic<unsigned> api_version{3020};  // of the call that created it
  bool is_primary = false;
  std::atomic<bool> active{false};  // false: destroyed, or an unretained primary context
  std::atomic<bool> ending{false};  // stop waits of its streams
  std::size_t memory = 0;           // bytes that the context itself takes

  std::mutex mutex;  // for the members below
  unsigned flags = 0;
  unsigned attached = 1;  // of a created context: cuCtxDetach calls until its end
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  std::array<std::size_t, CU_LIMIT_MAX> limits{};
  bool prints = false, allocates = false;  // it launched a kernel that may call printf, or malloc

  std::unique_ptr<Heap> heap;  // exists while the context is active, like the next
  std::function<void(std::string_view)> print;

  // Under Schedule::order().
  std::shared_ptr<Stream> legacy;
  Ticket recorded;                               // the newest cuCtxRecordEvent
  Ticket gate;                                   // all later work waits for it: cuCtxWaitEvent
  std::vector<std::shared_ptr<Stream>> streams;  // all but legacy; destroyed ones until their work is done
};

// Stream attributes besides flags and priority; they have no effect here.
struct StreamAttributes {
  CUaccessPolicyWindow window{};
  std::uint32_t policy = ~0U;  // a CUsynchronizationPolicy; ~0: not set
  CUlaunchMemSyncDomainMap domains{.default_ = 0, .remote = 1};
  CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
};

struct Stream {
  std::shared_ptr<Context> context;
  std::shared_ptr<GreenContext> green;  // the green context that owns it, if any
  CUstream handle = nullptr;            // the special streams: 1 or 2
  std::uint64_t id = 0;
  unsigned flags = 0;
  std::atomic<int> priority{0};

  // Under Schedule::order().
  StreamAttributes attributes;
  Ticket last;  // the newest work
  bool destroyed = false;

  std::shared_ptr<StreamCapture> captured;  // while the stream is captured; under Driver::graph_mutex
};

struct Event {
  std::shared_ptr<Context> context;
  CUevent handle = nullptr;
  unsigned flags = 0;
  std::mutex mutex;
  Ticket record;  // of the newest cuEventRecord

  std::shared_ptr<EventCapture> captured;  // if that was in a captured stream; under Driver::graph_mutex
};

// Launch data and attributes of a kernel besides the engine's description; one per function of a module.
struct LoadedFunction {
  const Function* code = nullptr;
  CUfunction handle = nullptr;  // created at first use; under LoadedModule::mutex
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
  std::array<std::atomic<int>, 3> cluster{};  // CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, _HEIGHT, _DEPTH as set
  std::atomic<int> non_portable_clusters{0};
  std::atomic<int> cluster_scheduling{CU_CLUSTER_SCHEDULING_POLICY_DEFAULT};  // a hint
  cuabi::OldLaunch old_launch;
};

// A module in a context: loaded there, or a library's part. Work in flight holds it.
struct LoadedModule {
  std::shared_ptr<Context> context;
  std::shared_ptr<Module> module;
  std::map<std::string_view, std::unique_ptr<LoadedFunction>> functions;  // constant once loaded
  std::weak_ptr<LoadedLibrary> library;                                   // the library that it belongs to, if any
  std::mutex mutex;
  CUmodule handle = nullptr;  // of a library's part: created at first use; under mutex
  // By variable, created at first use; under mutex.
  std::map<const Global*, std::shared_ptr<TextureReference>> texture_references;
  std::map<const Global*, std::shared_ptr<SurfaceReference>> surface_references;
};

// A function's handle.
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
