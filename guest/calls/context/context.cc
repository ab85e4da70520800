// Contexts that a program creates, each thread's stack of current contexts, and queries about contexts.
//
// The worker creates and destroys the driver's contexts. Only the guest knows which context is current, and how often a
// program has attached a context.
#include "guest/process/context.h"
#include "ring/base/mutex.h"

#include <algorithm>

#include "guest/calls/calls.h"
#include "guest/calls/context/context_end.h"
#include "guest/calls/context/context_flags.h"
#include "guest/calls/refusal.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

// Finds the context of `handle`, or the current context if `handle` is NULL. The found context may have ended.
CUresult find(CUcontext handle, Context*& context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  context = handle == nullptr ? current_context() : find_context(handle);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

// Like find(), for queries that the driver answers only about a living context.
CUresult find_living(CUcontext handle, Context*& context) {
  if (const CUresult r = find(handle, context); r != CUDA_SUCCESS) return r;
  return state_of(*context);
}

// Returns the error that CUDA reports before it begins to create a context, or CUDA_SUCCESS.
CUresult check_creation(CUcontext* out, unsigned flags, CUdevice device) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (out == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (!session()->liveness().attached()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  return session()->slot().fault();
}

struct Affinities {
  const CUexecAffinityParam* first = nullptr;
  int count = 0;
};

// CUDA has only one kind of affinity, so more than one entry is an error. A negative count means 0.
CUresult check(const Affinities& a) {
  if (a.count <= 0) return CUDA_SUCCESS;
  if (a.first == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return a.count > 1 || a.first->type != CU_EXEC_AFFINITY_TYPE_SM_COUNT ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                                                                        : CUDA_SUCCESS;
}

CUresult create(CUcontext* out, const Affinities& affinities, unsigned flags, CUdevice device, unsigned api_version) {
  if (const CUresult r = check_creation(out, flags, device); r != CUDA_SUCCESS) return r;
  if (const CUresult r = check(affinities); r != CUDA_SUCCESS) return r;
  const auto ordinal = static_cast<std::uint32_t>(device);
  Context* context = new_context(ordinal);
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const api::CreateContextRecord record{.number = context->number,
                                        .device = primary(ordinal).number,
                                        .flags = flags,
                                        .affinities = affinities.count > 0 ? 1u : 0u,
                                        .sm_count = affinities.count > 0 ? affinities.first->param.smCount.val : 0,
                                        .pad = 0};
  Context* current = current_context();
  if (current == nullptr || !current->lives()) current = &primary(ordinal);
  const Sent sent = cross({.call = api::id_of::cuCtxCreate_v4, .context = *current}, record);
  // If the guest gave up waiting for the reply, the worker may have created the context. The context's number then
  // stays in use.
  if (sent.result != CUDA_SUCCESS) {
    if (!sent.unanswered) end(*context);
    return sent.result;
  }
  context->flags = created_flags(flags);
  context->api_version = api_version;
  begin(*context);
  this_thread().contexts.push_back(context);
  *out = context->handle;
  return CUDA_SUCCESS;
}

CUresult destroy(Context& context) REQUIRES(context.mutex) {
  const Sent sent = end_context(context, api::id_of::cuCtxDestroy_v2);
  if (sent.use.position == 0) return sent.result;
  end(context);
  auto& stack = this_thread().contexts;
  if (!stack.empty() && stack.back() == &context) stack.pop_back();
  return session()->slot().fault() != CUDA_SUCCESS ? CUDA_SUCCESS : sent.result;  // a context can end after a fault
}

}  // namespace

CUresult cuCtxCreate(CUcontext* out, unsigned flags, CUdevice device) { return create(out, {}, flags, device, 3010); }

CUresult cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
  return create(out, {}, flags, device, 3020);
}

CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam* affinities, int count, unsigned flags, CUdevice device) {
  return create(out, {affinities, count}, flags, device, 3020);
}

// A CIG context shares a queue with a graphics API. The call is refused for CIG contexts, because a guest has no
// graphics API.
CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned flags, CUdevice device) {
  if (params == nullptr) return create(out, {}, flags, device, 3020);
  if (params->cigParams != nullptr) {
    if (const CUresult r = check_creation(out, flags, device); r != CUDA_SUCCESS) return r;
    const bool known = params->cigParams->sharedDataType == CIG_DATA_TYPE_D3D12_COMMAND_QUEUE;
    return known || params->execAffinityParams != nullptr ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  return create(out, {params->execAffinityParams, params->numExecAffinityParams}, flags, device, 3020);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;  // the driver returns this for any unknown handle
  if (!context->created) return CUDA_ERROR_INVALID_CONTEXT;        // other calls end primary and green contexts
  ring::MutexLock lock(context->mutex);
  return context->lives() ? destroy(*context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult cuCtxAttach(CUcontext* out, unsigned flags) {
  Context* context = nullptr;
  const CUresult entered = enter(context);
  if (context != nullptr && context->lives() && (out == nullptr || flags != 0)) return CUDA_ERROR_INVALID_VALUE;
  if (entered != CUDA_SUCCESS) return entered;
  ring::MutexLock lock(context->mutex);
  if (!context->lives()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  context->uses.fetch_add(1, std::memory_order_relaxed);
  *out = context->handle;
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext handle) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  Context* context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle != context->handle && (handle != nullptr || context->lives())) return CUDA_ERROR_INVALID_CONTEXT;
  ring::MutexLock lock(context->mutex);
  if (!context->lives()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (context->uses.load(std::memory_order_relaxed) == 1) return context->created ? destroy(*context) : CUDA_SUCCESS;
  context->uses.fetch_sub(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context = current_context();
  *out = context == nullptr ? nullptr : context->handle;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  auto& stack = this_thread().contexts;
  if (!stack.empty() && stack.back()->handle == handle) return CUDA_SUCCESS;
  Context* context = handle == nullptr ? nullptr : find_context(handle);
  if (handle != nullptr && context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  this_thread().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  auto& stack = this_thread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = stack.back()->handle;
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  Context* context = nullptr;
  if (const CUresult r = find(handle, context); r != CUDA_SUCCESS) return r;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = static_cast<CUdevice>(context->device);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) { return calls::cuCtxGetDevice_v2(device, nullptr); }

CUresult cuCtxGetFlags(unsigned* flags) {
  Context* context = nullptr;
  if (const CUresult r = find(nullptr, context); r != CUDA_SUCCESS) return r;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags =
      // The driver always reports this flag for a primary context.
      context->home->flags | (context->created ? 0u : unsigned{CU_CTX_MAP_HOST});
  return CUDA_SUCCESS;
}

// The worker decides how its threads wait. The call only stores the flags, so that the program can read them back.
CUresult cuCtxSetFlags(unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = find(nullptr, context); r != CUDA_SUCCESS) return r;
  if (!context->lives()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Context& home = *context->home;
  home.flags = changed_flags(flags);
  home.flags_of_device = (home.flags_of_device & CU_CTX_SCHED_MASK) | (home.flags & ~unsigned{CU_CTX_SCHED_MASK});
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  Context* context = nullptr;
  if (const CUresult r = find_living(handle, context); r != CUDA_SUCCESS) return r;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  Context* context = nullptr;
  if (const CUresult r = find(handle, context); r != CUDA_SUCCESS) return r;
  if (handle != nullptr && !context->lives() && context->created) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult r = state_of(*context); r != CUDA_SUCCESS) return r;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context = nullptr;
  if (const CUresult r = find_living(nullptr, context); r != CUDA_SUCCESS) return r;
  const ring::DeviceInfo& info = device_info(context->device);
  if (least != nullptr) *least = info.least_priority;
  if (greatest != nullptr) *greatest = info.greatest_priority;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  Context* context = nullptr;
  if (const CUresult r = find(handle, context); r != CUDA_SUCCESS) return r;
  if (context == current_context()) return Stub<api::id_of::cuCtxSynchronize>::call();
  auto& stack = this_thread().contexts;
  stack.push_back(context);
  const CUresult result = Stub<api::id_of::cuCtxSynchronize>::call();
  stack.pop_back();
  return result;
}

}  // namespace guest::calls
