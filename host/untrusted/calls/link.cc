// The JIT linker. These calls are handwritten because options have buffers, inputs have lengths of their own, and the
// resulting image belongs to the link. The driver keeps the addresses of a link's options until the link ends. The
// session therefore keeps the options in an object of the link, and reports their values after each call.
#include <algorithm>
#include <memory>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/image.h"
#include "ring/base/mutex.h"

namespace host::calls {
namespace {

// Each input counts this many bytes in addition to its own: the driver keeps some KiB of tables even for a short text.
constexpr std::uint64_t least_input = 64 << 10;

// Runs `call` with exclusive use of the link, and appends the link's report to the reply. If the link has ended, there
// is no report, and the call fails as for any destroyed handle.
template <class F>
CUresult with_link(Request& r, std::uint64_t id, F call) {
  const std::shared_ptr<Link> link = r.session.code.links.find(id);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  ring::MutexLock lock(link->mutex);
  if (link->ended) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = call(*link);
  link->options.report(r.out);
  if (result != CUDA_SUCCESS) r.out_on_error = r.out.used();
  return result;
}

bool take_share(Session& session, Link& link, std::uint64_t bytes) REQUIRES(link.mutex) {
  Share share;
  if (!share.take(session.code.budget, bytes)) return false;
  link.share.join(std::move(share));
  return true;
}

// Copies the driver's image into the session.
CUresult keep_image(Session& session, Link& link, const void* image, std::size_t bytes) REQUIRES(link.mutex) {
  const auto* const from = static_cast<const std::byte*>(image);
  // The link was completed again.
  if (std::equal(link.image.begin(), link.image.end(), from, from + bytes)) return CUDA_SUCCESS;
  if (bytes > api::max_image_bytes || !take_share(session, link, 2 * bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  link.image.assign(from, from + bytes);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLinkCreate_v2(call_of::cuLinkCreate_v2& a) {
  const std::size_t count = a.record.options;
  const auto link = std::make_shared<Link>(option_names(a.image(), count), option_values(a.image(), count));
  ring::MutexLock lock(link->mutex);
  if (!take_share(a.session(), *link, link->options.log_bytes())) return CUDA_ERROR_OUT_OF_MEMORY;
  CUlinkState state = nullptr;
  DriverJitOptions& options = link->options;
  const CUresult result = a.call(options.count(), options.names(), options.values(), &state);
  options.report(a.request.out);
  if (result != CUDA_SUCCESS) {
    a.request.out_on_error = a.request.out.used();
    return result;
  }
  // Adds the link before put(), so that a thread that finds the id also finds the link.
  if (!a.session().code.links.add(a.record.id, link)) return a.request.broken();
  return a.put(state) ? CUDA_SUCCESS : a.request.broken();
}

CUresult cuLinkAddData_v2(call_of::cuLinkAddData_v2& a) {
  for (const CUjit_option name : option_names(a.image(), a.record.options))
    if (api::is_of_whole_link(name)) return a.request.broken();
  LoadRequest input(a.request, a.record, a.image());
  return with_link(a.request, a.record.id, [&](Link& link) {
    link.mutex.assume_held();
    if (!input.ok()) return input.refused();
    if (!take_share(a.session(), link, least_input)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result =
        a.call(a.handle<CUlinkState>(&api::LoadRecord::id), static_cast<CUjitInputType>(a.record.type),
               const_cast<void*>(input.image()), input.bytes(), a.record.named != 0 ? a.text().data() : nullptr,
               input.option_count(), input.options(), input.values());
    if (result == CUDA_SUCCESS) link.share.join(input.take_share());
    return result;
  });
}

CUresult cuLinkComplete(call_of::cuLinkComplete& a) {
  return with_link(a.request, a.record.id, [&](Link& link) {
    link.mutex.assume_held();
    void* image = nullptr;
    std::size_t bytes = 0;
    CUresult result = a.call(a.handle<CUlinkState>(&api::CompleteLinkRecord::id), &image, &bytes);
    if (result == CUDA_SUCCESS) result = keep_image(a.session(), link, image, bytes);
    a.request.out.slot(result == CUDA_SUCCESS ? bytes : 0);
    return result;
  });
}

CUresult take_image(call_of::take_image& a) {
  const std::shared_ptr<Link> link = a.session().code.links.find(a.record.id);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  ring::MutexLock lock(link->mutex);
  const std::uint64_t offset = std::min<std::uint64_t>(a.record.offset, link->image.size());
  const std::span rest = std::span<const std::byte>(link->image).subspan(offset);
  return a.answer(CUDA_SUCCESS, {.length = 0}, rest.first(std::min<std::uint64_t>(a.record.room, rest.size())));
}

CUresult cuLinkDestroy(call_of::cuLinkDestroy& a) {
  return with_link(a.request, a.record.id, [&](Link& link) {
    link.mutex.assume_held();
    const CUresult result = a.call(a.handle<CUlinkState>(&api::CloseRecord::id));
    link.ended = result == CUDA_SUCCESS;
    return result;
  });
}

}  // namespace host::calls
