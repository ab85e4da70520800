// Cases for the calls that are allowed during a capture: by the capturing thread and by another thread, in each mode,
// and on the NULL stream.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

// The objects that the calls use. work.stream is captured, and `captured_event` was recorded in it.
struct Beside {
  GraphWork work;
  CUevent done = nullptr, captured_event = nullptr, spare_event = nullptr;
  CUstream spare_stream = nullptr;
  CUdeviceptr spare = 0, made = 0;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUmemoryPool pool = nullptr;
  CUgraph graph = nullptr, made_graph = nullptr;
  CUgraphExec exec = nullptr, made_exec = nullptr;
  CUuserObject object = nullptr;
  CUstream made_stream = nullptr;
  CUevent made_event = nullptr;
  void* pinned = nullptr;
  void* made_pinned = nullptr;
  std::size_t size = 0;
  cuuint64_t threshold = 0;
  unsigned word = 5;
  unsigned long long id = 0;

  Beside() {
    CU(cuEventCreate)(&done, 0);
    CU(cuEventCreate)(&captured_event, CU_EVENT_DISABLE_TIMING);
    CU(cuEventRecord)(done, work.other);
    CU(cuDeviceGetDefaultMemPool)(&pool, device);
    CU(cuMemHostAlloc)(&pinned, 64, 0);
    graph = make_graph();
    add_empty(graph);
    exec = instantiated(graph);
    CU(cuCtxSynchronize)();
    make_spares();
  }
  // Replaces the objects that the previous call has destroyed.
  void make_spares() {
    CU(cuEventCreate)(&spare_event, 0);
    CU(cuStreamCreate)(&spare_stream, CU_STREAM_NON_BLOCKING);
    CU(cuMemAlloc_v2)(&spare, 64);
    CU(cuCtxSynchronize)();
  }
};

struct BesideCall {
  const char* name;
  CUresult (*ask)(Beside&);
};
#define ASK(what, fn, ...)                                                    \
  {                                                                           \
    what, [](Beside& b) { return static_cast<void>(b), CU(fn)(__VA_ARGS__); } \
  }

const BesideCall calls_beside[] = {
    ASK("query the captured stream", cuStreamQuery, b.work.stream),
    ASK("synchronize the captured stream", cuStreamSynchronize, b.work.stream),
    ASK("query another stream", cuStreamQuery, b.work.other),
    ASK("synchronize another stream", cuStreamSynchronize, b.work.other),
    ASK("query an event of the capture", cuEventQuery, b.captured_event),
    ASK("synchronize an event of the capture", cuEventSynchronize, b.captured_event),
    ASK("query another event", cuEventQuery, b.done),
    ASK("synchronize another event", cuEventSynchronize, b.done),
    ASK("cuCtxSynchronize", cuCtxSynchronize),
    ASK("cuMemAlloc", cuMemAlloc_v2, &b.made, 64),
    ASK("cuMemAlloc of 0", cuMemAlloc_v2, &b.made, 0),
    ASK("cuMemFree", cuMemFree_v2, b.spare),
    ASK("cuMemFree of null", cuMemFree_v2, 0),
    ASK("cuMemHostAlloc", cuMemHostAlloc, &b.made_pinned, 64, 0),
    ASK("cuMemHostAlloc of 0", cuMemHostAlloc, &b.made_pinned, 0, 0),
    ASK("cuMemFreeHost of null", cuMemFreeHost, nullptr),
    ASK("cuMemcpyHtoD", cuMemcpyHtoD_v2, b.work.a, &b.word, 4),
    ASK("cuMemcpyDtoH", cuMemcpyDtoH_v2, &b.word, b.work.a, 4),
    ASK("cuMemcpyHtoDAsync, NULL stream", cuMemcpyHtoDAsync_v2, b.work.a, b.pinned, 4, nullptr),
    ASK("cuMemsetD8", cuMemsetD8_v2, b.work.a, 0, 4),
    ASK("cuMemsetD32Async, another stream", cuMemsetD32Async, b.work.a, 0, 1, b.work.other),
    ASK("a launch, NULL stream", cuLaunchKernel, b.work.empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
    ASK(
        "a host function, another stream", cuLaunchHostFunc, b.work.other, [](void*) {}, nullptr),
    ASK("an event, NULL stream", cuEventRecord, b.work.second, nullptr),
    ASK("NULL stream waits", cuStreamWaitEvent, nullptr, b.done, 0),
    ASK("NULL stream waits for the capture", cuStreamWaitEvent, nullptr, b.captured_event, 0),
    ASK("the captured stream waits for another event", cuStreamWaitEvent, b.work.stream, b.done, 0),
    ASK(
        "cuStreamAddCallback", cuStreamAddCallback, b.work.stream, [](CUstream, CUresult, void*) {}, nullptr, 0),
    ASK("cuMemAllocAsync, another stream", cuMemAllocAsync, &b.made, 64, b.work.other),
    ASK("cuMemPoolGetAttribute", cuMemPoolGetAttribute, b.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &b.threshold),
    ASK("cuMemPoolTrimTo", cuMemPoolTrimTo, b.pool, 1 << 20),
    ASK("cuMemGetInfo", cuMemGetInfo_v2, &b.size, &b.size),
    ASK("cuStreamCreate", cuStreamCreate, &b.made_stream, CU_STREAM_NON_BLOCKING),
    ASK("cuStreamDestroy", cuStreamDestroy_v2, b.spare_stream),
    ASK("cuEventCreate", cuEventCreate, &b.made_event, 0),
    ASK("cuEventDestroy", cuEventDestroy_v2, b.spare_event),
    ASK("cuStreamGetId of the captured stream", cuStreamGetId, b.work.stream, &b.id),
    ASK("cuModuleLoadData", cuModuleLoadData, &b.module, ptx),
    ASK("cuModuleGetFunction", cuModuleGetFunction, &b.function, b.work.module, "stop"),
    ASK("cuGraphCreate", cuGraphCreate, &b.made_graph, 0),
    ASK("cuGraphInstantiate", cuGraphInstantiateWithFlags, &b.made_exec, b.graph, 0),
    ASK("cuGraphUpload, another stream", cuGraphUpload, b.exec, b.work.other),
    ASK("cuGraphLaunch, another stream", cuGraphLaunch, b.exec, b.work.other),
    ASK("cuGraphExecDestroy of null", cuGraphExecDestroy, nullptr),
    ASK(
        "cuUserObjectCreate", cuUserObjectCreate, &b.object, &b.word, [](void*) {}, 1,
        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
    ASK("cuDeviceGraphMemTrim", cuDeviceGraphMemTrim, device),
};

// Calls that are affected by a capture in a blocking stream, and the graph calls in that state.
const BesideCall calls_on_the_null_stream[] = {
    ASK("a launch", cuLaunchKernel, b.work.empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
    ASK("a launch, legacy", cuLaunchKernel, b.work.empty, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, nullptr, nullptr),
    ASK("a launch, the thread's", cuLaunchKernel, b.work.empty, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, nullptr,
        nullptr),
    ASK(
        "a host function", cuLaunchHostFunc, nullptr, [](void*) {}, nullptr),
    ASK(
        "a callback", cuStreamAddCallback, nullptr, [](CUstream, CUresult, void*) {}, nullptr, 0),
    ASK("cuMemcpyHtoD", cuMemcpyHtoD_v2, b.work.a, &b.word, 4),
    ASK("cuMemcpyDtoH", cuMemcpyDtoH_v2, &b.word, b.work.a, 4),
    ASK("cuMemcpyDtoD", cuMemcpyDtoD_v2, b.work.a, b.work.a + 32, 4),
    ASK("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2, b.work.a, b.pinned, 4, nullptr),
    ASK("cuMemsetD8", cuMemsetD8_v2, b.work.a, 0, 4),
    ASK("cuMemsetD32Async", cuMemsetD32Async, b.work.a, 0, 1, nullptr),
    ASK("an event", cuEventRecord, b.work.second, nullptr),
    ASK("it waits", cuStreamWaitEvent, nullptr, b.done, 0),
    ASK("it waits for the capture", cuStreamWaitEvent, nullptr, b.captured_event, 0),
    ASK("query", cuStreamQuery, nullptr),
    ASK("synchronize", cuStreamSynchronize, nullptr),
    ASK("cuGraphLaunch", cuGraphLaunch, b.exec, nullptr),
    ASK("cuGraphUpload", cuGraphUpload, b.exec, nullptr),
    ASK("cuMemAllocAsync", cuMemAllocAsync, &b.made, 64, nullptr),
    ASK("cuStreamGetId", cuStreamGetId, nullptr, &b.id),
    ASK("cuStreamGetFlags", cuStreamGetFlags, nullptr, &b.word),
    ASK("begin", cuStreamBeginCapture_v2, nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
    ASK("a word", cuStreamWriteValue32_v2, nullptr, b.work.a, 1, 0),
};
#undef ASK

// Makes each call in a capture of its own, and shows the result and the state of the capture.
template <class Calls, class By>
void ask_beside(const Calls& calls, CUstreamCaptureMode mode, unsigned flags, By by) {
  Beside b;
  CU(cuStreamCreate)(&b.work.stream, flags);
  int ended = 0, refused = 0, given = 0;
  for (const BesideCall& call : calls) {
    CU(cuStreamBeginCapture_v2)(b.work.stream, mode);
    b.work.launch_empty(b.work.stream);
    CU(cuEventRecord)(b.captured_event, b.work.stream);
    show(call.name, by([&] { return call.ask(b); }));
    const CUstreamCaptureStatus then = capture_of(b.work.stream);
    show(std::string(call.name) + ", the capture is", then);
    ended += then == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    auto graph = untouched<CUgraph>();
    refused += CU(cuStreamEndCapture)(b.work.stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    given += graph != nullptr;
    b.make_spares();
  }
  show_flag("each that is invalidated ends so", ended == refused);
  show_flag("the others give a graph", given == static_cast<int>(std::size(calls)) - ended);
}

const auto by_this_thread = [](const auto& call) { return call(); };
const auto by_another_thread = [](const auto& call) { return in_a_thread(call); };

GROUP(beside_a_global_capture, InContext) {
  ask_beside(calls_beside, CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_NON_BLOCKING, by_this_thread);
}
GROUP(beside_a_local_capture, InContext) {
  ask_beside(calls_beside, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_NON_BLOCKING, by_this_thread);
}
GROUP(beside_a_relaxed_capture, InContext) {
  ask_beside(calls_beside, CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_NON_BLOCKING, by_this_thread);
}
GROUP(beside_another_threads_global_capture, InContext) {
  ask_beside(calls_beside, CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_NON_BLOCKING, by_another_thread);
}
GROUP(beside_another_threads_local_capture, InContext) {
  ask_beside(calls_beside, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_NON_BLOCKING, by_another_thread);
}
GROUP(beside_another_threads_relaxed_capture, InContext) {
  ask_beside(calls_beside, CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_NON_BLOCKING, by_another_thread);
}
GROUP(null_stream_beside_a_blocking_capture, InContext) {
  ask_beside(calls_on_the_null_stream, CU_STREAM_CAPTURE_MODE_RELAXED, 0, by_this_thread);
}
GROUP(null_stream_beside_another_threads_capture, InContext) {
  ask_beside(calls_on_the_null_stream, CU_STREAM_CAPTURE_MODE_RELAXED, 0, by_another_thread);
}
GROUP(null_stream_beside_a_non_blocking_capture, InContext) {
  ask_beside(calls_on_the_null_stream, CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_NON_BLOCKING, by_this_thread);
}

// ---- the capture mode of a thread ----------------------------------------------------------------------------------

GROUP(capture_mode_of_a_thread, InContext) {
  GraphWork work;
  CUdeviceptr made = 0;
  const auto exchange = [](const std::string& what, CUstreamCaptureMode mode) {
    show(what, CU(cuThreadExchangeStreamCaptureMode)(&mode));
    show(what + ", it was", mode);
  };
  exchange("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
  exchange("local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  exchange("global", CU_STREAM_CAPTURE_MODE_GLOBAL);
  exchange("mode 3", odd<CUstreamCaptureMode>(3));
  exchange("mode 3 again", odd<CUstreamCaptureMode>(3));
  exchange("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
  show("another thread's", in_a_thread([&] {
         exchange("in another thread", CU_STREAM_CAPTURE_MODE_GLOBAL);
         return CUDA_SUCCESS;
       }));
  work.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  show("a relaxed thread allocates in its global capture", CU(cuMemAlloc_v2)(&made, 64));
  show("it queries another stream", CU(cuStreamQuery)(work.other));
  show("it is", capture_of(work.stream));
  exchange("back in the capture", CU_STREAM_CAPTURE_MODE_GLOBAL);
  show("it queries another stream, then", CU(cuStreamQuery)(work.other));
  show_end("the capture", work.stream);
  work.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  show("a local thread allocates beside a global capture", in_a_thread([&] {
         exchange("local in the thread", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
         return CU(cuMemAlloc_v2)(&made, 64);
       }));
  show("it is", capture_of(work.stream));
  show("a relaxed thread allocates beside a global capture", in_a_thread([&] {
         exchange("relaxed in the thread", CU_STREAM_CAPTURE_MODE_RELAXED);
         return CU(cuMemAlloc_v2)(&made, 64);
       }));
  show("it is", capture_of(work.stream));
  show_end("the capture", work.stream);
  exchange("local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  work.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  show("a local thread allocates in its global capture", CU(cuMemAlloc_v2)(&made, 64));
  show_end("the capture", work.stream);
  work.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  show("a local thread allocates in its relaxed capture", CU(cuMemAlloc_v2)(&made, 64));
  show_end("the capture", work.stream);
  exchange("end", CU_STREAM_CAPTURE_MODE_GLOBAL);
}

}  // namespace
}  // namespace contract
