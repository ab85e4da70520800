// Cases for batches with several effects: 64-bit words, streams ordered by batches, copies with arrays and with the
// host, and the effects of a refused batch.
#include "tests/contract/arrays.h"
#include "tests/contract/batches.h"

namespace contract {
namespace {

CUstreamBatchMemOpParams wide(CUstreamBatchMemOpParams op, cuuint64_t value) {
  const bool waits = op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.operation = waits ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
  (waits ? op.waitValue.value64 : op.writeValue.value64) = value;
  return op;
}

GROUP(batches_that_order_streams, InContext) {
  const auto batch = CU(cuStreamBatchMemOp_v2);
  CUdeviceptr a = 0;
  CUstream first = nullptr, second = nullptr;
  void* pinned = nullptr;
  CU(cuMemAlloc_v2)(&a, 64);
  CU(cuMemsetD8_v2)(a, 0, 64);
  CU(cuMemHostAlloc)(&pinned, 64, 0);
  std::memset(pinned, 0, 64);
  CU(cuStreamCreate)(&first, CU_STREAM_NON_BLOCKING);
  CU(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING);
  CU(cuCtxSynchronize)();
  CUstreamBatchMemOpParams waits[] = {wait_for_word(a, 1), wide(wait_for_word(a + 8, 0), 1ULL << 40)};
  show("two waits", batch(second, 2, waits, 0));
  show("a fill behind them", CU(cuMemsetD32Async)(a + 16, 7, 1, second));
  CUstreamBatchMemOpParams writes[] = {wide(write_word(a + 8, 0), 1ULL << 40), write_word(a, 1)};
  show("two writes", batch(first, 2, writes, 0));
  show("the second stream", CU(cuStreamSynchronize)(second));
  show("its fill", word_at(a + 16));
  CUstreamBatchMemOpParams in_pinned[] = {write_word(address_of(pinned), 6), wait_for_word(address_of(pinned), 6)};
  show("in pinned memory", batch(first, 2, in_pinned, 0));
  show("the first stream", CU(cuStreamSynchronize)(first));
  show("pinned word", word_of(pinned));
  show("_ptsz of a stream", CU(cuStreamBatchMemOp_v2_ptsz)(first, 2, writes, 0));
  show("of the thread's stream", batch(CU_STREAM_PER_THREAD, 2, writes, 0));
  show("of the legacy stream", batch(CU_STREAM_LEGACY, 2, writes, 0));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(batches_of_words_flags, InContext) {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 64);
  CU(cuMemsetD8_v2)(a, 0, 64);
  CUstreamBatchMemOpParams op;
  const auto ask = [&](const std::string& what) { show(what, CU(cuStreamBatchMemOp_v2)(nullptr, 1, &op, 0)); };
  for (const unsigned flags : {0U, 2U, 3U, 4U, 8U, 1U << 30, 1U | 1U << 30}) {
    op = wait_for_word(a, 0);
    op.waitValue.flags = flags;
    if (flags == CU_STREAM_WAIT_VALUE_AND) CU(cuMemsetD32_v2)(a, 1, 1), op.waitValue.value = 1;
    ask("a wait, flags " + std::to_string(flags));
    CU(cuMemsetD32_v2)(a, 0, 1);
  }
  for (const unsigned flags : {1U, 2U}) {
    op = write_word(a, 0);
    op.writeValue.flags = flags;
    ask("a write, flags " + std::to_string(flags));
  }
  for (const unsigned flags : {1U, 2U}) {
    std::memset(&op, 0, sizeof op);
    op.memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    op.memoryBarrier.flags = flags;
    ask("a barrier, flags " + std::to_string(flags));
  }
  op = wide(write_word(a + 4, 0), 1);
  ask("64 bits at 4");
  std::vector<CUstreamBatchMemOpParams> many(255, write_word(a + 32, 1));
  show("255", CU(cuStreamBatchMemOp_v2)(nullptr, 255, many.data(), 0));
  show("after those", CU(cuCtxSynchronize)());
}

// The calls for single words in their versions before CUDA 11.7.
GROUP(words_before_11_7, InContext) {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 64);
  CU(cuMemsetD8_v2)(a, 0, 64);
  show("write 32", CU(cuStreamWriteValue32)(nullptr, a, 1, 0));
  show("write 64", CU(cuStreamWriteValue64)(nullptr, a + 8, 1, 0));
  show("wait 32", CU(cuStreamWaitValue32)(nullptr, a, 0, CU_STREAM_WAIT_VALUE_GEQ));
  show("wait 64", CU(cuStreamWaitValue64)(nullptr, a + 8, 0, CU_STREAM_WAIT_VALUE_GEQ));
  show("write 32, _ptsz", CU(cuStreamWriteValue32_ptsz)(nullptr, a, 1, 0));
  show("wait 64, _ptsz", CU(cuStreamWaitValue64_ptsz)(nullptr, a + 8, 0, CU_STREAM_WAIT_VALUE_GEQ));
  show("after those", CU(cuCtxSynchronize)());
}

// Shows the effects of a batch with a refused copy, and which copy the CUDA 12 versions of the call report.
GROUP(batches_that_are_refused, InContext) {
  Copies c;
  std::size_t fail = 77;
  const auto batch = [&] {
    fail = 77;
    return CU(cuMemcpyBatchAsync)(c.to, c.from, c.sizes, c.count, c.attributes, c.first, c.attribute_count, &fail,
                                  c.stream);
  };
  const auto ask = [&](const std::string& what) {
    show(what, batch());
    show(what + ", the index", static_cast<long long>(fail));
  };
  c.sizes[1] = 0;
  ask("the second of no bytes");
  CU(cuStreamSynchronize)(c.stream);
  show("the first one's word", word_at(c.a));
  c.reset(), c.from[0] = 0;
  ask("the first from nowhere");
  c.reset(), c.to[1] = c.a + 240;
  ask("the second beyond the end");
  c.reset(), c.attributes[0].flags = 2;
  ask("flags 2");
  c.reset(), c.first[0] = 1;
  ask("attributes from 1");
  c.reset();
  ask("a good one");
  CUDA_MEMCPY3D_BATCH_OP ops[] = {rows(c.a, c.a + 128), rows(c.a + 32, c.a + 128)};
  const auto ask_rows = [&](const std::string& what, unsigned long long flags) {
    fail = 77;
    show(what, CU(cuMemcpy3DBatchAsync)(2, ops, &fail, flags, c.stream));
    show(what + ", the index", static_cast<long long>(fail));
  };
  ask_rows("rows, flags 1", 1);
  ops[0].srcAccessOrder = odd<CUmemcpySrcAccessOrder>(0);
  ask_rows("rows, the first of order 0", 0);
  ops[0] = rows(c.a, c.a + 128);
  ask_rows("rows, good ones", 0);
  show("after those", CU(cuCtxSynchronize)());
}

// Copies whose sources the driver must read before the call returns, and copies that depend on each other.
GROUP(batches_and_access_orders, InContext) {
  Copies c;
  void* pinned = nullptr;
  CU(cuMemHostAlloc)(&pinned, 64, 0);
  auto* words = static_cast<unsigned*>(pinned);
  for (const int order : {1, 2, 3}) {
    const std::string name = "order " + std::to_string(order);
    std::fill_n(words, 16, 40U + static_cast<unsigned>(order));
    c.with(name + " from pinned memory", [&] {
      c.from[0] = c.from[1] = address_of(pinned);
      c.attributes[0].srcAccessOrder = odd<CUmemcpySrcAccessOrder>(order);
    });
    if (order != 2) CU(cuStreamSynchronize)(c.stream);
    std::fill_n(words, 16, 1U);
    CU(cuStreamSynchronize)(c.stream);
    show(name + ", the word", word_at(c.a));
  }
  unsigned from[16], to[16] = {};
  std::fill_n(from, 16, 33U);
  c.with("from the host to the host", [&] { c.from[0] = address_of(from), c.to[0] = address_of(to); });
  CU(cuStreamSynchronize)(c.stream);
  show("that word", to[0]);
  std::vector<unsigned> large(1 << 20, 5U), back(1 << 20, 0U);
  CUdeviceptr room = 0;
  CU(cuMemAlloc_v2)(&room, large.size() * 4);
  c.with("4 MiB there, in the call", [&] {
    c.to[0] = room, c.from[0] = address_of(large.data()), c.sizes[0] = large.size() * 4;
    c.attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  });
  std::fill(large.begin(), large.end(), 1U);
  c.with("4 MiB back", [&] { c.to[0] = address_of(back.data()), c.from[0] = room, c.sizes[0] = large.size() * 4; });
  CU(cuStreamSynchronize)(c.stream);
  show_flag("the same words", std::count(back.begin(), back.end(), 5U) == 1 << 20);
  show("after those", CU(cuCtxSynchronize)());
}

CUmemcpy3DOperand in_array(CUarray array, std::size_t x = 0, std::size_t y = 0) {
  auto side = zeroed<CUmemcpy3DOperand>();
  side.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  side.op.array.array = array;
  side.op.array.offset = {.x = x, .y = y, .z = 0};
  return side;
}

// For a side that is an array, lengths count texels.
GROUP(batches_of_rows_with_arrays, InContext) {
  Copies c;
  const CUarray array = make_array(described(8, 4)), other = make_array(described(8, 4));
  const CUarray bytes = make_array(described(8, 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8));
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 1024);
  CU(cuMemsetD32_v2)(a, 4, 256);
  unsigned host[32] = {};
  const auto good = [&](const CUmemcpy3DOperand& to, const CUmemcpy3DOperand& from) {
    CUDA_MEMCPY3D_BATCH_OP op = rows(a, a);
    op.dst = to, op.src = from;
    op.extent = {.width = 4, .height = 2, .depth = 1};
    return op;
  };
  const auto plain = [](CUdeviceptr at) {
    CUmemcpy3DOperand side = rows(at, at).dst;
    side.op.ptr.rowLength = 8;
    return side;
  };
  const auto ask = [&](const std::string& what, CUDA_MEMCPY3D_BATCH_OP op) {
    show(what, CU(cuMemcpy3DBatchAsync_v2)(1, &op, 0, c.stream));
  };
  ask("into an array", good(in_array(array), plain(a)));
  ask("into it, off its start", good(in_array(array, 4, 2), plain(a)));
  ask("to another array", good(in_array(other), in_array(array)));
  ask("out of it", good(plain(address_of(host)), in_array(other)));
  CU(cuStreamSynchronize)(c.stream);
  show("first word", host[0]);
  show("last word of the row", host[3]);
  show("behind it", host[4]);
  show("the second row", host[8]);
  ask("beyond its width", good(in_array(array, 5, 0), plain(a)));
  ask("beyond its height", good(in_array(array, 0, 3), plain(a)));
  ask("between texels of other sizes", good(in_array(bytes), in_array(array)));
  CUDA_MEMCPY3D_BATCH_OP op = good(in_array(array), plain(a));
  op.src.op.ptr.rowLength = 3;
  ask("rows shorter than the width", op);
  op = good(in_array(array), plain(a));
  op.extent.depth = 2;
  ask("two slices of one", op);
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(batches_of_rows_with_the_host, InContext) {
  Copies c;
  unsigned from[16], to[16] = {};
  std::fill_n(from, 16, 21U);
  CUDA_MEMCPY3D_BATCH_OP ops[] = {rows(c.a, address_of(from)), rows(address_of(to), c.a + 128)};
  ops[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  show("there and back", CU(cuMemcpy3DBatchAsync_v2)(2, ops, 0, c.stream));
  CU(cuStreamSynchronize)(c.stream);
  show("there", word_at(c.a));
  show("the second row there", word_at(c.a + 8));
  show("behind them", word_at(c.a + 16));
  show("back", to[0]);
  ops[0].extent.depth = 2, ops[0].extent.height = 1;
  ops[0].src.op.ptr.layerHeight = 2;
  show("two layers, each of two rows", CU(cuMemcpy3DBatchAsync_v2)(1, ops, 0, c.stream));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(peer_copies_of_rows_with_the_host, InContext) {
  Two two;
  unsigned from[16];
  std::fill_n(from, 16, 21U);
  auto copy = zeroed<CUDA_MEMCPY3D_PEER>();
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcHost = from;
  copy.dstContext = two.a, copy.dstDevice = two.in_a->memory;
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = 8;
  copy.Height = copy.srcHeight = copy.dstHeight = 2, copy.Depth = 1;
  show("from the host", CU(cuMemcpy3DPeer)(&copy));
  show("a word", word_at(two.in_a->memory));
  copy.dstContext = nullptr;
  show("to no context", CU(cuMemcpy3DPeer)(&copy));
  show("asynchronous, to no context", CU(cuMemcpy3DPeerAsync)(&copy, two.in_b->stream));
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcContext = copy.dstContext = two.a;
  copy.srcDevice = two.in_a->memory, copy.dstDevice = two.in_b->memory;
  show("a context that does not have it", CU(cuMemcpy3DPeerAsync)(&copy, two.in_b->stream));
  copy.WidthInBytes = 0;
  show("no width", CU(cuMemcpy3DPeer)(&copy));
  copy.WidthInBytes = 8, copy.dstLOD = 1;
  show("to level 1", CU(cuMemcpy3DPeerAsync)(&copy, two.in_b->stream));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(peer_copies_after_work, InContext) {
  Two two;
  CU(cuCtxPushCurrent_v2)(two.a);
  CU(cuMemsetD32Async)(two.in_a->memory, 11, 16, two.in_a->stream);
  CU(cuCtxPopCurrent_v2)(nullptr);
  auto copy = zeroed<CUDA_MEMCPY3D_PEER>();
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcContext = two.a, copy.dstContext = two.b;
  copy.srcDevice = two.in_a->memory, copy.dstDevice = two.in_b->memory;
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = 16;
  copy.Height = copy.srcHeight = copy.dstHeight = 1, copy.Depth = 1;
  show("behind the other context's work", CU(cuMemcpy3DPeer)(&copy));
  show("a word", word_at(two.in_b->memory));
}

GROUP(pointer_settings_and_copies, InContext) {
  CUdeviceptr a = 0, b = 0;
  unsigned on = 1, seen = 9;
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuMemAlloc_v2)(&b, 4096);
  show("set", CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a + 4095));
  CU(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, b);
  show("another's", seen);
  show("behind its end", CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a + (1 << 30)));
  show("cuMemsetD8", CU(cuMemsetD8_v2)(a, 1, 4096));
  show("cuMemcpyDtoD", CU(cuMemcpyDtoD_v2)(b, a, 4096));
  show("a word", word_at(b));
  CU(cuMemFree_v2)(a);
  show("freed", CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
  CU(cuMemAlloc_v2)(&a, 4096);
  CU(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a);
  show("of new memory", seen);
}

GROUP(pointer_settings_without_context, Initialized) {
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  const unsigned on = 1;
  unsigned seen = 9;
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  CU(cuMemAlloc_v2)(&a, 64);
  CU(cuCtxSetCurrent)(nullptr);
  show("set", CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
  CU(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a);
  show("it is", seen);
}

}  // namespace
}  // namespace contract
