// Batches of copies. All copies are checked before the first one is queued. The CUDA 12 versions of the calls return
// the index of a rejected copy.
#include "host/simgpu/api/cuda_api.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "host/simgpu/api/memory/rows.h"
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array.h"
#include "host/simgpu/api/texture/array_copy.h"

using namespace simgpu;

namespace {

constexpr std::size_t no_copy = SIZE_MAX;  // index that stands for an error of the whole batch

bool is_order(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

// If the source may be invalid after the call, the call must read it before returning.
Wait wait_of(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ? Wait::Always : Wait::AsCudaSays;
}

bool is_hint(unsigned flags) { return (flags & ~unsigned{CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE}) == 0; }

// A copy of a batch, the condition under which the call may return, and the error if the copy is invalid.
struct One {
  Copy copy;
  Wait wait = Wait::AsCudaSays;
  CUresult error = CUDA_SUCCESS;
};

// Submits a batch of `count` copies; `describe(driver, i)` returns copy number i.
CUresult batch(std::size_t count, std::size_t* fail, CUstream stream, const std::function<bool()>& sound,
               const std::function<One(Driver&, std::size_t)>& describe) {
  std::size_t at = no_copy;
  const CUresult result = with_context_of(stream, [&](Driver& driver, Context& context) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY || count == 0 || !sound()) return CUDA_ERROR_INVALID_VALUE;
    std::vector<One> copies;
    for (at = 0; at < count; ++at) {
      copies.push_back(describe(driver, at));
      if (const CUresult error = copies.back().error; error != CUDA_SUCCESS) return error;
      const CUresult error = check_copy(driver, context, stream, copies.back().copy, Side::Any, Side::Any);
      if (error != CUDA_SUCCESS) return error;
    }
    for (at = 0; at < count; ++at) {
      const One& one = copies[at];
      const CUresult error = copy_in_stream(driver, context, stream, one.copy, Side::Any, Side::Any, one.wait);
      if (error != CUDA_SUCCESS) return error;
    }
    at = no_copy;
    return CUDA_SUCCESS;
  });
  if (fail != nullptr) *fail = at;
  return result;
}

// Refuses a batch whose list is missing. This check precedes the check of the driver's state.
CUresult refuse(std::size_t* fail) {
  if (fail != nullptr) *fail = no_copy;
  return CUDA_ERROR_INVALID_VALUE;
}

struct Plain {
  CUdeviceptr *to, *from;
  std::size_t* sizes;
  std::size_t count;
  CUmemcpyAttributes* attributes;
  std::size_t* first;  // first[k]: the first copy to which attribute k applies
  std::size_t attribute_count;
};

bool is_sound(const Plain& p) {
  if (p.from == nullptr || p.sizes == nullptr || p.attributes == nullptr || p.first == nullptr) return false;
  if (p.attribute_count == 0 || p.attribute_count > p.count || p.first[0] != 0) return false;
  for (std::size_t i = 0; i < p.attribute_count; ++i) {
    if (!is_order(p.attributes[i].srcAccessOrder) || !is_hint(p.attributes[i].flags)) return false;
    if (p.first[i] >= p.count || (i > 0 && p.first[i] <= p.first[i - 1])) return false;
  }
  return true;
}

CUresult plain_batch(const Plain& p, std::size_t* fail, CUstream stream) {
  if (p.to == nullptr) return refuse(fail);
  std::size_t attribute = 0;
  const auto describe = [&](Driver&, std::size_t i) {
    if (attribute + 1 < p.attribute_count && p.first[attribute + 1] == i) ++attribute;
    return One{.copy = {.to = {.start = p.to[i]}, .from = {.start = p.from[i]}, .shape = {.width = p.sizes[i]}},
               .wait = wait_of(p.attributes[attribute].srcAccessOrder),
               .error = p.sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS};
  };
  return batch(
      p.count, fail, stream, [&] { return is_sound(p); }, describe);
}

bool is_array(const CUmemcpy3DOperand& side) { return side.type == CU_MEMCPY_OPERAND_TYPE_ARRAY; }

// Returns the texel size in bytes of the arrays in the copy; 1 without arrays, 0 if an array handle is invalid.
std::size_t element_of(Driver& driver, const CUDA_MEMCPY3D_BATCH_OP& op) {
  std::size_t bytes = 1;
  for (const CUmemcpy3DOperand* side : {&op.src, &op.dst}) {
    if (!is_array(*side)) continue;
    const std::shared_ptr<Array> array = driver.arrays.find(side->op.array.array);
    if (array == nullptr) return 0;
    bytes = texel_bytes(array->image.format);
  }
  return bytes;
}

// Computes the layout of a side in plain memory, whose lengths count elements.
bool layout_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent, std::size_t element, Layout& layout) {
  const auto& side = operand.op.ptr;
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return false;
  if (side.rowLength != 0 && side.rowLength < extent.width) return false;
  if (side.layerHeight != 0 && side.layerHeight < extent.height) return false;
  const std::size_t height = side.layerHeight == 0 ? extent.height : side.layerHeight;
  const std::size_t width = side.rowLength == 0 ? extent.width : side.rowLength;
  layout.start = side.ptr;
  return !__builtin_mul_overflow(width, element, &layout.pitch) &&
         !__builtin_mul_overflow(layout.pitch, height, &layout.slice);
}

CUresult place(Driver& driver, const CUmemcpy3DOperand& operand, const CUextent3D& extent, std::size_t element,
               const Shape& shape, Layout& layout, std::shared_ptr<void>& keeps) {
  if (!is_array(operand)) return layout_of(operand, extent, element, layout) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  const auto& side = operand.op.array;
  ArrayOffset offset{.x = 0, .y = side.offset.y, .z = side.offset.z};
  if (__builtin_mul_overflow(side.offset.x, element, &offset.x)) return CUDA_ERROR_INVALID_VALUE;
  return place_in_array(driver, side.array, offset, shape, layout, keeps);
}

CUresult describe_rows(Driver& driver, const CUDA_MEMCPY3D_BATCH_OP& op, Copy& copy) {
  const CUextent3D& extent = op.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0 || !is_order(op.srcAccessOrder) ||
      !is_hint(op.flags))
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t element = element_of(driver, op);
  if (element == 0) return CUDA_ERROR_INVALID_HANDLE;
  copy.shape = {.width = 0, .height = extent.height, .depth = extent.depth};
  if (__builtin_mul_overflow(extent.width, element, &copy.shape.width)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = place(driver, op.dst, extent, element, copy.shape, copy.to, copy.keeps_to); r != CUDA_SUCCESS)
    return r;
  return place(driver, op.src, extent, element, copy.shape, copy.from, copy.keeps_from);
}

CUresult batch_3d(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, std::size_t* fail, unsigned long long flags,
                  CUstream stream) {
  if (list == nullptr) return refuse(fail);
  const auto describe = [&](Driver& driver, std::size_t i) {
    One one{.copy = {.to = {}, .from = {}, .shape = {}}, .wait = wait_of(list[i].srcAccessOrder)};
    one.error = describe_rows(driver, list[i], one.copy);
    return one;
  };
  return batch(
      count, fail, stream, [&] { return flags == 0; }, describe);
}

}  // namespace

// The CUDA 13 versions of these calls reject stream 0, even if 0 stands for the per-thread stream.
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes, std::size_t count,
                               CUmemcpyAttributes* attrs, std::size_t* attrsIdxs, std::size_t numAttrs,
                               CUstream hStream) {
  return plain_batch({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, nullptr, hStream);
}
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes, std::size_t count,
                                    CUmemcpyAttributes* attrs, std::size_t* attrsIdxs, std::size_t numAttrs,
                                    CUstream hStream) {
  return plain_batch({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, nullptr, hStream);
}
CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes, std::size_t count,
                            CUmemcpyAttributes* attrs, std::size_t* attrsIdxs, std::size_t numAttrs,
                            std::size_t* failIdx, CUstream hStream) {
  return plain_batch({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, failIdx, hStream);
}
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes, std::size_t count,
                                 CUmemcpyAttributes* attrs, std::size_t* attrsIdxs, std::size_t numAttrs,
                                 std::size_t* failIdx, CUstream hStream) {
  return plain_batch({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, failIdx, own(hStream));
}

CUresult cuMemcpy3DBatchAsync_v2(std::size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags,
                                 CUstream hStream) {
  return batch_3d(numOps, opList, nullptr, flags, hStream);
}
CUresult cuMemcpy3DBatchAsync_v2_ptsz(std::size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags,
                                      CUstream hStream) {
  return batch_3d(numOps, opList, nullptr, flags, hStream);
}
CUresult cuMemcpy3DBatchAsync(std::size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, std::size_t* failIdx,
                              unsigned long long flags, CUstream hStream) {
  return batch_3d(numOps, opList, failIdx, flags, hStream);
}
CUresult cuMemcpy3DBatchAsync_ptsz(std::size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, std::size_t* failIdx,
                                   unsigned long long flags, CUstream hStream) {
  return batch_3d(numOps, opList, failIdx, flags, own(hStream));
}
