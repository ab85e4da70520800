// Texture and surface objects, and rows of texels for texture references. The calls that create an object are
// handwritten because the descriptors are unions with handles and addresses. The guest itself returns the descriptions
// that a program passed (guest/objects/textures.h).
//
// Trust: the arguments are the program's. The guest passes the worker's number on to the program, and uses the number
// only as a key.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "guest/calls/calls.h"
#include "guest/calls/module/load.h"
#include "guest/marshal/custom.h"
#include "ring/api/texture_records.h"

namespace guest::calls {
namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Finds the id of an array in a descriptor.
CUresult id_of_array(const void* handle, api::Handle kind, std::uint64_t& id) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* object = session()->objects.find(handle, kind);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  id = object->id.load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

// Translates the address of the resource in a record to the host's address.
CUresult place_memory(CUdeviceptr start, api::CreateTextureRecord& record) {
  const auto seen = session()->memory.addresses.device_view(start, api::CreateTextureRecord::span(record));
  if (!seen) return CUDA_ERROR_INVALID_VALUE;
  record.resource.address = *seen;
  return CUDA_SUCCESS;
}

CUresult describe(const CUDA_RESOURCE_DESC& d, api::CreateTextureRecord& record) {
  api::TextureResource& to = record.resource;
  if (d.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  to.type = static_cast<std::uint32_t>(d.resType);
  switch (d.resType) {
    case CU_RESOURCE_TYPE_ARRAY: return id_of_array(d.res.array.hArray, api::Handle::Array, to.array);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return id_of_array(d.res.mipmap.hMipmappedArray, api::Handle::MipmappedArray, to.mipmapped_array);
    case CU_RESOURCE_TYPE_LINEAR:
      to.format = static_cast<std::uint32_t>(d.res.linear.format), to.channels = d.res.linear.numChannels;
      to.width = d.res.linear.sizeInBytes;
      return place_memory(d.res.linear.devPtr, record);
    case CU_RESOURCE_TYPE_PITCH2D:
      to.format = static_cast<std::uint32_t>(d.res.pitch2D.format), to.channels = d.res.pitch2D.numChannels;
      to.width = d.res.pitch2D.width, to.height = d.res.pitch2D.height, to.pitch = d.res.pitch2D.pitchInBytes;
      return place_memory(d.res.pitch2D.devPtr, record);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

template <class Word, std::size_t count>
bool any_set(const Word (&reserved)[count]) {
  return std::any_of(std::begin(reserved), std::end(reserved), [](Word word) { return word != 0; });
}

// Returns the description as the driver stores it: a texture object that reads integers has no border colour.
CUDA_TEXTURE_DESC kept(const CUDA_TEXTURE_DESC& given) {
  CUDA_TEXTURE_DESC d = given;
  if ((d.flags & CU_TRSF_READ_AS_INTEGER) != 0) std::fill(std::begin(d.borderColor), std::end(d.borderColor), 0.0F);
  return d;
}

api::TextureSampling described(const CUDA_TEXTURE_DESC& d) {
  api::TextureSampling to{};
  for (int i = 0; i < 3; ++i) to.address_mode[i] = static_cast<std::uint32_t>(d.addressMode[i]);
  to.filter_mode = static_cast<std::uint32_t>(d.filterMode);
  to.flags = d.flags;
  to.max_anisotropy = d.maxAnisotropy;
  to.mipmap_filter_mode = static_cast<std::uint32_t>(d.mipmapFilterMode);
  to.level_bias = bits_of(d.mipmapLevelBias);
  to.min_level = bits_of(d.minMipmapLevelClamp), to.max_level = bits_of(d.maxMipmapLevelClamp);
  to.red = bits_of(d.borderColor[0]), to.green = bits_of(d.borderColor[1]);
  to.blue = bits_of(d.borderColor[2]), to.alpha = bits_of(d.borderColor[3]);
  return to;
}

api::TextureView described(const CUDA_RESOURCE_VIEW_DESC& d) {
  return {.width = d.width,
          .height = d.height,
          .depth = d.depth,
          .format = static_cast<std::uint32_t>(d.format),
          .first_level = d.firstMipmapLevel,
          .last_level = d.lastMipmapLevel,
          .first_layer = d.firstLayer,
          .last_layer = d.lastLayer,
          .pad = 0};
}

// Sends a record that creates an object, and stores the program's description under the object's number.
template <class Record>
CUresult create(int call, api::Handle kind, Context& context, Record& record, TextureEntry entry,
                unsigned long long* number) {
  Session& s = *session();
  Object* object = s.objects.create(kind, owning_context(kind, context));
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  record.id = entry.id = object->id.load(std::memory_order_relaxed);
  api::TextureReply reply{};
  const Sent sent = cross({.call = call, .context = context}, record, {}, [&](CUresult result, ring::SharedReader& r) {
    if (result == CUDA_SUCCESS) reply = r.read<api::TextureReply>();
  });
  if (sent.result != CUDA_SUCCESS) {
    if (!sent.unanswered) s.objects.retire(*object, {});
    return sent.result;
  }
  s.textures.insert(reply.number, entry);
  *number = reply.number;
  return CUDA_SUCCESS;
}

template <int call, api::Handle kind>
CUresult destroy(unsigned long long number) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<call>(context); r != CUDA_SUCCESS) return r;
  const auto entry = session()->textures.find(number, kind);
  if (!entry) return CUDA_SUCCESS;  // already destroyed
  Object* object = session()->objects.find(reinterpret_cast<const void*>(entry->id), kind);
  return object == nullptr ? CUDA_SUCCESS : unload(call, *context, *object);
}

CUresult find(unsigned long long number, api::Handle kind, std::optional<TextureEntry>& entry) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  entry = session()->textures.find(number, kind);
  return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* sampling,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
  Context* context = nullptr;
  constexpr int call = api::id_of::cuTexObjectCreate;
  if (const CUresult r = enter_call<call>(context); r != CUDA_SUCCESS) return r;
  if (out == nullptr || resource == nullptr || sampling == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (any_set(sampling->reserved) || (view != nullptr && any_set(view->reserved))) return CUDA_ERROR_INVALID_VALUE;
  api::CreateTextureRecord record{};
  if (const CUresult r = describe(*resource, record); r != CUDA_SUCCESS) return r;
  record.sampling = described(*sampling);
  if (view != nullptr) record.view = described(*view), record.has_view = 1;
  const TextureEntry entry{.id = 0,
                           .resource = *resource,
                           .sampling = kept(*sampling),
                           .view = view == nullptr ? std::nullopt : std::optional(*view)};
  return create(call, api::Handle::Texture, *context, record, entry, out);
}

CUresult cuTexObjectDestroy(CUtexObject number) {
  return destroy<api::id_of::cuTexObjectDestroy, api::Handle::Texture>(number);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject number) {
  std::optional<TextureEntry> entry;
  if (const CUresult r = find(number, api::Handle::Texture, entry); r != CUDA_SUCCESS) return r;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = entry->resource;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject number) {
  std::optional<TextureEntry> entry;
  if (const CUresult r = find(number, api::Handle::Texture, entry); r != CUDA_SUCCESS) return r;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = entry->sampling;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* out, CUtexObject number) {
  std::optional<TextureEntry> entry;
  if (const CUresult r = find(number, api::Handle::Texture, entry); r != CUDA_SUCCESS) return r;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = entry->view.value_or(CUDA_RESOURCE_VIEW_DESC{});
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  Context* context = nullptr;
  constexpr int call = api::id_of::cuSurfObjectCreate;
  if (const CUresult r = enter_call<call>(context); r != CUDA_SUCCESS) return r;
  if (out == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (resource->resType != CU_RESOURCE_TYPE_ARRAY || resource->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  api::CreateSurfaceRecord record{};
  if (const CUresult r = id_of_array(resource->res.array.hArray, api::Handle::Array, record.array); r != CUDA_SUCCESS)
    return r;
  const TextureEntry entry{.id = 0, .resource = *resource, .sampling = {}, .view = {}};
  return create(call, api::Handle::Surface, *context, record, entry, out);
}

CUresult cuSurfObjectDestroy(CUsurfObject number) {
  return destroy<api::id_of::cuSurfObjectDestroy, api::Handle::Surface>(number);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUsurfObject number) {
  std::optional<TextureEntry> entry;
  if (const CUresult r = find(number, api::Handle::Surface, entry); r != CUDA_SUCCESS) return r;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = entry->resource;
  return CUDA_SUCCESS;
}

// ---- texture references --------------------------------------------------------------------------------------------

namespace {

// The other calls for texture references are CALL lines.
template <int call>
CUresult bind_rows(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr start, std::size_t pitch) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  if (const CUresult r = enter_call<call>(context, reference); r != CUDA_SUCCESS) return r;
  if (session()->objects.find(reference, api::Handle::TextureReference) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (d == nullptr) return CUDA_ERROR_INVALID_VALUE;
  api::BindRowsRecord record{.reference = api::number_of(reference),
                             .address = start,
                             .width = d->Width,
                             .height = d->Height,
                             .pitch = pitch,
                             .format = static_cast<std::uint32_t>(d->Format),
                             .channels = d->NumChannels};
  if (start != 0) {
    const auto seen = session()->memory.addresses.device_view(start, api::BindRowsRecord::span(record));
    if (!seen) return CUDA_ERROR_INVALID_VALUE;
    record.address = *seen;
  }
  return cross({.call = call, .context = *context}, record).result;
}

}  // namespace

CUresult cuTexRefSetAddress2D_v2(CUtexref r, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr start, std::size_t pitch) {
  return bind_rows<api::id_of::cuTexRefSetAddress2D_v2>(r, d, start, pitch);
}

CUresult cuTexRefSetAddress2D_v3(CUtexref r, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr start, std::size_t pitch) {
  return bind_rows<api::id_of::cuTexRefSetAddress2D_v3>(r, d, start, pitch);
}

}  // namespace guest::calls
