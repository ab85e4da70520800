// Stream capture. These calls are handwritten because the driver makes the capture's graph. The guest may learn of that
// graph before the capture ends, and a failed capture ends the graph.
#include <algorithm>
#include <cstring>
#include <vector>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/found_nodes.h"
#include "host/untrusted/marshal/captured.h"

namespace host::calls {

CUresult cuStreamEndCapture(call_of::cuStreamEndCapture& a) {
  Session& session = a.session();
  const auto beside = session.ending();
  const auto given = a.handle<CUstream>(&api::EndCaptureRecord::stream);
  const CUstream stream = Captures::in_thread(given, a.request.per_thread());
  CUgraph graph = nullptr;
  const CUresult result = a.call(given, &graph);
  api::EndCaptureReply reply{.graph = 0, .over = is_captured(a.driver(), stream) ? 0U : 1U};
  if (reply.over != 0)
    if (const auto began = session.graphs.captures.over(stream); began && result != CUDA_SUCCESS)
      session.drop_captured(*began);
  if (result == CUDA_SUCCESS && graph != nullptr) reply.graph = found_graph(a.request, graph);
  a.answer(CUDA_SUCCESS, reply);
  a.request.out_on_error = sizeof reply;
  return result;
}

CUresult cuStreamGetCaptureInfo_v3(call_of::cuStreamGetCaptureInfo_v3& a) {
  const auto beside = a.session().making();
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t number = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  const auto stream = a.handle<CUstream>(&api::CaptureInfoRecord::stream);
  const CUresult result = a.call(stream, &status, &number, &graph, &nodes, &edges, &count);
  if (result != CUDA_SUCCESS) return result;
  api::CaptureInfoReply reply{.status = static_cast<std::uint64_t>(status), .number = number, .graph = 0, .bytes = 0};
  std::vector<std::uint64_t> dependencies;
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    if (count > api::list_page) return CUDA_ERROR_OUT_OF_MEMORY;
    reply.graph = found_graph(a.request, graph);
    for (std::size_t i = 0; i < count; ++i) {
      dependencies.push_back(found_node(a.request, nodes[i], reply.graph));
      dependencies.push_back(edges != nullptr ? as_word(edges[i]) : 0);
    }
  }
  return a.answer(CUDA_SUCCESS, reply, dependencies);
}

}  // namespace host::calls
