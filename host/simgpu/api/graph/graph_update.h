// The rules for changing executable graphs.
#pragma once

#include "host/simgpu/api/graph/graph.h"

namespace simgpu {

// Checks whether an update may change a node's work from `now` to `next`, by the rules of cuGraphExecUpdate.
CUgraphExecUpdateResult judge_change(Driver& driver, const NodeWork& now, const NodeWork& next);

// The result of an update. A successful update gives each node of `target` the work of its counterpart in `source`; a
// failed one changes nothing. `node` belongs to `source`.
struct UpdateResult {
  CUgraphExecUpdateResult code = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  GraphNode* node = nullptr;
  GraphNode* from = nullptr;
};
UpdateResult update_graph(Driver& driver, Graph& target, const Graph& source);

}  // namespace simgpu
