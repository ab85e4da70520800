// The rules for changing executable graphs.
#pragma once

#include "host/simgpu/api/graph/graph.h"

namespace simgpu {

// Checks a node's change by the rules of cuGraphExecUpdate.
CUgraphExecUpdateResult judge_change(Driver& driver, const NodeWork& now, const NodeWork& next);

// Gives each node of `target` the work of its counterpart in `source`, or changes nothing on failure. The result names
// nodes of `source`.
struct UpdateResult {
  CUgraphExecUpdateResult code = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  GraphNode* node = nullptr;
  GraphNode* from = nullptr;
};
UpdateResult update_graph(Driver& driver, Graph& target, const Graph& source);

}  // namespace simgpu
