// Stream commands that write a word in memory or wait for a word.
#include "host/simgpu/api/cuda_api.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/stream/streams.h"

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

// Returns true if a host call may use the word at this address.
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

// Polls the word until the comparison holds or can never hold. The first rounds have no pause. Afterwards the pauses
// grow, so that hundreds of streams that wait forever do not occupy a processor.
template <class Word>
void wait_for_word(Driver& driver, const Context& context, CUdeviceptr address, Word value, unsigned comparison) {
  constexpr int eager_rounds = 200;
  std::chrono::microseconds timed_sleep(50);
  constexpr std::chrono::microseconds longest_sleep(2000);
  for (int round = 0; usable<Word>(driver, address); ++round) {
    if (satisfied(word_at<Word>(address).load(std::memory_order_acquire), value, comparison)) return;
    if (driver.fault() != CUDA_SUCCESS || context.ending.load(std::memory_order_relaxed)) return;
    if (round < eager_rounds) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(timed_sleep);
      timed_sleep = std::min(2 * timed_sleep, longest_sleep);
    }
  }
}

CUresult check_wait_flags(unsigned flags) {
  if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return flags > CU_STREAM_WAIT_VALUE_NOR ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult check_flags(unsigned flags, unsigned known) {
  return (flags & ~known) != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

template <class Word>
CUresult check_word(Driver& driver, CUdeviceptr address, CUresult flags) {
  if (flags != CUDA_SUCCESS) return flags;
  return known_word<Word>(driver, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Word>
void post_wait(Driver& driver, const Context& context, Stream& stream, CUdeviceptr address, Word value,
               unsigned flags) {
  post(driver, stream,
       [&driver, &context, address, value, flags] { wait_for_word<Word>(driver, context, address, value, flags); });
}

template <class Word>
void post_write(Driver& driver, Stream& stream, CUdeviceptr address, Word value) {
  post(driver, stream, [&driver, address, value] {
    if (usable<Word>(driver, address)) word_at<Word>(address).store(value, std::memory_order_release);
  });
}

template <class Word>
CUresult wait_value(CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (is_captured(driver, *stream)) return CUDA_ERROR_NOT_SUPPORTED;  // the simulation has no such graph nodes
    if (const CUresult r = check_word<Word>(driver, address, check_wait_flags(flags)); r != CUDA_SUCCESS) return r;
    post_wait<Word>(driver, context, *stream, address, value, flags);
    return CUDA_SUCCESS;
  });
}

template <class Word>
CUresult write_value(CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (is_captured(driver, *stream)) return CUDA_ERROR_NOT_SUPPORTED;  // the simulation has no such graph nodes
    const CUresult sound = check_flags(flags, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
    if (const CUresult r = check_word<Word>(driver, address, sound); r != CUDA_SUCCESS) return r;
    post_write<Word>(driver, *stream, address, value);
    return CUDA_SUCCESS;
  });
}

// ---- batches -------------------------------------------------------------------------------------------------------

CUresult check(Driver& driver, const CUstreamBatchMemOpParams& op) {
  const auto& wait = op.waitValue;
  const auto& write = op.writeValue;
  const CUresult wait_flags = check_wait_flags(wait.flags);
  const CUresult write_flags = check_flags(write.flags, 0);  // a batch accepts other flags than a single write
  switch (static_cast<unsigned>(op.operation)) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: return check_word<cuuint32_t>(driver, wait.address, wait_flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return check_word<cuuint64_t>(driver, wait.address, wait_flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return check_word<cuuint32_t>(driver, write.address, write_flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return check_word<cuuint64_t>(driver, write.address, write_flags);
    case CU_STREAM_MEM_OP_BARRIER: return check_flags(op.memoryBarrier.flags, CU_STREAM_MEMORY_BARRIER_TYPE_GPU);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// Submits one operation of a batch. A barrier needs no action: all effects of earlier work in the stream are visible to
// later work.
void post_one(Driver& driver, const Context& context, Stream& stream, const CUstreamBatchMemOpParams& op) {
  const auto& wait = op.waitValue;
  const auto& write = op.writeValue;
  switch (static_cast<unsigned>(op.operation)) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return post_wait<cuuint32_t>(driver, context, stream, wait.address, wait.value, wait.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return post_wait<cuuint64_t>(driver, context, stream, wait.address, wait.value64, wait.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return post_write<cuuint32_t>(driver, stream, write.address, write.value);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return post_write<cuuint64_t>(driver, stream, write.address, write.value64);
    default: return;
  }
}

}  // namespace

// The versions of these calls before CUDA 11.7 are not defined, because the driver refuses them as well.
#define WORD_CALL(name, Word, function)                                                 \
  CUresult name(CUstream stream, CUdeviceptr addr, Word value, unsigned flags) {        \
    return function<Word>(stream, addr, value, flags);                                  \
  }                                                                                     \
  CUresult name##_ptsz(CUstream stream, CUdeviceptr addr, Word value, unsigned flags) { \
    return function<Word>(own(stream), addr, value, flags);                             \
  }

WORD_CALL(cuStreamWaitValue32_v2, cuuint32_t, wait_value)
WORD_CALL(cuStreamWaitValue64_v2, cuuint64_t, wait_value)
WORD_CALL(cuStreamWriteValue32_v2, cuuint32_t, write_value)
WORD_CALL(cuStreamWriteValue64_v2, cuuint64_t, write_value)

CUresult cuStreamBatchMemOp_v2(CUstream handle, unsigned count, CUstreamBatchMemOpParams* paramArray, unsigned flags) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    constexpr unsigned most = 255;
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (is_captured(driver, *stream)) return CUDA_ERROR_NOT_SUPPORTED;  // the simulation has no such graph nodes
    if (count > most || (count != 0 && paramArray == nullptr) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i)
      if (const CUresult error = check(driver, paramArray[i]); error != CUDA_SUCCESS) return error;
    for (unsigned i = 0; i < count; ++i) post_one(driver, context, *stream, paramArray[i]);
    return CUDA_SUCCESS;
  });
}
