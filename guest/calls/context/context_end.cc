#include "guest/calls/context/context_end.h"

#include "guest/process/process.h"
#include "ring/abi/context_storage.h"
#include "ring/api/records.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

void retire_objects(const Context& context, Use last) {
  Session& s = *session();
  for (Object* o : s.objects.of_context(context)) {
    const std::uint64_t id = o->id.load(std::memory_order_relaxed);
    s.memory.addresses.drop_owned(id);  // drops the module's globals
    s.code.variables->drop_of(id, last);
    s.graphs.captures.over(*o);
    s.objects.retire_with_context(*o, last);
  }
}

}  // namespace

Sent end_context(Context& context, int call, std::optional<api::Way> way) {
  Session& s = *session();
  if (!s.liveness().attached()) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  cuabi::storage_release(context.handle);
  // Registered pages return to the program only when the GPU no longer uses them.
  if (s.memory.registered->has_of(&context)) way.reset();
  const std::vector<Context*> greens = greens_of(context);
  if (!greens.empty()) way.reset();  // the program may reuse the green contexts' numbers when this call returns
  const Sent sent =
      cross({.call = call, .context = *context.home, .way = way}, api::EndContextRecord{.number = context.number});
  if (sent.use.position == 0) return sent;
  retire_objects(context, sent.use);
  for (Context* green : greens) {
    ring::MutexLock lock(green->mutex);
    retire_objects(*green, sent.use);
    if (green->lives()) cuabi::storage_release(green->handle), end(*green);
  }
  if (!sent.unanswered) s.memory.registered->remove_of(&context);
  for (const std::uint64_t block : s.memory.addresses.drop_context(context))
    s.memory.arena->free_after(reinterpret_cast<const void*>(block), sent.use);
  return sent;
}

}  // namespace guest
