// Executable graphs: private clones of graphs, launched as work items of the schedule.
#pragma once

#include "host/simgpu/api/graph/graph.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/simgpu/api/stream/schedule.h"

namespace simgpu {

struct GraphExec {
  CUgraphExec handle = nullptr;
  std::uint64_t flags = 0;
  std::shared_ptr<Graph> graph;
  std::unordered_map<std::uint64_t, GraphNode*> by_original;  // nodes of all nested graphs
  Ticket last;                                                // the newest launch; the next one waits for it
};

template <class F>
CUresult with_exec(CUgraphExec handle, F&& call) noexcept {
  return with_graphs([&](Driver& driver) {
    const std::shared_ptr<GraphExec> exec = driver.graph_execs.find(handle);
    return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, *exec);
  });
}

// The executable graph's copy of a node; null if there is none or its type differs.
GraphNode* counterpart_of(Driver& driver, const GraphExec& exec, CUgraphNode original);

// One launch as closures that own their parameters, so later changes of the graph do not affect it.
struct LaunchPlan {
  struct Piece {
    std::function<void()> work;
    std::vector<std::size_t> after;            // indices into `pieces`
    std::shared_ptr<const LaunchPlan> inside;  // a child graph; `work` is empty then
    std::shared_ptr<Event> records;
    Ticket awaits;
  };
  std::vector<Piece> pieces;  // in topological order
};

// Fails if a node's memory or context is gone.
CUresult make_plan(Driver& driver, const Graph& graph, std::shared_ptr<const LaunchPlan>& out);

// The events of record nodes and the work items that record them.
using EventRecords = std::vector<std::pair<std::shared_ptr<Event>, Ticket>>;

// Submits all pieces after `begin`. The returned ticket is done when all pieces are.
Ticket submit_plan(Driver& driver, const LaunchPlan& plan, const Ticket& begin, EventRecords& records);

}  // namespace simgpu
