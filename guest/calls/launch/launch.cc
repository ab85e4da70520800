// Launches. The calls are handwritten because the sizes of a kernel's parameters are known only from the reply to the
// kernel's lookup. The parameters travel as the packed block that the driver accepts through
// CU_LAUNCH_PARAM_BUFFER_POINTER.
//
// The guest itself finds the errors that CUDA reports at once (a grid of 0, a block or shared memory too large).
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "guest/base/log.h"
#include "guest/base/switches.h"
#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/launch/packed_parameters.h"
#include "guest/calls/launch_config.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

using Dims = const unsigned (&)[3];

bool fits_device(const ring::DeviceInfo& info, Dims grid, Dims block) {
  const auto limit = [&](CUdevice_attribute a) { return static_cast<std::uint64_t>(info.attribute[a]); };
  const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
  constexpr CUdevice_attribute max_grid[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                             CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  constexpr CUdevice_attribute max_block[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                              CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  for (int i = 0; i < 3; ++i)
    if (grid[i] == 0 || grid[i] > limit(max_grid[i]) || block[i] == 0 || block[i] > limit(max_block[i])) return false;
  return threads <= limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
}

// Returns whether the driver certainly accepts the launch, so that it can be posted. Only the driver knows the block
// size that a kernel requires (.reqntid), and limits that were set through another handle. CUDA reports these errors at
// once. The first launch of a kernel with each block size and shared memory size therefore waits for the reply.
bool is_certain(const FunctionInfo& f, Dims block, unsigned shared) {
  const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
  return threads <= f.max_threads && shared <= f.max_dynamic_shared.load(std::memory_order_relaxed) &&
         f.accepts(block[0], block[1], block[2]);
}

struct Launch {
  CUfunction function;
  unsigned grid[3], block[3], shared;
  CUstream stream;
  void** params;
  void** extra;
  std::span<const CUlaunchAttribute> attributes;
};

// Copies a kernel's parameter. Most parameters are addresses and numbers, for which a call of memcpy() would take longer
// than the copy.
inline void copy_parameter(std::byte* to, const void* from, std::size_t bytes) {
  switch (bytes) {
    case 4: std::memcpy(to, from, 4); break;
    case 8: std::memcpy(to, from, 8); break;
    default: std::memcpy(to, from, bytes);
  }
}

// Writes record, attributes and parameters into the ring.
void write_launch(ring::Writer& w, const api::LaunchRecord& record, const Launch& l, const FunctionInfo& f,
                  const Part& packed) {
  w.bytes(&record, sizeof record);
  for (const CUlaunchAttribute& given : l.attributes) {
    const CUlaunchAttribute sent = described(given);
    w.bytes(&sent, sizeof sent);
  }
  std::byte* at = w.reserve(record.param_bytes);
  if (packed.at != nullptr)
    std::memcpy(at, packed.at, packed.bytes);
  else
    for (std::size_t i = 0; i < f.params.size(); ++i)
      copy_parameter(at + f.params[i].offset, l.params[i], f.params[i].size);
}

bool is_alive(std::uint64_t id, api::Handle kind) {
  return session()->objects.find(reinterpret_cast<const void*>(id), kind) != nullptr;
}

bool must_wait(const Launch& l, const FunctionInfo& f) {
  if (!is_certain(f, l.block, l.shared)) return true;
  return std::ranges::any_of(l.attributes, [](const CUlaunchAttribute& a) { return api::is_answered_at_once(a); });
}

[[gnu::always_inline]] inline Sent send_launch(const Crossing& c, const api::LaunchRecord& record, const Launch& l,
                                               FunctionInfo& f, const Part& packed) {
  const std::size_t payload =
      sizeof record + ring::padded(l.attributes.size_bytes()) + ring::padded(record.param_bytes);
  const Sent sent = cross(
      c, payload, [&](ring::Writer& w) { write_launch(w, record, l, f, packed); }, read_nothing);
  if (c.way && sent.result == CUDA_SUCCESS) f.learn(l.block[0], l.block[1], l.block[2], l.shared);
  return sent;
}

// The events that a launch records through its attributes. The launch must wait for the last use of each event, and
// becomes the last use.
class Named {
 public:
  explicit Named(std::span<const CUlaunchAttribute> attributes) {
    check_ids(attributes, [&](std::uint64_t id, api::Handle kind) {
      Object* const object = session()->objects.find(reinterpret_cast<const void*>(id), kind);
      if (object != nullptr) objects_[count_++] = object;
      return object != nullptr;
    });
  }
  // Returns false if the session is lost or suspended.
  bool await() const {
    return std::ranges::all_of(all(), [](Object* o) { return wait_for_object(*o, this_channel()); });
  }
  bool none() const { return count_ == 0; }
  void used(Use use) const {
    for (Object* object : all()) remember(*object, use);
  }

 private:
  std::span<Object* const> all() const { return {objects_.data(), count_}; }

  std::array<Object*, api::max_launch_attributes> objects_;  // only the first count_ elements are set
  std::size_t count_ = 0;
};

// This function is not inlined, so that a launch without attributes does not pay for it.
[[gnu::noinline]] CUresult send_with_attributes(const Crossing& c, const api::LaunchRecord& record, const Launch& l,
                                                FunctionInfo& f, const Part& packed) {
  const Named named(l.attributes);
  if (!named.await()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Crossing crossing = c;
  crossing.known_accepted = c.known_accepted && named.none();
  const Sent sent = send_launch(crossing, record, l, f, packed);
  if (sent.use.position != 0) named.used(sent.use);
  return sent.result;
}

// Waits for the launched kernel, and returns the kernel's error. A thread without a current context cannot name the
// NULL stream, so it waits for the whole context.
[[gnu::noinline]] CUresult await_kernel(CUstream stream, const Context& context) {
  if (current_context() == nullptr) return calls::cuCtxSynchronize_v2(context.handle);
  return Stub<api::id_of::cuStreamSynchronize>::call(stream);
}

// Ends the stream's capture after a refused launch, as the driver does. The driver reports an ended capture before any
// other error.
[[gnu::noinline]] CUresult end_captured(CUstream stream, CUresult why) {
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (Stub<api::id_of::cuStreamIsCapturing>::call(stream, &status) != CUDA_SUCCESS) return why;
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) Stub<api::id_of::cuStreamQuery>::call(stream);
  return why;
}

CUresult make_launch(int call, const Launch& l, bool& crossed) {
  Context* context = nullptr;
  if (const CUresult r = enter(context, {l.stream, l.function}); r != CUDA_SUCCESS) return r;
  const Object* function = session()->objects.find(l.function, api::Handle::Function);
  if (function == nullptr || function->function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FunctionInfo& f = *function->function;
  const bool captures = session()->graphs.captures.any();
  const bool fits = fits_device(device_info(context->device), l.grid, l.block);
  // During a capture the driver must see the launch, so that it ends the capture.
  if (!fits && !captures) return CUDA_ERROR_INVALID_VALUE;
  const StreamRef stream = resolve_stream(l.stream, *context);
  if (stream.object == nullptr) return no_such(l.stream);
  if (function->context != nullptr && function->context != stream.context->home) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult r = check_ids(l.attributes, is_alive); r != CUDA_SUCCESS) return r;
  Part packed{};
  if (l.extra != nullptr && l.params != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (l.extra != nullptr && l.extra[0] != CU_LAUNCH_PARAM_END) {
    if (const CUresult r = parse_extra(l.extra, packed); r != CUDA_SUCCESS) return r;
    if (packed.bytes > f.param_bytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;  // the driver accepts a shorter block
  } else if (l.params == nullptr && !f.params.empty()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t param_bytes = packed.at != nullptr ? packed.bytes : f.param_bytes;
  if (param_bytes > ring::max_record) return CUDA_ERROR_INVALID_VALUE;

  const api::LaunchRecord record{.function = reinterpret_cast<std::uint64_t>(l.function),
                                 .stream = reinterpret_cast<std::uint64_t>(l.stream),
                                 .grid = {l.grid[0], l.grid[1], l.grid[2]},
                                 .block = {l.block[0], l.block[1], l.block[2]},
                                 .shared = l.shared,
                                 .param_bytes = static_cast<std::uint32_t>(param_bytes),
                                 .attributes = static_cast<std::uint32_t>(l.attributes.size()),
                                 .used_extra = l.extra != nullptr ? 1U : 0U};
  Crossing crossing{.call = call, .context = *context, .stream = &stream};
  if (!fits || must_wait(l, f)) crossing.way = api::Way::Waited;
  // While any capture is open, the driver may refuse a launch into the NULL stream.
  crossing.known_accepted = captures && switches().known_accepted && !api::special_stream(record.stream);
  crossed = true;
  const CUresult result = l.attributes.empty() ? send_launch(crossing, record, l, f, packed).result
                                               : send_with_attributes(crossing, record, l, f, packed);
  const bool waits = result == CUDA_SUCCESS && launches_block() && !is_captured(l.stream);
  return waits ? await_kernel(l.stream, *context) : result;
}

CUresult launch(int call, const Launch& l) {
  bool crossed = false;
  const CUresult result = make_launch(call, l, crossed);
  if (crossed || session() == nullptr || !session()->graphs.captures.any()) [[likely]]
    return result;
  return end_captured(l.stream, result);
}

}  // namespace

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void** params, void** extra) {
  return launch(api::id_of::cuLaunchKernel, {f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, extra, {}});
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** params, void** extra) {
  if (const CUresult r = check_config("cuLaunchKernelEx", c); r != CUDA_SUCCESS) return r;
  const int call = c->numAttrs == 0 ? api::id_of::cuLaunchKernel : api::id_of::cuLaunchKernelEx;
  return launch(call, {f,
                       {c->gridDimX, c->gridDimY, c->gridDimZ},
                       {c->blockDimX, c->blockDimY, c->blockDimZ},
                       c->sharedMemBytes,
                       c->hStream,
                       params,
                       extra,
                       {c->attrs, c->numAttrs}});
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream stream, void** params) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  const CUlaunchConfig config{gx, gy, gz, bx, by, bz, shared, stream, &cooperative, 1};
  return calls::cuLaunchKernelEx(&config, f, params, nullptr);
}

}  // namespace guest::calls
