#include "guest/process/context.h"

#include <array>
#include <bitset>
#include <map>

#include "guest/base/log.h"
#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "ring/base/mutex.h"
#include "ring/wire/record.h"

namespace guest {
namespace {

// The contexts that the program has created. Never destroyed.
struct Created {
  ring::Mutex mutex;
  std::map<std::uint64_t, Context*> by_handle GUARDED_BY(mutex);
  std::map<CUgreenCtx, Context*> by_green GUARDED_BY(mutex);
  std::bitset<ring::max_contexts> taken GUARDED_BY(mutex);
  std::uint32_t next GUARDED_BY(mutex) = ring::first_created_context;
  std::uint64_t last_id GUARDED_BY(mutex) = ring::max_devices;
};

Created& created() {
  static Created* const c = new Created;
  return *c;
}

// Finds a free number; 0 if none is free. The search continues after the last number found, so that a number is reused
// as late as possible. A late record of another thread then names an ended context, not a new one.
std::uint32_t free_number(Created& c) REQUIRES(c.mutex) {
  constexpr std::uint32_t first = ring::first_created_context, count = ring::max_contexts - first;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = first + (c.next - first + i) % count;
    if (c.taken[number]) continue;
    c.next = first + (number - first + 1) % count;
    c.taken.set(number);
    return number;
  }
  return 0;
}

}  // namespace

Context* find_context(CUcontext handle) {
  for (std::uint32_t i = 0; i < device_count(); ++i)
    if (primary(i).handle == handle) return &primary(i);
  Created& c = created();
  ring::MutexLock lock(c.mutex);
  const auto found = c.by_handle.find(reinterpret_cast<std::uint64_t>(handle));
  return found == c.by_handle.end() ? nullptr : found->second;
}

Context* find_context(CUgreenCtx handle) {
  Created& c = created();
  ring::MutexLock lock(c.mutex);
  const auto found = c.by_green.find(handle);
  return found == c.by_green.end() ? nullptr : found->second;
}

std::vector<Context*> greens_of(const Context& primary) {
  Created& c = created();
  ring::MutexLock lock(c.mutex);
  std::vector<Context*> found;
  for (const auto& [handle, context] : c.by_green)
    if (context->home == &primary && context->lives()) found.push_back(context);
  return found;
}

Context* owning_context(api::Handle kind, Context& context) {
  return api::ends_with_green_context(kind) ? &context : context.home;
}

Context* current_context() {
  const auto& stack = this_thread().contexts;
  return stack.empty() ? nullptr : stack.back();
}

namespace {

Context* make(Created& c, std::uint32_t device) REQUIRES(c.mutex) {
  const std::uint32_t number = free_number(c);
  if (number == 0) {
    log(Level::Warn, "no context can be created: %u live already, and records have numbers for no more",
        ring::max_contexts - ring::first_created_context);
    return nullptr;
  }
  const Object* object = session()->objects.create(api::Handle::Context, nullptr);
  if (object == nullptr) {
    c.taken.reset(number);
    return nullptr;
  }
  const std::uint64_t handle = object->id.load(std::memory_order_relaxed);
  auto* context = new Context;  // never freed
  context->handle = reinterpret_cast<CUcontext>(handle);
  context->device = device;
  context->number = number;
  context->id = ++c.last_id;
  context->null_stream.context = context;
  c.by_handle[handle] = context;
  return context;
}

}  // namespace

Context* new_context(std::uint32_t device) {
  Created& c = created();
  ring::MutexLock lock(c.mutex);
  Context* context = make(c, device);
  if (context != nullptr) context->created = true;
  return context;
}

Context* new_green_context(std::uint32_t device) {
  Created& c = created();
  ring::MutexLock lock(c.mutex);
  Context* context = make(c, device);
  if (context == nullptr) return nullptr;
  const Object* object = session()->objects.create(api::Handle::GreenContext, nullptr);
  if (object == nullptr) {
    c.taken.reset(context->number);
    return nullptr;
  }
  context->home = &primary(device);
  context->api_version = context->home->api_version;
  context->green = reinterpret_cast<CUgreenCtx>(object->id.load(std::memory_order_relaxed));
  c.by_green[context->green] = context;
  return context;
}

void begin(Context& context) { context.uses.store(1, std::memory_order_relaxed); }

void end(Context& context) {
  Created& c = created();
  ring::MutexLock lock(c.mutex);
  context.uses.store(0, std::memory_order_relaxed);
  c.taken.reset(context.number);
}

CUresult state_of(const Context& context) {
  return context.lives() ? session()->slot().fault() : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult enter(Context*& context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (!session()->liveness().attached(this_thread().pace)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  context = current_context();
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : state_of(*context);
}

CUresult enter(Context*& context, std::initializer_list<const void*> named) {
  const CUresult entered = enter(context);
  if (entered != CUDA_ERROR_INVALID_CONTEXT) return entered;
  for (const void* handle : named)
    if (context == nullptr) context = session()->objects.context_of(handle);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : state_of(*context);
}

CUresult enter_without_context(Context*& context) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (!session()->liveness().attached(this_thread().pace)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  context = current_context();
  if (context == nullptr || !context->lives()) context = &primary(0);
  return CUDA_SUCCESS;
}

}  // namespace guest
