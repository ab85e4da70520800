// Copy calls. The synchronous calls use the legacy stream, and their _ptds variants the per-thread stream.
#include "host/simgpu/api/cuda_api.h"

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/memory/rows.h"
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array_copy.h"

using namespace simgpu;

namespace {

CUresult plain(CUstream stream, Address to, Address from, std::size_t size, Side to_side, Side from_side, Wait wait) {
  return with_context_of(stream, [&](Driver& driver, Context& context) {
    const Copy copy{.to = {.start = to}, .from = {.start = from}, .shape = {.width = size}};
    return copy_in_stream(driver, context, stream, copy, to_side, from_side, wait);
  });
}

// One side of a CUDA_MEMCPY2D or CUDA_MEMCPY3D. The two structs differ only in the third dimension.
struct Described {
  std::size_t x, y, z;
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::size_t pitch, height;
  CUarray array = nullptr;
};

// Computes the layout of a side in plain memory; returns false if the description is invalid.
bool place(const Described& side, const Shape& shape, Layout& layout, Side& kind) {
  switch (side.type) {
    case CU_MEMORYTYPE_HOST: kind = Side::Host; break;
    case CU_MEMORYTYPE_DEVICE: kind = Side::Device; break;
    case CU_MEMORYTYPE_UNIFIED: kind = Side::Any; break;
    default: return false;
  }
  const Address base = side.type == CU_MEMORYTYPE_HOST ? address_of(side.host) : side.device;
  std::size_t row_end = 0, rows = 0, offset = 0;
  if (__builtin_add_overflow(side.x, shape.width, &row_end)) return false;
  // A pitch or height of 0 means that the rows or slices are exactly as long as the copied extent.
  const std::size_t pitch = side.pitch == 0 ? row_end : side.pitch;
  const std::size_t height = side.height == 0 ? side.y + shape.height : side.height;
  if (pitch < row_end || (shape.depth > 1 && height < shape.height)) return false;
  if (__builtin_mul_overflow(side.z, height, &rows) || __builtin_add_overflow(rows, side.y, &rows) ||
      __builtin_mul_overflow(rows, pitch, &offset) || __builtin_add_overflow(offset, side.x, &offset))
    return false;
  if (__builtin_mul_overflow(pitch, height, &layout.slice)) return false;
  layout.pitch = pitch;
  return !__builtin_add_overflow(base, offset, &layout.start);
}

// Computes the layout of a side in plain memory or in an array; `keeps` then owns the texels of the array.
CUresult place(Driver& driver, const Described& side, const Shape& shape, Layout& layout, Side& kind,
               std::shared_ptr<void>& keeps) {
  if (side.type != CU_MEMORYTYPE_ARRAY)
    return place(side, shape, layout, kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  kind = Side::Device;
  return place_in_array(driver, side.array, {side.x, side.y, side.z}, shape, layout, keeps);
}

CUresult copy_between(Driver& driver, const Described& to, const Described& from, Copy& copy, Side& to_side,
                      Side& from_side) {
  if (const CUresult r = place(driver, to, copy.shape, copy.to, to_side, copy.keeps_to); r != CUDA_SUCCESS) return r;
  return place(driver, from, copy.shape, copy.from, from_side, copy.keeps_from);
}

CUDA_MEMCPY3D description_of(const Described& to, const Described& from, const Shape& shape) {
  CUDA_MEMCPY3D out{};
  out.srcXInBytes = from.x;
  out.srcY = from.y;
  out.srcZ = from.z;
  out.srcMemoryType = from.type;
  out.srcHost = from.host;
  out.srcDevice = from.device;
  out.srcArray = from.array;
  out.srcPitch = from.pitch;
  out.srcHeight = from.height;
  out.dstXInBytes = to.x;
  out.dstY = to.y;
  out.dstZ = to.z;
  out.dstMemoryType = to.type;
  out.dstHost = const_cast<void*>(to.host);
  out.dstDevice = to.device;
  out.dstArray = to.array;
  out.dstPitch = to.pitch;
  out.dstHeight = to.height;
  out.WidthInBytes = shape.width;
  out.Height = shape.height;
  out.Depth = shape.depth;
  return out;
}

CUresult described(CUstream stream, const Described& to, const Described& from, const Shape& shape, Wait wait) {
  return with_context_of(stream, [&](Driver& driver, Context& context) {
    Copy copy{.to = {}, .from = {}, .shape = shape};
    Side to_side{}, from_side{};
    copy.asked = std::make_shared<const CUDA_MEMCPY3D>(description_of(to, from, shape));
    const CUresult error = copy_between(driver, to, from, copy, to_side, from_side);
    return error == CUDA_SUCCESS ? copy_in_stream(driver, context, stream, copy, to_side, from_side, wait) : error;
  });
}

CUresult copy_2d(const CUDA_MEMCPY2D* c, CUstream stream, Wait wait) {
  if (c == nullptr) return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  return described(
      stream, {c->dstXInBytes, c->dstY, 0, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, 0, c->dstArray},
      {c->srcXInBytes, c->srcY, 0, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, 0, c->srcArray},
      {.width = c->WidthInBytes, .height = c->Height}, wait);
}

// The simulation represents each mipmap level as an array of its own, so a level number is invalid.
bool names_a_level(const CUDA_MEMCPY3D& c) {
  return (c.dstLOD != 0 && c.dstMemoryType == CU_MEMORYTYPE_ARRAY) ||
         (c.srcLOD != 0 && c.srcMemoryType == CU_MEMORYTYPE_ARRAY);
}

Described target_of(const CUDA_MEMCPY3D& c) {
  return {c.dstXInBytes, c.dstY, c.dstZ, c.dstMemoryType, c.dstHost, c.dstDevice, c.dstPitch, c.dstHeight, c.dstArray};
}

Described source_of(const CUDA_MEMCPY3D& c) {
  return {c.srcXInBytes, c.srcY, c.srcZ, c.srcMemoryType, c.srcHost, c.srcDevice, c.srcPitch, c.srcHeight, c.srcArray};
}

Shape shape_of(const CUDA_MEMCPY3D& c) { return {.width = c.WidthInBytes, .height = c.Height, .depth = c.Depth}; }

CUresult copy_3d(const CUDA_MEMCPY3D* c, CUstream stream, Wait wait) {
  if (c == nullptr || names_a_level(*c))
    return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  return described(stream, target_of(*c), source_of(*c), shape_of(*c), wait);
}

// The order of a copy between contexts. Stream: after all earlier work of its stream. Contexts: after all earlier and
// before all later work of the current context and of the contexts in the call.
enum class InOrderWith { Stream, Contexts };

using Contexts = std::vector<std::shared_ptr<Context>>;

// Looks up the contexts of the handles, where NULL stands for the current context; returns an error if one is invalid.
CUresult named(Driver& driver, std::initializer_list<CUcontext> names, Contexts& contexts) {
  for (const CUcontext name : names) {
    CUresult error = CUDA_SUCCESS;
    contexts.push_back(context_named(driver, name, &error));
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

// Looks up the contexts of a row copy, for those sides that use a context.
CUresult named(Driver& driver, const CUDA_MEMCPY3D_PEER& c, Contexts& contexts) {
  if (c.dstMemoryType == CU_MEMORYTYPE_DEVICE)
    if (const CUresult r = named(driver, {c.dstContext}, contexts); r != CUDA_SUCCESS) return r;
  return c.srcMemoryType == CU_MEMORYTYPE_DEVICE ? named(driver, {c.srcContext}, contexts) : CUDA_SUCCESS;
}

template <class Copying>
CUresult in_order(Driver& driver, Context& current, CUstream handle, InOrderWith with, const Contexts& contexts,
                  Copying copy) {
  const std::shared_ptr<Stream> stream = with == InOrderWith::Contexts ? stream_of(driver, current, handle) : nullptr;
  if (stream == nullptr) return copy();
  std::vector<Context*> all{&current};
  for (const std::shared_ptr<Context>& context : contexts) all.push_back(context.get());
  for (Context* const context : all)
    for (const Ticket& work : pending(driver, *context))
      if (work != nullptr) come_after(driver, *stream, work);
  const CUresult result = copy();
  for (Context* const context : all)
    for (const Ticket& copied : pending(driver, *stream)) hold_back(driver, *context, copied);
  return result;
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER* c, CUstream stream, InOrderWith with) {
  if (c == nullptr) return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  return with_context_of(stream, [&](Driver& driver, Context& current) {
    Contexts contexts;
    if (const CUresult r = named(driver, *c, contexts); r != CUDA_SUCCESS) return r;
    return in_order(driver, current, stream, with, contexts, [&] {
      return described(
          stream,
          {c->dstXInBytes, c->dstY, c->dstZ, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstHeight},
          {c->srcXInBytes, c->srcY, c->srcZ, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, c->srcHeight},
          {.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth}, Wait::AsCudaSays);
    });
  });
}

CUresult between_contexts(CUstream stream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, std::size_t size, InOrderWith with) {
  return with_context_of(stream, [&](Driver& driver, Context& current) {
    Contexts contexts;
    if (const CUresult r = named(driver, {to_context, from_context}, contexts); r != CUDA_SUCCESS) return r;
    const Copy copy{.to = {.start = to}, .from = {.start = from}, .shape = {.width = size}};
    return in_order(driver, current, stream, with, contexts, [&] {
      return copy_in_stream(driver, current, stream, copy, Side::Device, Side::Device, Wait::AsCudaSays);
    });
  });
}

}  // namespace

CUresult simgpu::copy_of(Driver& driver, const CUDA_MEMCPY3D& description, Copy& copy, Side& to, Side& from) {
  if (names_a_level(description)) return CUDA_ERROR_INVALID_VALUE;
  copy = {.to = {}, .from = {}, .shape = shape_of(description)};
  return copy_between(driver, target_of(description), source_of(description), copy, to, from);
}

#define BOTH_FORMS(name, parameters, legacy, per_thread) \
  CUresult name parameters { return legacy; }            \
  CUresult name##_ptds parameters { return per_thread; }

BOTH_FORMS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, std::size_t size),
           plain(CU_STREAM_LEGACY, dst, src, size, Side::Any, Side::Any, Wait::Always),
           plain(CU_STREAM_PER_THREAD, dst, src, size, Side::Any, Side::Any, Wait::Always))
BOTH_FORMS(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void* src, std::size_t size),
           plain(CU_STREAM_LEGACY, dst, address_of(src), size, Side::Device, Side::Host, Wait::Always),
           plain(CU_STREAM_PER_THREAD, dst, address_of(src), size, Side::Device, Side::Host, Wait::Always))
BOTH_FORMS(cuMemcpyDtoH_v2, (void* dst, CUdeviceptr src, std::size_t size),
           plain(CU_STREAM_LEGACY, address_of(dst), src, size, Side::Host, Side::Device, Wait::Always),
           plain(CU_STREAM_PER_THREAD, address_of(dst), src, size, Side::Host, Side::Device, Wait::Always))
BOTH_FORMS(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, std::size_t size),
           plain(CU_STREAM_LEGACY, dst, src, size, Side::Device, Side::Device, Wait::AsCudaSays),
           plain(CU_STREAM_PER_THREAD, dst, src, size, Side::Device, Side::Device, Wait::AsCudaSays))
BOTH_FORMS(cuMemcpyPeer,
           (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, std::size_t size),
           between_contexts(CU_STREAM_LEGACY, dst, dst_context, src, src_context, size, InOrderWith::Contexts),
           between_contexts(CU_STREAM_PER_THREAD, dst, dst_context, src, src_context, size, InOrderWith::Contexts))
BOTH_FORMS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* c), copy_2d(c, CU_STREAM_LEGACY, Wait::Always),
           copy_2d(c, CU_STREAM_PER_THREAD, Wait::Always))
BOTH_FORMS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* c), copy_2d(c, CU_STREAM_LEGACY, Wait::Always),
           copy_2d(c, CU_STREAM_PER_THREAD, Wait::Always))
BOTH_FORMS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* c), copy_3d(c, CU_STREAM_LEGACY, Wait::Always),
           copy_3d(c, CU_STREAM_PER_THREAD, Wait::Always))

BOTH_FORMS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* c), copy_3d_peer(c, CU_STREAM_LEGACY, InOrderWith::Contexts),
           copy_3d_peer(c, CU_STREAM_PER_THREAD, InOrderWith::Contexts))

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, std::size_t size, CUstream stream) {
  return plain(stream, dst, src, size, Side::Any, Side::Any, Wait::AsCudaSays);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, std::size_t size, CUstream stream) {
  return plain(stream, dst, address_of(src), size, Side::Device, Side::Host, Wait::AsCudaSays);
}

CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, std::size_t size, CUstream stream) {
  return plain(stream, address_of(dst), src, size, Side::Host, Side::Device, Wait::AsCudaSays);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, std::size_t size, CUstream stream) {
  return plain(stream, dst, src, size, Side::Device, Side::Device, Wait::AsCudaSays);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                           std::size_t size, CUstream stream) {
  return between_contexts(stream, dst, dst_context, src, src_context, size, InOrderWith::Stream);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream stream) { return copy_2d(c, stream, Wait::AsCudaSays); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* c, CUstream stream) { return copy_3d(c, stream, Wait::AsCudaSays); }

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* c, CUstream stream) {
  return copy_3d_peer(c, stream, InOrderWith::Stream);
}
CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* c, CUstream stream) {
  return copy_3d_peer(c, own(stream), InOrderWith::Stream);
}
