// Cases for the life of a capture: begin, fork, queries, end.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

constexpr CUstreamCaptureMode capture_modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                 CU_STREAM_CAPTURE_MODE_RELAXED};
const char* name_of_mode(CUstreamCaptureMode mode) {
  static const char* const names[] = {"global", "thread-local", "relaxed"};
  return names[mode];
}

GROUP(capture_begins, InContext) {
  GraphWork work;
  CUgraph graph = nullptr;
  const auto begin = CU(cuStreamBeginCapture_v2);
  for (const CUstreamCaptureMode mode : capture_modes) {
    const std::string name = name_of_mode(mode);
    show(name, work.begin(mode));
    show(name + ", it is", capture_of(work.stream));
    show(name + ", a launch", work.launch_store(work.stream, 3U + static_cast<unsigned>(mode)));
    graph = show_end(name, work.stream);
    show(name + ", it is then", capture_of(work.stream));
    show(name + ", nothing has run", word_at(work.a));
    show(name + ", the graph runs", run_once(graph, work.stream));
    show(name + ", the word", word_at(work.a));
    work.clear();
  }
  show("mode 3", begin(work.stream, odd<CUstreamCaptureMode>(3)));
  show("mode -1", begin(work.stream, odd<CUstreamCaptureMode>(-1)));
  show("it is", capture_of(work.stream));
  show("the NULL stream", begin(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));
  show("the legacy stream", begin(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED));
  show("the NULL stream, mode 3", begin(nullptr, odd<CUstreamCaptureMode>(3)));
  show("begin", work.begin());
  show("begin twice", work.begin());
  show("begin twice in another mode", work.begin(CU_STREAM_CAPTURE_MODE_GLOBAL));
  show("it is", capture_of(work.stream));
  show_end("begun twice", work.stream);
  show("the thread's stream", begin(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  show("it is", capture_of(CU_STREAM_PER_THREAD));
  show("a launch", work.launch_empty(CU_STREAM_PER_THREAD));
  auto other_status = odd<CUstreamCaptureStatus>(9);
  show("that of another thread",
       in_a_thread([&] { return CU(cuStreamIsCapturing)(CU_STREAM_PER_THREAD, &other_status); }));
  show("it is", other_status);
  show_end("the thread's stream", CU_STREAM_PER_THREAD);
  show("_ptsz", CU(cuStreamBeginCapture_v2_ptsz)(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));
  show("it is", capture_of(CU_STREAM_PER_THREAD));
  show("_ptsz end", CU(cuStreamEndCapture_ptsz)(nullptr, &graph));
  show("an empty graph has nodes", nodes_in(graph));
}

GROUP(capture_begins_by_old_forms, InContext) {
  GraphWork work;
  CUdeviceptr made = 0;
  show("the first form", CU(cuStreamBeginCapture)(work.stream));
  show("its mode lets cuMemAlloc", CU(cuMemAlloc_v2)(&made, 64));
  show_end("the first form", work.stream);
  show("the first form of the NULL stream", CU(cuStreamBeginCapture)(nullptr));
  show("the first form, _ptsz", CU(cuStreamBeginCapture_ptsz)(nullptr));
  show_end("the first form, _ptsz", CU_STREAM_PER_THREAD);
}

GROUP(capture_of_two_streams, InContext) {
  GraphWork work;
  show("one", work.begin(CU_STREAM_CAPTURE_MODE_GLOBAL));
  show("two", CU(cuStreamBeginCapture_v2)(work.other, CU_STREAM_CAPTURE_MODE_GLOBAL));
  show("launch into one", work.launch_empty(work.stream));
  show("launch into two", work.launch_empty(work.other));
  show("record in one", CU(cuEventRecord)(work.event, work.stream));
  show("two waits for it", CU(cuStreamWaitEvent)(work.other, work.event, 0));
  show("one is", capture_of(work.stream));
  show("two is", capture_of(work.other));
  show_end("two", work.other);
  show("one is, then", capture_of(work.stream));
  show_end("one", work.stream);
}

GROUP(capture_ends, InContext) {
  GraphWork work;
  CUgraph graph = nullptr;
  const auto end = CU(cuStreamEndCapture);
  const auto refused = [&](const std::string& what, CUstream stream) {
    graph = untouched<CUgraph>();
    show(what, end(stream, &graph));
    show_flag(what + ", the graph is null", graph == nullptr);
    show_flag(what + ", the graph is untouched", graph == untouched<CUgraph>());
  };
  refused("a stream that does not capture", work.stream);
  refused("the NULL stream", nullptr);
  refused("the legacy stream", CU_STREAM_LEGACY);
  refused("the thread's stream", CU_STREAM_PER_THREAD);
  show("no graph, no capture", end(work.stream, nullptr));
  for (const CUstreamCaptureMode mode : capture_modes) {
    const std::string name = name_of_mode(mode);
    show(name + ", begin", work.begin(mode));
    work.launch_empty(work.stream);
    graph = untouched<CUgraph>();
    show(name + ", end by another thread", in_a_thread([&] { return end(work.stream, &graph); }));
    show_flag(name + ", the graph is untouched", graph == untouched<CUgraph>());
    show_flag(name + ", the graph is null", graph == nullptr);
    show(name + ", it is", capture_of(work.stream));
    if (capture_of(work.stream) != CU_STREAM_CAPTURE_STATUS_NONE) show_end(name + ", by this thread", work.stream);
  }
  show("begin", work.begin());
  show("launch", work.launch_empty(work.stream));
  show("end without a place for the graph", end(work.stream, nullptr));
  show("it is", capture_of(work.stream));
  if (capture_of(work.stream) != CU_STREAM_CAPTURE_STATUS_NONE) show_end("then", work.stream);
  show("end twice", end(work.stream, &graph));
  show("the stream works", work.launch_store(work.stream, 8));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the word", word_at(work.a));
}

// Threads that launch into a captured stream, and a thread that exits while its capture is open.
GROUP(capture_and_threads, InContext) {
  GraphWork work;
  for (const CUstreamCaptureMode mode : capture_modes) {
    const std::string name = name_of_mode(mode);
    work.begin(mode);
    show(name + ", a launch by another thread", in_a_thread([&] { return work.launch_empty(work.stream); }));
    show(name + ", it is", capture_of(work.stream));
    show_end(name, work.stream);
    show(name + ", begin by a thread that ends", in_a_thread([&] { return work.begin(mode); }));
    show(name + ", it is then", capture_of(work.stream));
    show(name + ", a launch by this thread", work.launch_empty(work.stream));
    auto graph = untouched<CUgraph>();
    show(name + ", end by this thread", CU(cuStreamEndCapture)(work.stream, &graph));
    show(name + ", it is in the end", capture_of(work.stream));
    if (capture_of(work.stream) == CU_STREAM_CAPTURE_STATUS_NONE) continue;
    CU(cuStreamCreate)(&work.stream, CU_STREAM_NON_BLOCKING);
  }
}

GROUP(capture_forks, InContext) {
  GraphWork work;
  CUstream third = nullptr;
  CU(cuStreamCreate)(&third, CU_STREAM_NON_BLOCKING);
  const auto record = CU(cuEventRecord);
  const auto wait = CU(cuStreamWaitEvent);
  work.begin();
  show("record in the captured stream", record(work.event, work.stream));
  show("another stream waits", wait(work.other, work.event, 0));
  show("it is", capture_of(work.other));
  show("launch into the other", work.launch_empty(work.other));
  show_end("not joined", work.stream);
  show("the other is then", capture_of(work.other));
  work.begin();
  work.launch_empty(work.stream);
  record(work.event, work.stream);
  wait(work.other, work.event, 0);
  work.launch_empty(work.other);
  work.launch_empty(work.stream);
  show("record in the other", record(work.second, work.other));
  show("join", wait(work.stream, work.second, 0));
  show("launch behind both", work.launch_empty(work.stream));
  CUgraph graph = show_end("joined", work.stream);
  show("the other is", capture_of(work.other));
  show("it runs", run_once(graph, work.stream));
  work.begin();
  record(work.event, work.stream);
  wait(work.other, work.event, 0);
  auto none = untouched<CUgraph>();
  show("end of the joined stream", CU(cuStreamEndCapture)(work.other, &none));
  show("the first is", capture_of(work.stream));
  show("the other is", capture_of(work.other));
  show_end("forked without work", work.stream);
  work.begin();
  work.launch_empty(work.stream);
  record(work.event, work.stream);
  wait(work.other, work.event, 0);
  record(work.second, work.other);
  wait(third, work.second, 0);
  show("a third is", capture_of(third));
  work.launch_empty(third);
  record(work.second, third);
  wait(work.stream, work.second, 0);
  show_end("joined by the third alone", work.stream);
  work.begin();
  work.launch_empty(work.stream);
  record(work.event, work.stream);
  wait(work.other, work.event, 0);
  work.launch_empty(work.other);
  record(work.second, work.other);
  wait(work.stream, work.second, 0);
  work.launch_empty(work.other);
  show_end("joined, then one launch more", work.stream);
}

GROUP(capture_of_a_captured_stream, InContext) {
  GraphWork work;
  work.begin();
  CU(cuEventRecord)(work.event, work.stream);
  CU(cuStreamWaitEvent)(work.other, work.event, 0);
  show("begin in the joined stream", CU(cuStreamBeginCapture_v2)(work.other, CU_STREAM_CAPTURE_MODE_RELAXED));
  show("the joined stream is", capture_of(work.other));
  CU(cuEventRecord)(work.second, work.other);
  CU(cuStreamWaitEvent)(work.stream, work.second, 0);
  show_end("it", work.stream);
  show("the event of an ended capture, wait", CU(cuStreamWaitEvent)(work.other, work.event, 0));
  show("query", CU(cuEventQuery)(work.event));
  show("synchronize", CU(cuEventSynchronize)(work.event));
  show("in a new capture", work.begin());
  show("wait for it", CU(cuStreamWaitEvent)(work.stream, work.event, 0));
  show_end("the new capture", work.stream);
  show("record it again", CU(cuEventRecord)(work.event, work.other));
  show("synchronize, then", CU(cuEventSynchronize)(work.event));
}

// ---- queries -------------------------------------------------------------------------------------------------------

void show_info(const std::string& what, CUstream stream) {
  auto status = odd<CUstreamCaptureStatus>(9);
  cuuint64_t id = 77;
  auto graph = untouched<CUgraph>();
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 77;
  show(what + ", cuStreamIsCapturing", CU(cuStreamIsCapturing)(stream, &status));
  show(what + ", it is", status);
  status = odd<CUstreamCaptureStatus>(9);
  show(what + ", version 1", CU(cuStreamGetCaptureInfo)(stream, &status, &id));
  show(what + ", it is", status);
  show_flag(what + ", a number", id != 77);
  show(what + ", version 2", CU(cuStreamGetCaptureInfo_v2)(stream, &status, nullptr, &graph, &nodes, &count));
  show_flag(what + ", a graph", graph != nullptr && graph != untouched<CUgraph>());
  show(what + ", dependencies", static_cast<long long>(count));
  count = 77;
  show(what + ", version 3", CU(cuStreamGetCaptureInfo_v3)(stream, &status, &id, &graph, &nodes, &edges, &count));
  show(what + ", it is", status);
  show(what + ", dependencies", static_cast<long long>(count));
  show_flag(what + ", edges are given", edges != nullptr);
  show(what + ", version 3 without edges",
       CU(cuStreamGetCaptureInfo_v3)(stream, &status, nullptr, nullptr, &nodes, nullptr, &count));
}

GROUP(capture_info, InContext) {
  GraphWork work;
  show_info("before", work.stream);
  work.begin();
  show_info("at the beginning", work.stream);
  work.launch_empty(work.stream);
  work.launch_empty(work.stream);
  show_info("behind two launches", work.stream);
  CU(cuEventRecord)(work.event, work.stream);
  CU(cuStreamWaitEvent)(work.other, work.event, 0);
  show_info("joined", work.other);
  work.launch_empty(work.other);
  CU(cuEventRecord)(work.second, work.other);
  CU(cuStreamWaitEvent)(work.stream, work.second, 0);
  show_info("behind a join", work.stream);
  cuuint64_t one = 1, two = 2;
  CUgraph during = nullptr, graph = nullptr;
  CU(cuStreamGetCaptureInfo_v2)(work.stream, nullptr, &one, &during, nullptr, nullptr);
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  CU(cuStreamGetCaptureInfo_v2)(work.stream, &status, &one, &during, nullptr, nullptr);
  CU(cuStreamGetCaptureInfo_v2)(work.other, &status, &two, nullptr, nullptr, nullptr);
  show_flag("both streams have one number", one == two);
  show("nodes while it is captured", nodes_in(during));
  CU(cuStreamEndCapture)(work.stream, &graph);
  show_flag("the graph is that of the questions", graph == during);
  work.begin();
  CU(cuStreamGetCaptureInfo_v2)(work.stream, &status, &two, nullptr, nullptr, nullptr);
  show_flag("another capture, another number", one != two);
  show("a query ends it", CU(cuStreamQuery)(work.stream));
  show_info("invalidated", work.stream);
  show_end("invalidated", work.stream);
}

GROUP(capture_info_beside, InContext) {
  GraphWork work;
  CUstream blocking = nullptr, second = nullptr;
  CU(cuStreamCreate)(&blocking, 0);
  CU(cuStreamCreate)(&second, 0);
  work.begin();
  show_info("the NULL stream beside a non-blocking one", nullptr);
  show_info("the thread's stream", CU_STREAM_PER_THREAD);
  show_end("the non-blocking stream", work.stream);
  CU(cuStreamBeginCapture_v2)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  show_info("the NULL stream beside a blocking one", nullptr);
  show_info("the legacy stream beside a blocking one", CU_STREAM_LEGACY);
  show_info("another blocking one", second);
  show("it is", capture_of(blocking));
  show_end("the blocking stream", blocking);
}

}  // namespace
}  // namespace contract
