// Cases for batches of memory operations and for batches of copies.
#include "tests/contract/batches.h"

namespace contract {
namespace {

GROUP(batches_of_words, InContext) {
  const auto batch = CU(cuStreamBatchMemOp_v2);
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 64);
  CU(cuMemsetD8_v2)(a, 0, 64);
  CUstreamBatchMemOpParams ops[] = {write_word(a, 5), wait_for_word(a, 5), write_word(a + 4, 6)};
  show("three", batch(nullptr, 3, ops, 0));
  show("after that", CU(cuCtxSynchronize)());
  show("first word", word_at(a));
  show("second word", word_at(a + 4));
  show("none", batch(nullptr, 0, ops, 0));
  show("none, null", batch(nullptr, 0, nullptr, 0));
  show("flags 1", batch(nullptr, 1, ops, 1));
  ops[0].operation = odd<CUstreamBatchMemOpType>(99);
  show("operation 99", batch(nullptr, 1, ops, 0));
  ops[0].operation = odd<CUstreamBatchMemOpType>(0);
  show("operation 0", batch(nullptr, 1, ops, 0));
  std::memset(&ops[0], 0, sizeof ops[0]);
  ops[0].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  show("a barrier", batch(nullptr, 1, ops, 0));
  std::memset(&ops[0], 0, sizeof ops[0]);
  ops[0].flushRemoteWrites.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  show("a flush", batch(nullptr, 1, ops, 0));
  ops[0] = write_word(a + 2, 5);
  show("misaligned", batch(nullptr, 1, ops, 0));
  ops[0] = write_word(0, 5);
  show("nowhere", batch(nullptr, 1, ops, 0));
  ops[0] = write_word(a, 8), ops[1] = write_word(a + 2, 9);
  show("a good one and a misaligned one", batch(nullptr, 2, ops, 0));
  CU(cuCtxSynchronize)();
  show("the good one's word", word_at(a));
  CU(cuMemsetD32_v2)(a, 0, 1);
  std::vector<CUstreamBatchMemOpParams> many(257, write_word(a, 1));
  show("256", batch(nullptr, 256, many.data(), 0));
  show("257", batch(nullptr, 257, many.data(), 0));
  show("_ptsz", CU(cuStreamBatchMemOp_v2_ptsz)(nullptr, 1, many.data(), 0));
  show_guarded("null", [&] { return batch(nullptr, 1, nullptr, 0); });
}

GROUP(batches_of_words_before_11_7, InContext) {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 64);
  CUstreamBatchMemOpParams op = write_word(a, 5);
  show("one", CU(cuStreamBatchMemOp)(nullptr, 1, &op, 0));
  show("_ptsz", CU(cuStreamBatchMemOp_ptsz)(nullptr, 1, &op, 0));
  show("none", CU(cuStreamBatchMemOp)(nullptr, 0, &op, 0));
  show("flags 1", CU(cuStreamBatchMemOp)(nullptr, 1, &op, 1));
}

GROUP(batches_of_copies, InContext) {
  Copies c;
  show("two", c.batch());
  CU(cuStreamSynchronize)(c.stream);
  show("first word", word_at(c.a));
  show("second copy's word", word_at(c.a + 32));
  show("behind them", word_at(c.a + 64));
  c.with("two attributes", [&] { c.attribute_count = 2; });
  c.with("three attributes for two", [&] { c.attribute_count = 3; });
  c.with("no attributes", [&] { c.attribute_count = 0; });
  c.with("attributes from 1", [&] { c.first[0] = 1; });
  c.with("the same first twice", [&] { c.attribute_count = 2, c.first[1] = 0; });
  c.with("a first behind the last", [&] { c.attribute_count = 2, c.first[1] = 2; });
  c.with("none", [&] { c.count = 0; });
  c.with("a size of 0", [&] { c.sizes[1] = 0; });
  for (const int order : {0, 1, 2, 3, 4})
    c.with("order " + std::to_string(order),
           [&] { c.attributes[0].srcAccessOrder = odd<CUmemcpySrcAccessOrder>(order); });
  c.with("flags 1", [&] { c.attributes[0].flags = 1; });
  c.with("flags 2", [&] { c.attributes[0].flags = 2; });
  c.with("from nowhere", [&] { c.from[1] = 0; });
  c.with("to nowhere", [&] { c.to[1] = 0; });
  c.with("beyond the end", [&] { c.sizes[1] = 4096; });
  show("after those", CU(cuCtxSynchronize)());
  c.reset();
  c.stream = CU_STREAM_PER_THREAD;
  show("in the thread's stream", c.batch());
  c.stream = nullptr;
  show("in the NULL stream", c.batch());
  c.stream = CU_STREAM_LEGACY;
  show("in the legacy stream", c.batch());
  show("_ptsz", CU(cuMemcpyBatchAsync_v2_ptsz)(c.to, c.from, c.sizes, 2, c.attributes, c.first, 1, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(batches_of_copies_with_the_host, InContext) {
  Copies c;
  unsigned plain[16], back[16] = {};
  void* pinned = nullptr;
  for (unsigned& word : plain) word = 21;
  CU(cuMemHostAlloc)(&pinned, 64, 0);
  std::memset(pinned, 0, 64);
  c.with("from plain memory", [&] { c.from[0] = address_of(plain); });
  c.with("from plain memory, read in the call", [&] {
    c.from[1] = address_of(plain);
    c.attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  });
  CU(cuStreamSynchronize)(c.stream);
  show("first word", word_at(c.a));
  show("second copy's word", word_at(c.a + 32));
  c.with("to plain and to pinned memory", [&] { c.to[0] = address_of(back), c.to[1] = address_of(pinned); });
  CU(cuStreamSynchronize)(c.stream);
  show("plain word", back[0]);
  show("pinned word", static_cast<long long>(word_of(pinned)));
}

GROUP(batches_of_copies_of_cuda_12, InContext) {
  Copies c;
  std::size_t fail = 77;
  const auto batch = [&] {
    return CU(cuMemcpyBatchAsync)(c.to, c.from, c.sizes, c.count, c.attributes, c.first, 1, &fail, c.stream);
  };
  show("two", batch());
  show_flag("the index is untouched", fail == 77);
  c.from[1] = 0;
  show("the second from nowhere", batch());
  show("the index", static_cast<long long>(fail));
  c.reset();
  c.count = 0;
  show("none", batch());
  show("the index", static_cast<long long>(fail));
  c.reset();
  show("no index", CU(cuMemcpyBatchAsync)(c.to, c.from, c.sizes, 2, c.attributes, c.first, 1, nullptr, c.stream));
  show("_ptsz", CU(cuMemcpyBatchAsync_ptsz)(c.to, c.from, c.sizes, 2, c.attributes, c.first, 1, &fail, nullptr));
}

GROUP(batches_of_copies_null, InContext) {
  Copies c;
  const auto batch = CU(cuMemcpyBatchAsync_v2);
  show_guarded("to", [&] { return batch(nullptr, c.from, c.sizes, 2, c.attributes, c.first, 1, c.stream); });
  show_guarded("from", [&] { return batch(c.to, nullptr, c.sizes, 2, c.attributes, c.first, 1, c.stream); });
  show_guarded("sizes", [&] { return batch(c.to, c.from, nullptr, 2, c.attributes, c.first, 1, c.stream); });
  show_guarded("attributes", [&] { return batch(c.to, c.from, c.sizes, 2, nullptr, c.first, 1, c.stream); });
  show_guarded("firsts", [&] { return batch(c.to, c.from, c.sizes, 2, c.attributes, nullptr, 1, c.stream); });
}

GROUP(batches_of_rows, InContext) {
  Copies c;
  const auto ask = [&](const std::string& what, const std::function<void(CUDA_MEMCPY3D_BATCH_OP&)>& change) {
    CUDA_MEMCPY3D_BATCH_OP op = rows(c.a, c.a + 128);
    change(op);
    show(what, CU(cuMemcpy3DBatchAsync_v2)(1, &op, 0, c.stream));
  };
  CUDA_MEMCPY3D_BATCH_OP ops[] = {rows(c.a, c.a + 128), rows(c.a + 32, c.a + 128)};
  show("two", CU(cuMemcpy3DBatchAsync_v2)(2, ops, 0, c.stream));
  CU(cuStreamSynchronize)(c.stream);
  show("first row", word_at(c.a));
  show("second row", word_at(c.a + 8));
  show("behind them", word_at(c.a + 16));
  show("the second copy's", word_at(c.a + 32));
  ask("width 0", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.extent.width = 0; });
  ask("height 0", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.extent.height = 0; });
  ask("depth 0", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.extent.depth = 0; });
  ask("rows shorter than the width", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.src.op.ptr.rowLength = 4; });
  ask("layers lower than the height", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.src.op.ptr.layerHeight = 1; });
  ask("order 0", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.srcAccessOrder = odd<CUmemcpySrcAccessOrder>(0); });
  ask("order 2", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.srcAccessOrder = odd<CUmemcpySrcAccessOrder>(2); });
  ask("flags 1", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.flags = 1; });
  ask("flags 2", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.flags = 2; });
  ask("type 0", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.src.type = odd<CUmemcpy3DOperandType>(0); });
  ask("type 9", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.src.type = odd<CUmemcpy3DOperandType>(9); });
  ask("from nowhere", [](CUDA_MEMCPY3D_BATCH_OP& op) { op.src.op.ptr.ptr = 0; });
  show("batch flags 1", CU(cuMemcpy3DBatchAsync_v2)(1, ops, 1, c.stream));
  show("none", CU(cuMemcpy3DBatchAsync_v2)(0, ops, 0, c.stream));
  show("in the NULL stream", CU(cuMemcpy3DBatchAsync_v2)(1, ops, 0, nullptr));
  show("_ptsz", CU(cuMemcpy3DBatchAsync_v2_ptsz)(1, ops, 0, nullptr));
  std::size_t fail = 77;
  show("of CUDA 12", CU(cuMemcpy3DBatchAsync)(2, ops, &fail, 0, c.stream));
  show_flag("the index is untouched", fail == 77);
  ops[1].extent.width = 0;
  show("of CUDA 12, the second of no width", CU(cuMemcpy3DBatchAsync)(2, ops, &fail, 0, c.stream));
  show("the index", static_cast<long long>(fail));
  ops[1].extent.width = 8;
  show("of CUDA 12, _ptsz", CU(cuMemcpy3DBatchAsync_ptsz)(2, ops, &fail, 0, nullptr));
  show("after those", CU(cuCtxSynchronize)());
  show_guarded("null", [&] { return CU(cuMemcpy3DBatchAsync_v2)(1, nullptr, 0, c.stream); });
}

// Copies between contexts of the same device.
GROUP(peer_copies_async, InContext) {
  const CUcontext here = current_context();
  const auto copy = CU(cuMemcpyPeerAsync);
  CUdeviceptr a = 0;
  CUstream stream = nullptr;
  CU(cuStreamCreate)(&stream, 0);
  CU(cuMemAlloc_v2)(&a, 128);
  CU(cuMemsetD32_v2)(a, 3, 16);
  CU(cuMemsetD32_v2)(a + 64, 9, 16);
  show("64 bytes", copy(a, here, a + 64, here, 64, stream));
  CU(cuStreamSynchronize)(stream);
  show("a word", word_at(a));
  show("_ptsz", CU(cuMemcpyPeerAsync_ptsz)(a, here, a + 64, here, 64, nullptr));
  show("_ptds", CU(cuMemcpyPeer_ptds)(a, here, a + 64, here, 64));
  show("nothing", copy(a, here, a + 64, here, 0, stream));
  show("from nowhere", copy(a, here, 0, here, 64, stream));
  show("too much", copy(a, here, a + 64, here, 128, stream));
  show("after those", CU(cuCtxSynchronize)());
  show("to no context", CU(cuMemcpyPeer)(a, nullptr, a + 64, here, 64));
  show("from no context", CU(cuMemcpyPeer)(a, here, a + 64, nullptr, 64));
}

GROUP(peer_copies_of_rows, InContext) {
  Two two;
  CUDA_MEMCPY3D_PEER copy;
  std::memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcContext = two.a, copy.dstContext = two.b;
  copy.srcDevice = two.in_a->memory, copy.dstDevice = two.in_b->memory;
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = 8;
  copy.Height = copy.srcHeight = copy.dstHeight = 2, copy.Depth = 1;
  CU(cuMemsetD32_v2)(two.in_b->memory, 1, 16);
  show("rows", CU(cuMemcpy3DPeer)(&copy));
  show("a word", word_at(two.in_b->memory));
  show("_ptds", CU(cuMemcpy3DPeer_ptds)(&copy));
  show("asynchronous", CU(cuMemcpy3DPeerAsync)(&copy, two.in_b->stream));
  show("_ptsz", CU(cuMemcpy3DPeerAsync_ptsz)(&copy, nullptr));
  copy.WidthInBytes = 16;
  show("wider than its rows", CU(cuMemcpy3DPeer)(&copy));
  copy.WidthInBytes = 8, copy.srcLOD = 1;
  show("level 1", CU(cuMemcpy3DPeer)(&copy));
  copy.srcLOD = 0, copy.srcMemoryType = odd<CUmemorytype>(9);
  show("memory of type 9", CU(cuMemcpy3DPeer)(&copy));
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = 0;
  show("from nowhere", CU(cuMemcpy3DPeer)(&copy));
  show("after those", CU(cuCtxSynchronize)());
  copy.srcDevice = two.in_a->memory, copy.srcContext = nullptr;
  show_guarded("from no context", [&] { return CU(cuMemcpy3DPeer)(&copy); });
  show_guarded("null", [&] { return CU(cuMemcpy3DPeer)(nullptr); });
}

}  // namespace
}  // namespace contract
