// Batches of copies. All copies of a batch are checked before the first copy is made. The worker receives each copy as
// a separate call, and the stream keeps the order of these calls. CUDA allows the driver to reorder and overlap the
// copies, but does not demand it.
//
// Access orders of a source: the GPU reads device memory and pinned memory when the stream reaches the copy. If the
// program wants the source to be read during the call, the call therefore waits for the stream. The program's own
// memory is always read during the call, because no work in a stream writes to that memory after its call has returned.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "guest/calls/calls.h"
#include "guest/calls/copy/judge_copy.h"
#include "guest/calls/find_stream.h"
#include "guest/calls/stub.h"

namespace guest::calls {
namespace {

constexpr std::size_t no_copy = SIZE_MAX;

// The result of a batch and the index of the refused copy. `no_copy`: the result concerns the whole batch.
struct End {
  CUresult result = CUDA_SUCCESS;
  std::size_t copy = no_copy;
};

bool is_sound(CUmemcpySrcAccessOrder order, unsigned flags) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
         (flags & ~unsigned{CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE}) == 0;
}

// Makes a batch of `count` copies. `judge(i)` and `make(i)` return the error of copy i. `reads_late(i)` returns whether
// the GPU reads the source of copy i after the call although the program wants the source to be read during the call.
template <class Judge, class Make, class ReadsLate>
End make_all(std::size_t count, CUstream stream, Judge judge, Make make, ReadsLate reads_late) {
  bool waits = false;
  for (std::size_t i = 0; i < count; ++i)
    if (const CUresult r = judge(i); r != CUDA_SUCCESS) return {r, i};
  for (std::size_t i = 0; i < count; ++i) {
    if (const CUresult r = make(i); r != CUDA_SUCCESS) return {r, i};
    waits = waits || reads_late(i);
  }
  return {waits ? Stub<api::id_of::cuStreamSynchronize>::call(stream) : CUDA_SUCCESS};
}

// CUDA 12's batch calls accept stream 0 where it means the thread's own stream; CUDA 13's batch calls refuse 0.
enum class Zero : bool { Refused, ThreadsOwn };

// Returns the stream's error, or runs the batch and reports the refused copy to the caller.
template <class Batch>
CUresult run(CUstream stream, Zero zero, std::size_t* fail, Batch batch) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  const bool refused = ref.null_stream || (stream == nullptr && zero == Zero::Refused);
  const End end = refused ? End{CUDA_ERROR_INVALID_VALUE} : batch();
  if (fail != nullptr) *fail = end.copy;
  return end.result;
}

// ---- ranges --------------------------------------------------------------------------------------------------------

// The copies and their attributes: attribute k applies to the copies from first[k] on.
struct Ranges {
  const CUdeviceptr *to, *from;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemcpyAttributes* attributes;
  const std::size_t* first;
  std::size_t attribute_count;

  const CUmemcpyAttributes& attributes_of(std::size_t copy) const {
    return attributes[std::upper_bound(first, first + attribute_count, copy) - first - 1];
  }
};

bool are_attributes_sound(const Ranges& r) {
  if (r.attribute_count == 0 || r.attribute_count > r.count || r.first[0] != 0) return false;
  for (std::size_t k = 0; k < r.attribute_count; ++k) {
    if (!is_sound(r.attributes[k].srcAccessOrder, r.attributes[k].flags)) return false;
    if (r.first[k] >= r.count || (k > 0 && r.first[k] <= r.first[k - 1])) return false;
  }
  return true;
}

End copy_ranges(const Ranges& r, CUstream stream) {
  const bool complete = r.to != nullptr && r.from != nullptr && r.sizes != nullptr && r.attributes != nullptr &&
                        r.first != nullptr && r.count != 0;
  if (!complete || !are_attributes_sound(r)) return {CUDA_ERROR_INVALID_VALUE};
  const auto judge = [&](std::size_t i) {
    return r.sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE : judge_copy(r.to[i], r.from[i], r.sizes[i]);
  };
  const auto make = [&](std::size_t i) { return calls::cuMemcpyAsync(r.to[i], r.from[i], r.sizes[i], stream); };
  const auto reads_late = [&](std::size_t i) {
    return r.attributes_of(i).srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
           gpu_reads(r.from[i], r.sizes[i]);
  };
  return make_all(r.count, stream, judge, make, reads_late);
}

// ---- rows ----------------------------------------------------------------------------------------------------------

// Returns the bytes of an array's texel, or 0 if texels of this format cannot be copied individually.
std::size_t texel_bytes(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  switch (static_cast<unsigned>(array.Format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT_101010_2: return array.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X4: return std::size_t{2} * array.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return std::size_t{4} * array.NumChannels;
    default: return 0;
  }
}

bool is_array(const CUmemcpy3DOperand& side) { return side.type == CU_MEMCPY_OPERAND_TYPE_ARRAY; }

// Finds the size of the copy's unit: a texel of the arrays, or 1 byte if no side is an array.
CUresult find_element(const CUDA_MEMCPY3D_BATCH_OP& op, std::size_t& bytes) {
  std::size_t texel = 0;
  for (const CUmemcpy3DOperand* side : {&op.src, &op.dst}) {
    if (!is_array(*side)) continue;
    CUDA_ARRAY3D_DESCRIPTOR array;
    const auto describe = Stub<api::id_of::cuArray3DGetDescriptor_v2>::call;
    if (const CUresult r = describe(&array, side->op.array.array); r != CUDA_SUCCESS) return r;
    if (texel_bytes(array) == 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (texel != 0 && texel != texel_bytes(array)) return CUDA_ERROR_INVALID_VALUE;
    texel = texel_bytes(array);
  }
  bytes = texel == 0 ? 1 : texel;
  return CUDA_SUCCESS;
}

// Converts a length in elements to bytes.
struct InBytes {
  std::size_t element;
  bool fits = true;

  std::size_t operator()(std::size_t elements) {
    const auto bytes = api::product(elements, element);
    fits = fits && bytes.has_value();
    return bytes.value_or(0);
  }
};

// Describes one side of a copy as CUDA_MEMCPY3D does.
struct Side {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  std::size_t x = 0, y = 0, z = 0;
  CUdeviceptr address = 0;
  std::size_t pitch = 0, height = 0;
  CUarray array = nullptr;
};

bool describe(const CUmemcpy3DOperand& side, const CUextent3D& extent, InBytes& in_bytes, Side& to) {
  if (is_array(side)) {
    const auto& a = side.op.array;
    to = {.type = CU_MEMORYTYPE_ARRAY, .x = in_bytes(a.offset.x), .y = a.offset.y, .z = a.offset.z, .array = a.array};
    return true;
  }
  const auto& p = side.op.ptr;
  if (side.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return false;
  if ((p.rowLength != 0 && p.rowLength < extent.width) || (p.layerHeight != 0 && p.layerHeight < extent.height))
    return false;
  to = {.address = p.ptr, .pitch = in_bytes(p.rowLength), .height = p.layerHeight};
  return true;
}

// Converts one copy of a batch for cuMemcpy3DAsync, or returns the copy's error.
CUresult described(const CUDA_MEMCPY3D_BATCH_OP& op, CUDA_MEMCPY3D& c) {
  if (op.extent.width == 0 || op.extent.height == 0 || op.extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!is_sound(op.srcAccessOrder, op.flags)) return CUDA_ERROR_INVALID_VALUE;
  InBytes in_bytes{.element = 1};
  if (const CUresult r = find_element(op, in_bytes.element); r != CUDA_SUCCESS) return r;
  Side to, from;
  if (!describe(op.dst, op.extent, in_bytes, to) || !describe(op.src, op.extent, in_bytes, from))
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(&c, 0, sizeof c);
  c.dstMemoryType = to.type, c.dstXInBytes = to.x, c.dstY = to.y, c.dstZ = to.z;
  c.dstDevice = to.address, c.dstPitch = to.pitch, c.dstHeight = to.height, c.dstArray = to.array;
  c.srcMemoryType = from.type, c.srcXInBytes = from.x, c.srcY = from.y, c.srcZ = from.z;
  c.srcDevice = from.address, c.srcPitch = from.pitch, c.srcHeight = from.height, c.srcArray = from.array;
  c.WidthInBytes = in_bytes(op.extent.width), c.Height = op.extent.height, c.Depth = op.extent.depth;
  return in_bytes.fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

End copy_rows(const CUDA_MEMCPY3D_BATCH_OP* ops, std::size_t count, unsigned long long flags, CUstream stream) {
  if (ops == nullptr || count == 0 || flags != 0) return {CUDA_ERROR_INVALID_VALUE};
  CUDA_MEMCPY3D c;
  const auto judge = [&](std::size_t i) {
    const CUresult r = described(ops[i], c);
    return r == CUDA_SUCCESS ? judge_copy(c, stream) : r;
  };
  const auto make = [&](std::size_t i) {
    const CUresult r = described(ops[i], c);
    return r == CUDA_SUCCESS ? calls::cuMemcpy3DAsync_v2(&c, stream) : r;
  };
  const auto reads_late = [&](std::size_t i) {
    return ops[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
           (is_array(ops[i].src) || gpu_reads(ops[i].src.op.ptr.ptr, 1));
  };
  return make_all(count, stream, judge, make, reads_late);
}

}  // namespace

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                            CUmemcpyAttributes* attributes, std::size_t* first, std::size_t attribute_count,
                            std::size_t* fail, CUstream stream) {
  const Ranges ranges{to, from, sizes, count, attributes, first, attribute_count};
  return run(stream, Zero::ThreadsOwn, fail, [&] { return copy_ranges(ranges, stream); });
}
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                               CUmemcpyAttributes* attributes, std::size_t* first, std::size_t attribute_count,
                               CUstream stream) {
  const Ranges ranges{to, from, sizes, count, attributes, first, attribute_count};
  return run(stream, Zero::Refused, nullptr, [&] { return copy_ranges(ranges, stream); });
}

CUresult cuMemcpy3DBatchAsync(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, std::size_t* fail,
                              unsigned long long flags, CUstream stream) {
  return run(stream, Zero::ThreadsOwn, fail, [&] { return copy_rows(ops, count, flags, stream); });
}
CUresult cuMemcpy3DBatchAsync_v2(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long flags,
                                 CUstream stream) {
  return run(stream, Zero::Refused, nullptr, [&] { return copy_rows(ops, count, flags, stream); });
}

}  // namespace guest::calls
