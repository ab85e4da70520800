// The objects behind the handles of the simulated driver. Plain records: the calls that belong to a noun are in its
// file.
//
// Lifetime: everything is held by shared pointers, so work in flight keeps what it uses. An object whose handle is
// gone, or whose context is, is no longer found by any call. Locks: an object's own mutex may be held when
// Schedule::order() is taken, never the other way round.
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

// The pools of a place (pool_places.h).
struct PoolsOfPlace {
  CUmemoryPool standard = nullptr, current = nullptr;
};

struct Device {
  Device(int ordinal_, std::size_t memory) : ordinal(ordinal_), space(memory), engine(space, 0, {}) {}

  const int ordinal;
  AddressSpace space;
  Engine engine;
  TimeSlices time;
  std::shared_ptr<Context> primary;  // set once, before the device is seen, as the next two
  std::size_t context_memory = 0;    // that each context takes
  bool pageable = false;             // it reports that kernels reach all of the process's memory

  std::recursive_mutex mutex;  // for the members below; a context's end runs the runtime's code, which may come back
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  PoolsOfPlace pools;
};

struct Context {
  explicit Context(Device& device_) : device(device_) {}

  Device& device;
  CUcontext handle = nullptr;
  std::uint64_t id = 0;
  std::atomic<unsigned> api_version{3020};  // of the form that has created it
  bool is_primary = false;
  std::atomic<bool> active{false};  // false: destroyed, or a primary context that is not retained
  std::atomic<bool> ending{false};  // waits in streams are abandoned
  std::size_t memory = 0;           // that it has taken for itself

  std::mutex mutex;  // for the members below
  unsigned flags = 0;
  unsigned attached = 1;  // of a created one: ends by as many cuCtxDetach
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  std::array<std::size_t, CU_LIMIT_MAX> limits{};
  bool prints = false, allocates = false;  // a kernel was launched that may print, or take memory by malloc

  std::unique_ptr<Heap> heap;  // from the context's begin to its end, as the next
  std::function<void(std::string_view)> print;

  // Under Schedule::order().
  std::shared_ptr<Stream> legacy;
  Ticket recorded;                               // the newest cuCtxRecordEvent
  Ticket gate;                                   // all later work comes after it: cuCtxWaitEvent
  std::vector<std::shared_ptr<Stream>> streams;  // all but legacy; a destroyed one until its work is done
};

// What a program has asked of a stream beside its flags and priority; without effect here.
struct StreamAttributes {
  CUaccessPolicyWindow window{};
  std::uint32_t policy = ~0U;  // a CUsynchronizationPolicy, or that none is set
  CUlaunchMemSyncDomainMap domains{.default_ = 0, .remote = 1};
  CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
};

struct Stream {
  std::shared_ptr<Context> context;
  std::shared_ptr<GreenContext> green;  // whose it is beside, if it is one's
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

// The data of a kernel's launches and attributes beside the engine's description; one for each function of a module.
struct LoadedFunction {
  const Function* code = nullptr;
  CUfunction handle = nullptr;  // given out at the first question; under LoadedModule::mutex
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
  std::array<std::atomic<int>, 3> cluster{};  // CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, _HEIGHT, _DEPTH as set
  std::atomic<int> non_portable_clusters{0};
  std::atomic<int> cluster_scheduling{CU_CLUSTER_SCHEDULING_POLICY_DEFAULT};  // a hint
  cuabi::OldLaunch old_launch;
};

// A module in a context: one that was loaded there, or a library's part in it. Work in flight holds it.
struct LoadedModule {
  std::shared_ptr<Context> context;
  std::shared_ptr<Module> module;
  std::map<std::string_view, std::unique_ptr<LoadedFunction>> functions;  // constant once loaded
  std::weak_ptr<LoadedLibrary> library;                                   // whose it is, if a library's
  std::mutex mutex;
  CUmodule handle = nullptr;  // a library's part has one once it was asked for; under mutex
  // By variable, from the first question on; under mutex.
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
