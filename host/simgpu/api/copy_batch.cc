// Batches of copies. All are checked as they are queued; a copy that is refused ends the batch there, and is named to the
// forms of CUDA 12, which ask for its index.
#include "host/simgpu/api/cuda_api.h"

#include <cstdint>
#include <functional>
#include <span>

#include "host/simgpu/api/memory.h"
#include "host/simgpu/api/rows.h"
#include "host/simgpu/api/streams.h"

using namespace simgpu;

namespace {

constexpr std::size_t no_copy = SIZE_MAX;  // the error is of the whole batch

bool is_order(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

// A source that may be gone when the call returns is read before.
Wait wait_of(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ? Wait::Always : Wait::AsCudaSays;
}

bool is_hint(unsigned flags) { return (flags & ~unsigned{CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE}) == 0; }

CUresult batch(std::size_t count, std::size_t* fail, CUstream stream, const std::function<bool()>& sound,
               const std::function<CUresult(Driver&, Context&, std::size_t)>& one) {
  std::size_t at = no_copy;
  const CUresult result = with_context_of(stream, [&](Driver& driver, Context& context) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY || count == 0 || !sound()) return CUDA_ERROR_INVALID_VALUE;
    for (at = 0; at < count; ++at)
      if (const CUresult error = one(driver, context, at); error != CUDA_SUCCESS) return error;
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS && fail != nullptr) *fail = at;
  return result;
}

struct Plain {
  CUdeviceptr *to, *from;
  std::size_t* sizes;
  std::size_t count;
  CUmemcpyAttributes* attributes;
  std::size_t* first;  // the copy from which each of the attributes holds
  std::size_t attribute_count;
};

bool is_sound(const Plain& p) {
  if (p.to == nullptr || p.from == nullptr || p.sizes == nullptr || p.attributes == nullptr || p.first == nullptr)
    return false;
  if (p.attribute_count == 0 || p.attribute_count > p.count || p.first[0] != 0) return false;
  for (std::size_t i = 0; i < p.attribute_count; ++i) {
    if (!is_order(p.attributes[i].srcAccessOrder) || !is_hint(p.attributes[i].flags)) return false;
    if (p.first[i] >= p.count || (i > 0 && p.first[i] <= p.first[i - 1])) return false;
  }
  return true;
}

CUresult plain_batch(const Plain& p, std::size_t* fail, CUstream stream) {
  std::size_t attribute = 0;
  const auto one = [&](Driver& driver, Context& context, std::size_t i) {
    if (attribute + 1 < p.attribute_count && p.first[attribute + 1] == i) ++attribute;
    if (p.sizes[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    const Copy copy{.to = {.start = p.to[i]}, .from = {.start = p.from[i]}, .shape = {.width = p.sizes[i]}};
    return copy_in_stream(driver, context, stream, copy, Side::Any, Side::Any,
                          wait_of(p.attributes[attribute].srcAccessOrder));
  };
  return batch(
      p.count, fail, stream, [&] { return is_sound(p); }, one);
}

// False for an array: there are none here.
bool layout_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent, Layout& layout) {
  const auto& side = operand.op.ptr;
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return false;
  if (side.rowLength != 0 && side.rowLength < extent.width) return false;
  if (side.layerHeight != 0 && side.layerHeight < extent.height) return false;
  layout.start = side.ptr;
  layout.pitch = side.rowLength == 0 ? extent.width : side.rowLength;
  const std::size_t height = side.layerHeight == 0 ? extent.height : side.layerHeight;
  return !__builtin_mul_overflow(layout.pitch, height, &layout.slice);
}

CUresult batch_3d(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, std::size_t* fail, unsigned long long flags,
                  CUstream stream) {
  const auto one = [&](Driver& driver, Context& context, std::size_t i) {
    const CUDA_MEMCPY3D_BATCH_OP& op = list[i];
    const CUextent3D& extent = op.extent;
    Copy copy{.to = {}, .from = {}, .shape = {.width = extent.width, .height = extent.height, .depth = extent.depth}};
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0 || !is_order(op.srcAccessOrder) ||
        !is_hint(op.flags) || !layout_of(op.dst, extent, copy.to) || !layout_of(op.src, extent, copy.from))
      return CUDA_ERROR_INVALID_VALUE;
    return copy_in_stream(driver, context, stream, copy, Side::Any, Side::Any, wait_of(op.srcAccessOrder));
  };
  return batch(
      count, fail, stream, [&] { return list != nullptr && flags == 0; }, one);
}

}  // namespace

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes, std::size_t count,
                               CUmemcpyAttributes* attrs, std::size_t* attrsIdxs, std::size_t numAttrs,
                               CUstream hStream) {
  return plain_batch({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, nullptr, hStream);
}
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes, std::size_t count,
                                    CUmemcpyAttributes* attrs, std::size_t* attrsIdxs, std::size_t numAttrs,
                                    CUstream hStream) {
  return plain_batch({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, nullptr, own(hStream));
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
  return batch_3d(numOps, opList, nullptr, flags, own(hStream));
}
CUresult cuMemcpy3DBatchAsync(std::size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, std::size_t* failIdx,
                              unsigned long long flags, CUstream hStream) {
  return batch_3d(numOps, opList, failIdx, flags, hStream);
}
CUresult cuMemcpy3DBatchAsync_ptsz(std::size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, std::size_t* failIdx,
                                   unsigned long long flags, CUstream hStream) {
  return batch_3d(numOps, opList, failIdx, flags, own(hStream));
}
