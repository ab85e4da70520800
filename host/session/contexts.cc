#include "host/session/contexts.h"

#include "ring/base/mutex.h"

namespace host {
namespace {

// The guest's flags that the worker passes to the driver. The worker itself decides how its threads wait, and a core
// dump would be a file on the host.
constexpr unsigned passed_flags = CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS;

// The calling thread's current context, and the number of contexts that had ended when the thread made it current.
thread_local unsigned current = ring::max_contexts;
thread_local std::uint64_t seen_ended = 0;

}  // namespace

CUresult retain_primary(const Driver& driver, CUdevice device, bool asleep, CUcontext& context) {
  // Sets the flags each time, since a reset may have cleared them. If the driver refuses the flags, its threads spin.
  if (asleep && driver.cuDevicePrimaryCtxSetFlags_v2 != nullptr)
    driver.cuDevicePrimaryCtxSetFlags_v2(device, CU_CTX_SCHED_BLOCKING_SYNC);
  return driver.cuDevicePrimaryCtxRetain(&context, device);
}

CUcontext Contexts::find(unsigned number) const {
  return number < contexts_.size() ? contexts_[number].load(std::memory_order_relaxed) : nullptr;
}

CUgreenCtx Contexts::find_green(unsigned number) const {
  return number < greens_.size() ? greens_[number].load(std::memory_order_relaxed) : nullptr;
}

unsigned Contexts::home_of(unsigned number) const {
  return find_green(number) == nullptr ? number : static_cast<unsigned>(device_of(number));
}

CUdevice Contexts::device_of(unsigned number) const {
  return number < ring::first_created_context ? static_cast<CUdevice>(number)
                                              : devices_[number].load(std::memory_order_relaxed);
}

// Counts the memory of a new context. A primary context counts until the session ends, because a reset makes it again.
bool Contexts::may_begin(unsigned number, CUdevice device) {
  if (memory_ == nullptr || number == 0 || counted_[number].exchange(true, std::memory_order_relaxed)) return true;
  if (memory_->take(static_cast<unsigned>(device), bytes_)) return true;
  counted_[number].store(false, std::memory_order_relaxed);
  return false;
}

void Contexts::end_count(unsigned number, CUdevice device) {
  if (counted_[number].exchange(false, std::memory_order_relaxed))
    memory_->give_back(static_cast<unsigned>(device), bytes_);
  shrink(number);
}

void Contexts::shrink(unsigned number) {
  const ring::MutexLock lock(grown_mutex_);
  grown_[number] = {};
}

std::uint64_t Contexts::grown_to(unsigned number, int limit) {
  const ring::MutexLock lock(grown_mutex_);
  const auto at = grown_[number].bytes.find(limit);
  return at == grown_[number].bytes.end() ? 0 : at->second;
}

void Contexts::grow(unsigned number, int limit, std::uint64_t bytes, Charge charge) {
  const ring::MutexLock lock(grown_mutex_);
  grown_[number].bytes[limit] = bytes;
  grown_[number].charges.push_back(std::move(charge));
}

CUresult Contexts::retain(unsigned device, CUcontext& context) {
  CUdevice handle = 0;
  if (const CUresult r = driver_.cuDeviceGet(&handle, static_cast<int>(device)); r != CUDA_SUCCESS) return r;
  if (!may_begin(device, static_cast<CUdevice>(device))) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult r = retain_primary(driver_, handle, asleep_, context); r != CUDA_SUCCESS) return r;
  contexts_[device].store(context, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult Contexts::make_current(unsigned number) {
  const std::uint64_t ended = ended_.load(std::memory_order_relaxed);
  if (current == number && seen_ended == ended) return CUDA_SUCCESS;
  CUcontext context = find(number);
  if (context == nullptr) {
    if (number >= ring::first_created_context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (const CUresult r = retain(number, context); r != CUDA_SUCCESS) return r;
  }
  const CUresult result = driver_.cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) current = number, seen_ended = ended;
  return result;
}

void Contexts::let_go_of_green() {
  if (find_green(current) != nullptr) make_current(home_of(current));
}

CUresult Contexts::create(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count) {
  CUdevice handle = 0;
  if (const CUresult r = driver_.cuDeviceGet(&handle, device); r != CUDA_SUCCESS) return r;
  flags = (flags & passed_flags) | (asleep_ ? CU_CTX_SCHED_BLOCKING_SYNC : 0);
  CUexecAffinityParam affinity{.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
                               .param = {.smCount = {.val = sm_count.value_or(0)}}};
  if (sm_count && driver_.cuCtxCreate_v3 == nullptr) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (!may_begin(number, device)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext context = nullptr;
  const CUresult result = sm_count ? driver_.cuCtxCreate_v3(&context, &affinity, 1, flags, handle)
                                   : driver_.cuCtxCreate_v2(&context, flags, handle);
  if (result != CUDA_SUCCESS) {
    end_count(number, device);
    return result;
  }
  CUcontext popped = nullptr;
  // cuCtxCreate made the context current, but this thread already has a current context
  driver_.cuCtxPopCurrent_v2(&popped);
  devices_[number].store(device, std::memory_order_relaxed);
  contexts_[number].store(context, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult Contexts::create_green(unsigned number, CUdevice device, CUdevResourceDesc resources, unsigned flags) {
  CUdevice handle = 0;
  if (const CUresult r = driver_.cuDeviceGet(&handle, device); r != CUDA_SUCCESS) return r;
  if (driver_.cuGreenCtxCreate == nullptr || driver_.cuCtxFromGreenCtx == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUgreenCtx green = nullptr;
  if (const CUresult r = driver_.cuGreenCtxCreate(&green, resources, handle, flags); r != CUDA_SUCCESS) return r;
  CUcontext context = nullptr;
  if (const CUresult r = driver_.cuCtxFromGreenCtx(&context, green); r != CUDA_SUCCESS) {
    driver_.cuGreenCtxDestroy(green);
    return r;
  }
  devices_[number].store(device, std::memory_order_relaxed);
  greens_[number].store(green, std::memory_order_relaxed);
  contexts_[number].store(context, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult Contexts::destroy(unsigned number) {
  const CUgreenCtx green = find_green(number);
  if (green != nullptr) make_current(home_of(number));
  const CUresult result = green != nullptr ? driver_.cuGreenCtxDestroy(green) : driver_.cuCtxDestroy_v2(find(number));
  end_count(number, device_of(number));
  contexts_[number].store(nullptr, std::memory_order_relaxed);
  greens_[number].store(nullptr, std::memory_order_relaxed);
  ended_.fetch_add(1, std::memory_order_relaxed);
  return result;
}

std::vector<unsigned> Contexts::greens_of(unsigned device) const {
  std::vector<unsigned> numbers;
  for (unsigned number = ring::first_created_context; number < ring::max_contexts; ++number)
    if (find_green(number) != nullptr && home_of(number) == device) numbers.push_back(number);
  return numbers;
}

CUresult Contexts::reset(unsigned device) {
  CUdevice handle = 0;
  if (const CUresult r = driver_.cuDeviceGet(&handle, static_cast<int>(device)); r != CUDA_SUCCESS) return r;
  if (const CUresult r = driver_.cuDevicePrimaryCtxReset_v2(handle); r != CUDA_SUCCESS) return r;
  shrink(device);
  contexts_[device].store(nullptr, std::memory_order_relaxed);
  ended_.fetch_add(1, std::memory_order_relaxed);
  CUcontext context = nullptr;
  if (retain(device, context) == CUDA_SUCCESS) driver_.cuCtxSetCurrent(context);
  return CUDA_SUCCESS;
}

}  // namespace host
