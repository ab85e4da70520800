// Executable graphs: private clones of graphs that are launched as work items of the schedule.
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
  // original's id to the clone's node, including all nested graphs
  std::unordered_map<std::uint64_t, GraphNode*> by_original;
  Ticket last;  // the newest launch; the next launch waits for it
};

template <class F>
CUresult with_exec(CUgraphExec handle, F&& call) noexcept {
  return with_graphs([&](Driver& driver) {
    const std::shared_ptr<GraphExec> exec = driver.graph_execs.find(handle);
    return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : call(driver, *exec);
  });
}

// Returns the executable graph's copy of a node; null if there is no copy, or if its type differs.
GraphNode* counterpart_of(Driver& driver, const GraphExec& exec, CUgraphNode original);

// A launch as closures that own their parameters, so that later changes of the graph do not affect the launch.
struct LaunchPlan {
  struct Piece {
    std::function<void()> work;
    std::vector<std::size_t> after;            // the pieces to wait for, as indices into `pieces`
    std::shared_ptr<const LaunchPlan> inside;  // the plan of a child graph; `work` is then empty
    std::shared_ptr<Event> records;
    Ticket awaits;
  };
  std::vector<Piece> pieces;  // in topological order
};

// Creates the plan of a launch. Fails if a node's memory or context no longer exists.
CUresult make_plan(Driver& driver, const Graph& graph, std::shared_ptr<const LaunchPlan>& out);

// The events of event record nodes, with the work items that record them.
using EventRecords = std::vector<std::pair<std::shared_ptr<Event>, Ticket>>;

// Submits all pieces after `begin`. The returned ticket is done when all pieces are done.
Ticket submit_plan(Driver& driver, const LaunchPlan& plan, const Ticket& begin, EventRecords& records);

}  // namespace simgpu
