// Cases for cuGraphExecUpdate, and for user objects that graphs retain.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

// A graph with a sequence of a kernel, a fill and a host node.
struct Three {
  CUgraph graph = make_graph();
  StoreParameters parameters;
  CUgraphNode kernel = nullptr, fill = nullptr, host = nullptr;

  Three(GraphWork& work, Counter& count, unsigned value) : parameters(work.a, value) {
    const CUDA_MEMSET_NODE_PARAMS filled = fill_of(work.a + 4, value);
    const CUDA_HOST_NODE_PARAMS counted = counting(count);
    kernel = add_kernel(graph, kernel_of(work.store, parameters.list));
    CU(cuGraphAddMemsetNode)(&fill, graph, &kernel, 1, &filled, work.context);
    CU(cuGraphAddHostNode)(&host, graph, &fill, 1, &counted);
  }
};

GROUP(graph_updates, InContext) {
  GraphWork work;
  Counter count = 0, other = 0;
  Three base(work, count, 5);
  const CUgraphExec exec = instantiated(base.graph);
  CUgraphExecUpdateResultInfo info;
  const auto update = [&](const std::string& what, CUgraph graph) {
    std::memset(&info, 0xff, sizeof info);
    info.result = odd<CUgraphExecUpdateResult>(99);
    show(what, CU(cuGraphExecUpdate_v2)(exec, graph, &info));
    show(what + ", result", info.result);
    show_flag(what + ", a node is told", info.errorNode != nullptr);
    show_flag(what + ", a node before it is told", info.errorFromNode != nullptr);
  };
  const auto run = [&](const std::string& what) {
    work.clear();
    show(what + ", launch", CU(cuGraphLaunch)(exec, work.stream));
    show(what + ", wait", CU(cuStreamSynchronize)(work.stream));
    show(what + ", the kernel's word", word_at(work.a));
    show(what + ", the fill's word", word_at(work.a + 4));
  };
  update("itself", base.graph);
  Three equal(work, count, 5), changed(work, other, 6);
  update("an equal graph", equal.graph);
  update("other parameters", changed.graph);
  run("other parameters");
  show("calls of the second function", other);
  CUgraph clone = nullptr;
  CU(cuGraphClone)(&clone, base.graph);
  update("a clone", clone);
  {
    Three more(work, count, 5);
    add_empty(more.graph);
    update("a node more", more.graph);
  }
  {
    Three fewer(work, count, 5);
    CU(cuGraphDestroyNode)(fewer.host);
    update("a node fewer", fewer.graph);
  }
  {
    Three loose(work, count, 5);
    CU(cuGraphRemoveDependencies_v2)(loose.graph, &loose.kernel, &loose.fill, nullptr, 1);
    update("an edge fewer", loose.graph);
  }
  {
    Three edge(work, count, 5);
    CU(cuGraphAddDependencies_v2)(edge.graph, &edge.kernel, &edge.host, nullptr, 1);
    update("an edge more", edge.graph);
  }
  {
    Three function(work, count, 5);
    const CUDA_KERNEL_NODE_PARAMS params = kernel_of(work.empty);
    CU(cuGraphKernelNodeSetParams_v2)(function.kernel, &params);
    update("another function", function.graph);
    run("another function");
    update("back", base.graph);
  }
  {
    Three grid(work, count, 5);
    CUDA_KERNEL_NODE_PARAMS params = kernel_of(work.store, grid.parameters.list);
    params.gridDimX = 4, params.blockDimX = 2;
    CU(cuGraphKernelNodeSetParams_v2)(grid.kernel, &params);
    update("another grid", grid.graph);
  }
  {
    Three attribute(work, count, 5);
    CUkernelNodeAttrValue value;
    std::memset(&value, 0, sizeof value);
    value.cooperative = 1;
    CU(cuGraphKernelNodeSetAttribute)(attribute.kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
    update("a cooperative kernel", attribute.graph);
    value.priority = -1;
    CU(cuGraphKernelNodeSetAttribute)(attribute.kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    update("a kernel of priority -1", attribute.graph);
  }
  {
    Three rows(work, count, 5);
    CUDA_MEMSET_NODE_PARAMS params = fill_of(work.a + 16, 5);
    params.height = 2, params.pitch = 8;
    CU(cuGraphMemsetNodeSetParams)(rows.fill, &params);
    update("a fill of rows", rows.graph);
    params = fill_of(work.a + 4, 9, 2);
    CU(cuGraphMemsetNodeSetParams)(rows.fill, &params);
    update("a fill of two words", rows.graph);
  }
  {
    CUgraph kind = make_graph();
    StoreParameters parameters(work.a, 5);
    const CUgraphNode kernel = add_kernel(kind, kernel_of(work.store, parameters.list));
    const CUgraphNode empty = add_empty(kind, {kernel});
    const CUDA_HOST_NODE_PARAMS counted = counting(count);
    CUgraphNode host = nullptr;
    CU(cuGraphAddHostNode)(&host, kind, &empty, 1, &counted);
    update("another kind of node", kind);
  }
  update("an empty graph", make_graph());
  update("in the end, the base", base.graph);
  run("in the end");
  auto result = odd<CUgraphExecUpdateResult>(99);
  CUgraphNode wrong = untouched<CUgraphNode>();
  show("version 1", CU(cuGraphExecUpdate)(exec, base.graph, &wrong, &result));
  show("its result", result);
  show_flag("its node is null", wrong == nullptr);
  show("version 1, an empty graph", CU(cuGraphExecUpdate)(exec, make_graph(), &wrong, &result));
  show("its result", result);
  show("no exec", CU(cuGraphExecUpdate_v2)(nullptr, base.graph, &info));
  show("no graph", CU(cuGraphExecUpdate_v2)(exec, nullptr, &info));
  show_guarded("no place", [&] { return CU(cuGraphExecUpdate_v2)(exec, base.graph, nullptr); });
}

GROUP(graph_updates_of_copies, InContext) {
  GraphWork work;
  unsigned from = 5, other = 6, to = 0;
  const auto graph_of = [&](const CUDA_MEMCPY3D& copied) {
    CUgraph graph = make_graph();
    CUgraphNode node = nullptr;
    CU(cuGraphAddMemcpyNode)(&node, graph, nullptr, 0, &copied, work.context);
    return graph;
  };
  const CUgraphExec exec = instantiated(graph_of(copy_of(work.a, &from, 4)));
  const auto update = [&](const std::string& what, const CUDA_MEMCPY3D& copied) {
    CUgraphExecUpdateResultInfo info;
    std::memset(&info, 0, sizeof info);
    show(what, CU(cuGraphExecUpdate_v2)(exec, graph_of(copied), &info));
    show(what + ", result", info.result);
  };
  update("another source", copy_of(work.a, &other, 4));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the word", word_at(work.a));
  update("fewer bytes", copy_of(work.a, &other, 2));
  update("to the host", copy_of(&to, work.a, 4));
  update("on the device", copy_of(work.a, work.a + 4, 4));
  CUDA_MEMCPY3D rows = copy_of(work.a, work.a + 32, 4);
  rows.Height = 2, rows.srcPitch = rows.dstPitch = 8;
  update("of rows", rows);
}

// ---- user objects --------------------------------------------------------------------------------------------------

GROUP(user_objects, InContext) {
  Counter count = 0;
  CUuserObject object = nullptr, second = nullptr;
  constexpr unsigned no_sync = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
  const auto create = CU(cuUserObjectCreate);
  show("flags 0", create(&object, &count, count_call, 1, 0));
  show("flags 2", create(&object, &count, count_call, 1, 2));
  show("no reference", create(&object, &count, count_call, 0, no_sync));
  show("2^31 references", create(&object, &count, count_call, 1U << 31, no_sync));
  show("no function", create(&object, &count, nullptr, 1, no_sync));
  show("no place", create(nullptr, &count, count_call, 1, no_sync));
  show("no data", create(
                      &second, nullptr, [](void*) {}, 1, no_sync));
  show("create", create(&object, &count, count_call, 2, no_sync));
  show("retain", CU(cuUserObjectRetain)(object, 3));
  show("retain none", CU(cuUserObjectRetain)(object, 0));
  show("retain 2^31", CU(cuUserObjectRetain)(object, 1U << 31));
  show("retain null", CU(cuUserObjectRetain)(nullptr, 1));
  show("release none", CU(cuUserObjectRelease)(object, 0));
  show("release 2^31", CU(cuUserObjectRelease)(object, 1U << 31));
  show("release null", CU(cuUserObjectRelease)(nullptr, 1));
  show("release four", CU(cuUserObjectRelease)(object, 4));
  CU(cuCtxSynchronize)();
  show("calls", count);
  show("release the last", CU(cuUserObjectRelease)(object, 1));
  CU(cuCtxSynchronize)();
  show("calls in the end", settled(count, 1));
}

GROUP(user_objects_of_graphs, InContext) {
  GraphWork work;
  Counter count = 0;
  CUuserObject object = nullptr;
  CUgraph graph = make_graph(), clone = nullptr;
  add_kernel(graph, kernel_of(work.empty));
  const auto retain = CU(cuGraphRetainUserObject);
  const auto release = CU(cuGraphReleaseUserObject);
  CU(cuUserObjectCreate)(&object, &count, count_call, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  show("retain flags 2", retain(graph, object, 1, 2));
  show("retain none", retain(graph, object, 0, 0));
  show("retain no object", retain(graph, nullptr, 1, 0));
  show("retain in no graph", retain(nullptr, object, 1, 0));
  show("release before", release(graph, object, 1));
  show("retain", retain(graph, object, 2, 0));
  show("retain, moved", retain(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  show("release more than it has", release(graph, object, 9));
  show("release none", release(graph, object, 0));
  show("release one", release(graph, object, 1));
  show("release the program's last", CU(cuUserObjectRelease)(object, 1));
  show("clone", CU(cuGraphClone)(&clone, graph));
  const CUgraphExec exec = instantiated(graph);
  CU(cuCtxSynchronize)();
  show("calls while graph, clone and exec live", count);
  show("destroy the graph", CU(cuGraphDestroy)(graph));
  show("destroy the clone", CU(cuGraphDestroy)(clone));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("calls while the exec lives", count);
  show("destroy the exec", CU(cuGraphExecDestroy)(exec));
  CU(cuCtxSynchronize)();
  show("calls", settled(count, 1));
}

GROUP(user_object_of_a_running_graph, InContext) {
  GraphWork work;
  Gate gate;
  Counter count = 0;
  CUuserObject object = nullptr;
  CUgraph graph = make_graph();
  CUgraphNode node = nullptr;
  const CUDA_HOST_NODE_PARAMS holding{.fn = Gate::hold, .userData = &gate};
  CU(cuGraphAddHostNode)(&node, graph, nullptr, 0, &holding);
  CU(cuUserObjectCreate)(&object, &count, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  CU(cuGraphRetainUserObject)(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  const CUgraphExec exec = instantiated(graph);
  CU(cuGraphLaunch)(exec, work.stream);
  show_flag("it runs", gate.is_entered());
  show("destroy the graph", CU(cuGraphDestroy)(graph));
  show("destroy the exec", CU(cuGraphExecDestroy)(exec));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  show("calls while it runs", count);
  gate.open = true;
  show("wait", CU(cuStreamSynchronize)(work.stream));
  CU(cuCtxSynchronize)();
  show("calls", settled(count, 1));
}

}  // namespace
}  // namespace contract
