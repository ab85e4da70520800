#include "guest/calls/load.h"

#include <vector>

#include "guest/calls/image.h"
#include "guest/log.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest {
namespace {

constexpr std::size_t inline_image = 48 << 10;  // bytes; a record holds 64 KiB, sizes and options included

Sent send_load(int call, Context& context, api::LoadRecord record, const Image& image, const JitOptions& o) {
  std::vector<std::uint64_t> words;  // sizes, options and values, in the order in which they follow the record
  for (const Part& part : image.parts) words.push_back(part.bytes);
  append(o, words);
  std::vector<Part> parts{{words.data(), words.size() * 8}};
  const auto take_options = [&](CUresult, ring::SharedReader& r) { take(o, r); };
  if (image.bytes + words.size() * 8 <= inline_image) {
    record.arena = ring::absent;
    parts.insert(parts.end(), image.parts.begin(), image.parts.end());
    return cross({.call = call, .context = context}, record, parts, take_options);
  }
  StagedImage staged(image);
  if (!staged.ok() && !session()->usable()) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  if (!staged.ok()) {
    log(Level::Error, "an image of %zu bytes does not fit into the arena: give the VM a larger region", image.bytes);
    return {CUDA_ERROR_OUT_OF_MEMORY, {}};
  }
  record.arena = staged.offset();
  const Sent sent = cross({.call = call, .context = context}, record, parts, take_options);
  if (sent.unanswered) staged.keep_until(sent.use);
  return sent;
}

}  // namespace

CUresult load(int call, api::Handle kind, Context& context, const void* code, const JitOptions& o, Object*& loaded) {
  if (code == nullptr || (o.count != 0 && (o.names == nullptr || o.values == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  if (!are_served(o)) return CUDA_ERROR_NOT_SUPPORTED;
  Image image;
  if (!gather(code, image)) return CUDA_ERROR_INVALID_IMAGE;
  loaded = session()->objects.create(kind, &context);
  if (loaded == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const api::LoadRecord record{.id = loaded->id.load(std::memory_order_relaxed),
                               .arena = ring::absent,
                               .form = static_cast<std::uint32_t>(image.form),
                               .parts = static_cast<std::uint32_t>(image.parts.size()),
                               .options = o.count,
                               .pad = 0};
  const Sent sent = send_load(call, context, record, image, o);
  if (sent.result != CUDA_SUCCESS && !sent.unanswered) session()->objects.retire(*loaded, {});
  return sent.result;
}

CUresult unload(int call, Context& context, Object& object) {
  Session& s = *session();
  const std::uint64_t id = object.id.load(std::memory_order_relaxed);
  const Sent sent = cross({.call = call, .context = context}, api::CloseRecord{.id = id});
  if (sent.result != CUDA_SUCCESS) return sent.result;
  for (Object* o : s.objects.owned_by(object)) s.objects.retire(*o, sent.use);
  s.addresses.drop_owned(id);
  s.objects.retire(object, sent.use);
  return CUDA_SUCCESS;
}

}  // namespace guest
