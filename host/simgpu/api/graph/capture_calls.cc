// Calls that begin, end and query captures.
#include "host/simgpu/api/graph/capture.h"
#include "ring/base/mutex.h"

#include <unordered_set>

#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

// Wraps a call on a stream that needs the graph mutex.
template <class F>
CUresult with_capturable(CUstream handle, F&& call) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const ring::RecursiveLock lock(driver.graph_mutex);
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, stream);
  });
}

bool is_capture_mode(CUstreamCaptureMode mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CaptureTips tips_of(const std::vector<Edge>& edges) {
  CaptureTips tips;
  for (const Edge& edge : edges) tips.push_back({edge.node->shared_from_this(), edge.data});
  return tips;
}

CUresult may_begin(Driver& driver, Stream& stream, CUstreamCaptureMode mode) {
  if (!is_capture_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  if (stream.captured != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream.handle != CU_STREAM_LEGACY) return CUDA_SUCCESS;
  const CUresult implicit = refuse_in_capture(driver, stream);
  return implicit == CUDA_SUCCESS ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : implicit;
}

void begin(Driver& driver, const std::shared_ptr<Stream>& stream, const std::shared_ptr<Graph>& graph,
           CUstreamCaptureMode mode, CaptureTips tips) REQUIRES(driver.graph_mutex) {
  const auto capture = std::make_shared<Capture>();
  capture->id = driver.next_id();
  capture->graph = graph;
  capture->mode = mode;
  capture->thread = driver.thread().id;
  capture->streams.push_back(stream);
  graph->captured_into = true;
  stream->captured = std::make_shared<StreamCapture>();
  stream->captured->capture = capture;
  stream->captured->tips = std::move(tips);
  driver.captures.push_back(capture);
  driver.captures_open.fetch_add(1, std::memory_order_acq_rel);
}

CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode) {
  return with_capturable(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    driver.graph_mutex.assume_held();
    if (const CUresult error = may_begin(driver, *stream, mode); error != CUDA_SUCCESS) return error;
    begin(driver, stream, make_graph(driver), mode, {});
    return CUDA_SUCCESS;
  });
}

CUresult begin_capture_to(CUstream handle, CUgraph graph_handle, const CUgraphNode* dependencies,
                          const CUgraphEdgeData* data, std::size_t count, CUstreamCaptureMode mode) {
  return with_capturable(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    driver.graph_mutex.assume_held();
    if (const CUresult error = may_begin(driver, *stream, mode); error != CUDA_SUCCESS) return error;
    const std::shared_ptr<Graph> graph = driver.graphs.find(graph_handle);
    std::vector<Edge> after;
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (graph->captured_into) return CUDA_ERROR_ILLEGAL_STATE;
    const CUresult error = read_dependencies(driver, *graph, dependencies, data, count, after);
    if (error == CUDA_SUCCESS) begin(driver, stream, graph, mode, tips_of(after));
    return error;
  });
}

// Returns true if the origin's next node depends on the newest nodes of all other streams.
bool is_joined(const Capture& capture) {
  std::unordered_set<const GraphNode*> reached;
  std::vector<const GraphNode*> open;
  for (const CaptureTip& tip : capture.streams.front()->captured->tips) open.push_back(tip.node.get());
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    for (const Edge& edge : node->before) open.push_back(edge.node);
  }
  for (const std::shared_ptr<Stream>& stream : capture.streams)
    for (const CaptureTip& tip : stream->captured->tips)
      if (!reached.contains(tip.node.get())) return false;
  return true;
}

CUresult judge_end(Driver& driver, const Capture& capture) {
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != driver.thread().id)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return is_joined(capture) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

// Ends the capture even if the wrong thread calls, in which case the call fails.
CUresult end_capture(CUstream handle, CUgraph* out) {
  return with_capturable(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    driver.graph_mutex.assume_held();
    if (out != nullptr) *out = nullptr;
    if (stream->captured == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    const std::shared_ptr<Capture> capture = stream->captured->capture;
    if (capture->streams.front() != stream) {
      capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const CUresult result = judge_end(driver, *capture);
    if (result != CUDA_SUCCESS) {
      drop_capture(driver, *capture);
      return result;
    }
    if (out != nullptr) *out = handle_of(driver, capture->graph);
    close_capture(driver, *capture);
    return CUDA_SUCCESS;
  });
}

CUresult status_of(Driver& driver, Stream& stream, CUstreamCaptureStatus* out) REQUIRES(driver.graph_mutex) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream.handle == CU_STREAM_LEGACY && has_blocking_capture(driver, *stream.context))
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *out = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream.captured != nullptr)
    *out = stream.captured->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

// The output pointers of the query; a pointer is null if the caller's version of the call lacks the parameter.
struct CaptureInfo {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

CUresult capture_info(CUstream handle, const CaptureInfo& out) {
  return with_capturable(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (out.edges != nullptr && out.nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    driver.graph_mutex.assume_held();
    const CUresult asked = status_of(driver, *stream, out.status);
    if (asked != CUDA_SUCCESS || *out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return asked;
    StreamCapture& captured = *stream->captured;
    captured.given_nodes.clear();
    captured.given_edges.clear();
    for (const CaptureTip& tip : captured.tips) {
      if (out.nodes != nullptr && out.edges == nullptr && !is_plain(tip.data)) return CUDA_ERROR_LOSSY_QUERY;
      captured.given_nodes.push_back(handle_of(driver, *tip.node));
      captured.given_edges.push_back(tip.data);
    }
    if (out.id != nullptr) *out.id = captured.capture->id;
    if (out.graph != nullptr) *out.graph = handle_of(driver, captured.capture->graph);
    if (out.nodes != nullptr) *out.nodes = captured.given_nodes.data();
    if (out.edges != nullptr) *out.edges = captured.given_edges.data();
    if (out.count != nullptr) *out.count = captured.given_nodes.size();
    return CUDA_SUCCESS;
  });
}

CUresult update_dependencies(CUstream handle, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                             unsigned flags) {
  return with_capturable(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (stream->captured == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    StreamCapture& captured = *stream->captured;
    if (captured.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> edges;
    const CUresult error =
        read_dependencies(driver, *captured.capture->graph, nodes, data, count, edges, Repeats::Drop);
    if (error != CUDA_SUCCESS) return error;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) captured.tips.clear();
    join_tips(captured.tips, tips_of(edges));
    return CUDA_SUCCESS;
  });
}

}  // namespace

// The first version of this call has no mode parameter. On an H200 its captures have the relaxed mode.
CUresult cuStreamBeginCapture(CUstream hStream) { return begin_capture(hStream, CU_STREAM_CAPTURE_MODE_RELAXED); }
CUresult cuStreamBeginCapture_ptsz(CUstream hStream) { return cuStreamBeginCapture(own(hStream)); }
CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) { return begin_capture(hStream, mode); }
CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return begin_capture(own(hStream), mode);
}
CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, std::size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return begin_capture_to(hStream, hGraph, dependencies, dependencyData, numDependencies, mode);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* dependencyData, std::size_t numDependencies,
                                          CUstreamCaptureMode mode) {
  return begin_capture_to(own(hStream), hGraph, dependencies, dependencyData, numDependencies, mode);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) { return end_capture(hStream, phGraph); }
CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph* phGraph) { return end_capture(own(hStream), phGraph); }

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  if (captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_capturable(hStream, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    driver.graph_mutex.assume_held();
    return status_of(driver, *stream, captureStatus);
  });
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out) {
  if (captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return capture_info(hStream, {.status = captureStatus_out, .id = id_out});
}
CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out,
                                   CUgraph* graph_out, const CUgraphNode** dependencies_out,
                                   std::size_t* numDependencies_out) {
  if (captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return capture_info(hStream, {.status = captureStatus_out,
                                .id = id_out,
                                .graph = graph_out,
                                .nodes = dependencies_out,
                                .edges = nullptr,
                                .count = numDependencies_out});
}
CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out,
                                   CUgraph* graph_out, const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out, std::size_t* numDependencies_out) {
  if (captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return capture_info(hStream,
                      {captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out});
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies, std::size_t numDependencies,
                                           unsigned flags) {
  return update_dependencies(hStream, dependencies, nullptr, numDependencies, flags);
}
CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream hStream, CUgraphNode* dependencies,
                                                std::size_t numDependencies, unsigned flags) {
  return update_dependencies(own(hStream), dependencies, nullptr, numDependencies, flags);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* dependencyData, std::size_t numDependencies,
                                              unsigned flags) {
  return update_dependencies(hStream, dependencies, dependencyData, numDependencies, flags);
}
CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream hStream, CUgraphNode* dependencies,
                                                   const CUgraphEdgeData* dependencyData, std::size_t numDependencies,
                                                   unsigned flags) {
  return update_dependencies(own(hStream), dependencies, dependencyData, numDependencies, flags);
}

// The driver accepts any number as a mode, so this call does as well.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return with_driver([&](Driver& driver) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, driver.thread().capture_mode);
    return CUDA_SUCCESS;
  });
}
