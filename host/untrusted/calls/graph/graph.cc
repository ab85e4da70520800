// Graphs: lists, which are sent in several replies, and calls that report the node of a failure.
#include <algorithm>
#include <vector>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/found_nodes.h"
#include "host/untrusted/marshal/executables.h"

namespace host::calls {
namespace {

// A list of nodes or edges from the driver.
struct List {
  std::vector<CUgraphNode> from, to;
  std::vector<CUgraphEdgeData> data;
};

// `ask(from, to, data, count)`: the driver's function. If another channel adds to the graph between the two calls, a
// later request fetches the remaining elements.
template <class Ask>
CUresult read_list(List& list, bool pairs, bool data, Ask ask) {
  std::size_t count = 0;
  if (const CUresult r = ask(nullptr, nullptr, nullptr, &count); r != CUDA_SUCCESS || count == 0) return r;
  list.from.resize(count);
  if (pairs) list.to.resize(count);
  if (data) list.data.resize(count);
  const CUresult result = ask(list.from.data(), list.to.data(), list.data.data(), &count);
  count = std::min(count, list.from.size());
  list.from.resize(count);
  list.to.resize(pairs ? count : 0);
  list.data.resize(data ? count : 0);
  return result;
}

// Sends the elements from `first` on, with ids. The nodes belong to the graph with this id.
template <class A>
CUresult answer_page(A& a, const List& list, std::uint64_t first, std::uint64_t graph) {
  std::vector<std::uint64_t> words;
  const std::uint64_t end =
      first < list.from.size() ? std::min<std::uint64_t>(list.from.size(), first + api::list_page) : first;
  for (std::uint64_t i = first; i < end; ++i) {
    words.push_back(found_node(a.request, list.from[i], graph));
    if (!list.to.empty()) words.push_back(found_node(a.request, list.to[i], graph));
    if (!list.data.empty()) words.push_back(as_word(list.data[i]));
  }
  return a.answer(CUDA_SUCCESS, {.all = list.from.size(), .bytes = 0}, words);
}

template <class A>
CUresult nodes_of_graph(A& a) {
  const auto beside = a.session().making();
  List list;
  const auto graph = a.template handle<CUgraph>(&api::GraphListRecord::graph);
  const CUresult result =
      read_list(list, false, false, [&](CUgraphNode* nodes, CUgraphNode*, CUgraphEdgeData*, std::size_t* count) {
        return a.call(graph, nodes, count);
      });
  return result == CUDA_SUCCESS ? answer_page(a, list, a.record.first, a.record.graph) : result;
}

template <class A>
CUresult nodes_of_node(A& a) {
  const auto beside = a.session().making();
  List list;
  const auto node = a.template handle<CUgraphNode>(&api::NodeListRecord::node);
  const CUresult result =
      read_list(list, false, true, [&](CUgraphNode* nodes, CUgraphNode*, CUgraphEdgeData* data, std::size_t* count) {
        return a.call(node, nodes, data, count);
      });
  if (result != CUDA_SUCCESS) return result;
  return answer_page(a, list, a.record.first, a.session().objects.owner_of(a.record.node));
}

}  // namespace

CUresult cuGraphGetNodes(call_of::cuGraphGetNodes& a) { return nodes_of_graph(a); }
CUresult cuGraphGetRootNodes(call_of::cuGraphGetRootNodes& a) { return nodes_of_graph(a); }
CUresult cuGraphNodeGetDependencies_v2(call_of::cuGraphNodeGetDependencies_v2& a) { return nodes_of_node(a); }
CUresult cuGraphNodeGetDependentNodes_v2(call_of::cuGraphNodeGetDependentNodes_v2& a) { return nodes_of_node(a); }

CUresult cuGraphGetEdges_v2(call_of::cuGraphGetEdges_v2& a) {
  const auto beside = a.session().making();
  List list;
  const auto graph = a.handle<CUgraph>(&api::GraphListRecord::graph);
  const CUresult result =
      read_list(list, true, true, [&](CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count) {
        return a.call(graph, from, to, data, count);
      });
  return result == CUDA_SUCCESS ? answer_page(a, list, a.record.first, a.record.graph) : result;
}

CUresult cuGraphInstantiateWithParams(call_of::cuGraphInstantiateWithParams& a) {
  const auto beside = a.session().making();
  const auto graph = a.handle<CUgraph>(&api::InstantiateRecord::graph);
  if (!take_room_of_executable(a.request, graph)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = a.record.flags;
  params.hUploadStream = a.handle<CUstream>(&api::InstantiateRecord::upload_stream);
  const CUresult result = a.call(&exec, graph, &params);
  const api::InstantiateReply reply{.result = static_cast<std::uint64_t>(params.result_out),
                                    .node = found_node(a.request, params.hErrNode_out, a.record.graph)};
  a.answer(CUDA_SUCCESS, reply);
  a.request.out_on_error = sizeof reply;
  if (result == CUDA_SUCCESS && !a.put(exec)) return a.request.broken();
  return result;
}

CUresult cuGraphExecUpdate_v2(call_of::cuGraphExecUpdate_v2& a) {
  const auto beside = a.session().making();
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = a.call(a.handle<CUgraphExec>(&api::ExecUpdateRecord::exec),
                                 a.handle<CUgraph>(&api::ExecUpdateRecord::graph), &info);
  const api::ExecUpdateReply reply{.result = static_cast<std::uint64_t>(info.result),
                                   .node = found_node(a.request, info.errorNode, a.record.graph),
                                   .from = found_node(a.request, info.errorFromNode, a.record.graph)};
  a.answer(CUDA_SUCCESS, reply);
  a.request.out_on_error = sizeof reply;
  return result;
}

}  // namespace host::calls
