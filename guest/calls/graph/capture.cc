// Stream capture. The driver does the capturing; the guest records which streams began a capture
// (guest/objects/captures.h).
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/find_stream.h"
#include "guest/calls/found.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest {

bool is_captured(CUstream stream) {
  if (!session()->graphs.captures.any()) return false;
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  return Stub<api::id_of::cuStreamIsCapturing>::call(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult disturb_captures() {
  if (!session()->graphs.captures.any()) return CUDA_SUCCESS;
  const Context* current = current_context();
  const Context& context = current != nullptr && current->lives() ? *current : primary(0);
  return send_own(api::id_of::disturb, context, api::PlainRecord{}).result;
}

CUresult await_context(const Context& context) {
  if (!session()->slot().serves(api::id_of::await_context)) {
    const Sending how{.call = api::id_of::cuCtxSynchronize, .flags = record_flags(context, true)};
    return send(this_channel(), how, write_nothing, read_nothing).result;
  }
  return send_own(api::id_of::await_context, context, api::PlainRecord{}).result;
}

namespace calls {
namespace {

// The driver's information about a stream's capture.
struct Info {
  api::CaptureInfoReply reply{};
  Captures::Dependencies dependencies;
  bool has_data = false;  // at least one dependency has edge data
};

CUresult ask(const StreamRef& ref, CUstream stream, Info& info) {
  bool sound = true;
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result != CUDA_SUCCESS) return;
    info.reply = r.read<api::CaptureInfoReply>();
    const std::uint64_t count = info.reply.bytes / (2 * sizeof(std::uint64_t));
    for (std::uint64_t i = 0; sound && r.ok() && i < count; ++i) {
      const std::uint64_t node = r.slot();
      const auto data = r.read<CUgraphEdgeData>();
      info.dependencies.nodes.push_back(reinterpret_cast<CUgraphNode>(node));
      info.dependencies.edges.push_back(data);
    }
  };
  const api::CaptureInfoRecord record{.stream = reinterpret_cast<std::uint64_t>(stream)};
  const Crossing crossing{.call = api::id_of::cuStreamGetCaptureInfo_v3, .context = *ref.context, .stream = &ref};
  if (const CUresult r = cross(crossing, record, {}, read).result; r != CUDA_SUCCESS) return r;
  if (info.reply.graph != 0) {
    Object* const graph = found_graph(info.reply.graph);
    if (graph == nullptr) return lose_to_unsound_reply();
    for (const CUgraphNode node : info.dependencies.nodes)
      sound = sound && found_node(api::number_of(node), graph) != nullptr;
  }
  if (!sound) return lose_to_unsound_reply();
  info.has_data = std::ranges::any_of(info.dependencies.edges, has_data);
  return CUDA_SUCCESS;
}

struct Wanted {
  CUstreamCaptureStatus* status;
  cuuint64_t* number = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

CUresult capture_info(CUstream stream, const Wanted& wanted) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  if (wanted.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Info info;
  if (session()->graphs.captures.any())
    if (const CUresult r = ask(ref, stream, info); r != CUDA_SUCCESS) return r;
  const bool is_active = info.reply.status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (is_active && info.has_data && wanted.nodes != nullptr && wanted.edges == nullptr) return CUDA_ERROR_LOSSY_QUERY;
  *wanted.status = static_cast<CUstreamCaptureStatus>(info.reply.status);
  if (!is_active) return CUDA_SUCCESS;
  if (wanted.number != nullptr) *wanted.number = info.reply.number;
  if (wanted.graph != nullptr) *wanted.graph = reinterpret_cast<CUgraph>(info.reply.graph);
  if (wanted.count != nullptr) *wanted.count = info.dependencies.nodes.size();
  if (wanted.nodes == nullptr && wanted.edges == nullptr) return CUDA_SUCCESS;
  const auto& kept = session()->graphs.captures.keep(*ref.object, std::move(info.dependencies));
  if (wanted.nodes != nullptr) *wanted.nodes = kept.nodes.empty() ? nullptr : kept.nodes.data();
  if (wanted.edges != nullptr) *wanted.edges = kept.edges.empty() ? nullptr : kept.edges.data();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream) {
  return Stub<api::id_of::cuStreamBeginCapture_v2>::call(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
}

// The driver writes NULL to `graph` if it returns no graph.
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  StreamRef ref;
  if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
  api::EndCaptureReply reply{};
  const auto read = [&](CUresult, ring::SharedReader& r) { reply = r.read<api::EndCaptureReply>(); };
  const api::EndCaptureRecord record{.stream = reinterpret_cast<std::uint64_t>(stream)};
  const Crossing crossing{.call = api::id_of::cuStreamEndCapture, .context = *ref.context, .stream = &ref};
  const Sent sent = cross(crossing, record, {}, read);
  if (reply.over != 0) session()->graphs.captures.over(*ref.object);
  if (reply.graph != 0 && found_graph(reply.graph) == nullptr) return lose_to_unsound_reply();
  if (graph != nullptr && sent.use.position != 0) *graph = reinterpret_cast<CUgraph>(reply.graph);
  return sent.result;
}

// The outputs other than `status` have no meaning if the stream is not captured.
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* number) {
  return capture_info(stream, {.status = status, .number = number});
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* number, CUgraph* graph,
                                   const CUgraphNode** nodes, std::size_t* count) {
  return capture_info(stream, {.status = status, .number = number, .graph = graph, .nodes = nodes, .count = count});
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* number, CUgraph* graph,
                                   const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count) {
  return capture_info(
      stream, {.status = status, .number = number, .graph = graph, .nodes = nodes, .edges = edges, .count = count});
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags) {
  return Stub<api::id_of::cuStreamUpdateCaptureDependencies_v2>::call(stream, nodes, nullptr, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;  // the driver accepts any value of the mode
  unsigned wanted = 0;
  std::memcpy(&wanted, mode, sizeof wanted);
  const unsigned before = std::exchange(this_thread().capture_mode, wanted);
  std::memcpy(mode, &before, sizeof before);
  return CUDA_SUCCESS;
}

}  // namespace calls
}  // namespace guest
