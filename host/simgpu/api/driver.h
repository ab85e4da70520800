// The state of the simulated driver, and the wrappers of all exported calls. cuInit creates the state; nothing destroys
// it.
//
// Lock order: a device's mutex; graph_mutex; an event's; Schedule::order(); the schedule's own. A library's comes
// before its modules', a module's before its references', fault_mutex_ before the log's. The rest lock only what lies
// below them: a context its heap, a pool or the virtual memory the address space.
#pragma once

#include "host/simgpu/api/objects.h"
#include "ring/base/mutex.h"

#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "host/simgpu/api/context/green.h"
#include "host/simgpu/api/handles.h"
#include "host/simgpu/api/memory/managed_advice.h"
#include "host/simgpu/api/memory/memory_map.h"
#include "host/simgpu/api/memory/virtual_memory.h"
#include "host/simgpu/api/stream/callback_thread.h"
#include "host/simgpu/api/texture/resource.h"

namespace simgpu {

struct Settings;
struct Array;
struct MipmappedArray;
struct TextureReference;
struct SurfaceReference;
struct Graph;
struct GraphNode;
struct GraphExec;
class UserObject;
struct Capture;

// Allocation type, location type, location number.
using PoolPlace = std::tuple<CUmemAllocationType, CUmemLocationType, int>;

// State of the calling thread: its context stack and its default streams.
struct ThreadState {
  std::vector<std::shared_ptr<Context>> contexts;
  std::map<Context*, std::shared_ptr<Stream>> streams;
  bool in_callback = false;  // the thread runs a stream's host function, which must not call CUDA
  std::uint64_t id = 0;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

class Driver {
 public:
  // Returns null before cuInit, in a child forked after cuInit, and during exit; `why` receives the reason.
  static Driver* get(CUresult* why = nullptr);
  static CUresult initialise();
  static bool is_forked();  // the process is a child that was forked after cuInit

  const bool launch_blocking;
  std::vector<std::unique_ptr<Device>> devices;
  HandleTable<Context, CUcontext, HandleKind::Context> contexts;
  HandleTable<Stream, CUstream, HandleKind::Stream> streams;
  HandleTable<Event, CUevent, HandleKind::Event> events;
  HandleTable<LoadedModule, CUmodule, HandleKind::Module> modules;
  HandleTable<FunctionReference, CUfunction, HandleKind::Function> functions;
  HandleTable<LoadedLibrary, CUlibrary, HandleKind::Library> libraries;
  HandleTable<Kernel, CUkernel, HandleKind::Kernel> kernels;
  HandleTable<MemoryPool, CUmemoryPool, HandleKind::MemoryPool> pools;
  HandleTable<Array, CUarray, HandleKind::Array> arrays;
  HandleTable<MipmappedArray, CUmipmappedArray, HandleKind::MipmappedArray> mipmapped_arrays;
  HandleTable<TextureReference, CUtexref, HandleKind::TextureReference> texture_references;
  HandleTable<SurfaceReference, CUsurfref, HandleKind::SurfaceReference> surface_references;
  TextureObjectRecords texture_objects;
  HandleTable<GreenContext, CUgreenCtx, HandleKind::GreenContext> greens;
  HandleTable<ResourceDescription, CUdevResourceDesc, HandleKind::ResourceDescription> descriptions;
  HandleTable<LinkState, CUlinkState, HandleKind::Link> links;
  HandleTable<Graph, CUgraph, HandleKind::Graph> graphs;
  HandleTable<GraphNode, CUgraphNode, HandleKind::GraphNode> graph_nodes;
  HandleTable<GraphExec, CUgraphExec, HandleKind::GraphExec> graph_execs;
  HandleTable<UserObject, CUuserObject, HandleKind::UserObject> user_objects;
  ring::RecursiveMutex graph_mutex;  // protects all graphs and captures (graph.h)
  std::vector<std::shared_ptr<Capture>> captures GUARDED_BY(graph_mutex);
  std::atomic<std::size_t> captures_open{0};        // number of open captures
  CallbackThread& callbacks = *new CallbackThread;  // never freed: its thread waits inside it
  MemoryMap memory;
  Schedule& schedule = *new Schedule;  // never freed, even if creating the rest fails: its threads wait inside it

  VirtualMemory virtual_memory;
  ManagedAdvice managed_advice;

  ring::Mutex places_mutex;  // protects the pools of all locations except device memory
  std::map<PoolPlace, PoolsOfPlace> pools_of_places GUARDED_BY(places_mutex);

  ThreadState& thread();
  bool in_callback() const;
  Context* current();                         // the context may be inactive
  std::shared_ptr<Context> current_shared();  // the same context as current()
  Device* device(CUdevice ordinal);           // null if there is no device of this number
  std::uint64_t next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // The error that all calls of the process return after a kernel has failed; CUDA_SUCCESS if none has failed.
  CUresult fault() const { return static_cast<CUresult>(fault_.load(std::memory_order_acquire)); }
  void fail(const Fault& fault);

  // Device printf text goes to stdout when the host waits, as CUDA documents. A context keeps the newest text, up to
  // the size of its printf buffer.
  void print(Context& context, std::string_view text);
  void flush_output();

 private:
  explicit Driver(const Settings& settings);
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<int> fault_{CUDA_SUCCESS};
  ring::Mutex fault_mutex_;
  ring::Mutex output_mutex_;
  std::map<const Context*, std::string> output_ GUARDED_BY(output_mutex_);
};

// Thrown if a capture forbids a command; the wrapper of the call returns `code`.
struct CallRefused {
  CUresult code;
};

// Wraps a call that needs the driver but no context. The wrapper refuses the call inside a host function of a stream.
template <class F>
CUresult with_driver(F&& call) noexcept {
  CUresult why;
  Driver* driver = Driver::get(&why);
  if (driver == nullptr) return why;
  if (driver->in_callback()) return CUDA_ERROR_NOT_PERMITTED;
  try {
    return call(*driver);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const CallRefused& refused) {
    return refused.code;
  }
}

// Makes the call only if the context has neither failed nor ended.
template <class F>
CUresult in_context(Driver& driver, Context& context, F&& call) {
  if (!context.active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const CUresult fault = driver.fault(); fault != CUDA_SUCCESS) return fault;
  return call(driver, context);
}

// Wraps a call that needs a current context which has neither failed nor ended.
template <class F>
CUresult with_context(F&& call) noexcept {
  return with_driver([&](Driver& driver) {
    Context* context = driver.current();
    return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : in_context(driver, *context, call);
  });
}

// Wraps a call on an object, whose context must have neither failed nor ended but need not be current. If the handle is
// null, the wrapper checks the current context instead.
template <class Table, class Handle, class F>
CUresult with_context_of(Table Driver::*table, Handle handle, F&& call) noexcept {
  if (handle == nullptr) return with_context(call);
  return with_driver([&](Driver& driver) {
    const auto object = (driver.*table).find(handle);
    if (object != nullptr) return in_context(driver, *object->context, call);
    const CUresult fault = driver.fault();
    return fault != CUDA_SUCCESS ? fault : CUDA_ERROR_INVALID_HANDLE;
  });
}

// For calls that lack a required argument: returns `code` if cuInit has run, even in a forked child.
inline CUresult missing_once_initialised(CUresult code) noexcept {
  return Driver::is_forked() ? code : with_driver([&](Driver&) { return code; });
}

// For calls that free memory: succeeds without a current context, and fails if the current context has ended or failed.
inline CUresult living_or_no_context() noexcept {
  const CUresult state = with_context([](Driver&, Context&) { return CUDA_SUCCESS; });
  return state == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : state;
}

}  // namespace simgpu
