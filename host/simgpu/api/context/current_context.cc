// Calls on contexts: creation, the thread's stack, settings.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <algorithm>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

bool two_schedules(unsigned flags) {
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  return (scheduling & (scheduling - 1)) != 0;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice dev) {
  return with_driver([&](Driver& driver) {
    if (out == nullptr || (flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0 || two_schedules(flags))
      return CUDA_ERROR_INVALID_VALUE;
    Device* device = driver.device(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (const CUresult fault = driver.fault(); fault != CUDA_SUCCESS) return fault;
    auto context = std::make_shared<Context>(*device);
    context->id = driver.next_id();
    begin_context(driver, *context, flags);
    context->handle = driver.contexts.insert(context);
    driver.thread().contexts.push_back(context);
    *out = context->handle;
    return CUDA_SUCCESS;
  });
}

// The simulated GPU does not support execution affinity, which limits a context to some multiprocessors.
CUresult check_affinity(const CUexecAffinityParam* params, int count) {
  if (count <= 0) return CUDA_SUCCESS;
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

// The simulated GPU has no graphics contexts, so CUDA in graphics (CIG) is not supported.
CUresult check_graphics(const CUctxCreateParams& params) {
  const bool known = params.cigParams->sharedDataType == CIG_DATA_TYPE_D3D12_COMMAND_QUEUE;
  return params.execAffinityParams != nullptr || known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

bool living(const Context& context) { return context.active.load(std::memory_order_acquire); }

// Wraps a call that takes a context handle; NULL stands for the current context.
template <class F>
CUresult with_named(CUcontext handle, F&& call) {
  return with_driver([&](Driver& driver) {
    CUresult error;
    const std::shared_ptr<Context> context = context_named(driver, handle, &error);
    return context == nullptr ? error : call(driver, *context);
  });
}

CUdevice ordinal_of(Driver& driver, const Device& device) {
  for (std::size_t i = 0; i < driver.devices.size(); ++i)
    if (driver.devices[i].get() == &device) return static_cast<CUdevice>(i);
  return 0;
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned flags, CUdevice dev) { return create(pctx, flags, dev); }

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned flags,
                        CUdevice dev) {
  const CUresult served = check_affinity(paramsArray, numParams);
  return served == CUDA_SUCCESS ? create(pctx, flags, dev) : served;
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* params, unsigned flags, CUdevice dev) {
  CUresult served = CUDA_SUCCESS;
  if (params != nullptr && params->cigParams != nullptr)
    served = check_graphics(*params);
  else if (params != nullptr)
    served = check_affinity(params->execAffinityParams, params->numExecAffinityParams);
  return served == CUDA_SUCCESS ? create(pctx, flags, dev) : served;
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    std::shared_ptr<Context> context = driver.contexts.find(ctx);
    if (context == nullptr || context->is_primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->ending.exchange(true, std::memory_order_acq_rel)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    end_context(driver, context);
    auto& stack = driver.thread().contexts;
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  return with_driver([&](Driver& driver) {
    if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Context> context = driver.contexts.find(ctx);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    driver.thread().contexts.push_back(std::move(context));
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  return with_driver([&](Driver& driver) {
    auto& stack = driver.thread().contexts;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx != nullptr) *pctx = name_of(driver, stack.back());
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  return with_driver([&](Driver& driver) {
    auto& stack = driver.thread().contexts;
    if (ctx == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return CUDA_SUCCESS;
    }
    std::shared_ptr<Context> context = driver.contexts.find(ctx);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.empty()) stack.emplace_back();
    stack.back() = std::move(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return with_driver([&](Driver& driver) {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Context> context = driver.current_shared();
    *pctx = context == nullptr ? nullptr : name_of(driver, context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Context> context = ctx == nullptr ? driver.current_shared() : driver.contexts.find(ctx);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = ordinal_of(driver, context->device);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) { return cuCtxGetDevice_v2(device, nullptr); }

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Context> context = ctx == nullptr ? driver.current_shared() : driver.contexts.find(ctx);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!living(*context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const std::shared_ptr<GreenContext> green = green_of(driver, context);
    *ctxId = green == nullptr ? context->id : green->id;
    return driver.fault();
  });
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned* version) {
  const CUresult result = with_named(ctx, [&](Driver& driver, const Context& context) {
    if (const CUresult fault = driver.fault(); fault != CUDA_SUCCESS) return fault;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = context.api_version;
    return CUDA_SUCCESS;
  });
  return result == CUDA_ERROR_CONTEXT_IS_DESTROYED && ctx != nullptr ? CUDA_ERROR_INVALID_CONTEXT : result;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    Context* context = driver.current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const ring::MutexLock lock(context->mutex);
    *flags = context->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned flags) {
  return with_named(nullptr, [&](Driver&, Context& context) {
    if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0 || two_schedules(flags)) return CUDA_ERROR_INVALID_VALUE;
    constexpr unsigned of_device = CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS, set = CU_CTX_SCHED_MASK | of_device;
    const ring::RecursiveLock device_lock(context.device.mutex);
    const ring::MutexLock lock(context.mutex);
    context.flags = (context.flags & ~set) | (flags & set);
    // The flags of a primary context are also stored in the device, without their scheduling policy: the device keeps
    // its own.
    if (context.is_primary) {
      unsigned& given = context.device.primary_flags;
      given = (given & ~of_device) | (flags & of_device);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  return with_named(ctx, [](Driver& driver, Context& context) {
    const CUresult error = refuse_in_capturing(driver, context);
    return error == CUDA_SUCCESS ? wait_for(driver, pending(driver, context)) : error;
  });
}

CUresult cuCtxSynchronize() { return cuCtxSynchronize_v2(nullptr); }

namespace {

// The sizes of the printf buffer and of the heap are fixed once a kernel that uses them has been launched.
CUresult set_if_unused(Context& context, CUlimit limit, std::size_t value, bool Context::*used) {
  const ring::MutexLock lock(context.mutex);
  if (context.*used) return CUDA_ERROR_INVALID_VALUE;
  context.limits[static_cast<std::size_t>(limit)] = value;
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) context.heap->set_size(value);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuCtxGetLimit(std::size_t* pvalue, CUlimit limit) {
  return with_context([&](Driver&, Context& context) {
    if (pvalue == nullptr || limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
    const ring::MutexLock lock(context.mutex);
    *pvalue = context.limits[static_cast<std::size_t>(limit)];
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver&, Context& context) {
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    constexpr std::size_t most_stack = 512 << 10;
    switch (limit) {
      case CU_LIMIT_STACK_SIZE:
        if (value > most_stack) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LIMIT_PRINTF_FIFO_SIZE: return set_if_unused(context, limit, value, &Context::prints);
      case CU_LIMIT_MALLOC_HEAP_SIZE: return set_if_unused(context, limit, value, &Context::allocates);
      case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT: break;
      case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        if (value > 128) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LIMIT_PERSISTING_L2_CACHE_SIZE: break;
      case CU_LIMIT_SHMEM_SIZE:
      case CU_LIMIT_CIG_ENABLED: return CUDA_ERROR_NOT_PERMITTED;  // can only be set when the context is created
      default: return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    const ring::MutexLock lock(context.mutex);
    context.limits[static_cast<std::size_t>(limit)] = value;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  return with_context([&](Driver&, Context& context) {
    if (pconfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ring::MutexLock lock(context.mutex);
    *pconfig = context.cache_config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver&, Context& context) {
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    const ring::MutexLock lock(context.mutex);
    context.cache_config = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  return with_context([&](Driver&, Context& context) {
    if (pConfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ring::MutexLock lock(context.mutex);
    *pConfig = context.shared_config;
    return CUDA_SUCCESS;
  });
}

// The bank width is fixed, as on every GPU since Maxwell: the call checks its argument and has no effect.
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver&, Context&) {
    const bool known =
        config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return with_context([&](Driver&, Context&) {
    if (leastPriority != nullptr) *leastPriority = 0;
    if (greatestPriority != nullptr) *greatestPriority = greatest_stream_priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxResetPersistingL2Cache() {
  return with_context([](Driver&, Context&) { return CUDA_SUCCESS; });
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* pExecAffinity, CUexecAffinityType type) {
  return with_context([&](Driver&, Context&) {
    if (pExecAffinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    pExecAffinity->type = type;
    pExecAffinity->param.smCount.val = device_multiprocessors;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxAttach(CUcontext* pctx, unsigned flags) {
  return with_driver([&](Driver& driver) {
    Context* current = driver.current();
    if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Context& context = *current;
    if (!living(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (pctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult fault = driver.fault(); fault != CUDA_SUCCESS) return fault;
    const ring::MutexLock lock(context.mutex);
    ++context.attached;
    *pctx = context.handle;
    return CUDA_SUCCESS;
  });
}

// Detaches the current context. Detaching never ends a primary context: it lives until the program has released it.
CUresult cuCtxDetach(CUcontext ctx) {
  bool last = false;
  const CUresult detached = with_driver([&](Driver& driver) {
    Context* context = driver.current();
    if (context == nullptr || (ctx != nullptr && context->handle != ctx)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!living(*context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (ctx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const ring::MutexLock lock(context->mutex);
    last = !context->is_primary && --context->attached == 0;
    return CUDA_SUCCESS;
  });
  return last ? cuCtxDestroy_v2(ctx) : detached;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned flags) {
  return with_context([&](Driver& driver, Context&) {
    if (driver.contexts.find(peerContext) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  return with_context([&](Driver& driver, Context&) {
    const bool known = driver.contexts.find(peerContext) != nullptr;
    return known ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_ERROR_INVALID_CONTEXT;
  });
}
