#include "host/untrusted/counted.h"

#include <algorithm>
#include <utility>

#include "host/untrusted/calls/pageable_node.h"
#include "host/untrusted/marshal/captured.h"
#include "host/untrusted/marshal/executables.h"

namespace host::counted {
namespace {

// ---- pools ---------------------------------------------------------------------------------------------------------

// Returns whether the call would add a memory node, which would allocate uncounted memory at each launch. Our guest
// library does not send such calls.
bool makes_memory_node(const Request& r, CUstream stream) {
  return r.session.graphs.captures.any() && is_captured(r.session.driver, Captures::in_thread(stream, r.per_thread()));
}

CUresult from_pool(Request& r, const Pools::Allocation& wanted, CUdeviceptr* at, CUstream stream,
                   const std::function<CUresult()>& allocate) {
  *at = 0;
  if (makes_memory_node(r, stream)) return CUDA_ERROR_NOT_SUPPORTED;
  const Pools::Made made = r.session.memory.pools.allocate(wanted, *at, allocate, [&] {
    const Driver& driver = r.session.driver;
    (r.per_thread() ? driver.cuMemFreeAsync_ptsz : driver.cuMemFreeAsync)(*at, stream);
    *at = 0;
  });
  r.pool = made.number;
  return made.result;
}

// Host memory counts as the first device's memory. The driver itself refuses devices that do not exist.
unsigned device_at(const CUmemLocation& location) {
  const bool is_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 &&
                         static_cast<unsigned>(location.id) < ring::max_devices;
  return is_device ? static_cast<unsigned>(location.id) : 0;
}

CUresult found_pool(Request& r, CUresult result, const CUmemoryPool* pool, unsigned device) {
  if (result == CUDA_SUCCESS) r.session.memory.pools.found(*pool, device);
  return result;
}

// ---- limits of a context -------------------------------------------------------------------------------------------

// Returns the memory that the driver keeps for a limit of this value.
Footprint of_limit(const Request& r, CUlimit limit, std::uint64_t value) {
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE) return value;
  if (limit != CU_LIMIT_STACK_SIZE) return 0;
  const auto attribute = [&](CUdevice_attribute which) {
    int number = 0;
    const bool answered = r.session.driver.cuDeviceGetAttribute(
                              &number, which, static_cast<CUdevice>(r.working_device())) == CUDA_SUCCESS;
    return answered && number > 0 ? static_cast<std::uint64_t>(number) : 0;
  };
  return Footprint(value) * attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
         attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

// ---- modules and libraries -----------------------------------------------------------------------------------------

// Unloads a module or library. From before the driver's unload on, no thread touches the object's variables, and no
// channel keeps a graph with a function of the object.
template <class T, class D>
CUresult unload(const Request& r, T handle, const D& driver) {
  r.session.memory.kept_graphs.end_all();
  ShadowCopies& shadow_copies = r.session.memory.shadow_copies;
  ShadowCopies::Variables variables = shadow_copies.take_of(r.ending);
  const CUresult result = driver(handle);
  if (result != CUDA_SUCCESS && !is_fault(result)) shadow_copies.put_back(std::move(variables));
  return result;
}

}  // namespace

COUNTED(cuMemAllocAsync, CUdeviceptr* at, std::size_t bytes, CUstream stream) {
  return from_pool(r, {.device = r.working_device(), .bytes = bytes, .pool = nullptr}, at, stream,
                   [&] { return driver(at, bytes, stream); });
}

COUNTED(cuMemFreeAsync, CUdeviceptr at, CUstream stream) {
  return makes_memory_node(r, stream) ? CUDA_ERROR_NOT_SUPPORTED : driver(at, stream);
}

COUNTED(cuMemAllocFromPoolAsync, CUdeviceptr* at, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return from_pool(r, {.device = r.working_device(), .bytes = bytes, .pool = pool}, at, stream,
                   [&] { return driver(at, bytes, pool, stream); });
}

COUNTED(cuDeviceGetDefaultMemPool, CUmemoryPool* pool, CUdevice device) {
  return found_pool(r, driver(pool, device), pool, static_cast<unsigned>(device));
}

COUNTED(cuDeviceGetMemPool, CUmemoryPool* pool, CUdevice device) {
  return found_pool(r, driver(pool, device), pool, static_cast<unsigned>(device));
}

COUNTED(cuMemGetDefaultMemPool, CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return found_pool(r, driver(pool, location, type), pool, device_at(*location));
}

COUNTED(cuMemGetMemPool, CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return found_pool(r, driver(pool, location, type), pool, device_at(*location));
}

COUNTED(cuMemPoolCreate, CUmemoryPool* pool, const CUmemPoolProps* properties) {
  const CUresult result = driver(pool, properties);
  if (result == CUDA_SUCCESS) r.session.memory.pools.made(*pool, device_at(properties->location));
  return result;
}

COUNTED(cuMemPoolDestroy, CUmemoryPool pool) {
  return r.session.memory.pools.end(pool, [&] { return driver(pool); });
}

COUNTED(cuMemPoolTrimTo, CUmemoryPool pool, std::size_t keep) {
  const CUresult result = driver(pool, keep);
  r.session.memory.pools.refresh();
  return result;
}

COUNTED(cuMemCreate, CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* properties,
        unsigned long long flags) {
  if (!r.may_take(device_at(properties->location), of_allocation(bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
  return driver(handle, bytes, properties, flags);
}

COUNTED(cuArrayCreate_v2, CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  return r.may_take(of_array(*description)) ? driver(array, description) : CUDA_ERROR_OUT_OF_MEMORY;
}

COUNTED(cuArray3DCreate_v2, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return r.may_take(of_array(*description)) ? driver(array, description) : CUDA_ERROR_OUT_OF_MEMORY;
}

COUNTED(cuMipmappedArrayCreate, CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned levels) {
  return r.may_take(of_array(*description, levels)) ? driver(array, description, levels) : CUDA_ERROR_OUT_OF_MEMORY;
}

// The context's initial limits are part of the context's counted size. A lowered limit gives memory back only when the
// context ends, since the driver may keep the memory until then.
COUNTED(cuCtxSetLimit, CUlimit limit, std::size_t value) {
  Contexts& contexts = r.session.contexts;
  const unsigned context = contexts.home_of(r.context);
  std::size_t before = 0;
  if (r.session.driver.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS) return driver(limit, value);
  const std::uint64_t wanted = of_limit(r, limit, value).bytes();
  const std::uint64_t there = std::max(of_limit(r, limit, before).bytes(), contexts.grown_to(context, limit));
  if (wanted <= there) return driver(limit, value);
  if (!r.may_take(wanted - there)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = driver(limit, value);
  if (result == CUDA_SUCCESS) contexts.grow(context, limit, wanted, std::move(r.charge));
  return result;
}

// Reports the VM's limit as the total memory, and the memory that the VM can still get as free, unless the GPU itself
// has less.
COUNTED(cuMemGetInfo_v2, std::size_t* free, std::size_t* total) {
  const CUresult result = driver(free, total);
  if (result != CUDA_SUCCESS || (free == nullptr && total == nullptr)) return result;
  const auto headroom = r.session.memory.device.headroom(r.working_device());
  if (headroom && free != nullptr) *free = std::min<std::size_t>(*free, headroom->free);
  if (headroom && total != nullptr) *total = std::min<std::size_t>(*total, headroom->total);
  return result;
}

// ---- captures and graphs -------------------------------------------------------------------------------------------

COUNTED(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode) {
  const CUresult result = driver(stream, mode);
  if (result != CUDA_SUCCESS) return result;
  const CUstream captured = Captures::in_thread(stream, r.per_thread());
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  r.session.driver.cuStreamGetCaptureInfo_v2(captured, &status, nullptr, &graph, nullptr, nullptr);
  r.session.graphs.captures.began({captured, graph, r.working_context()});
  return result;
}

COUNTED(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph, const CUgraphNode* nodes,
        const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode) {
  const CUresult result = driver(stream, graph, nodes, edges, count, mode);
  if (result == CUDA_SUCCESS)
    r.session.graphs.captures.began({Captures::in_thread(stream, r.per_thread()), nullptr, r.working_context()});
  return result;
}

COUNTED(cuStreamDestroy_v2, CUstream stream) {
  if (r.session.graphs.captures.any()) {
    const auto alone = r.session.ending();
    r.session.end_capture(stream);
  }
  return driver(stream);
}

// Hides the child graph of a copy of the program's own memory. The program sees a copy node instead.
COUNTED(cuGraphNodeGetType, CUgraphNode node, CUgraphNodeType* type) {
  const CUresult result = driver(node, type);
  if (result == CUDA_SUCCESS && *type == CU_GRAPH_NODE_TYPE_GRAPH && PageableNode::of(r.session.driver, node))
    *type = CU_GRAPH_NODE_TYPE_MEMCPY;
  return result;
}

COUNTED(cuGraphChildGraphNodeGetGraph, CUgraphNode node, CUgraph* graph) {
  return PageableNode::of(r.session.driver, node) ? CUDA_ERROR_INVALID_VALUE : driver(node, graph);
}

COUNTED(cuGraphInstantiateWithFlags, CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return take_room_of_executable(r, graph) ? driver(exec, graph, flags) : CUDA_ERROR_OUT_OF_MEMORY;
}

// The guest gets the driver's own handle, since programs pass the handle to kernels. The worker accepts only handles
// that it has returned.
COUNTED(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context,
        unsigned value, unsigned flags) {
  const CUresult result = driver(handle, graph, context, value, flags);
  const bool kept = result != CUDA_SUCCESS || r.session.graphs.conditionals.add(*handle);
  return kept ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

// ---- modules and libraries -----------------------------------------------------------------------------------------

COUNTED(cuModuleUnload, CUmodule module) { return unload(r, module, driver); }
COUNTED(cuLibraryUnload, CUlibrary library) { return unload(r, library, driver); }

}  // namespace host::counted
