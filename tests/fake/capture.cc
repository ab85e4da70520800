// Stream captures, and the calls that are refused during a capture (docs/design/021-prohibited-in-capture.md,
// 049-capture-and-graphs.md). NVIDIA's driver crashes at the end of a capture whose stream was destroyed, so this
// driver aborts at the destruction.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "ring/api/entry_points.h"
#include "tests/fake/graph.h"

namespace fake {

thread_local std::optional<std::string_view> programs_call;

namespace {

constexpr CUstream null_stream = nullptr;

StreamKey key_of(CUstream stream, bool per_thread) {
  if ((stream == null_stream && per_thread) || stream == CU_STREAM_PER_THREAD)
    return {CU_STREAM_PER_THREAD, std::this_thread::get_id()};
  return {stream == CU_STREAM_LEGACY ? null_stream : stream, std::thread::id()};
}

const void* context_of_stream(const StreamKey& key) {
  const auto at = state->made_in.find(key.first);
  return at == state->made_in.end() ? nullptr : at->second;
}

std::shared_ptr<Capture> capture_of(const StreamKey& key) {
  for (const auto& capture : graphs().captures)
    if (capture->streams.contains(key)) return capture;
  return nullptr;
}

// A capture of a stream that waits for the current context's NULL stream. During such a capture, waiting for the NULL
// stream is forbidden.
std::shared_ptr<Capture> blocking_capture() {
  for (const auto& capture : graphs().captures)
    for (const auto& [key, tips] : capture->streams)
      if (!graphs().non_blocking.contains(key.first) &&
          (key.first == CU_STREAM_PER_THREAD || context_of_stream(key) == home_of(current)))
        return capture;
  return nullptr;
}

bool is_in_context(const Capture& capture, const void* context) {
  if (capture.origin.first == CU_STREAM_PER_THREAD && capture.context == context) return true;
  return std::any_of(capture.streams.begin(), capture.streams.end(),
                     [&](const auto& stream) { return context_of_stream(stream.first) == context; });
}

CUresult refuse(Capture& capture, CUresult why) {
  const CUresult result = capture.invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : why;
  capture.invalid = true;
  return result;
}

void close_capture(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  graphs().graphs[capture->graph].captured_into = false;
  std::erase(graphs().captures, capture);
}

void drop_capture(const char* call, const std::shared_ptr<Capture>& capture) {
  close_capture(capture);
  if (capture->owns_graph) end_graph(call, capture->graph);
}

void join(Tips& tips, const Tips& more) {
  for (const Tip& tip : more)
    if (std::none_of(tips.begin(), tips.end(), [&](const Tip& t) { return t.node == tip.node; })) tips.push_back(tip);
}

// ---- begin and end -------------------------------------------------------------------------------------------------

CUresult may_begin(const char* call, CUstream stream, const StreamKey& key, CUstreamCaptureMode mode) {
  check_stream(call, stream);
  if (static_cast<unsigned>(mode) > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (key.first == null_stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return capture_of(key) != nullptr ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

void begin(const StreamKey& key, CUgraph graph, bool owns_graph, CUstreamCaptureMode mode, Tips tips) {
  graphs().graphs[graph].captured_into = true;
  graphs().captures.push_back(std::make_shared<Capture>(Capture{.graph = graph,
                                                                .owns_graph = owns_graph,
                                                                .origin = key,
                                                                .context = home_of(current),
                                                                .streams = {{key, std::move(tips)}},
                                                                .mode = mode,
                                                                .thread = std::this_thread::get_id(),
                                                                .number = ++graphs().captures_begun,
                                                                .nodes = {},
                                                                .edges = {}}));
}

template <bool per_thread>
CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode) {
  constexpr const char* call = "cuStreamBeginCapture_v2";
  ENTER(call);
  const StreamKey key = key_of(stream, per_thread);
  if (const CUresult r = may_begin(call, stream, key, mode); r != CUDA_SUCCESS) return r;
  begin(key, make_graph(), true, mode, {});
  return CUDA_SUCCESS;
}

Tips tips_of(const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count) {
  Tips tips;
  for (std::size_t i = 0; i < count; ++i) join(tips, {{nodes[i], data == nullptr ? CUgraphEdgeData{} : data[i]}});
  return tips;
}

template <bool per_thread>
CUresult begin_capture_to(CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                          std::size_t count, CUstreamCaptureMode mode) {
  constexpr const char* call = "cuStreamBeginCaptureToGraph";
  ENTER(call);
  const StreamKey key = key_of(stream, per_thread);
  const bool is_free = !graph_of(call, graph).captured_into;
  const bool are_its = are_nodes_of(call, graph, nodes, count);
  if (const CUresult r = may_begin(call, stream, key, mode); r != CUDA_SUCCESS) return r;
  if (!is_free) return CUDA_ERROR_ILLEGAL_STATE;
  if (!are_its) return CUDA_ERROR_INVALID_VALUE;
  begin(key, graph, false, mode, tips_of(nodes, data, count));
  return CUDA_SUCCESS;
}

// True if the origin stream follows all nodes that other streams have added.
bool is_joined(const Capture& capture) {
  std::set<const void*> reached;
  std::vector<const void*> next;
  for (const Tip& tip : capture.streams.at(capture.origin)) next.push_back(tip.node);
  while (!next.empty()) {
    const void* const node = next.back();
    next.pop_back();
    if (!reached.insert(node).second) continue;
    for (const Edge& edge : graphs().graphs[capture.graph].edges)
      if (edge.to == node) next.push_back(edge.from);
  }
  for (const auto& [key, tips] : capture.streams)
    for (const Tip& tip : tips)
      if (!reached.contains(tip.node)) return false;
  return true;
}

template <bool per_thread>
CUresult end_capture(CUstream stream, CUgraph* graph) {
  constexpr const char* call = "cuStreamEndCapture";
  ENTER(call);
  check_stream(call, stream);
  if (graph != nullptr) *graph = nullptr;
  const StreamKey key = key_of(stream, per_thread);
  const std::shared_ptr<Capture> capture = capture_of(key);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != key) return capture->invalid = true, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  CUresult result = CUDA_SUCCESS;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
    result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  else if (capture->invalid)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!is_joined(*capture))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  if (result != CUDA_SUCCESS) return drop_capture(call, capture), result;
  if (graph != nullptr) *graph = capture->graph;
  close_capture(capture);
  return CUDA_SUCCESS;
}

// ---- questions -----------------------------------------------------------------------------------------------------

CUresult status_of(const StreamKey& key, CUstreamCaptureStatus& status) {
  if (key.first == null_stream && blocking_capture() != nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const std::shared_ptr<Capture> capture = capture_of(key);
  status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
           : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  constexpr const char* call = "cuStreamIsCapturing";
  ENTER(call);
  check_stream(call, stream);
  if (status == nullptr) die("%s: no place for the answer", call);
  return status_of(key_of(stream, per_thread), *status);
}

template <bool per_thread>
CUresult capture_info(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* number, CUgraph* graph,
                      const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count) {
  constexpr const char* call = "cuStreamGetCaptureInfo_v3";
  ENTER(call);
  check_stream(call, stream);
  if (status == nullptr) die("%s: no place for the answer", call);
  if (nodes == nullptr && edges != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const StreamKey key = key_of(stream, per_thread);
  const CUresult asked = status_of(key, *status);
  if (asked != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return asked;
  Capture& capture = *capture_of(key);
  capture.nodes.clear(), capture.edges.clear();
  for (const Tip& tip : capture.streams[key]) {
    capture.nodes.push_back(static_cast<CUgraphNode>(const_cast<void*>(tip.node)));
    capture.edges.push_back(tip.data);
  }
  if (number != nullptr) *number = capture.number;
  if (graph != nullptr) *graph = capture.graph;
  if (nodes != nullptr) *nodes = capture.nodes.data();
  if (edges != nullptr) *edges = capture.edges.data();
  if (count != nullptr) *count = capture.nodes.size();
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult update_dependencies(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                             unsigned flags) {
  constexpr const char* call = "cuStreamUpdateCaptureDependencies_v2";
  ENTER(call);
  check_stream(call, stream);
  const StreamKey key = key_of(stream, per_thread);
  const std::shared_ptr<Capture> capture = capture_of(key);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || !are_nodes_of(call, capture->graph, nodes, count))
    return CUDA_ERROR_INVALID_VALUE;
  Tips& tips = capture->streams[key];
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) tips.clear();
  join(tips, tips_of(nodes, data, count));
  return CUDA_SUCCESS;
}

// ---- refusals ------------------------------------------------------------------------------------------------------

// Further unsafe calls that the call table lacks (docs/design/021-prohibited-in-capture.md).
constexpr std::string_view unsafe_too[] = {"cuMemPoolGetAttribute", "cuMemPoolTrimTo"};

api::InCapture manner_of(std::string_view call) {
  static const auto known = [] {
    std::map<std::string_view, api::InCapture> all;
    for (const auto& entry : api::entry_points) all[entry.name] = entry.manner.in_capture;
    for (const std::string_view name : unsafe_too) all[name] = api::InCapture::Unsafe;
    return all;
  }();
  const auto at = known.find(call);
  return at == known.end() ? api::InCapture::Allowed : at->second;
}

CUstreamCaptureMode& mode_of_this_thread() {
  return graphs().modes.try_emplace(std::this_thread::get_id(), CU_STREAM_CAPTURE_MODE_GLOBAL).first->second;
}

bool is_minded(const Capture& capture, CUstreamCaptureMode mode) {
  if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  return capture.thread == std::this_thread::get_id() ||
         (mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

}  // namespace

std::shared_ptr<Capture> capture_of(CUstream stream, bool per_thread) { return capture_of(key_of(stream, per_thread)); }

CUresult refuse_in_capture(const char* call) {
  if (graphs().captures.empty()) return CUDA_SUCCESS;
  const CUstreamCaptureMode mode = mode_of_this_thread();
  const api::InCapture manner = manner_of(call);
  if (mode != CU_STREAM_CAPTURE_MODE_RELAXED && programs_call && *programs_call != call)
    die("%s: an internal call in the program's capture mode", call);
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : graphs().captures) {
    const bool whole = manner == api::InCapture::WholeContext && is_in_context(*capture, home_of(current));
    const bool unsafe =
        manner == api::InCapture::Unsafe && mode != CU_STREAM_CAPTURE_MODE_RELAXED && is_minded(*capture, mode);
    if (!whole && !unsafe) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

std::optional<CUresult> refuse_captured(CUstream stream, bool per_thread) {
  const StreamKey key = key_of(stream, per_thread);
  if (key.first == null_stream) {
    const std::shared_ptr<Capture> blocking = blocking_capture();
    if (blocking == nullptr) return std::nullopt;
    return blocking->invalid = true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  const std::shared_ptr<Capture> capture = capture_of(key);
  if (capture == nullptr) return std::nullopt;
  return refuse(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

std::optional<CUresult> capture_work(CUstream stream, bool per_thread, const Work& work) {
  const StreamKey key = key_of(stream, per_thread);
  const std::shared_ptr<Capture> capture = capture_of(key);
  if (capture == nullptr) return refuse_captured(stream, per_thread);
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!has_room()) return CUDA_ERROR_OUT_OF_MEMORY;
  Tips& tips = capture->streams[key];
  tips = {{append(capture->graph, work, tips), {}}};
  return CUDA_SUCCESS;
}

std::optional<CUresult> refuse_captured(CUevent event) {
  const auto at = graphs().events.find(event);
  if (at == graphs().events.end()) return std::nullopt;
  Capture& capture = *at->second.first;
  if (capture.ended) return CUDA_ERROR_INVALID_VALUE;
  return capture.invalid = true, CUDA_ERROR_CAPTURED_EVENT;
}

std::optional<CUresult> capture_record(CUevent event, CUstream stream, bool per_thread) {
  const StreamKey key = key_of(stream, per_thread);
  const std::shared_ptr<Capture> capture = capture_of(key);
  graphs().events.erase(event);
  if (capture == nullptr) return refuse_captured(stream, per_thread);
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graphs().events[event] = {capture, capture->streams[key]};
  return CUDA_SUCCESS;
}

std::optional<CUresult> capture_wait(CUstream stream, bool per_thread, CUevent event) {
  const StreamKey key = key_of(stream, per_thread);
  const std::shared_ptr<Capture> capture = capture_of(key);
  const auto at = graphs().events.find(event);
  const bool was_captured = at != graphs().events.end();
  if (capture == nullptr && !was_captured) return refuse_captured(stream, per_thread);
  if (capture != nullptr && capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!was_captured)
    return state->recorded.contains(event) ? refuse(*capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
  const auto& [of, tips] = at->second;
  if (of->ended) return capture == nullptr ? CUDA_ERROR_INVALID_VALUE : refuse(*capture, CUDA_ERROR_INVALID_VALUE);
  if (of->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (key.first == null_stream) return refuse(*of, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (capture != nullptr && capture != of) {
    refuse(*of, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    return refuse(*capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  join(of->streams[key], tips);
  return CUDA_SUCCESS;
}

void end_captured(const char* call, const void* stream) {
  const StreamKey key{stream, std::thread::id()};
  const std::shared_ptr<Capture> capture = capture_of(key);
  if (capture == nullptr) return;
  if (capture->origin == key)
    die("%s: the capture of stream %p is open, and nothing may end it any more", call, stream);
  capture->streams.erase(key);
}

void end_captures_in(const void* context) {
  for (const auto open = graphs().captures; const auto& capture : open)
    if (is_in_context(*capture, context)) drop_capture("a context's end", capture);
}

void forget_in_captures(const void* handle) {
  graphs().events.erase(handle);
  graphs().non_blocking.erase(handle);
}

void fill_captures(host::Driver& t) {
  t.cuStreamBeginCapture_v2 = begin_capture<false>;
  t.cuStreamBeginCapture_v2_ptsz = begin_capture<true>;
  t.cuStreamBeginCaptureToGraph = begin_capture_to<false>;
  t.cuStreamBeginCaptureToGraph_ptsz = begin_capture_to<true>;
  t.cuStreamEndCapture = end_capture<false>;
  t.cuStreamEndCapture_ptsz = end_capture<true>;
  t.cuStreamIsCapturing = is_capturing<false>;
  t.cuStreamIsCapturing_ptsz = is_capturing<true>;
  t.cuStreamGetCaptureInfo_v2 = [](CUstream s, CUstreamCaptureStatus* status, cuuint64_t* number, CUgraph* graph,
                                   const CUgraphNode** nodes, std::size_t* count) {
    return capture_info<false>(s, status, number, graph, nodes, nullptr, count);
  };
  t.cuStreamGetCaptureInfo_v3 = capture_info<false>;
  t.cuStreamGetCaptureInfo_v3_ptsz = capture_info<true>;
  t.cuStreamUpdateCaptureDependencies_v2 = update_dependencies<false>;
  t.cuStreamUpdateCaptureDependencies_v2_ptsz = update_dependencies<true>;
  // Accepts any number, as NVIDIA's driver does.
  t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    const std::lock_guard lock(state->mutex);
    if (mode == nullptr) die("cuThreadExchangeStreamCaptureMode: no mode");
    std::swap(*mode, mode_of_this_thread());
    return CUDA_SUCCESS;
  };
}

}  // namespace fake
