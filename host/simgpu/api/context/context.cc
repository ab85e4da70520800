// end_context() ends the parts of a context in this order: work in flight, destructors of the runtime (which may still
// make calls), handles, memory.
#include "host/simgpu/api/context/context.h"

#include <algorithm>

#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/module/library.h"
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array.h"
#include "host/simgpu/api/texture/resource.h"
#include "host/simgpu/api/texture/texture_reference.h"
#include "ring/abi/context_storage.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr std::array<std::size_t, 9> default_limits = {
    1024,     // stack size
    8650752,  // printf buffer
    8388608,  // device heap
    0,        // device runtime synchronise depth: not supported
    2048,     // device runtime pending launches
    64,       // L2 fetch granularity
    0,        // persisting L2
    device_shared_optin,
    0,  // CIG: CUDA in graphics
};

template <class Table, class Belongs>
void remove_all(Table& table, Belongs belongs) {
  for (const auto& object : table.all())
    if (belongs(*object)) table.remove(object->handle);
}

// The handles of a created context's streams and events remain known, and calls on them report a destroyed context. A
// primary context may become active again, so its streams and events are removed.
void drop_objects(Driver& driver, Context& context) {
  if (context.is_primary) {
    remove_all(driver.streams, [&](const Stream& s) { return s.context.get() == &context; });
    remove_all(driver.events, [&](const Event& e) { return e.context.get() == &context; });
    remove_all(driver.texture_references, [&](const TextureReference& t) { return t.context.get() == &context; });
  }
  drop_texture_objects(driver, context);
  drop_arrays(driver, context);
  for (const auto& module : driver.modules.all())
    // modules of libraries have already been dropped
    if (module->context.get() == &context) drop_module(driver, *module);
}

}  // namespace

void begin_context(Driver& driver, Context& context, unsigned flags) {
  context.memory = context.device.space.charge(context.device.context_memory) ? context.device.context_memory : 0;
  auto legacy = std::make_shared<Stream>();
  legacy->handle = CU_STREAM_LEGACY;
  legacy->id = driver.next_id();
  // non-owning: the context owns the stream
  legacy->context = std::shared_ptr<Context>(std::shared_ptr<Context>(), &context);
  {
    const ring::MutexLock lock(context.mutex);
    context.flags = context.is_primary ? flags | CU_CTX_MAP_HOST : flags;
    // Core dumps on request include core dumps after a fault, and cuCtxGetFlags reports only the flag of the latter.
    if ((flags & CU_CTX_USER_COREDUMP_ENABLE) != 0)
      context.flags = (context.flags & ~unsigned{CU_CTX_USER_COREDUMP_ENABLE}) | CU_CTX_COREDUMP_ENABLE;
    context.limits.fill(0);
    std::copy(default_limits.begin(), default_limits.end(), context.limits.begin());
    context.cache_config = CU_FUNC_CACHE_PREFER_NONE;
    context.prints = context.allocates = false;
    context.heap = std::make_unique<Heap>(context.device.space);
    context.print = [&driver, &context](std::string_view text) { driver.print(context, text); };
  }
  const ring::MutexLock order(driver.schedule.order());
  context.legacy = legacy;
  context.recorded = context.gate = nullptr;
  context.ending.store(false, std::memory_order_relaxed);
  context.active.store(true, std::memory_order_release);
}

void end_context(Driver& driver, const std::shared_ptr<Context>& context) {
  context->ending.store(true, std::memory_order_release);
  forget_captures(driver, *context);
  wait_for(driver, pending(driver, *context));
  cuabi::storage_release(context->handle);
  context->active.store(false, std::memory_order_release);
  forget_context(driver, *context);
  drop_objects(driver, *context);
  for (const Allocation& allocation : driver.memory.take_all(context.get())) give_back(driver, allocation);
  {
    const ring::MutexLock lock(context->mutex);
    context->heap = nullptr;
  }
  context->device.space.discharge(context->memory);
  const ring::MutexLock order(driver.schedule.order());
  for (const auto& stream : context->streams) stream->destroyed = true;
  context->streams.clear();
}

std::shared_ptr<Context> context_named(Driver& driver, CUcontext handle, CUresult* error) {
  std::shared_ptr<Context> context = handle == nullptr ? driver.current_shared() : driver.contexts.find(handle);
  *error = CUDA_SUCCESS;
  if (context == nullptr) {
    *error = CUDA_ERROR_INVALID_CONTEXT;
  } else if (!context->active.load(std::memory_order_acquire)) {
    *error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context = nullptr;
  }
  return context;
}

}  // namespace simgpu
