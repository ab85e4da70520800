// The JIT linker. The calls are handwritten because options come with buffers that the driver keeps, and inputs with
// their own lengths. The linked image belongs to the link: the guest fetches a copy, one fragment at a time.
//
// Invariant: the guest finds the errors that CUDA reports at once before it sends anything. Trust: the arguments are
// the program's. The guest checks the worker's length of an image against a bound, and each fragment against the
// request.
#include <algorithm>
#include <cstring>
#include <string>

#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/module/file_bytes.h"
#include "guest/calls/module/links.h"
#include "guest/calls/module/lookup.h"
#include "guest/calls/module/send_image.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

constexpr std::size_t most_of_name = 4095;  // bytes sent of an input's name; the driver uses the name only in its log

CUresult check(const JitOptions& o) {
  if (o.count != 0 && (o.names == nullptr || o.values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < o.count; ++i)
    if (o.names[i] < 0 || o.names[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
  return are_served(o) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult check_input(const JitOptions& o) {
  if (const CUresult r = check(o); r != CUDA_SUCCESS) return r;
  return std::any_of(o.names, o.names + o.count, api::is_of_whole_link) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Finds the link of a state, which is an object of this process. Returns null if there is no such link.
std::shared_ptr<Link> link_of(CUlinkState state) {
  const Object* object = session()->objects.find(state, api::Handle::Link);
  return object == nullptr ? nullptr : find_link(reinterpret_cast<std::uint64_t>(state));
}

// Sends a call on a link, and stores the report that the reply contains.
template <class Record>
Sent cross_link(int call, Context& context, Link& link, const Record& record, std::span<const Part> parts = {}) {
  return cross({.call = call, .context = context}, record, parts,
               [&](CUresult, ring::SharedReader& r) { link.take_report(r); });
}

// Fetches the fragment of an image that starts at `offset`. Returns the fragment's length, or 0 if the fetch failed.
std::size_t fetch_piece(std::uint64_t id, std::size_t offset, std::span<char> room) {
  const api::TakeImageRecord record{.id = id, .offset = offset, .room = room.size()};
  std::size_t length = 0;
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result != CUDA_SUCCESS) return;
    const std::uint64_t given = r.slot();
    if (given == 0 || given > room.size()) return r.fail();
    if (r.copy(room.data(), given)) length = given;
  };
  return send_own(api::id_of::take_image, primary(0), record, read).result == CUDA_SUCCESS ? length : 0;
}

// Fetches an image. Allocates memory as fragments arrive, since the worker's size is not trusted. Returns false if a
// fragment is missing.
bool fetch(std::uint64_t id, std::uint64_t size, std::vector<char>& image) {
  while (image.size() < size) {
    const std::size_t done = image.size();
    image.resize(done + std::min<std::uint64_t>(size - done, api::max_image_piece));
    const std::size_t length = fetch_piece(id, done, std::span(image).subspan(done));
    if (length == 0) return false;
    image.resize(done + length);
  }
  return true;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* names, void** values, CUlinkState* state) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLinkCreate_v2>(context); r != CUDA_SUCCESS) return r;
  const JitOptions options{count, names, values};
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check(options); r != CUDA_SUCCESS) return r;
  Object* object = session()->objects.create(api::Handle::Link, context);
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t id = object->id.load(std::memory_order_relaxed);
  const auto link = std::make_shared<Link>(options);
  const api::CreateLinkRecord record{.id = id, .options = count, .pad = 0};
  std::vector<std::uint64_t> words;
  append(options, words);
  const Part part{words.data(), words.size() * 8};
  const Sent sent = cross_link(api::id_of::cuLinkCreate_v2, *context, *link, record, {&part, words.empty() ? 0U : 1U});
  if (sent.result != CUDA_SUCCESS && !sent.unanswered) session()->objects.retire(*object, {});
  if (sent.result != CUDA_SUCCESS) return sent.result;
  add_link(id, link);
  *state = handle_of_object<CUlinkState>(*object);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t size, const char* name,
                          unsigned count, CUjit_option* names, void** values) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLinkAddData_v2>(context); r != CUDA_SUCCESS) return r;
  const std::shared_ptr<Link> link = link_of(state);
  const JitOptions options{count, names, values};
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_input(options); r != CUDA_SUCCESS) return r;
  if (size > api::max_image_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const Image image{.form = api::ImageForm::Plain, .parts = {{data, size}}, .bytes = ring::padded(size)};
  const std::string sent_name(name == nullptr ? "" : name, name == nullptr ? 0 : strnlen(name, most_of_name));
  api::AddToLinkRecord record{};
  record.id = reinterpret_cast<std::uint64_t>(state);
  record.parts = 1;
  record.options = count;
  record.type = static_cast<std::uint32_t>(type);
  record.named = name != nullptr ? 1 : 0;
  record.name_bytes = sent_name.size() + 1;
  const Part behind{sent_name.c_str(), record.name_bytes};
  const auto read = [&](CUresult, ring::SharedReader& r) { link->take_report(r); };
  return send_image(api::id_of::cuLinkAddData_v2, *context, record, image, options, {&behind, 1}, read).result;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned count, CUjit_option* names,
                          void** values) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (link_of(state) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (path == nullptr || *path == '\0') return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_input({count, names, values}); r != CUDA_SUCCESS) return r;
  CUresult error = CUDA_SUCCESS;
  std::vector<char> bytes = file_bytes(path, error);
  if (bytes.empty()) return error;
  // For an empty file, the driver chooses the error.
  const std::size_t size = std::max<std::size_t>(bytes.size() - 1, 1);
  return calls::cuLinkAddData_v2(state, type, bytes.data(), size, path, count, names, values);
}

CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* bytes) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLinkComplete>(context); r != CUDA_SUCCESS) return r;
  const std::shared_ptr<Link> link = link_of(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const api::CompleteLinkRecord record{.id = reinterpret_cast<std::uint64_t>(state)};
  std::uint64_t size = 0;
  const auto read = [&](CUresult, ring::SharedReader& r) {
    size = r.slot();
    if (size > api::max_image_bytes) return r.fail();
    link->take_report(r);
  };
  const Sent sent = cross({.call = api::id_of::cuLinkComplete, .context = *context}, record, {}, read);
  if (sent.result != CUDA_SUCCESS) return sent.result;
  std::vector<char> made;
  if (!fetch(record.id, size, made))
    return session()->liveness().usable() ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_DEVICE_UNAVAILABLE;
  const std::vector<char>& kept = link->keep(std::move(made));
  *image = const_cast<char*>(kept.data());
  if (bytes != nullptr) *bytes = kept.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLinkDestroy>(context); r != CUDA_SUCCESS) return r;
  const std::shared_ptr<Link> link = link_of(state);
  Object* object = session()->objects.find(state, api::Handle::Link);
  if (link == nullptr || object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const api::CloseRecord record{.id = reinterpret_cast<std::uint64_t>(state)};
  const Sent sent = cross_link(api::id_of::cuLinkDestroy, *context, *link, record);
  if (sent.result != CUDA_SUCCESS) return sent.result;
  drop_link(record.id);
  session()->objects.retire(*object, sent.use);
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
