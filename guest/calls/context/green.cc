// Green contexts, and the splitting of their resources.
//
// The worker creates and destroys the driver's green contexts, and keeps the driver's resources. The guest represents a
// green context as a Context with a second handle, attached to the device's primary context.
#include <algorithm>

#include "guest/calls/calls.h"
#include "guest/calls/context/context_end.h"
#include "guest/marshal/custom.h"
#include "guest/marshal/reply.h"
#include "guest/process/process.h"
#include "ring/api/records.h"
#include "ring/base/mutex.h"

namespace guest::calls {
namespace {

// Returns the error that CUDA reports before it begins to create a green context, or CUDA_SUCCESS.
CUresult check_creation(const CUgreenCtx* out, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (out == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  constexpr api::Handle kind = api::Handle::ResourceDesc;
  if (description != nullptr && session()->objects.find(description, kind) == nullptr)
    return api::kind_of(kind).unknown;
  if (!session()->liveness().attached()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  return session()->slot().fault();
}

CUresult create(CUgreenCtx* out, CUdevResourceDesc description, std::uint32_t ordinal, unsigned flags) {
  Context* context = new_green_context(ordinal);
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const api::CreateGreenContextRecord record{.description = reinterpret_cast<std::uint64_t>(description),
                                             .number = context->number,
                                             .device = context->home->number,
                                             .flags = flags,
                                             .pad = 0};
  const Sent sent = cross({.call = api::id_of::cuGreenCtxCreate, .context = *context->home}, record);
  // If the guest gave up waiting for the reply, the worker may have created the green context. The context's number
  // then stays in use.
  if (sent.result != CUDA_SUCCESS) {
    if (!sent.unanswered) end(*context);
    return sent.result;
  }
  begin(*context);
  *out = context->green;
  return CUDA_SUCCESS;
}

// Sets `ended` if the green context was alive and this call has ended it.
CUresult end_green(Context& green, bool& ended) {
  ring::MutexLock lock(green.mutex);
  if (!green.lives()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const Sent sent = end_context(green, api::id_of::cuGreenCtxDestroy);
  if (sent.use.position == 0) return sent.result;
  end(green);
  ended = true;
  return session()->slot().fault() != CUDA_SUCCESS ? CUDA_SUCCESS
                                                   : sent.result;  // a green context can end after a fault
}

// Copies the result of a split to the program's memory. Returns false if the reply does not fit the request.
bool take(const RepliedBy<api::SplitResourceReply>& replied, std::uint32_t room, unsigned* groups,
          CUdevResource* result, CUdevResource* rest) {
  const std::vector<CUdevResource>& parts = replied.behind.resources;
  const std::size_t count = result == nullptr ? 0 : std::min(replied.reply.groups, room);
  if (parts.size() != count + (rest == nullptr ? 0 : 1)) return false;
  std::copy_n(parts.begin(), count, result);
  if (rest != nullptr) *rest = parts.back();
  *groups = replied.reply.groups;
  return true;
}

}  // namespace

// The device's primary context stays in use while its green contexts live.
CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  if (const CUresult r = check_creation(out, description, device, flags); r != CUDA_SUCCESS) return r;
  CUcontext primary = nullptr;
  if (const CUresult r = calls::cuDevicePrimaryCtxRetain(&primary, device); r != CUDA_SUCCESS) return r;
  const CUresult result = create(out, description, static_cast<std::uint32_t>(device), flags);
  if (result != CUDA_SUCCESS) calls::cuDevicePrimaryCtxRelease_v2(device);
  return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  Context* green = find_context(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  bool ended = false;
  const CUresult result = end_green(*green, ended);
  if (ended) calls::cuDevicePrimaryCtxRelease_v2(static_cast<CUdevice>(green->device));
  return result;
}

CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx handle) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* green = find_context(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!green->lives()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *out = green->handle;
  return CUDA_SUCCESS;
}

// A null handle means the current context.
CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context = handle == nullptr ? current_context() : find_context(handle);
  if (context == nullptr || context->green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult r = state_of(*context); r != CUDA_SUCCESS) return r;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                     CUdevResource* rest, unsigned flags, unsigned least) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  if (groups == nullptr || input == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  using Record = api::SplitResourceRecord;
  const auto room = static_cast<std::uint32_t>(std::min<std::uint64_t>(*groups, api::max_split_groups));
  const Record record{
      .input = api::resource_id(*input),
      .groups = room,
      .least = least,
      .flags = flags,
      .wants = (result == nullptr ? 0 : Record::wants_groups) | (rest == nullptr ? 0 : Record::wants_rest)};
  const auto read = [&](CUresult answer, ring::SharedReader& r) {
    if (answer != CUDA_SUCCESS) return;
    const RepliedBy<api::SplitResourceReply> replied(r);
    if (r.ok() && !take(replied, room, groups, result, rest)) r.fail();
  };
  return cross({.call = api::id_of::cuDevSmResourceSplitByCount, .context = *context}, record, {}, read).result;
}

}  // namespace guest::calls
