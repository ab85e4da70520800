// Calls that launch kernels. A launch that NVIDIA's driver rejects in the call is rejected before it enters the queue.
#include "host/simgpu/api/launch/launch.h"

#include <cstring>

#include "host/simgpu/api/device/hints.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/graph/condition.h"
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/launch/clusters.h"
#include "host/simgpu/api/launch/occupancy.h"
#include "host/simgpu/api/module/library.h"
#include "host/simgpu/api/stream/streams.h"
#include "ring/base/mutex.h"

using namespace simgpu;

namespace {

std::uint64_t volume(const Dim3& d) { return std::uint64_t{d.x} * d.y * d.z; }

bool grid_fits(const Dim3& grid) {
  constexpr std::uint32_t most_x = 0x7fffffff, most = 65535;
  return grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= most_x && grid.y <= most && grid.z <= most;
}

bool block_fits(const Dim3& block, const Function& code) {
  constexpr std::uint32_t most = 1024, most_z = 64;
  if (block.x < 1 || block.y < 1 || block.z < 1 || block.x > most || block.y > most || block.z > most_z) return false;
  if (volume(block) > code.max_threads_per_block) return false;
  if (!code.required_block) return true;
  return block.x == code.required_block->x && block.y == code.required_block->y && block.z == code.required_block->z;
}

// Determines the cluster size. If the kernel's directives make the grid count clusters, this function also computes
// grid and block: for such kernels nvcc passes a block of one thread.
CUresult find_shape(LaunchRequest& request, const LoadedFunction& function) {
  const Function& code = *function.code;
  if (const CUresult error = cluster_of(function, request.cluster, request.cluster); error != CUDA_SUCCESS)
    return error;
  if (!code.grid_of_clusters) return CUDA_SUCCESS;
  if (volume(request.block) == 1) request.block = *code.required_block;
  std::uint32_t* const axes[] = {&request.grid.x, &request.grid.y, &request.grid.z};
  const std::uint32_t by[] = {request.cluster->x, request.cluster->y, request.cluster->z};
  for (unsigned k = 0; k < 3; ++k) {
    if (__builtin_mul_overflow(*axes[k], by[k], axes[k])) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Checks that the grid consists of whole clusters and that one cluster fits on the device.
CUresult check_clusters(const LaunchRequest& request, std::uint64_t room) {
  if (!request.cluster) return CUDA_SUCCESS;
  const Dim3 &grid = request.grid, &cluster = *request.cluster;
  const bool whole = grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
  return whole && volume(cluster) <= room ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult check(const LaunchRequest& request, const LoadedFunction& function, unsigned multiprocessors) {
  const Function& code = *function.code;
  if (!grid_fits(request.grid) || !block_fits(request.block, code)) return CUDA_ERROR_INVALID_VALUE;
  if (request.dynamic_shared > static_cast<std::size_t>(function.max_dynamic_shared)) return CUDA_ERROR_INVALID_VALUE;
  const int resident = resident_blocks(function, volume(request.block), request.dynamic_shared);
  if (resident == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const std::uint64_t room = static_cast<std::uint64_t>(resident) * multiprocessors;
  if (request.cooperative && volume(request.grid) > room) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return check_clusters(request, room);
}

// Packs the parameters from kernelParams, which has a pointer for each parameter.
CUresult pack_each(const Function& code, void** parameters, PackedParameters& out) {
  if (parameters == nullptr) return code.params.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < code.params.size(); ++i)
    std::memcpy(out.data() + code.params[i].offset, parameters[i], code.params[i].size);
  return CUDA_SUCCESS;
}

// Packs the parameters from `extra`, which is one packed buffer. As in NVIDIA's driver, the buffer may be too short but
// not too long.
CUresult pack_buffer(void** extra, PackedParameters& out) {
  const void* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
    if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = at[1];
    else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = static_cast<const std::size_t*>(at[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (buffer == nullptr || size == nullptr) return out.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (*size > out.size()) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (*size != 0) std::memcpy(out.data(), buffer, *size);
  return CUDA_SUCCESS;
}

// Looks up the events that the launch records. Events with timing are refused.
CUresult find_events(Driver& driver, const LaunchRequest& request, std::vector<std::shared_ptr<Event>>& found) {
  for (const CUevent handle : request.events) {
    found.push_back(driver.events.find(handle));
    if (found.back() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((found.back()->flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

void record(Driver& driver, const std::vector<std::shared_ptr<Event>>& events, const Ticket& work) {
  if (events.empty()) return;
  const ring::RecursiveLock graphs(driver.graph_mutex);
  for (const std::shared_ptr<Event>& event : events) {
    const ring::MutexLock lock(event->mutex);
    event->record = work;
    event->captured = nullptr;
  }
}

// Records which features the kernels of the context use, and returns the stack size.
std::uint32_t note_use(Context& context, const Function& code) {
  const ring::MutexLock lock(context.mutex);
  context.prints |= code.prints;
  context.allocates |= code.allocates;
  return static_cast<std::uint32_t>(context.limits[CU_LIMIT_STACK_SIZE]);
}

// Adds an event that the launch records. The flag EXTERNAL is valid only for captured launches.
CUresult add_event(LaunchRequest& request, CUevent event, int flags) {
  if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags != CU_EVENT_RECORD_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  request.events.push_back(event);
  return CUDA_SUCCESS;
}

}  // namespace

namespace simgpu {

CUresult pack_parameters(const LaunchRequest& request, const Function& code, PackedParameters& out) {
  if (request.parameters != nullptr && request.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  out.resize(code.param_bytes);
  return request.extra != nullptr ? pack_buffer(request.extra, out) : pack_each(code, request.parameters, out);
}

CUresult check_launch(LaunchRequest& request, const LoadedFunction& function, unsigned multiprocessors) {
  const CUresult error = find_shape(request, function);
  return error == CUDA_SUCCESS ? check(request, function, multiprocessors) : error;
}

std::function<void()> launch_work(Driver& driver, Context& context, const LaunchRequest& request,
                                  const FunctionReference& reference, const Multiprocessors& on,
                                  PackedParameters parameters) {
  const Launch what{.function = reference.function->code,
                    .grid = request.grid,
                    .block = request.block,
                    .dynamic_shared = request.dynamic_shared,
                    .params = {},
                    .cooperative = request.cooperative,
                    .first_multiprocessor = on.first,
                    .multiprocessors = on.count,
                    .cluster = request.cluster,
                    .heap = context.heap.get(),
                    .print = &context.print,
                    .stack = note_use(context, *reference.function->code),
                    .set_condition = &condition_setter()};
  Engine& engine = context.device.engine;
  TimeSlices& time = context.device.time;
  return [&driver, &engine, &time, what, module = reference.module, parameters = std::move(parameters)] {
    Launch now = what;
    now.params = parameters;
    time.begin();
    if (const Fault fault = engine.run(now)) driver.fail(fault);
    time.end();
  };
}

// Reads an attribute of cuLaunchKernelEx. Valid hints are ignored. An attribute that would change the result is refused
// if the simulation does not support it.
CUresult read_attribute(const CUlaunchAttribute& attribute, LaunchRequest& request) {
  const CUlaunchAttributeValue& value = attribute.value;
  const auto none = [](auto cluster) { return cluster.x == 0 && cluster.y == 0 && cluster.z == 0; };
  const auto valid = [](bool is) { return is ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; };
  const auto is_one_of = [](auto number, auto last) { return static_cast<unsigned>(number) <= last; };
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: request.cooperative = value.cooperative != 0; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      request.cluster = Dim3{value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      return add_event(request, value.programmaticEvent.event, value.programmaticEvent.flags);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return add_event(request, value.launchCompletionEvent.event, value.launchCompletionEvent.flags);
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return valid(is_window(value.accessPolicyWindow));
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return valid(is_carveout(value.sharedMemCarveout));
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return valid(value.nvlinkUtilCentricScheduling <= 1);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return valid(is_one_of(value.clusterSchedulingPolicyPreference, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING));
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return valid(is_one_of(value.memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE));
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      request.prefers_clusters = !none(value.preferredClusterDim);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace simgpu

namespace {

// Adds a node for a launch into a captured stream. A captured launch cannot record events.
CUresult capture_launch(Driver& driver, Stream& stream, const LaunchRequest& request,
                        const FunctionReference& reference, PackedParameters parameters) {
  if (!request.events.empty()) return CUDA_ERROR_NOT_SUPPORTED;
  KernelWork work;
  work.context = reference.module->context;
  work.reference = reference;
  if (is_kind(request.function, HandleKind::Kernel))
    work.kernel = reinterpret_cast<CUkernel>(request.function);
  else
    work.function = request.function;
  work.grid = request.grid;
  work.block = request.block;
  work.dynamic_shared = static_cast<unsigned>(request.dynamic_shared);
  work.by_buffer = request.extra != nullptr;
  work.parameters = std::move(parameters);
  CUgraphEdgeData between{};
  for (const CUlaunchAttribute& attribute : request.attributes) {
    if (is_kernel_node_attribute(attribute.id)) set_attribute(work, attribute);
    const bool early = attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                       attribute.value.programmaticStreamSerializationAllowed != 0;
    if (early) between = {CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
  }
  return capture_node(driver, stream, std::move(work), between);
}

CUlaunchAttribute attribute_of(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  CUlaunchAttribute attribute{};
  attribute.id = id;
  attribute.value = value;
  return attribute;
}

CUresult launch_into(Driver& driver, Context& context, Stream& stream, LaunchRequest request) {
  CUresult error;
  const FunctionReference reference = resolve(driver, request.function, &error);
  if (reference.function == nullptr) return error;
  if (reference.module->context.get() != &context) return CUDA_ERROR_INVALID_HANDLE;
  const Multiprocessors on = multiprocessors_of(driver, stream);
  const LaunchRequest asked = request;
  if (error = check_launch(request, *reference.function, on.count); error != CUDA_SUCCESS) return error;
  PackedParameters parameters;
  if (error = pack_parameters(request, *reference.function->code, parameters); error != CUDA_SUCCESS) return error;
  std::vector<std::shared_ptr<Event>> events;
  if (error = find_events(driver, request, events); error != CUDA_SUCCESS) return error;
  if (is_captured(driver, stream)) return capture_launch(driver, stream, asked, reference, std::move(parameters));
  const Ticket work = post(driver, stream, launch_work(driver, context, request, reference, on, std::move(parameters)));
  record(driver, events, work);
  return driver.launch_blocking ? wait_for(driver, {work}) : CUDA_SUCCESS;
}

CUresult launch(const LaunchRequest& request) {
  return with_context_of(request.stream, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, request.stream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult error = refuse_invalidated(driver, *stream); error != CUDA_SUCCESS) return error;
    const CUresult result = launch_into(driver, context, *stream, request);
    if (result != CUDA_SUCCESS) invalidate_capture(driver, *stream);
    return result;
  });
}

}  // namespace

CUresult cuLaunchKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ, unsigned blockDimX,
                        unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  return launch({.function = f,
                 .grid = {gridDimX, gridDimY, gridDimZ},
                 .block = {blockDimX, blockDimY, blockDimZ},
                 .dynamic_shared = sharedMemBytes,
                 .stream = hStream,
                 .parameters = kernelParams,
                 .extra = extra,
                 .cooperative = false,
                 .events = {}});
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ,
                                   unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes,
                                   CUstream hStream, void** kernelParams) {
  return launch({.function = f,
                 .grid = {gridDimX, gridDimY, gridDimZ},
                 .block = {blockDimX, blockDimY, blockDimZ},
                 .dynamic_shared = sharedMemBytes,
                 .stream = hStream,
                 .parameters = kernelParams,
                 .extra = nullptr,
                 .cooperative = true,
                 .events = {},
                 .attributes = {attribute_of(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {.cooperative = 1})}});
}

namespace {

CUresult launch_ex(const CUlaunchConfig* config, CUstream stream, CUfunction f, void** kernelParams, void** extra) {
  LaunchRequest request{.function = f,
                        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                        .dynamic_shared = config->sharedMemBytes,
                        .stream = stream,
                        .parameters = kernelParams,
                        .extra = extra,
                        .cooperative = false,
                        .events = {}};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (const CUresult error = read_attribute(config->attrs[i], request); error != CUDA_SUCCESS) return error;
    request.attributes.push_back(config->attrs[i]);
  }
  // A launch with a preferred cluster size must also request a cluster size.
  if (request.prefers_clusters && !request.cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return launch(request);
}

bool readable(const CUlaunchConfig* config) {
  return config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr);
}

}  // namespace

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return readable(config) ? launch_ex(config, config->hStream, f, kernelParams, extra) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  return readable(config) ? launch_ex(config, own(config->hStream), f, kernelParams, extra) : CUDA_ERROR_INVALID_VALUE;
}
