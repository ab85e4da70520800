// Cases for nodes of child graphs, events, memory operations, memory allocation and conditions, and for the calls that
// create nodes of any type.
#include "tests/contract/batches.h"
#include "tests/contract/graphs.h"

namespace contract {
namespace {

GROUP(child_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph(), child = make_graph(), inside = nullptr;
  CUgraphNode node = nullptr, made = nullptr;
  StoreParameters parameters(work.a, 5);
  const CUgraphNode in_child = add_kernel(child, kernel_of(work.store, parameters.list));
  const auto add = CU(cuGraphAddChildGraphNode);
  show("add", add(&node, graph, nullptr, 0, child));
  auto type = odd<CUgraphNodeType>(99);
  CU(cuGraphNodeGetType)(node, &type);
  show("its type", type);
  show("add it again behind", add(&made, graph, &node, 1, child));
  show("add an empty graph", add(&made, graph, nullptr, 0, make_graph()));
  show("add null", add(&made, graph, nullptr, 0, nullptr));
  show("without a place", add(nullptr, graph, nullptr, 0, child));
  show("in no graph", add(&made, nullptr, nullptr, 0, child));
  show("behind the child's node", add(&made, graph, &in_child, 1, child));
  show("nodes", nodes_in(graph));
  show("cuGraphChildGraphNodeGetGraph", CU(cuGraphChildGraphNodeGetGraph)(node, &inside));
  show_flag("it is a clone", inside != child && inside != nullptr);
  show("its nodes", nodes_in(inside));
  CUgraphNode found = nullptr;
  show("find the child's node in it", CU(cuGraphNodeFindInClone)(&found, in_child, inside));
  show("get of an empty node", CU(cuGraphChildGraphNodeGetGraph)(add_empty(graph), &inside));
  show("get without a place", CU(cuGraphChildGraphNodeGetGraph)(node, nullptr));
  CU(cuGraphChildGraphNodeGetGraph)(node, &inside);
  show_flag("add to the child of a node", add_empty(inside) != nullptr);
  show("its nodes", nodes_in(inside));
  show("destroy the child", CU(cuGraphDestroy)(child));
  show("it runs", run_once(graph, work.stream));
  show("the word", word_at(work.a));
}

GROUP(event_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  CUgraphNode record = nullptr, wait = nullptr, made = nullptr;
  CUevent event = nullptr;
  show("add a record", CU(cuGraphAddEventRecordNode)(&record, graph, nullptr, 0, work.event));
  show("add a wait", CU(cuGraphAddEventWaitNode)(&wait, graph, &record, 1, work.event));
  for (const CUgraphNode node : {record, wait}) {
    auto type = odd<CUgraphNodeType>(99);
    CU(cuGraphNodeGetType)(node, &type);
    show("type", type);
  }
  show("record null", CU(cuGraphAddEventRecordNode)(&made, graph, nullptr, 0, nullptr));
  show("wait for null", CU(cuGraphAddEventWaitNode)(&made, graph, nullptr, 0, nullptr));
  show("get of a record", CU(cuGraphEventRecordNodeGetEvent)(record, &event));
  show_flag("the event", event == work.event);
  show("get of a wait", CU(cuGraphEventWaitNodeGetEvent)(wait, &event));
  show("get a record of a wait", CU(cuGraphEventRecordNodeGetEvent)(wait, &event));
  show("get a wait of a record", CU(cuGraphEventWaitNodeGetEvent)(record, &event));
  show("set a record", CU(cuGraphEventRecordNodeSetEvent)(record, work.second));
  CU(cuGraphEventRecordNodeGetEvent)(record, &event);
  show_flag("the second event", event == work.second);
  show("set a wait", CU(cuGraphEventWaitNodeSetEvent)(wait, work.second));
  show("set a record of null", CU(cuGraphEventRecordNodeSetEvent)(record, nullptr));
  show("set a wait for null", CU(cuGraphEventWaitNodeSetEvent)(wait, nullptr));
  const CUgraphExec exec = instantiated(graph);
  const auto set_record = CU(cuGraphExecEventRecordNodeSetEvent);
  show("exec: set a record", set_record(exec, record, work.event));
  show("exec: set a wait", CU(cuGraphExecEventWaitNodeSetEvent)(exec, wait, work.event));
  show("exec: set a record of null", set_record(exec, record, nullptr));
  show("exec: set a record by a wait", set_record(exec, wait, work.event));
  show("the event before", CU(cuEventQuery)(work.event));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("another stream waits", CU(cuStreamWaitEvent)(work.other, work.event, 0));
  show("wait for that", CU(cuStreamSynchronize)(work.other));
  show("the event", CU(cuEventSynchronize)(work.event));
  show("the stream", CU(cuStreamSynchronize)(work.stream));
  show("get without a place", CU(cuGraphEventRecordNodeGetEvent)(record, nullptr));
  show("destroy an event of a graph", CU(cuEventDestroy_v2)(work.second));
}

GROUP(word_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  CUgraphNode node = nullptr, made = nullptr;
  CUstreamBatchMemOpParams ops[] = {write_word(work.a, 5), wait_for_word(work.a, 5), write_word(work.a + 4, 6)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS good{.ctx = work.context, .count = 3, .paramArray = ops, .flags = 0}, out{};
  show("add", CU(cuGraphAddBatchMemOpNode)(&node, graph, nullptr, 0, &good));
  auto type = odd<CUgraphNodeType>(99);
  CU(cuGraphNodeGetType)(node, &type);
  show("its type", type);
  show("get", CU(cuGraphBatchMemOpNodeGetParams)(node, &out));
  show("count", out.count);
  show_flag("the operations are not the program's", out.paramArray != nullptr && out.paramArray != ops);
  show_flag("the context", out.ctx == work.context);
  const auto with = [&](const std::string& what, auto change) {
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = good;
    change(params);
    show("add " + what, CU(cuGraphAddBatchMemOpNode)(&made, graph, nullptr, 0, &params));
    show("set " + what, CU(cuGraphBatchMemOpNodeSetParams)(node, &params));
  };
  with("flags 1", [](auto& p) { p.flags = 1; });
  with("none", [](auto& p) { p.count = 0; });
  std::vector<CUstreamBatchMemOpParams> many(257, write_word(work.a, 5));
  with("256", [&](auto& p) { p.count = 256, p.paramArray = many.data(); });
  with("257", [&](auto& p) { p.count = 257, p.paramArray = many.data(); });
  show("set", CU(cuGraphBatchMemOpNodeSetParams)(node, &good));
  CUgraph alone = make_graph();
  CU(cuGraphAddBatchMemOpNode)(&made, alone, nullptr, 0, &good);
  const CUgraphExec exec = instantiated(alone);
  ops[2].writeValue.value = 7;
  show("exec: set", CU(cuGraphExecBatchMemOpNodeSetParams)(exec, made, &good));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the last word", word_at(work.a + 4));
  show("get of an empty node", CU(cuGraphBatchMemOpNodeGetParams)(add_empty(graph), &out));
  good.ctx = nullptr;
  show_guarded("add without a context", [&] { return CU(cuGraphAddBatchMemOpNode)(&made, graph, nullptr, 0, &good); });
}

CUDA_MEM_ALLOC_NODE_PARAMS allocation(std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS out;
  std::memset(&out, 0, sizeof out);
  out.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  out.poolProps.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  out.bytesize = bytes;
  return out;
}

GROUP(memory_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph(), clone = nullptr;
  CUgraphNode node = nullptr, made = nullptr, copy = nullptr, freed = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS good = allocation(1024), out{};
  show("add", CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &good));
  show_flag("an address", good.dptr != 0);
  show("get", CU(cuGraphMemAllocNodeGetParams)(node, &out));
  show("bytes", static_cast<long long>(out.bytesize));
  show_flag("the address", out.dptr == good.dptr);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1} << 60}) {
    CUDA_MEM_ALLOC_NODE_PARAMS bad = allocation(bytes);
    show("add of " + std::to_string(bytes) + " bytes", CU(cuGraphAddMemAllocNode)(&made, graph, nullptr, 0, &bad));
  }
  CUDA_MEM_ALLOC_NODE_PARAMS bad = allocation(64);
  bad.poolProps.location.id = 99;
  show("add on device 99", CU(cuGraphAddMemAllocNode)(&made, graph, nullptr, 0, &bad));
  bad = allocation(64);
  bad.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  show("add for export", CU(cuGraphAddMemAllocNode)(&made, graph, nullptr, 0, &bad));
  StoreParameters parameters(good.dptr, 6);
  const CUgraphNode store = add_kernel(graph, kernel_of(work.store, parameters.list), {node});
  const CUDA_MEMCPY3D back = copy_of(work.a, good.dptr, 4);
  show("a copy from it", CU(cuGraphAddMemcpyNode)(&copy, graph, &store, 1, &back, work.context));
  show("free it", CU(cuGraphAddMemFreeNode)(&freed, graph, &copy, 1, good.dptr));
  show("free it again", CU(cuGraphAddMemFreeNode)(&made, graph, &copy, 1, good.dptr));
  show("free a plain address", CU(cuGraphAddMemFreeNode)(&made, graph, nullptr, 0, work.a));
  show("free null", CU(cuGraphAddMemFreeNode)(&made, graph, nullptr, 0, 0));
  CUdeviceptr address = 0;
  show("get of the free", CU(cuGraphMemFreeNodeGetParams)(freed, &address));
  show_flag("the address", address == good.dptr);
  show("clone", CU(cuGraphClone)(&clone, graph));
  show("destroy the node", CU(cuGraphDestroyNode)(node));
  show("remove an edge", CU(cuGraphRemoveDependencies_v2)(graph, &node, &store, nullptr, 1));
  show("as a child", CU(cuGraphAddChildGraphNode)(&made, make_graph(), nullptr, 0, graph));
  CUgraphExec exec = nullptr, second = nullptr;
  show("instantiate", CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  show("instantiate twice", CU(cuGraphInstantiateWithFlags)(&second, graph, 0));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the word", word_at(work.a));
  cuuint64_t used = 77;
  show("memory used", CU(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  show("it is", static_cast<long long>(used));
  show("reserved", CU(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
  show_flag("some", used > 0);
  used = 0;
  show("reset the high mark", CU(cuDeviceSetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used));
  show("set what is used", CU(cuDeviceSetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  used = 5;
  show("set the high mark to 5", CU(cuDeviceSetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used));
  show("attribute 9", CU(cuDeviceGetGraphMemAttribute)(device, odd<CUgraphMem_attribute>(9), &used));
  show("of device 99", CU(cuDeviceGetGraphMemAttribute)(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used));
  show("destroy the exec", CU(cuGraphExecDestroy)(exec));
  show("trim", CU(cuDeviceGraphMemTrim)(device));
  show("trim device 99", CU(cuDeviceGraphMemTrim)(99));
  CU(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used);
  show("reserved in the end", static_cast<long long>(used));
}

// The simulation has no allocation nodes, so graphs own no memory.
GROUP(graph_memory_attributes, InContext) {
  for (const auto& [name, attribute] : {std::pair{"used", CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT},
                                        {"used at most", CU_GRAPH_MEM_ATTR_USED_MEM_HIGH},
                                        {"reserved", CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT},
                                        {"reserved at most", CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH}}) {
    const std::string what = name;
    cuuint64_t value = 77;
    show("get " + what, CU(cuDeviceGetGraphMemAttribute)(device, attribute, &value));
    show(what, static_cast<long long>(value));
    value = 0;
    show("set " + what + " to 0", CU(cuDeviceSetGraphMemAttribute)(device, attribute, &value));
    value = 5;
    show("set " + what + " to 5", CU(cuDeviceSetGraphMemAttribute)(device, attribute, &value));
  }
  cuuint64_t value = 0;
  show("get attribute 9", CU(cuDeviceGetGraphMemAttribute)(device, odd<CUgraphMem_attribute>(9), &value));
  show("set attribute 9", CU(cuDeviceSetGraphMemAttribute)(device, odd<CUgraphMem_attribute>(9), &value));
  show("get of device 99", CU(cuDeviceGetGraphMemAttribute)(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  show("set of device 99", CU(cuDeviceSetGraphMemAttribute)(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  show("trim", CU(cuDeviceGraphMemTrim)(device));
}

GROUP(nodes_alone, Loaded) {
  show_alone_in_context("add a graph to itself", [] {
    CUgraph graph = make_graph();
    add_empty(graph);
    CUgraphNode made = nullptr;
    return CU(cuGraphAddChildGraphNode)(&made, graph, nullptr, 0, graph);
  });
  show_alone_in_context("read a node's memory before a launch", [] {
    CUgraph graph = make_graph();
    CUgraphNode made = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation(1024);
    CU(cuGraphAddMemAllocNode)(&made, graph, nullptr, 0, &params);
    unsigned word = 0;
    return CU(cuMemcpyDtoH_v2)(&word, params.dptr, 4);
  });
  show_alone_in_context("free a node's memory beside the node", [] {
    CUgraph graph = make_graph();
    CUgraphNode made = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation(1024);
    CU(cuGraphAddMemAllocNode)(&made, graph, nullptr, 0, &params);
    return CU(cuGraphAddMemFreeNode)(&made, graph, nullptr, 0, params.dptr);
  });
  show_alone_in_context("free a node's memory in another graph", [] {
    CUgraph graph = make_graph();
    CUgraphNode made = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation(1024);
    CU(cuGraphAddMemAllocNode)(&made, graph, nullptr, 0, &params);
    return CU(cuGraphAddMemFreeNode)(&made, make_graph(), nullptr, 0, params.dptr);
  });
  show_alone_in_context("a condition of handle 0", [] {
    CUgraphNodeParams params;
    CUgraphNode made = nullptr;
    std::memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.size = 1;
    params.conditional.ctx = current_context();
    return CU(cuGraphAddNode_v2)(&made, make_graph(), nullptr, nullptr, 0, &params);
  });
}

GROUP(memory_that_outlives_a_launch, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  CUgraphNode node = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params = allocation(1024);
  CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params);
  CUgraphExec exec = nullptr, freeing = nullptr;
  show("instantiate", CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("launch while it is held", CU(cuGraphLaunch)(exec, work.stream));
  show("cuMemsetD32 of it", CU(cuMemsetD32Async)(params.dptr, 7, 1, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the word", word_at(params.dptr));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(params.dptr, work.stream));
  show("launch again", CU(cuGraphLaunch)(exec, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("cuMemFree", CU(cuMemFree_v2)(params.dptr));
  show("destroy the exec", CU(cuGraphExecDestroy)(exec));
  show("instantiate with automatic free",
       CU(cuGraphInstantiateWithFlags)(&freeing, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  show("launch", CU(cuGraphLaunch)(freeing, work.stream));
  show("launch while it is held", CU(cuGraphLaunch)(freeing, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("destroy the exec", CU(cuGraphExecDestroy)(freeing));
}

}  // namespace
}  // namespace contract
