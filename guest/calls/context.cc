// Contexts: each device's primary context and each thread's stack of current ones are the guest's own. The worker holds
// the real primary contexts from its start.
#include "guest/calls/calls.h"
#include "guest/calls/context_flags.h"
#include "guest/calls/refusal.h"
#include "guest/calls/stub.h"
#include "guest/process/process.h"
#include "guest/process/thread.h"

namespace guest::calls {
namespace {

PrimaryContext& primary_of(CUdevice device) { return primary(static_cast<std::uint32_t>(device)); }

CUcontext current() {
  const auto& stack = this_thread().contexts;
  return stack.empty() ? nullptr : stack.back();
}

// `context`, or the current one for NULL; -1 where there is none.
CUresult device_for(CUcontext context, int& device) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (context == nullptr) context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  device = device_of_context(context);
  return device < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

// The same for what the driver tells of a living context only.
CUresult device_of_living(CUcontext context, int& device) {
  if (const CUresult r = device_for(context, device); r != CUDA_SUCCESS) return r;
  return state_of(static_cast<std::uint32_t>(device));
}

}  // namespace

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = current();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (context != nullptr && device_of_context(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = this_thread().contexts;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device_of_context(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  this_thread().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  auto& stack = this_thread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  int found = -1;
  if (const CUresult r = device_for(context, found); r != CUDA_SUCCESS) return r;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = found;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) { return calls::cuCtxGetDevice_v2(device, nullptr); }

CUresult cuCtxGetFlags(unsigned* flags) {
  int device = -1;
  if (const CUresult r = device_for(nullptr, device); r != CUDA_SUCCESS) return r;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = primary_of(device).flags | CU_CTX_MAP_HOST;  // which every context can
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  int device = -1;
  if (const CUresult r = device_of_living(context, device); r != CUDA_SUCCESS) return r;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = static_cast<unsigned long long>(device) + 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  int device = -1;
  if (const CUresult r = device_of_living(context, device); r != CUDA_SUCCESS) return r;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;  // the version of cuCtxCreate_v2, which primary contexts are made as
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  int device = -1;
  if (const CUresult r = device_of_living(nullptr, device); r != CUDA_SUCCESS) return r;
  const ring::DeviceInfo& info = device_info(static_cast<std::uint32_t>(device));
  if (least != nullptr) *least = info.least_priority;
  if (greatest != nullptr) *greatest = info.greatest_priority;
  return CUDA_SUCCESS;
}

namespace {

// A session has each device's primary context and no other. What is wrong with the arguments is told as everywhere.
CUresult refuse_context(std::size_t line, CUcontext* context, unsigned flags, CUdevice device) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (context == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (const CUresult fault = session()->fault(); fault != CUDA_SUCCESS) return fault;
  return refuse(line);
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return refuse_context(refusal_of("cuCtxCreate_v2"), context, flags, device);
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int, unsigned flags, CUdevice device) {
  return refuse_context(refusal_of("cuCtxCreate_v3"), context, flags, device);
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned flags, CUdevice device) {
  return refuse_context(refusal_of("cuCtxCreate_v4"), context, flags, device);
}

// Primary contexts are released or reset, never destroyed.
CUresult cuCtxDestroy_v2(CUcontext context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return refuse(refusal_of("cuCtxDestroy_v2"), CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  int device = -1;
  if (const CUresult r = device_for(context, device); r != CUDA_SUCCESS) return r;
  if (context == nullptr || context == current()) return Stub<api::id_of::cuCtxSynchronize>::call();
  calls::cuCtxPushCurrent_v2(context);
  const CUresult result = Stub<api::id_of::cuCtxSynchronize>::call();
  calls::cuCtxPopCurrent_v2(nullptr);
  return result;
}

}  // namespace guest::calls
