// Cases for queries about captures when no stream is captured.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(capture_questions, InContext) {
  CUstream stream = nullptr;
  CU(cuStreamCreate)(&stream, 0);
  auto status = odd<CUstreamCaptureStatus>(9);
  cuuint64_t id = 77;
  const auto graph_before = reinterpret_cast<CUgraph>(&stream);
  CUgraph graph = graph_before;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 77;
  const auto of = [&](CUstream s) {
    return CU(cuStreamGetCaptureInfo_v3)(s, &status, &id, &graph, &nodes, &edges, &count);
  };
  show("of a stream", of(stream));
  show("it is", status);
  show_flag("the number is untouched", id == 77);
  show_flag("the graph is untouched", graph == graph_before);
  show_flag("the count is untouched", count == 77);
  show("of the NULL stream", of(nullptr));
  show("of the legacy stream", of(CU_STREAM_LEGACY));
  show("of the thread's", of(CU_STREAM_PER_THREAD));
  show("status alone", CU(cuStreamGetCaptureInfo_v3)(stream, &status, nullptr, nullptr, nullptr, nullptr, nullptr));
  show("no status", CU(cuStreamGetCaptureInfo_v3)(stream, nullptr, &id, &graph, &nodes, &edges, &count));
  show("version 2", CU(cuStreamGetCaptureInfo_v2)(stream, &status, &id, &graph, &nodes, &count));
  show("it is", status);
  show("version 2, no status", CU(cuStreamGetCaptureInfo_v2)(stream, nullptr, &id, &graph, &nodes, &count));
  show("version 1", CU(cuStreamGetCaptureInfo)(stream, &status, &id));
  show("it is", status);
  show("version 1, no number", CU(cuStreamGetCaptureInfo)(stream, &status, nullptr));
  show("version 1, no status", CU(cuStreamGetCaptureInfo)(stream, nullptr, &id));
  show("_ptsz", CU(cuStreamGetCaptureInfo_ptsz)(nullptr, &status, &id));
  show("_v2_ptsz", CU(cuStreamGetCaptureInfo_v2_ptsz)(nullptr, &status, &id, &graph, &nodes, &count));
  show("_v3_ptsz", CU(cuStreamGetCaptureInfo_v3_ptsz)(nullptr, &status, &id, &graph, &nodes, &edges, &count));
}

}  // namespace
}  // namespace contract
