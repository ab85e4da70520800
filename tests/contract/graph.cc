// Cases for graphs: their nodes, dependencies and copies.
#include <algorithm>

#include "tests/contract/graphs.h"

namespace contract {
namespace {

GROUP(graphs, InContext) {
  CUgraph graph = nullptr, other = untouched<CUgraph>();
  show("cuGraphCreate", CU(cuGraphCreate)(&graph, 0));
  show("flags 1", CU(cuGraphCreate)(&other, 1));
  show_flag("the graph is untouched", other == untouched<CUgraph>());
  show("null", CU(cuGraphCreate)(nullptr, 0));
  show("nodes", nodes_in(graph));
  show("edges", edges_in(graph));
  show("it runs empty", run_once(graph, nullptr));
  show("cuGraphDestroy", CU(cuGraphDestroy)(graph));
  show("cuGraphDestroy null", CU(cuGraphDestroy)(nullptr));
  CU(cuGraphCreate)(&graph, 0);
  add_empty(graph, {add_empty(graph)});
  show("cuGraphDestroy with nodes", CU(cuGraphDestroy)(graph));
}

GROUP(graphs_without_a_context, Initialized) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  Counter count = 0;
  const CUDA_HOST_NODE_PARAMS host = counting(count);
  show("cuGraphCreate", CU(cuGraphCreate)(&graph, 0));
  show("an empty node", CU(cuGraphAddEmptyNode)(&node, graph, nullptr, 0));
  show("a host node", CU(cuGraphAddHostNode)(&node, graph, nullptr, 0, &host));
  show("nodes", nodes_in(graph));
  show("cuGraphInstantiate", CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  show("cuGraphDestroy", CU(cuGraphDestroy)(graph));
}

// A diamond of four nodes: the top node, two nodes after it, and one node after both; plus a separate node.
struct Diamond {
  CUgraph graph = make_graph();
  CUgraphNode top = add_empty(graph), left = add_empty(graph, {top}), right = add_empty(graph, {top}),
              bottom = add_empty(graph, {left, right}), alone = add_empty(graph);
};

GROUP(dead_graphs, Loaded) {
  const auto destroyed = [] {
    CUgraph graph = make_graph();
    CU(cuGraphDestroy)(graph);
    return graph;
  };
  show_alone_in_context("destroy it twice", [&] { return CU(cuGraphDestroy)(destroyed()); });
  show_alone_in_context("add to a destroyed one", [&] {
    CUgraphNode node = nullptr;
    return CU(cuGraphAddEmptyNode)(&node, destroyed(), nullptr, 0);
  });
  show_alone_in_context("instantiate a destroyed one", [&] {
    CUgraphExec exec = nullptr;
    return CU(cuGraphInstantiateWithFlags)(&exec, destroyed(), 0);
  });
  show_alone_in_context("destroy a node twice", [] {
    CUgraph graph = make_graph();
    const CUgraphNode node = add_empty(graph);
    CU(cuGraphDestroyNode)(node);
    return CU(cuGraphDestroyNode)(node);
  });
  show_alone_in_context("destroy an exec twice", [] {
    const CUgraphExec exec = instantiated(make_graph());
    CU(cuGraphExecDestroy)(exec);
    return CU(cuGraphExecDestroy)(exec);
  });
  show_alone_in_context("launch a destroyed exec", [] {
    const CUgraphExec exec = instantiated(make_graph());
    CU(cuGraphExecDestroy)(exec);
    return CU(cuGraphLaunch)(exec, nullptr);
  });
  show_alone_in_context("a made-up graph", [] {
    CUgraphNode node = nullptr;
    return CU(cuGraphAddEmptyNode)(&node, untouched<CUgraph>(), nullptr, 0);
  });
  show_alone_in_context("clone a graph with a cycle", [] {
    Diamond d;
    CUgraph clone = nullptr;
    CU(cuGraphAddDependencies_v2)(d.graph, &d.bottom, &d.top, nullptr, 1);
    return CU(cuGraphClone)(&clone, d.graph);
  });
  show_alone_in_context("a graph after a reset of the device", [] {
    CUgraph graph = make_graph();
    add_empty(graph);
    CU(cuDevicePrimaryCtxReset_v2)(device);
    return CU(cuGraphDestroy)(graph);
  });
}

// Shows a list from the driver without a buffer, with an exact buffer, with a larger and with a smaller one. `filled`
// shows how many of the 16 entries of the buffer are null, and how many are unchanged.
template <class Ask>
void show_list(const std::string& what, Ask ask) {
  constexpr std::size_t places = 16;
  std::size_t count = 77;
  show(what, ask(nullptr, &count));
  show(what + ", count", static_cast<long long>(count));
  const std::size_t all = count;
  for (const auto& [name, room] :
       {std::pair<const char*, std::size_t>{"exact", all}, {"larger", all + 3}, {"one", 1}, {"none", 0}}) {
    if (room > places) continue;
    std::vector<CUgraphNode> nodes(places, untouched<CUgraphNode>());
    count = room;
    const std::string with = what + ", " + name;
    show(with, ask(nodes.data(), &count));
    show(with + ", count", static_cast<long long>(count));
    show(with + ", null", std::count(nodes.begin(), nodes.end(), nullptr));
    show(with + ", untouched", std::count(nodes.begin(), nodes.end(), untouched<CUgraphNode>()));
  }
}

GROUP(graph_lists, InContext) {
  Diamond d;
  show_list("nodes", [&](CUgraphNode* to, std::size_t* n) { return CU(cuGraphGetNodes)(d.graph, to, n); });
  show_list("roots", [&](CUgraphNode* to, std::size_t* n) { return CU(cuGraphGetRootNodes)(d.graph, to, n); });
  show_list("dependencies", [&](CUgraphNode* to, std::size_t* n) {
    return CU(cuGraphNodeGetDependencies_v2)(d.bottom, to, nullptr, n);
  });
  show_list("dependent nodes", [&](CUgraphNode* to, std::size_t* n) {
    return CU(cuGraphNodeGetDependentNodes_v2)(d.top, to, nullptr, n);
  });
  CUgraph empty = make_graph();
  show_list("nodes of an empty graph",
            [&](CUgraphNode* to, std::size_t* n) { return CU(cuGraphGetNodes)(empty, to, n); });
  CUgraphNode nodes[5] = {};
  std::size_t count = 5;
  CU(cuGraphGetNodes)(d.graph, nodes, &count);
  const CUgraphNode as_added[] = {d.top, d.left, d.right, d.bottom, d.alone};
  show_flag("nodes come as they were added", std::equal(nodes, nodes + 5, as_added));
  count = 2;
  CU(cuGraphGetRootNodes)(d.graph, nodes, &count);
  show_flag("roots come as they were added", nodes[0] == d.top && nodes[1] == d.alone);
  count = 2;
  CU(cuGraphNodeGetDependencies_v2)(d.bottom, nodes, nullptr, &count);
  show_flag("dependencies come as they were given", nodes[0] == d.left && nodes[1] == d.right);
}

GROUP(graph_edges, InContext) {
  Diamond d;
  std::size_t count = 77;
  show("count", CU(cuGraphGetEdges_v2)(d.graph, nullptr, nullptr, nullptr, &count));
  show("it is", static_cast<long long>(count));
  const auto ask = [&](const std::string& what, std::size_t room, bool with_from, bool with_to, bool with_data) {
    std::vector<CUgraphNode> from(8, untouched<CUgraphNode>()), to(8, untouched<CUgraphNode>());
    std::vector<CUgraphEdgeData> data(8, {9, 9, 9, {}});
    count = room;
    show(what, CU(cuGraphGetEdges_v2)(d.graph, with_from ? from.data() : nullptr, with_to ? to.data() : nullptr,
                                      with_data ? data.data() : nullptr, &count));
    show(what + ", count", static_cast<long long>(count));
    show(what + ", null", std::count(from.begin(), from.end(), nullptr) + std::count(to.begin(), to.end(), nullptr));
    show(what + ", untouched", std::count(from.begin(), from.end(), untouched<CUgraphNode>()));
    show(what + ", data of type 9",
         std::count_if(data.begin(), data.end(), [](const CUgraphEdgeData& e) { return e.type == 9; }));
  };
  ask("exact", 4, true, true, true);
  ask("larger", 6, true, true, true);
  ask("smaller", 2, true, true, true);
  ask("none", 0, true, true, true);
  ask("without data", 4, true, true, false);
  ask("from alone", 4, true, false, false);
  ask("to alone", 4, false, true, false);
  ask("data alone", 4, false, false, true);
  CUgraphNode from[4] = {}, to[4] = {};
  count = 4;
  show("version 1", CU(cuGraphGetEdges)(d.graph, from, to, &count));
  bool are_edges = true;
  for (int i = 0; i < 4; ++i)
    are_edges = are_edges && (from[i] == d.top ? to[i] == d.left || to[i] == d.right : to[i] == d.bottom);
  show_flag("they are the edges", are_edges);
  count = 2;
  show("dependencies, version 1", CU(cuGraphNodeGetDependencies)(d.bottom, from, &count));
  show("it is", static_cast<long long>(count));
  count = 2;
  show("dependent nodes, version 1", CU(cuGraphNodeGetDependentNodes)(d.top, to, &count));
  show("it is", static_cast<long long>(count));
}

GROUP(graph_dependencies, InContext) {
  Diamond d;
  CUgraph elsewhere = make_graph();
  const CUgraphNode foreign = add_empty(elsewhere);
  const auto add = [&](const std::string& what, CUgraphNode from, CUgraphNode to, std::size_t n = 1) {
    show("add " + what, CU(cuGraphAddDependencies_v2)(d.graph, &from, &to, nullptr, n));
    show("add " + what + ", edges", edges_in(d.graph));
  };
  const auto remove = [&](const std::string& what, CUgraphNode from, CUgraphNode to, std::size_t n = 1) {
    show("remove " + what, CU(cuGraphRemoveDependencies_v2)(d.graph, &from, &to, nullptr, n));
    show("remove " + what + ", edges", edges_in(d.graph));
  };
  add("an edge", d.bottom, d.alone);
  add("it again", d.bottom, d.alone);
  add("a self edge", d.top, d.top);
  add("nothing", d.top, d.top, 0);
  add("from another graph", foreign, d.top);
  add("to another graph", d.top, foreign);
  add("a shortcut", d.top, d.bottom);
  remove("the shortcut", d.top, d.bottom);
  remove("it again", d.top, d.bottom);
  remove("from another graph", foreign, d.top);
  remove("nothing", d.top, d.left, 0);
  remove("the last edge", d.bottom, d.alone);
  show("add null, none", CU(cuGraphAddDependencies_v2)(d.graph, nullptr, nullptr, nullptr, 0));
  CUgraphNode from[] = {d.top, d.left}, to[] = {d.alone, d.left};
  show("add two, the second a self edge", CU(cuGraphAddDependencies_v2)(d.graph, from, to, nullptr, 2));
  show("edges", edges_in(d.graph));
  CUgraphEdgeData edge{};
  CUgraphNode bottom = d.bottom, alone = d.alone;
  show("add with an edge", CU(cuGraphAddDependencies_v2)(d.graph, &bottom, &alone, &edge, 1));
  edge.from_port = 1;
  show("remove with another edge", CU(cuGraphRemoveDependencies_v2)(d.graph, &bottom, &alone, &edge, 1));
  show("edges", edges_in(d.graph));
  edge = {};
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  show("a programmatic edge of empty nodes", CU(cuGraphAddDependencies_v2)(d.graph, &alone, &bottom, &edge, 1));
  edge.type = 9;
  show("an edge of type 9", CU(cuGraphAddDependencies_v2)(d.graph, &alone, &bottom, &edge, 1));
  edge = {};
  edge.reserved[0] = 1;
  show("an edge with a reserved byte", CU(cuGraphAddDependencies_v2)(d.graph, &alone, &bottom, &edge, 1));
  show("version 1, remove", CU(cuGraphRemoveDependencies)(d.graph, &bottom, &alone, 1));
  show("version 1, add", CU(cuGraphAddDependencies)(d.graph, &bottom, &alone, 1));
  show("version 1, remove it", CU(cuGraphRemoveDependencies)(d.graph, &bottom, &alone, 1));
  show("version 1, a self edge", CU(cuGraphAddDependencies)(d.graph, &bottom, &bottom, 1));
  CUgraphNode none = nullptr;
  show_guarded("add from null", [&] { return CU(cuGraphAddDependencies_v2)(d.graph, &none, &alone, nullptr, 1); });
  show_guarded("add null", [&] { return CU(cuGraphAddDependencies_v2)(d.graph, nullptr, nullptr, nullptr, 1); });
  show_guarded("remove null", [&] { return CU(cuGraphRemoveDependencies_v2)(d.graph, nullptr, nullptr, nullptr, 1); });
}

GROUP(graph_cycles, InContext) {
  Diamond d;
  CUgraphNode from = d.bottom, to = d.top;
  CUgraphExec exec = untouched<CUgraphExec>();
  show("an edge that makes a cycle", CU(cuGraphAddDependencies_v2)(d.graph, &from, &to, nullptr, 1));
  show("edges", edges_in(d.graph));
  show("roots", [&] {
    std::size_t count = 77;
    CU(cuGraphGetRootNodes)(d.graph, nullptr, &count);
    return static_cast<long long>(count);
  }());
  show("instantiate", CU(cuGraphInstantiateWithFlags)(&exec, d.graph, 0));
  show_flag("the exec is null", exec == nullptr);
  show_flag("the exec is untouched", exec == untouched<CUgraphExec>());
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters;
  std::memset(&parameters, 0, sizeof parameters);
  show("instantiate with parameters", CU(cuGraphInstantiateWithParams)(&exec, d.graph, &parameters));
  show("its result", parameters.result_out);
  show_flag("a node is told", parameters.hErrNode_out != nullptr);
  CUgraphNode wrong = nullptr;
  char log[64] = "unchanged";
  show("instantiate by the second form", CU(cuGraphInstantiate_v2)(&exec, d.graph, &wrong, log, sizeof log));
  show_flag("a node is told", wrong != nullptr);
  show("remove the edge", CU(cuGraphRemoveDependencies_v2)(d.graph, &from, &to, nullptr, 1));
  show("it runs", run_once(d.graph, nullptr));
}

GROUP(graph_nodes_end, InContext) {
  Diamond d;
  show("destroy a node in the middle", CU(cuGraphDestroyNode)(d.left));
  show("nodes", nodes_in(d.graph));
  show("edges", edges_in(d.graph));
  show("destroy the root", CU(cuGraphDestroyNode)(d.top));
  show("nodes", nodes_in(d.graph));
  show("edges", edges_in(d.graph));
  show("destroy null", CU(cuGraphDestroyNode)(nullptr));
  const CUgraphExec exec = instantiated(d.graph);
  show("destroy a node of an exec", CU(cuGraphDestroyNode)(d.bottom));
  show("the exec runs", CU(cuGraphLaunch)(exec, nullptr));
  show("cuGraphDestroy before the exec", CU(cuGraphDestroy)(d.graph));
  show("the exec runs without its graph", CU(cuGraphLaunch)(exec, nullptr));
  show("wait", CU(cuCtxSynchronize)());
  show("cuGraphExecDestroy", CU(cuGraphExecDestroy)(exec));
}

GROUP(graph_clones, InContext) {
  Diamond d;
  CUgraph clone = nullptr, of_clone = nullptr, elsewhere = make_graph();
  CUgraphNode found = nullptr, again = nullptr;
  show("cuGraphClone", CU(cuGraphClone)(&clone, d.graph));
  show("nodes", nodes_in(clone));
  show("edges", edges_in(clone));
  show("find a node", CU(cuGraphNodeFindInClone)(&found, d.left, clone));
  show_flag("it is another one", found != nullptr && found != d.left);
  show("clone of the clone", CU(cuGraphClone)(&of_clone, clone));
  show("find a clone's node", CU(cuGraphNodeFindInClone)(&again, found, of_clone));
  show("find an original's node in a clone's clone", CU(cuGraphNodeFindInClone)(&again, d.left, of_clone));
  found = untouched<CUgraphNode>();
  const CUgraphNode late = add_empty(d.graph);
  show("find a node that was added later", CU(cuGraphNodeFindInClone)(&found, late, clone));
  show_flag("the node is untouched", found == untouched<CUgraphNode>());
  show("nodes of the clone", nodes_in(clone));
  show("find in the graph itself", CU(cuGraphNodeFindInClone)(&found, d.left, d.graph));
  show("find in a graph that is no clone", CU(cuGraphNodeFindInClone)(&found, d.left, elsewhere));
  show("find a node of another graph", CU(cuGraphNodeFindInClone)(&found, add_empty(elsewhere), clone));
  CU(cuGraphNodeFindInClone)(&found, d.right, clone);
  show("destroy the clone's node", CU(cuGraphDestroyNode)(found));
  show("find it", CU(cuGraphNodeFindInClone)(&found, d.right, clone));
  show("find null", CU(cuGraphNodeFindInClone)(&found, nullptr, clone));
  show("find in null", CU(cuGraphNodeFindInClone)(&found, d.left, nullptr));
  show("find without a place", CU(cuGraphNodeFindInClone)(nullptr, d.left, clone));
  show("clone without a place", CU(cuGraphClone)(nullptr, d.graph));
  show("clone null", CU(cuGraphClone)(&clone, nullptr));
  show("destroy the original", CU(cuGraphDestroy)(d.graph));
  show("the clone's clone runs", run_once(of_clone, nullptr));
}

GROUP(graph_pictures, InContext) {
  Diamond d;
  const auto print = CU(cuGraphDebugDotPrint);
  const std::string path = file_of("");
  show("to a file", print(d.graph, path.c_str(), 0));
  FILE* file = std::fopen(path.c_str(), "r");
  show_flag("it is not empty", file != nullptr && std::fgetc(file) != EOF);
  show("verbose", print(d.graph, path.c_str(), CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
  show("flags 1 << 16", print(d.graph, path.c_str(), 1 << 16));
  show("to a folder that is not there", print(d.graph, "/nothing/here", 0));
  show("no graph", print(nullptr, path.c_str(), 0));
  show_guarded("no path", [&] { return print(d.graph, nullptr, 0); });
}

}  // namespace
}  // namespace contract
