#include "guest/calls/context_end.h"

#include "guest/process/process.h"
#include "ring/abi/context_storage.h"
#include "ring/api/records.h"

namespace guest {

Sent end_context(Context& context, int call, std::optional<api::Way> way) {
  Session& s = *session();
  if (!s.attached()) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  cuabi::storage_release(context.handle);
  if (s.registered->has_of(&context)) way.reset();  // its pages go back when the GPU no longer uses them
  const Sent sent =
      cross({.call = call, .context = context, .way = way}, api::EndContextRecord{.number = context.number});
  if (sent.use.position == 0) return sent;
  for (Object* o : s.objects.of_context(context)) {
    s.addresses.drop_owned(o->id.load(std::memory_order_relaxed));  // the globals of a module
    s.objects.retire_with_context(*o, sent.use);
  }
  if (!sent.unanswered) s.registered->remove_of(&context);
  for (const std::uint64_t block : s.addresses.drop_context(context))
    s.arena->free_after(reinterpret_cast<const void*>(block), sent.use);
  return sent;
}

}  // namespace guest
