// Streams that write a word in memory, or wait for one.
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "host/simgpu/api/memory.h"
#include "host/simgpu/api/streams.h"

using namespace simgpu;

namespace {

template <class Word>
std::atomic_ref<Word> word_at(CUdeviceptr address) {
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(address));
}

template <class Word>
bool usable(Driver& driver, CUdeviceptr address) {
  return address % sizeof(Word) == 0 && reachable(driver, address, sizeof(Word));
}

// As usable, to a call of the host.
template <class Word>
bool known_word(Driver& driver, CUdeviceptr address) {
  return usable<Word>(driver, address) && known(driver, address, sizeof(Word));
}

template <class Word>
bool satisfied(Word seen, Word value, unsigned comparison) {
  switch (comparison) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::make_signed_t<Word>>(seen - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return seen == value;
    case CU_STREAM_WAIT_VALUE_AND: return (seen & value) != 0;
    default: return static_cast<Word>(~(seen | value)) != 0;
  }
}

// Polls, at first without pause and then ever more rarely, until the word is right or can never be: hundreds of streams
// that wait for ever must not take a processor.
template <class Word>
void wait_for_word(Driver& driver, const Context& context, CUdeviceptr address, Word value, unsigned comparison) {
  constexpr int eager_rounds = 200;
  std::chrono::microseconds nap(50);
  constexpr std::chrono::microseconds longest_nap(2000);
  for (int round = 0; usable<Word>(driver, address); ++round) {
    if (satisfied(word_at<Word>(address).load(std::memory_order_acquire), value, comparison)) return;
    if (driver.fault() != CUDA_SUCCESS || context.ending.load(std::memory_order_relaxed)) return;
    if (round < eager_rounds) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(nap);
      nap = std::min(2 * nap, longest_nap);
    }
  }
}

template <class Word>
CUresult wait_value(CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (flags > CU_STREAM_WAIT_VALUE_NOR || !known_word<Word>(driver, address)) return CUDA_ERROR_INVALID_VALUE;
    post(driver, *stream,
         [&driver, &context, address, value, flags] { wait_for_word<Word>(driver, context, address, value, flags); });
    return CUDA_SUCCESS;
  });
}

template <class Word>
CUresult write_value(CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) != 0 || !known_word<Word>(driver, address))
      return CUDA_ERROR_INVALID_VALUE;
    post(driver, *stream, [&driver, address, value] {
      if (usable<Word>(driver, address)) word_at<Word>(address).store(value, std::memory_order_release);
    });
    return CUDA_SUCCESS;
  });
}

CUresult one_of_batch(CUstream stream, const CUstreamBatchMemOpParams& op) {
  switch (op.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return wait_value<cuuint32_t>(stream, op.waitValue.address, op.waitValue.value, op.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return wait_value<cuuint64_t>(stream, op.waitValue.address, op.waitValue.value64, op.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return write_value<cuuint32_t>(stream, op.writeValue.address, op.writeValue.value, op.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return write_value<cuuint64_t>(stream, op.writeValue.address, op.writeValue.value64, op.writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

// The first forms of these calls differ from the second in nothing that the simulation has.
#define WORD_CALL(name, Word, function)                                                    \
  CUresult name(CUstream stream, CUdeviceptr addr, Word value, unsigned flags) {           \
    return function<Word>(stream, addr, value, flags);                                     \
  }                                                                                        \
  CUresult name##_v2(CUstream stream, CUdeviceptr addr, Word value, unsigned flags) {      \
    return function<Word>(stream, addr, value, flags);                                     \
  }                                                                                        \
  CUresult name##_ptsz(CUstream stream, CUdeviceptr addr, Word value, unsigned flags) {    \
    return function<Word>(own(stream), addr, value, flags);                                \
  }                                                                                        \
  CUresult name##_v2_ptsz(CUstream stream, CUdeviceptr addr, Word value, unsigned flags) { \
    return function<Word>(own(stream), addr, value, flags);                                \
  }

WORD_CALL(cuStreamWaitValue32, cuuint32_t, wait_value)
WORD_CALL(cuStreamWaitValue64, cuuint64_t, wait_value)
WORD_CALL(cuStreamWriteValue32, cuuint32_t, write_value)
WORD_CALL(cuStreamWriteValue64, cuuint64_t, write_value)

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams* paramArray, unsigned flags) {
  constexpr unsigned most = 256;  // as in cuda.h
  if (count > most || (count != 0 && paramArray == nullptr) || flags != 0)
    return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult error = one_of_batch(stream, paramArray[i]); error != CUDA_SUCCESS) return error;
  return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* paramArray, unsigned flags) {
  return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned count, CUstreamBatchMemOpParams* paramArray,
                                 unsigned flags) {
  return cuStreamBatchMemOp_v2(own(stream), count, paramArray, flags);
}
