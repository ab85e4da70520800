// Cases for the graph of an open capture: its dependencies, captures into an existing graph, and graphs within a
// capture.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

struct OpenCapture {
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> last;  // the nodes on which the next node depends
};
OpenCapture open_capture(CUstream stream) {
  OpenCapture out;
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  CU(cuStreamGetCaptureInfo_v2)(stream, &status, nullptr, &out.graph, &nodes, &count);
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) out.last.assign(nodes, nodes + count);
  return out;
}
long long dependencies_of(CUstream stream) { return static_cast<long long>(open_capture(stream).last.size()); }

GROUP(capture_dependencies, InContext) {
  GraphWork work;
  const auto update = CU(cuStreamUpdateCaptureDependencies_v2);
  CUgraph elsewhere = make_graph();
  CUgraphNode foreign = add_empty(elsewhere);
  show("not capturing", update(work.stream, &foreign, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("not capturing, nothing", update(work.stream, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("the NULL stream", update(nullptr, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  work.begin();
  work.launch_empty(work.stream);
  OpenCapture open = open_capture(work.stream);
  CUgraphNode mine = add_empty(open.graph, open.last);
  CUgraphNode more = add_empty(open.graph);
  show("set one", update(work.stream, &mine, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("dependencies", dependencies_of(work.stream));
  show("add one", update(work.stream, &more, nullptr, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  show("dependencies", dependencies_of(work.stream));
  show("add it again", update(work.stream, &more, nullptr, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  show("dependencies", dependencies_of(work.stream));
  CUgraphNode twice[] = {more, more};
  show("set it twice", update(work.stream, twice, nullptr, 2, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("dependencies", dependencies_of(work.stream));
  show("flags 2", update(work.stream, &mine, nullptr, 1, 2));
  show("null and one", update(work.stream, nullptr, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("the node of another graph", update(work.stream, &foreign, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("it is", capture_of(work.stream));
  show("dependencies", dependencies_of(work.stream));
  CUgraphEdgeData edge{};
  show("set one with an edge", update(work.stream, &mine, &edge, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  edge.type = 9;
  show("an edge of type 9", update(work.stream, &mine, &edge, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("it is", capture_of(work.stream));
  show("by another thread",
       in_a_thread([&] { return update(work.stream, &mine, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES); }));
  show("set nothing", update(work.stream, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("dependencies", dependencies_of(work.stream));
  show("version 1, set one",
       CU(cuStreamUpdateCaptureDependencies)(work.stream, &mine, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  show("version 1, flags 2", CU(cuStreamUpdateCaptureDependencies)(work.stream, &mine, 1, 2));
  show("version 1, _ptsz",
       CU(cuStreamUpdateCaptureDependencies_ptsz)(work.stream, &more, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  show("_ptsz", CU(cuStreamUpdateCaptureDependencies_v2_ptsz)(work.stream, &more, nullptr, 1,
                                                              CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  work.launch_empty(work.stream);
  show_end("updated", work.stream);
  work.begin();
  work.launch_empty(work.stream);
  show_flag("an unjoined node", add_empty(open_capture(work.stream).graph) != nullptr);
  show_end("with a node of its own", work.stream);
}

GROUP(capture_into_a_graph, InContext) {
  GraphWork work;
  const auto begin = CU(cuStreamBeginCaptureToGraph);
  CUgraph graph = make_graph(), elsewhere = make_graph(), end = nullptr;
  const CUgraphNode first = add_empty(graph), foreign = add_empty(elsewhere);
  constexpr auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  show("no graph", begin(work.stream, nullptr, nullptr, nullptr, 0, relaxed));
  show("mode 3", begin(work.stream, graph, nullptr, nullptr, 0, odd<CUstreamCaptureMode>(3)));
  show("null and one", begin(work.stream, graph, nullptr, nullptr, 1, relaxed));
  show("the node of another graph", begin(work.stream, graph, &foreign, nullptr, 1, relaxed));
  show("the NULL stream", begin(nullptr, graph, nullptr, nullptr, 0, relaxed));
  show("it is", capture_of(work.stream));
  if (capture_of(work.stream) != CU_STREAM_CAPTURE_STATUS_NONE) CU(cuStreamEndCapture)(work.stream, &end);
  show("without dependencies", begin(work.stream, graph, nullptr, nullptr, 0, relaxed));
  show_flag("the graph is that of the questions", open_capture(work.stream).graph == graph);
  show("dependencies", dependencies_of(work.stream));
  work.launch_empty(work.stream);
  show("into two streams at once", begin(work.other, graph, nullptr, nullptr, 0, relaxed));
  show("the other is", capture_of(work.other));
  if (capture_of(work.other) != CU_STREAM_CAPTURE_STATUS_NONE) show_end("the other", work.other);
  show("end", CU(cuStreamEndCapture)(work.stream, &end));
  show_flag("the graph is the same", end == graph);
  show("nodes", nodes_in(graph));
  show("edges", edges_in(graph));
  show("behind the first node", begin(work.stream, graph, &first, nullptr, 1, relaxed));
  show("dependencies", dependencies_of(work.stream));
  work.launch_empty(work.stream);
  show("end without a place for the graph", CU(cuStreamEndCapture)(work.stream, nullptr));
  if (capture_of(work.stream) != CU_STREAM_CAPTURE_STATUS_NONE) CU(cuStreamEndCapture)(work.stream, &end);
  show("nodes", nodes_in(graph));
  show("edges", edges_in(graph));
  CUgraphEdgeData edge{};
  show("with an edge", begin(work.stream, graph, &first, &edge, 1, relaxed));
  work.launch_empty(work.stream);
  show("an invalidated one", CU(cuStreamQuery)(work.stream));
  end = untouched<CUgraph>();
  show("end of it", CU(cuStreamEndCapture)(work.stream, &end));
  show_flag("the graph is null", end == nullptr);
  show("nodes of the graph", nodes_in(graph));
  show("_ptsz", CU(cuStreamBeginCaptureToGraph_ptsz)(work.stream, graph, nullptr, nullptr, 0, relaxed));
  show("end", CU(cuStreamEndCapture)(work.stream, &end));
  show("it runs", run_once(graph, work.stream));
}

GROUP(graphs_in_a_capture, InContext) {
  GraphWork work;
  CUgraph inner = make_graph();
  StoreParameters parameters(work.a, 61);
  add_kernel(inner, kernel_of(work.store, parameters.list));
  const CUgraphExec exec = instantiated(inner);
  work.begin();
  show("cuGraphLaunch into the captured stream", CU(cuGraphLaunch)(exec, work.stream));
  show("it is", capture_of(work.stream));
  CUgraph graph = show_end("a launched graph", work.stream);
  auto type = odd<CUgraphNodeType>(99);
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  show("its node", CU(cuGraphGetNodes)(graph, &node, &count));
  show("the type", CU(cuGraphNodeGetType)(node, &type));
  show("it is", type);
  show("it runs", run_once(graph, work.stream));
  show("the word", word_at(work.a));
  work.begin();
  show("cuGraphUpload into the captured stream", CU(cuGraphUpload)(exec, work.stream));
  show("it is", capture_of(work.stream));
  show_end("an uploaded graph", work.stream);
  work.begin();
  CUgraphExec early = nullptr;
  work.launch_empty(work.stream);
  const CUgraph open = open_capture(work.stream).graph;
  show("instantiate the open graph", CU(cuGraphInstantiateWithFlags)(&early, open, 0));
  show("clone the open graph", CU(cuGraphClone)(&graph, open));
  show("it is", capture_of(work.stream));
  show_end("the open graph", work.stream);
}

// Like NCCL, the group gives a user object to the graph of an open capture.
GROUP(capture_keeps_an_object, InContext) {
  GraphWork work;
  Counter count = 0;
  CUuserObject object = nullptr;
  work.begin();
  work.launch_empty(work.stream);
  const OpenCapture open = open_capture(work.stream);
  show("cuUserObjectCreate", CU(cuUserObjectCreate)(&object, &count, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  show("cuGraphRetainUserObject", CU(cuGraphRetainUserObject)(open.graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphNode node = nullptr;
  show("a record node",
       CU(cuGraphAddEventRecordNode)(&node, open.graph, open.last.data(), open.last.size(), work.event));
  show("it is", capture_of(work.stream));
  CUgraph graph = show_end("kept", work.stream);
  show("it runs", run_once(graph, work.stream));
  show("calls before the graph ends", count);
  show("cuGraphDestroy", CU(cuGraphDestroy)(graph));
  CU(cuCtxSynchronize)();
  show("calls", settled(count, 1));
}

GROUP(graph_of_a_capture_ends, Loaded) {
  show_alone_in_context("destroy the open graph", [] {
    GraphWork work;
    work.begin();
    work.launch_empty(work.stream);
    const CUresult code = CU(cuGraphDestroy)(open_capture(work.stream).graph);
    show("destroyed, it is", capture_of(work.stream));
    return code;
  });
  show_alone_in_context("end the capture of a destroyed graph", [] {
    GraphWork work;
    CUgraph graph = nullptr;
    work.begin();
    work.launch_empty(work.stream);
    CU(cuGraphDestroy)(open_capture(work.stream).graph);
    return CU(cuStreamEndCapture)(work.stream, &graph);
  });
  show_alone_in_context("destroy the last node of an open graph", [] {
    GraphWork work;
    work.begin();
    work.launch_empty(work.stream);
    const CUresult code = CU(cuGraphDestroyNode)(open_capture(work.stream).last.front());
    show("without its last node, it is", capture_of(work.stream));
    show("without its last node, dependencies", dependencies_of(work.stream));
    show_end("without its last node", work.stream);
    return code;
  });
  show_alone_in_context("reset the device in a capture", [] {
    GraphWork work;
    work.begin();
    return CU(cuDevicePrimaryCtxReset_v2)(device);
  });
}

}  // namespace
}  // namespace contract
