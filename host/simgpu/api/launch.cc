// Calls that launch kernels. A launch that the real driver refuses at once is refused here, before anything is queued.
#include "host/simgpu/api/device.h"

#include <cstring>

#include "host/simgpu/api/clusters.h"
#include "host/simgpu/api/hints.h"
#include "host/simgpu/api/library.h"
#include "host/simgpu/api/occupancy.h"
#include "host/simgpu/api/streams.h"

using namespace simgpu;

namespace {

// A launch as it was asked for.
struct Request {
  CUfunction function;
  Dim3 grid, block;
  std::size_t dynamic_shared;
  CUstream stream;
  void** parameters;
  void** extra;
  bool cooperative;
  std::optional<Dim3> cluster = {};  // that the launch asks for; later the one that it has
  bool prefers_clusters = false;
  // Events to record when it is done (launch attributes).
  std::vector<CUevent> events;
};

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

// Gives the request the clusters that it has, and the grid and block that are meant where the kernel's directives make
// a launch's grid count clusters. Such a launch names no block size: nvcc passes single threads.
CUresult find_shape(Request& request, const LoadedFunction& function) {
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

// The grid is whole clusters, and one of them finds room.
CUresult check_clusters(const Request& request, std::uint64_t room) {
  if (!request.cluster) return CUDA_SUCCESS;
  const Dim3 &grid = request.grid, &cluster = *request.cluster;
  const bool whole = grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
  return whole && volume(cluster) <= room ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult check(const Request& request, const LoadedFunction& function, unsigned multiprocessors) {
  const Function& code = *function.code;
  if (!grid_fits(request.grid) || !block_fits(request.block, code)) return CUDA_ERROR_INVALID_VALUE;
  if (request.dynamic_shared > static_cast<std::size_t>(function.max_dynamic_shared)) return CUDA_ERROR_INVALID_VALUE;
  const int resident = resident_blocks(function, volume(request.block), request.dynamic_shared);
  if (resident == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const std::uint64_t room = static_cast<std::uint64_t>(resident) * multiprocessors;
  if (request.cooperative && volume(request.grid) > room) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return check_clusters(request, room);
}

using Packed = std::vector<std::byte>;

// kernelParams: a pointer for each parameter.
CUresult pack_each(const Function& code, void** parameters, Packed& out) {
  if (parameters == nullptr) return code.params.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < code.params.size(); ++i)
    std::memcpy(out.data() + code.params[i].offset, parameters[i], code.params[i].size);
  return CUDA_SUCCESS;
}

// extra: one buffer that is packed already. A short one is taken as it is, one that is too long is not, as on the real
// driver.
CUresult pack_buffer(void** extra, Packed& out) {
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

CUresult pack(const Request& request, const Function& code, Packed& out) {
  if (request.parameters != nullptr && request.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  out.resize(code.param_bytes);
  return request.extra != nullptr ? pack_buffer(request.extra, out) : pack_each(code, request.parameters, out);
}

// The events that the launch records, into `found`. None of them may take the time.
CUresult find_events(Driver& driver, const Request& request, std::vector<std::shared_ptr<Event>>& found) {
  for (const CUevent handle : request.events) {
    found.push_back(driver.events.find(handle));
    if (found.back() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((found.back()->flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

void record(const std::vector<std::shared_ptr<Event>>& events, const Ticket& work) {
  for (const std::shared_ptr<Event>& event : events) {
    const std::lock_guard lock(event->mutex);
    event->record = work;
  }
}

// Notes what the context's kernels use from now on, and gives the size of their threads' stacks.
std::uint32_t note_use(Context& context, const Function& code) {
  const std::lock_guard lock(context.mutex);
  context.prints |= code.prints;
  context.allocates |= code.allocates;
  return static_cast<std::uint32_t>(context.limits[CU_LIMIT_STACK_SIZE]);
}

CUresult launch(Request request) {
  return with_context_of(request.stream, [&](Driver& driver, Context& context) {
    CUresult error;
    const FunctionReference reference = resolve(driver, request.function, &error);
    if (reference.function == nullptr) return error;
    const std::shared_ptr<Stream> stream = stream_of(driver, context, request.stream);
    if (stream == nullptr || reference.module->context.get() != &context) return CUDA_ERROR_INVALID_HANDLE;
    const Multiprocessors on = multiprocessors_of(driver, *stream);
    if (error = find_shape(request, *reference.function); error != CUDA_SUCCESS) return error;
    if (error = check(request, *reference.function, on.count); error != CUDA_SUCCESS) return error;
    Packed parameters;
    if (error = pack(request, *reference.function->code, parameters); error != CUDA_SUCCESS) return error;
    std::vector<std::shared_ptr<Event>> events;
    if (error = find_events(driver, request, events); error != CUDA_SUCCESS) return error;

    Launch what{.function = reference.function->code,
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
                .stack = note_use(context, *reference.function->code)};
    Engine& engine = context.device.engine;
    TimeSlices& time = context.device.time;
    const auto run = [&driver, &engine, &time, what, module = reference.module, parameters = std::move(parameters)] {
      Launch now = what;
      now.params = parameters;
      time.begin();
      if (const Fault fault = engine.run(now)) driver.fail(fault);
      time.end();
    };
    const Ticket work = post(driver, *stream, run);
    record(events, work);
    return driver.launch_blocking ? wait_for(driver, {work}) : CUDA_SUCCESS;
  });
}

// An event that the launch is to record. Only a captured launch records one outside of its graph.
CUresult add_event(Request& request, CUevent event, int flags) {
  if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags != CU_EVENT_RECORD_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  request.events.push_back(event);
  return CUDA_SUCCESS;
}

// The attributes of cuLaunchKernelEx. Hints are taken as such; an attribute that would change the result and is not
// served is refused.
CUresult read_attribute(const CUlaunchAttribute& attribute, Request& request) {
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
                 .events = {}});
}

namespace {

CUresult launch_ex(const CUlaunchConfig* config, CUstream stream, CUfunction f, void** kernelParams, void** extra) {
  Request request{.function = f,
                  .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                  .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                  .dynamic_shared = config->sharedMemBytes,
                  .stream = stream,
                  .parameters = kernelParams,
                  .extra = extra,
                  .cooperative = false,
                  .events = {}};
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (const CUresult error = read_attribute(config->attrs[i], request); error != CUDA_SUCCESS) return error;
  // Larger clusters can be preferred only to such as the launch asks for.
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
