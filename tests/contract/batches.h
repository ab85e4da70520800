// Helpers that cases for batches share.
#pragma once

#include "tests/contract/contexts.h"

namespace contract {

inline CUstreamBatchMemOpParams write_word(CUdeviceptr address, cuuint32_t value) {
  CUstreamBatchMemOpParams op;
  std::memset(&op, 0, sizeof op);
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op.writeValue.address = address;
  op.writeValue.value = value;
  return op;
}

inline CUstreamBatchMemOpParams wait_for_word(CUdeviceptr address, cuuint32_t value) {
  CUstreamBatchMemOpParams op;
  std::memset(&op, 0, sizeof op);
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = address;
  op.waitValue.value = value;
  op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return op;
}

inline CUmemcpyAttributes in_stream_order() {
  CUmemcpyAttributes attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return attributes;
}

// A batch of two copies between two halves of memory. A case changes one parameter.
struct Copies {
  CUstream stream = nullptr;
  CUdeviceptr a = 0;
  CUdeviceptr to[3] = {}, from[3] = {};
  std::size_t sizes[3] = {32, 32, 32}, count = 2, first[2] = {0, 1}, attribute_count = 1;
  CUmemcpyAttributes attributes[2] = {in_stream_order(), in_stream_order()};

  Copies() {
    CU(cuStreamCreate)(&stream, 0);
    CU(cuMemAlloc_v2)(&a, 256);
    CU(cuMemsetD32_v2)(a, 3, 32);
    CU(cuMemsetD32_v2)(a + 128, 9, 32);
    reset();
  }
  void reset() {
    for (std::size_t i = 0; i < 3; ++i) to[i] = a + 32 * i, from[i] = a + 128 + 32 * i, sizes[i] = 32;
    count = 2, attribute_count = 1, first[0] = 0, first[1] = 1;
    attributes[0] = attributes[1] = in_stream_order();
  }
  CUresult batch() {
    return CU(cuMemcpyBatchAsync_v2)(to, from, sizes, count, attributes, first, attribute_count, stream);
  }
  template <class Change>
  void with(const std::string& what, Change change) {
    reset();
    change();
    show(what, batch());
  }
};

inline CUDA_MEMCPY3D_BATCH_OP rows(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D_BATCH_OP op;
  std::memset(&op, 0, sizeof op);
  op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  op.src.op.ptr.ptr = from;
  op.src.op.ptr.rowLength = 16;
  op.dst.op.ptr.ptr = to;
  op.extent = {.width = 8, .height = 2, .depth = 1};
  op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return op;
}

}  // namespace contract
