#include "guest/calls/module/load.h"

#include "guest/calls/module/send_image.h"

namespace guest {

CUresult load(int call, api::Handle kind, Context& context, const void* code, const JitOptions& o, Object*& loaded) {
  if (code == nullptr || (o.count != 0 && (o.names == nullptr || o.values == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  if (!are_served(o)) return CUDA_ERROR_NOT_SUPPORTED;
  Image image;
  if (!gather(code, image)) return CUDA_ERROR_INVALID_IMAGE;
  loaded = session()->objects.create(kind, owning_context(kind, context));
  if (loaded == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const api::LoadRecord record{.id = loaded->id.load(std::memory_order_relaxed),
                               .arena = ring::absent,
                               .form = static_cast<std::uint32_t>(image.form),
                               .parts = static_cast<std::uint32_t>(image.parts.size()),
                               .options = o.count,
                               .pad = 0};
  const auto take_options = [&](CUresult, ring::SharedReader& r) { take(o, r); };
  const Sent sent = send_image(call, context, record, image, o, {}, take_options);
  if (sent.result != CUDA_SUCCESS && !sent.unanswered) session()->objects.retire(*loaded, {});
  return sent.result;
}

CUresult unload(int call, Context& context, Object& object) {
  const std::uint64_t id = object.id.load(std::memory_order_relaxed);
  const Sent sent = cross({.call = call, .context = context}, api::CloseRecord{.id = id});
  if (sent.result == CUDA_SUCCESS) close_object(object, id, sent.use);
  return sent.result;
}

}  // namespace guest
