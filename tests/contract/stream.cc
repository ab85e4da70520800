// Cases for streams, and for host functions in streams.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(streams, InContext) {
  CUstream stream = nullptr;
  unsigned flags = 9;
  int priority = 9;
  CUcontext context = nullptr;
  show("cuStreamCreate null", CU(cuStreamCreate)(nullptr, 0));
  show("cuStreamCreate flags 2", CU(cuStreamCreate)(&stream, 2));
  show("cuStreamCreateWithPriority 5", CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, 5));
  show("cuStreamGetPriority", CU(cuStreamGetPriority)(stream, &priority));
  show("priority 5 became", priority);
  show("cuStreamGetFlags", CU(cuStreamGetFlags)(stream, &flags));
  show("its flags", flags);
  show("cuStreamGetFlags null", CU(cuStreamGetFlags)(stream, nullptr));
  show("cuStreamGetFlags of the legacy stream", CU(cuStreamGetFlags)(nullptr, &flags));
  show("its flags", flags);
  show("cuStreamGetCtx", CU(cuStreamGetCtx)(stream, &context));
  show("cuStreamQuery", CU(cuStreamQuery)(stream));
  show("cuStreamSynchronize legacy", CU(cuStreamSynchronize)(CU_STREAM_LEGACY));
  show("cuStreamSynchronize per thread", CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  show("cuStreamDestroy", CU(cuStreamDestroy_v2)(stream));
  show("cuStreamDestroy null", CU(cuStreamDestroy_v2)(nullptr));
  show("cuStreamDestroy legacy", CU(cuStreamDestroy_v2)(CU_STREAM_LEGACY));
  show("cuStreamDestroy per thread", CU(cuStreamDestroy_v2)(CU_STREAM_PER_THREAD));
  CUstreamCaptureStatus status;
  show("cuStreamIsCapturing", CU(cuStreamIsCapturing)(nullptr, &status));
  CUstreamCaptureMode mode = odd<CUstreamCaptureMode>(9);
  show("cuThreadExchangeStreamCaptureMode 9", CU(cuThreadExchangeStreamCaptureMode)(&mode));
}

GROUP(host_functions, InContext) {
  show("cuLaunchHostFunc null", CU(cuLaunchHostFunc)(nullptr, nullptr, nullptr));
  show("cuStreamAddCallback null", CU(cuStreamAddCallback)(nullptr, nullptr, nullptr, 0));
  static CUresult inside[3];
  show("cuLaunchHostFunc", CU(cuLaunchHostFunc)(
                               nullptr,
                               [](void*) {
                                 CUcontext current = nullptr;
                                 CUdeviceptr a = 0;
                                 inside[0] = CU(cuMemAlloc_v2)(&a, 16);
                                 inside[1] = CU(cuCtxGetCurrent)(&current);
                                 inside[2] = CU(cuStreamQuery)(nullptr);
                               },
                               nullptr));
  CU(cuCtxSynchronize)();
  show("cuMemAlloc inside", inside[0]);
  show("cuCtxGetCurrent inside", inside[1]);
  show("cuStreamQuery inside", inside[2]);
}

GROUP(words_in_memory, InContext) {
  void* p = nullptr;
  CUdeviceptr a = 0;
  int stack = 0;
  CU(cuMemHostAlloc)(&p, 64, 0);
  CU(cuMemAlloc_v2)(&a, 64);
  const auto host = reinterpret_cast<CUdeviceptr>(p);
  std::memset(p, 0, 64);
  show("write 32 to host memory", CU(cuStreamWriteValue32_v2)(nullptr, host, 5, 0));
  show("write 64 to host memory", CU(cuStreamWriteValue64_v2)(nullptr, host + 8, 6, 0));
  show("wait 32", CU(cuStreamWaitValue32_v2)(nullptr, host, 5, CU_STREAM_WAIT_VALUE_EQ));
  show("wait 64", CU(cuStreamWaitValue64_v2)(nullptr, host + 8, 6, CU_STREAM_WAIT_VALUE_GEQ));
  show("write 32 to device memory", CU(cuStreamWriteValue32_v2)(nullptr, a, 5, 0));
  show("write 32 misaligned", CU(cuStreamWriteValue32_v2)(nullptr, host + 1, 5, 0));
  show("write 64 misaligned", CU(cuStreamWriteValue64_v2)(nullptr, host + 4, 5, 0));
  show("write 32 to null", CU(cuStreamWriteValue32_v2)(nullptr, 0, 5, 0));
  show("write 32 to the stack", CU(cuStreamWriteValue32_v2)(nullptr, reinterpret_cast<CUdeviceptr>(&stack), 5, 0));
  show("write 32 flags 2", CU(cuStreamWriteValue32_v2)(nullptr, host, 5, 2));
  show("wait 32 flags 9", CU(cuStreamWaitValue32_v2)(nullptr, host, 5, 9));
  show("after those", CU(cuCtxSynchronize)());
  show("the word", *static_cast<volatile int*>(p));
  CU(cuMemFree_v2)(a);
  CU(cuMemFreeHost)(p);
}

GROUP(stream_questions, InContext) {
  CUstream stream = nullptr, plain = nullptr;
  CUcontext context = nullptr;
  CUgreenCtx green = nullptr;
  CUdevice of = 9;
  unsigned long long id = 0, other = 0;
  int priority = 9;
  unsigned flags = 9;
  CUstreamCaptureStatus status{};
  show("cuStreamCreate", CU(cuStreamCreate)(&plain, 0));
  show("cuStreamCreateWithPriority", CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, -1));
  show("cuStreamCreateWithPriority null", CU(cuStreamCreateWithPriority)(nullptr, 0, 0));
  show("cuStreamCreateWithPriority flags 2", CU(cuStreamCreateWithPriority)(&stream, 2, 0));
  CU(cuStreamGetPriority)(stream, &priority);
  show("its priority", priority);
  CU(cuStreamGetPriority)(plain, &priority);
  show("a plain one's priority", priority);
  show("cuStreamGetPriority null", CU(cuStreamGetPriority)(stream, nullptr));
  show("cuStreamGetPriority of the NULL stream", CU(cuStreamGetPriority)(nullptr, &priority));
  show("cuStreamGetFlags of the thread's", CU(cuStreamGetFlags)(CU_STREAM_PER_THREAD, &flags));
  show("its flags", flags);
  show("cuStreamGetId", CU(cuStreamGetId)(stream, &id));
  CU(cuStreamGetId)(plain, &other);
  show_flag("two streams, two numbers", id != other);
  show("cuStreamGetId null", CU(cuStreamGetId)(stream, nullptr));
  show("cuStreamGetId of the NULL stream", CU(cuStreamGetId)(nullptr, &id));
  CU(cuStreamGetId)(CU_STREAM_LEGACY, &other);
  show_flag("the legacy stream's is the same", id == other);
  show("cuStreamGetDevice", CU(cuStreamGetDevice)(stream, &of));
  show("it is", of);
  show("cuStreamGetDevice null", CU(cuStreamGetDevice)(stream, nullptr));
  show("cuStreamGetDevice of the NULL stream", CU(cuStreamGetDevice)(nullptr, &of));
  CU(cuStreamGetCtx)(stream, &context);
  show_flag("the current context", context == current_context());
  show("cuStreamGetCtx null", CU(cuStreamGetCtx)(stream, nullptr));
  show("cuStreamGetCtx of the NULL stream", CU(cuStreamGetCtx)(nullptr, &context));
  show("cuStreamGetCtx_v2", CU(cuStreamGetCtx_v2)(stream, &context, &green));
  show_flag("no green context", green == nullptr);
  show("cuStreamGetCtx_v2 null", CU(cuStreamGetCtx_v2)(stream, nullptr, nullptr));
  show("cuStreamGetCtx_v2 no green", CU(cuStreamGetCtx_v2)(stream, &context, nullptr));
  show("cuStreamIsCapturing null", CU(cuStreamIsCapturing)(stream, nullptr));
  show("cuStreamIsCapturing of a stream", CU(cuStreamIsCapturing)(stream, &status));
  show("it is", status);
}

GROUP(stream_work, InContext) {
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  CUdeviceptr a = 0;
  CU(cuStreamCreate)(&stream, 0);
  CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING);
  CU(cuEventCreate)(&event, 0);
  CU(cuMemAlloc_v2)(&a, 64);
  show("fill", CU(cuMemsetD32Async)(a, 1, 16, stream));
  show("cuEventRecord", CU(cuEventRecord)(event, stream));
  show("cuStreamWaitEvent", CU(cuStreamWaitEvent)(other, event, 0));
  show("cuStreamWaitEvent flags 1", CU(cuStreamWaitEvent)(other, event, CU_EVENT_WAIT_EXTERNAL));
  show("cuStreamSynchronize", CU(cuStreamSynchronize)(other));
  show("cuStreamQuery", CU(cuStreamQuery)(stream));
  show("cuStreamQuery of the NULL stream", CU(cuStreamQuery)(nullptr));
  show("cuStreamSynchronize of the NULL stream", CU(cuStreamSynchronize)(nullptr));
  show("cuStreamDestroy", CU(cuStreamDestroy_v2)(stream));
  show("cuStreamDestroy", CU(cuStreamDestroy_v2)(other));
  show("cuEventSynchronize", CU(cuEventSynchronize)(event));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  show("cuThreadExchangeStreamCaptureMode", CU(cuThreadExchangeStreamCaptureMode)(&mode));
  show("it was", mode);
  show_guarded("cuThreadExchangeStreamCaptureMode null",
               [&] { return CU(cuThreadExchangeStreamCaptureMode)(nullptr); });
  show("cuThreadExchangeStreamCaptureMode", CU(cuThreadExchangeStreamCaptureMode)(&mode));
  show("it was", mode);
}

}  // namespace
}  // namespace contract
