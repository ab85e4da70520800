// cuGraphExecUpdate: pairs the nodes of two graphs and checks whether each pair may be updated.
#include "host/simgpu/api/graph/graph_update.h"

#include <algorithm>
#include <unordered_map>

#include "host/simgpu/api/graph/condition.h"
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/graph/graph_exec.h"
#include "host/simgpu/api/memory/memory.h"

namespace simgpu {
namespace {

constexpr auto fine = CU_GRAPH_EXEC_UPDATE_SUCCESS;
constexpr auto topology = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
constexpr auto parameters = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;

// Returns the device that holds the memory; null for host memory.
const Device* device_at(Driver& driver, CUmemorytype type, const void* host, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_ARRAY) return nullptr;
  const auto allocation = driver.memory.find(type == CU_MEMORYTYPE_HOST ? address_of(host) : device);
  return allocation ? allocation->device : nullptr;
}

const Device* source_of(Driver& driver, const CUDA_MEMCPY3D& c) {
  return device_at(driver, c.srcMemoryType, c.srcHost, c.srcDevice);
}
const Device* target_of(Driver& driver, const CUDA_MEMCPY3D& c) {
  return device_at(driver, c.dstMemoryType, c.dstHost, c.dstDevice);
}

bool is_cooperative(const KernelWork& work) { return request_of(work).cooperative; }

CUgraphExecUpdateResult judge(Driver&, const KernelWork& now, const KernelWork& next) {
  if (now.context != next.context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  return is_cooperative(now) == is_cooperative(next) ? fine : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
}

CUgraphExecUpdateResult judge(Driver& driver, const CopyWork& now, const CopyWork& next) {
  const CUDA_MEMCPY3D &a = now.asked, &b = next.asked;
  const bool same_kinds = a.srcMemoryType == b.srcMemoryType && a.dstMemoryType == b.dstMemoryType;
  const bool same_places = source_of(driver, a) == source_of(driver, b) && target_of(driver, a) == target_of(driver, b);
  return now.context == next.context && same_kinds && same_places ? fine : parameters;
}

CUgraphExecUpdateResult judge(Driver&, const FillWork& now, const FillWork& next) {
  const CUDA_MEMSET_NODE_PARAMS_v1 &a = now.asked, &b = next.asked;
  const bool one_row = a.height == 1 && b.height == 1;
  const bool same_shape =
      a.height == b.height && a.width == b.width && a.pitch == b.pitch && a.elementSize == b.elementSize;
  return now.context == next.context && (one_row || same_shape) ? fine : parameters;
}

CUgraphExecUpdateResult judge(Driver&, const ConditionalWork& now, const ConditionalWork& next) {
  return now.type == next.type && now.bodies.size() == next.bodies.size() ? fine : parameters;
}

template <class Work>
CUgraphExecUpdateResult judge(Driver&, const Work&, const Work&) {
  return fine;
}

// Pairs the nodes of two graphs: starts with the nodes that have no dependents, oldest first, and follows their edges,
// oldest first.
class Pairing {
 public:
  UpdateResult find(const Graph& target, const Graph& source) {
    if (target.nodes.size() != source.nodes.size()) return {topology, nullptr, nullptr};
    const std::vector<GraphNode*> ends = last_of(target), other_ends = last_of(source);
    if (ends.size() != other_ends.size())
      return {topology, other_ends.size() > ends.size() ? other_ends[ends.size()] : nullptr, nullptr};
    for (std::size_t i = 0; i < ends.size(); ++i) pair(*ends[i], *other_ends[i]);
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      if (const UpdateResult result = follow(*pairs_[i].first, *pairs_[i].second); result.code != fine) return result;
    return {};
  }
  const std::vector<std::pair<GraphNode*, GraphNode*>>& pairs() const { return pairs_; }

 private:
  static std::vector<GraphNode*> last_of(const Graph& graph) {
    std::vector<GraphNode*> out;
    for (const std::shared_ptr<GraphNode>& node : graph.nodes)
      if (node->after.empty()) out.push_back(node.get());
    return out;
  }

  void pair(GraphNode& target, GraphNode& source) {
    pairs_.emplace_back(&target, &source);
    partner_[&source] = &target;
    taken_[&target] = &source;
  }

  UpdateResult follow(const GraphNode& target, GraphNode& source) {
    if (target.before.size() != source.before.size()) return {topology, &source, nullptr};
    for (std::size_t i = 0; i < source.before.size(); ++i) {
      GraphNode &from = *source.before[i].node, &wanted = *target.before[i].node;
      const auto known = partner_.find(&from);
      if (known == partner_.end() && !taken_.contains(&wanted))
        pair(wanted, from);
      else if (known == partner_.end() || known->second != &wanted)
        return {topology, &source, &from};
    }
    return {};
  }

  std::vector<std::pair<GraphNode*, GraphNode*>> pairs_;
  std::unordered_map<const GraphNode*, GraphNode*> partner_, taken_;
};

// Returns the pairs of graphs inside two nodes of the same type.
std::vector<std::pair<Graph*, Graph*>> inside(const NodeWork& target, const NodeWork& source) {
  std::vector<std::pair<Graph*, Graph*>> out;
  if (const auto* child = std::get_if<ChildWork>(&target); child != nullptr)
    out.emplace_back(child->graph.get(), std::get<ChildWork>(source).graph.get());
  if (const auto* conditional = std::get_if<ConditionalWork>(&target); conditional != nullptr)
    for (std::size_t i = 0; i < conditional->bodies.size(); ++i)
      out.emplace_back(conditional->bodies[i].get(), std::get<ConditionalWork>(source).bodies[i].get());
  return out;
}

// Collects the pairs of nodes and graphs at all depths, or returns the first difference.
UpdateResult collect(Driver& driver, Graph& target, const Graph& source,
                     std::vector<std::pair<GraphNode*, GraphNode*>>& nodes,
                     std::vector<std::pair<Graph*, const Graph*>>& graphs) {
  Pairing pairing;
  if (const UpdateResult result = pairing.find(target, source); result.code != fine) return result;
  graphs.emplace_back(&target, &source);
  for (const auto& [to, from] : pairing.pairs()) {
    const CUgraphExecUpdateResult judged = judge_change(driver, to->work, from->work);
    if (judged != fine) return {judged, from, nullptr};
    nodes.emplace_back(to, from);
    for (const auto& [to_inside, from_inside] : inside(to->work, from->work))
      if (const UpdateResult result = collect(driver, *to_inside, *from_inside, nodes, graphs); result.code != fine)
        return result;
  }
  return {};
}

bool has_graphs(const NodeWork& work) {
  return std::holds_alternative<ChildWork>(work) || std::holds_alternative<ConditionalWork>(work);
}

}  // namespace

CUgraphExecUpdateResult judge_change(Driver& driver, const NodeWork& now, const NodeWork& next) {
  if (now.index() != next.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  return std::visit(
      [&](const auto& work) { return judge(driver, work, std::get<std::remove_cvref_t<decltype(work)>>(next)); }, now);
}

UpdateResult update_graph(Driver& driver, Graph& target, const Graph& source) {
  std::vector<std::pair<GraphNode*, GraphNode*>> nodes;
  std::vector<std::pair<Graph*, const Graph*>> graphs;
  if (const UpdateResult result = collect(driver, target, source, nodes, graphs); result.code != fine) return result;
  for (const auto& [to, from] : nodes) {
    if (!has_graphs(to->work)) to->work = from->work;
    if (auto* conditional = std::get_if<ConditionalWork>(&to->work); conditional != nullptr)
      conditional->condition = std::get<ConditionalWork>(from->work).condition;
  }
  for (const auto& [to, from] : graphs) to->users = from->users;
  return {};
}

}  // namespace simgpu

using namespace simgpu;

namespace {

CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo_v1& info) {
  info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR, .errorNode = nullptr, .errorFromNode = nullptr};
  return with_exec(handle, [&](Driver& driver, const GraphExec& exec) {
    const std::shared_ptr<Graph> graph = driver.graphs.find(graph_handle);
    if (graph == nullptr || graph->moved) return CUDA_ERROR_INVALID_VALUE;
    const UpdateResult result = update_graph(driver, *exec.graph, *graph);
    info.result = result.code;
    if (result.node != nullptr) info.errorNode = handle_of(driver, *result.node);
    if (result.from != nullptr) info.errorFromNode = handle_of(driver, *result.from);
    return result.code == fine ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  });
}

}  // namespace

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* resultInfo) {
  CUgraphExecUpdateResultInfo unwanted{};
  return update(hGraphExec, hGraph, resultInfo == nullptr ? unwanted : *resultInfo);
}

// The first version of this call returns NOT_SUPPORTED if the graphs differ in size, since no single node is the cause.
CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  CUgraphExecUpdateResultInfo_v1 info{};
  const CUresult result = update(hGraphExec, hGraph, info);
  if (info.result == topology && info.errorNode == nullptr) info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  if (hErrorNode_out != nullptr) *hErrorNode_out = info.errorNode;
  if (updateResult_out != nullptr) *updateResult_out = info.result;
  return result;
}
