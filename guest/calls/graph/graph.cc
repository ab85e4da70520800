// Graph calls that the table's lines cannot express. A list arrives in several replies (ring/api/graph_records.h).
// Calls without edge data use the calls with edge data.
#include <algorithm>
#include <vector>

#include "guest/calls/calls.h"
#include "guest/calls/found.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

// The program's arrays for a list from the driver. A list of nodes, which has no edges, uses only one of `from` and
// `to`.
struct Lists {
  CUgraphNode *from = nullptr, *to = nullptr;
  CUgraphEdgeData* data = nullptr;
  std::size_t* count = nullptr;
};

struct Element {
  std::uint64_t from = 0, to = 0;
  CUgraphEdgeData data{};
};

// The members that an element of the list has.
struct Form {
  bool pairs, data;
};

template <class Record>
CUresult read_whole(int call, const Form& form, Record record, std::vector<Element>& elements) {
  Context* context = nullptr;
  if (const CUresult r = enter_without_context(context); r != CUDA_SUCCESS) return r;
  const std::uint64_t words = 1U + (form.pairs ? 1 : 0) + (form.data ? 1 : 0);
  std::uint64_t all = 0;
  do {
    record.first = elements.size();
    std::uint64_t came = 0;
    const auto read = [&](CUresult result, ring::SharedReader& r) {
      if (result != CUDA_SUCCESS) return;
      const auto reply = r.read<api::ListReply>();
      all = reply.all, came = reply.bytes / (words * sizeof(std::uint64_t));
      for (std::uint64_t i = 0; r.ok() && i < came; ++i) {
        Element& one = elements.emplace_back();
        one.from = r.slot();
        if (form.pairs) one.to = r.slot();
        if (form.data) one.data = r.read<CUgraphEdgeData>();
      }
    };
    if (const CUresult r = cross({.call = call, .context = *context}, record, {}, read).result; r != CUDA_SUCCESS)
      return r;
    if (came == 0) break;  // another thread has shortened the list
  } while (elements.size() < all);
  return CUDA_SUCCESS;
}

// Follows the driver's rules: without arrays it returns only the count; spare elements become zero; a capacity of 0 is
// an error.
CUresult put(const std::vector<Element>& elements, const Form& form, const Lists& to) {
  const bool wants_nodes = to.from != nullptr;
  if (!wants_nodes && to.data == nullptr) {
    *to.count = elements.size();
    return CUDA_SUCCESS;
  }
  const std::size_t room = *to.count, given = std::min(room, elements.size());
  if (!wants_nodes || room == 0) return CUDA_ERROR_INVALID_VALUE;
  if (form.data && to.data == nullptr &&
      std::ranges::any_of(elements, [](const Element& e) { return has_data(e.data); }))
    return CUDA_ERROR_LOSSY_QUERY;
  for (std::size_t i = 0; i < room; ++i) {
    const Element one = i < given ? elements[i] : Element{};
    to.from[i] = reinterpret_cast<CUgraphNode>(one.from);
    if (form.pairs) to.to[i] = reinterpret_cast<CUgraphNode>(one.to);
    if (to.data != nullptr) to.data[i] = one.data;
  }
  *to.count = given;
  return CUDA_SUCCESS;
}

template <class Record>
CUresult list(int call, const Form& form, const Record& record, const Object* graph, const Lists& to) {
  if (to.count == nullptr || (form.pairs && (to.from == nullptr) != (to.to == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<Element> elements;
  if (const CUresult r = read_whole(call, form, record, elements); r != CUDA_SUCCESS) return r;
  for (const Element& one : elements) {
    const bool sound = found_node(one.from, graph) != nullptr && (!form.pairs || found_node(one.to, graph) != nullptr);
    if (!sound) return lose_to_unsound_reply();
  }
  return put(elements, form, to);
}

CUresult list_of_graph(int call, const Form& form, CUgraph graph, const Lists& to) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  const Object* const object = session()->objects.find(graph, api::Handle::Graph);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return list(call, form, api::GraphListRecord{.graph = api::number_of(graph), .first = 0}, object, to);
}

CUresult list_of_node(int call, CUgraphNode node, const Lists& to) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  Objects& objects = session()->objects;
  const Object* const object = objects.find(node, api::Handle::GraphNode);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* const graph = objects.find(reinterpret_cast<const void*>(object->owner), api::Handle::Graph);
  return list(call, {.pairs = false, .data = true}, api::NodeListRecord{.node = api::number_of(node), .first = 0},
              graph, to);
}

CUgraphNode adopted(std::uint64_t id, const Object* graph) {
  return id != 0 && found_node(id, graph) != nullptr ? reinterpret_cast<CUgraphNode>(id) : nullptr;
}

}  // namespace

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return list_of_graph(api::id_of::cuGraphGetNodes, {.pairs = false, .data = false}, graph,
                       {.from = nodes, .count = count});
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return list_of_graph(api::id_of::cuGraphGetRootNodes, {.pairs = false, .data = false}, graph,
                       {.from = nodes, .count = count});
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                            std::size_t* count) {
  return list_of_graph(api::id_of::cuGraphGetEdges_v2, {.pairs = true, .data = true}, graph,
                       {.from = from, .to = to, .data = data, .count = count});
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return calls::cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                       std::size_t* count) {
  return list_of_node(api::id_of::cuGraphNodeGetDependencies_v2, node, {.from = nodes, .data = data, .count = count});
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return calls::cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                         std::size_t* count) {
  return list_of_node(api::id_of::cuGraphNodeGetDependentNodes_v2, node, {.from = nodes, .data = data, .count = count});
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return calls::cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  return Stub<api::id_of::cuGraphAddDependencies_v2>::call(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  return Stub<api::id_of::cuGraphRemoveDependencies_v2>::call(graph, from, to, nullptr, count);
}

// ---- executables ---------------------------------------------------------------------------------------------------

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Objects& objects = session()->objects;
  const Object* const of = objects.find(graph, api::Handle::Graph);
  if (of == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool uploads = (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  const StreamRef stream = resolve_stream(uploads ? params->hUploadStream : nullptr, *context);
  if (stream.object == nullptr) return no_such(params->hUploadStream);
  Object* const made = objects.create(api::Handle::GraphExec, nullptr);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t id = made->id.load(std::memory_order_relaxed);
  const api::InstantiateRecord record{.graph = api::number_of(graph),
                                      .exec = id,
                                      .flags = params->flags,
                                      .upload_stream = uploads ? api::number_of(params->hUploadStream) : 0};
  api::InstantiateReply reply{};
  const auto read = [&](CUresult, ring::SharedReader& r) { reply = r.read<api::InstantiateReply>(); };
  const Sent sent = cross(
      {.call = api::id_of::cuGraphInstantiateWithParams, .context = *context, .stream = uploads ? &stream : nullptr},
      record, {}, read);
  if (sent.use.position != 0 && !sent.unanswered) {
    params->result_out = static_cast<CUgraphInstantiateResult>(reply.result);
    params->hErrNode_out = adopted(reply.node, of);
  }
  if (sent.result == CUDA_SUCCESS)
    *exec = reinterpret_cast<CUgraphExec>(id);
  else if (!sent.unanswered)
    objects.retire(*made, {});
  return sent.result;
}

CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, std::size_t room) {
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  const CUresult result = calls::cuGraphInstantiateWithParams(exec, graph, &params);
  // The driver reports the node only in the newest version of the call.
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && room != 0) *log = '\0';
  return result;
}

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, std::size_t room) {
  return calls::cuGraphInstantiate_v2(exec, graph, error_node, log, room);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  Objects& objects = session()->objects;
  Object* const updated = objects.find(exec, api::Handle::GraphExec);
  const Object* const by = objects.find(graph, api::Handle::Graph);
  if (updated == nullptr || by == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!wait_for_object(*updated, this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  api::ExecUpdateReply reply{};
  const auto read = [&](CUresult, ring::SharedReader& r) { reply = r.read<api::ExecUpdateReply>(); };
  const api::ExecUpdateRecord record{.exec = api::number_of(exec), .graph = api::number_of(graph)};
  session()->graphs.accepted.forget(record.exec);
  const Sent sent = cross({.call = api::id_of::cuGraphExecUpdate_v2, .context = *context}, record, {}, read);
  if (sent.use.position == 0 || sent.unanswered || info == nullptr) return sent.result;
  info->result = static_cast<CUgraphExecUpdateResult>(reply.result);
  info->errorNode = adopted(reply.node, by);
  info->errorFromNode = adopted(reply.from, by);
  return sent.result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult updated = calls::cuGraphExecUpdate_v2(exec, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  // This version of the call reports a changed topology as "not supported".
  if (info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED)
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  if (result != nullptr) *result = info.result;
  return updated;
}

}  // namespace guest::calls
