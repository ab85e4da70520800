// Copies within one row of an array, which start at an offset in bytes. copy.cc copies several rows.
#include "host/simgpu/api/texture/array_copy.h"

#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array.h"

namespace simgpu {
namespace {

bool within(std::size_t offset, std::size_t size, std::size_t all) { return size <= all && offset <= all - size; }

// One side of a copy of a row: plain memory, or an offset in an array.
struct RowSide {
  Address memory = 0;
  Side kind = Side::Device;
  CUarray array = nullptr;
  std::size_t offset = 0;
  bool is_array = false;
};
RowSide device(CUdeviceptr address) { return {.memory = address, .kind = Side::Device}; }
RowSide host(const void* address) { return {.memory = address_of(address), .kind = Side::Host}; }
RowSide of(CUarray array, std::size_t offset) { return {.array = array, .offset = offset, .is_array = true}; }

CUresult place(Driver& driver, const RowSide& side, const Shape& row, Layout& layout, std::shared_ptr<void>& keeps) {
  if (side.is_array) return place_in_array(driver, side.array, {.x = side.offset}, row, layout, keeps);
  layout.start = side.memory;
  return CUDA_SUCCESS;
}

CUmemorytype memory_type(const RowSide& side) {
  if (side.is_array) return CU_MEMORYTYPE_ARRAY;
  return side.kind == Side::Host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUDA_MEMCPY3D description_of(const RowSide& to, const RowSide& from, std::size_t size) {
  CUDA_MEMCPY3D out{};
  out.srcXInBytes = from.offset;
  out.srcMemoryType = memory_type(from);
  out.srcHost = from.kind == Side::Host ? reinterpret_cast<const void*>(from.memory) : nullptr;
  out.srcDevice = from.kind == Side::Host ? 0 : from.memory;
  out.srcArray = from.array;
  out.dstXInBytes = to.offset;
  out.dstMemoryType = memory_type(to);
  out.dstHost = to.kind == Side::Host ? reinterpret_cast<void*>(to.memory) : nullptr;
  out.dstDevice = to.kind == Side::Host ? 0 : to.memory;
  out.dstArray = to.array;
  out.WidthInBytes = size;
  out.Height = out.Depth = 1;
  return out;
}

CUresult copy_row(CUstream stream, const RowSide& to, const RowSide& from, std::size_t size, Wait wait) {
  return with_context_of(stream, [&](Driver& driver, Context& context) {
    if (size == 0) return CUDA_SUCCESS;
    Copy copy{.to = {}, .from = {}, .shape = {.width = size}};
    copy.asked = std::make_shared<const CUDA_MEMCPY3D>(description_of(to, from, size));
    if (const CUresult r = place(driver, to, copy.shape, copy.to, copy.keeps_to); r != CUDA_SUCCESS) return r;
    if (const CUresult r = place(driver, from, copy.shape, copy.from, copy.keeps_from); r != CUDA_SUCCESS) return r;
    return copy_in_stream(driver, context, stream, copy, to.kind, from.kind, wait);
  });
}

}  // namespace

CUresult place_in_array(Driver& driver, CUarray handle, const ArrayOffset& offset, const Shape& shape, Layout& layout,
                        std::shared_ptr<void>& keeps) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Array> array = driver.arrays.find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!array->context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const Level& level = array->level();
  keeps = array->image.keeps;
  const bool inside = within(offset.x, shape.width, std::size_t{level.width} * texel_bytes(array->image.format)) &&
                      within(offset.y, shape.height, level.height) && within(offset.z, shape.depth, level.depth);
  if (!inside) return CUDA_ERROR_INVALID_VALUE;
  layout = {.start = address_of(level.texels) + offset.z * level.slice_pitch + offset.y * level.row_pitch + offset.x,
            .pitch = level.row_pitch,
            .slice = level.slice_pitch};
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using namespace simgpu;

#define BOTH_FORMS(name, parameters, to, from, wait)                                               \
  CUresult name parameters { return copy_row(CU_STREAM_LEGACY, to, from, ByteCount, Wait::wait); } \
  CUresult name##_ptds parameters { return copy_row(CU_STREAM_PER_THREAD, to, from, ByteCount, Wait::wait); }

BOTH_FORMS(cuMemcpyDtoA_v2, (CUarray dst, std::size_t dst_offset, CUdeviceptr src, std::size_t ByteCount),
           of(dst, dst_offset), device(src), AsCudaSays)
BOTH_FORMS(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, std::size_t src_offset, std::size_t ByteCount), device(dst),
           of(src, src_offset), AsCudaSays)
BOTH_FORMS(cuMemcpyHtoA_v2, (CUarray dst, std::size_t dst_offset, const void* src, std::size_t ByteCount),
           of(dst, dst_offset), host(src), Always)
BOTH_FORMS(cuMemcpyAtoH_v2, (void* dst, CUarray src, std::size_t src_offset, std::size_t ByteCount), host(dst),
           of(src, src_offset), Always)
BOTH_FORMS(cuMemcpyAtoA_v2,
           (CUarray dst, std::size_t dst_offset, CUarray src, std::size_t src_offset, std::size_t ByteCount),
           of(dst, dst_offset), of(src, src_offset), AsCudaSays)

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, std::size_t dst_offset, const void* src, std::size_t size, CUstream stream) {
  return copy_row(stream, of(dst, dst_offset), host(src), size, Wait::AsCudaSays);
}
CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dst, std::size_t dst_offset, const void* src, std::size_t size,
                                   CUstream stream) {
  return cuMemcpyHtoAAsync_v2(dst, dst_offset, src, size, own(stream));
}

CUresult cuMemcpyAtoHAsync_v2(void* dst, CUarray src, std::size_t src_offset, std::size_t size, CUstream stream) {
  return copy_row(stream, host(dst), of(src, src_offset), size, Wait::AsCudaSays);
}
CUresult cuMemcpyAtoHAsync_v2_ptsz(void* dst, CUarray src, std::size_t src_offset, std::size_t size, CUstream stream) {
  return cuMemcpyAtoHAsync_v2(dst, src, src_offset, size, own(stream));
}
