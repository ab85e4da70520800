// Green contexts and resources. A resource must match an issued resource in every byte, and a green context may be
// current in at most one thread. The real driver checks neither.
#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/fake/graph.h"

namespace fake {
namespace {

constexpr unsigned multiprocessors = 16, least_part = 4;

// The driver's own bytes in a resource. The address among them must never leave the worker.
struct Hidden {
  const void* secret;
  unsigned first;
  bool is_part;
};
static_assert(sizeof(Hidden) <= sizeof(CUdevResource::_internal_padding));

std::vector<std::byte> bytes_of(const CUdevResource& resource) {
  const auto* at = reinterpret_cast<const std::byte*>(&resource);
  return {at, at + sizeof resource};
}

CUdevResource give(unsigned first, unsigned count, bool is_part) {
  CUdevResource resource;
  std::memset(&resource, 0, sizeof resource);
  if (count == 0) return resource;
  if (state->secret == nullptr) state->destroyed.push_back(state->secret = new std::uint64_t[2]{});
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm = {.smCount = count, .minSmPartitionSize = least_part, .smCoscheduledAlignment = least_part};
  Hidden hidden;
  std::memset(&hidden, 0, sizeof hidden);
  hidden.secret = state->secret, hidden.first = first, hidden.is_part = is_part;
  std::memcpy(resource._internal_padding, &hidden, sizeof hidden);
  state->resources.insert(bytes_of(resource));
  return resource;
}

Hidden taken(const char* call, const CUdevResource& resource) {
  if (!state->resources.contains(bytes_of(resource))) die("%s: a resource that was never given", call);
  Hidden hidden;
  std::memcpy(&hidden, resource._internal_padding, sizeof hidden);
  return hidden;
}

void check_green(const char* call, CUgreenCtx green) {
  if (!state->greens.contains(green)) die("%s: green context %p was never issued or is destroyed", call, green);
}

CUresult give_all(CUdevResource* out, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = give(0, multiprocessors, false);
  return CUDA_SUCCESS;
}

CUresult split(CUdevResource* result, unsigned* groups, const CUdevResource* input, CUdevResource* rest, unsigned,
               unsigned least) {
  constexpr const char* call = "cuDevSmResourceSplitByCount";
  Entry entry(call, false, false);
  if (entry.failed()) return entry.result;
  const Hidden hidden = taken(call, *input);
  const unsigned all = input->sm.smCount;
  if (hidden.is_part || least > all) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (result != nullptr && *groups == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned size = (std::max(least, 1U) + least_part - 1) / least_part * least_part;
  *groups = result == nullptr ? all / size : std::min(*groups, all / size);
  for (unsigned i = 0; result != nullptr && i < *groups; ++i) result[i] = give(i * size, size, true);
  if (rest != nullptr) *rest = give(*groups * size, all - *groups * size, true);
  return CUDA_SUCCESS;
}

CUresult describe(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  constexpr const char* call = "cuDevResourceGenerateDesc";
  Entry entry(call, false, false);
  if (entry.failed()) return entry.result;
  if (count == 0) die("%s: no resources", call);
  for (unsigned i = 0; i < count; ++i) taken(call, resources[i]);
  auto* made = new std::uint64_t[2]{};
  state->destroyed.push_back(made);  // freed at the end of the test, since no call ends a description
  state->descriptions.insert(made);
  return *description = reinterpret_cast<CUdevResourceDesc>(made), CUDA_SUCCESS;
}

CUresult create_green(CUgreenCtx* green, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  constexpr const char* call = "cuGreenCtxCreate";
  Entry entry(call, false, false);
  if (entry.failed()) return entry.result;
  check_device_number(call, device);
  if (description != nullptr && !state->descriptions.contains(description))
    die("%s: description %p was never issued", call, description);
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  auto* made = new std::uint64_t[2]{};
  state->destroyed.push_back(made);
  state->greens[made] = made + 1;
  state->contexts.insert(made + 1);
  return *green = reinterpret_cast<CUgreenCtx>(made), CUDA_SUCCESS;
}

CUresult destroy_green(CUgreenCtx green) {
  constexpr const char* call = "cuGreenCtxDestroy";
  Entry entry(call, false, false);
  check_green(call, green);
  if (entry.failed()) return entry.result;
  const void* context = state->greens[green];
  if (state->current_in.contains(context) && !state->races) die("%s: it is current in a thread", call);
  end_what_lives_in(call, context);
  state->contexts.erase(context);
  state->greens.erase(green);
  return CUDA_SUCCESS;
}

CUresult with_event(const char* call, CUgreenCtx green, CUevent event) {
  Entry entry(call, false, false);
  check_green(call, green);
  check(call, Handle::Event, event);
  return entry.result;
}

}  // namespace

bool is_green(const void* context) {
  return std::any_of(state->greens.begin(), state->greens.end(), [&](const auto& g) { return g.second == context; });
}

void note_current(const void* context) {
  const auto mine = std::this_thread::get_id();
  std::erase_if(state->current_in, [&](const auto& c) { return c.second == mine; });
  if (!is_green(context)) return;
  if (state->current_in.contains(context) && !state->races)
    die("cuCtxSetCurrent: a green context that another thread has");
  state->current_in[context] = mine;
}

void fill_green_contexts(host::Driver& t) {
  t.cuDeviceGetDevResource = [](CUdevice device, CUdevResource* resource, CUdevResourceType type) {
    const Entry entry("cuDeviceGetDevResource", false, false);
    check_device_number("cuDeviceGetDevResource", device);
    return entry.failed() ? entry.result : give_all(resource, type);
  };
  t.cuCtxGetDevResource = [](CUcontext context, CUdevResource* resource, CUdevResourceType type) {
    const Entry entry("cuCtxGetDevResource", false, false);
    check_context("cuCtxGetDevResource", context);
    return entry.failed() ? entry.result : give_all(resource, type);
  };
  t.cuGreenCtxGetDevResource = [](CUgreenCtx green, CUdevResource* resource, CUdevResourceType type) {
    const Entry entry("cuGreenCtxGetDevResource", false, false);
    check_green("cuGreenCtxGetDevResource", green);
    return entry.failed() ? entry.result : give_all(resource, type);
  };
  t.cuDevSmResourceSplitByCount = split;
  t.cuDevResourceGenerateDesc = describe;
  t.cuGreenCtxCreate = create_green;
  t.cuGreenCtxDestroy = destroy_green;
  t.cuCtxFromGreenCtx = [](CUcontext* context, CUgreenCtx green) {
    const Entry entry("cuCtxFromGreenCtx", false, false);
    check_green("cuCtxFromGreenCtx", green);
    if (!entry.failed()) *context = static_cast<CUcontext>(const_cast<void*>(state->greens[green]));
    return entry.result;
  };
  t.cuGreenCtxRecordEvent = [](CUgreenCtx green, CUevent event) {
    return with_event("cuGreenCtxRecordEvent", green, event);
  };
  t.cuGreenCtxWaitEvent = [](CUgreenCtx green, CUevent event) {
    return with_event("cuGreenCtxWaitEvent", green, event);
  };
  t.cuGreenCtxStreamCreate = [](CUstream* stream, CUgreenCtx green, unsigned flags, int) {
    constexpr const char* call = "cuGreenCtxStreamCreate";
    Entry entry(call, false, false);
    check_green(call, green);
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    if (entry.failed()) return entry.result;
    *stream = issue<CUstream>(Handle::Stream);
    state->made_in[*stream] = state->greens[green];
    graphs().non_blocking.insert(*stream);
    return CUDA_SUCCESS;
  };
}

}  // namespace fake
