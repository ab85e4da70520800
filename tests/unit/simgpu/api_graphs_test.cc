// Tests graphs of the simulated GPU that are built by explicit calls: their structure, their nodes, and their launches.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "tests/unit/simgpu/api_graph_fixture.h"

namespace {

using graph_test::GraphTest;
using graph_test::Numbers;

class Graphs : public GraphTest {};

// ---- structure -----------------------------------------------------------------------------------------------------

TEST_F(Graphs, ListsNodesRootsAndEdges) {
  CUgraphNode a = add_empty(graph_, {}), b = add_empty(graph_, {a}), c = add_empty(graph_, {a, b});
  CUgraphNode nodes[5] = {a, a, a, a, a};
  std::size_t count = 5;
  OK(cuGraphGetNodes(graph_, nodes, &count));
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(std::vector(nodes, nodes + 5), (Nodes{a, b, c, nullptr, nullptr}));
  count = 2;
  OK(cuGraphGetNodes(graph_, nodes, &count));
  EXPECT_EQ(count, 2U);
  count = 0;
  OK(cuGraphGetRootNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 1U);
  OK(cuGraphGetRootNodes(graph_, nodes, &count));
  EXPECT_EQ(nodes[0], a);
  CUgraphNode from[3] = {}, to[3] = {};
  count = 3;
  OK(cuGraphGetEdges(graph_, from, to, nullptr, &count));
  EXPECT_EQ(count, 3U);
  std::vector<std::pair<CUgraphNode, CUgraphNode>> edges;
  for (std::size_t i = 0; i < 3; ++i) edges.emplace_back(from[i], to[i]);
  for (const auto& edge : {std::pair(a, b), std::pair(a, c), std::pair(b, c)})
    EXPECT_NE(std::find(edges.begin(), edges.end(), edge), edges.end());
  EXPECT_EQ(cuGraphGetEdges(graph_, from, nullptr, nullptr, &count), CUDA_ERROR_INVALID_VALUE);
  count = 0;
  OK(cuGraphNodeGetDependencies(c, nullptr, nullptr, &count));
  EXPECT_EQ(count, 2U);
  OK(cuGraphNodeGetDependencies(c, nodes, nullptr, &count));
  EXPECT_EQ(std::vector(nodes, nodes + 2), (Nodes{a, b}));
  count = 2;
  OK(cuGraphNodeGetDependentNodes(a, nodes, nullptr, &count));
  EXPECT_EQ(std::vector(nodes, nodes + 2), (Nodes{b, c}));
  CUgraphNodeType type{};
  OK(cuGraphNodeGetType(a, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EMPTY);
}

TEST_F(Graphs, RefusesEdgesThatRepeat) {
  CUgraphNode a = add_empty(graph_, {}), b = add_empty(graph_, {a}), c = add_empty(graph_, {});
  EXPECT_EQ(cuGraphAddDependencies(graph_, &a, &b, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddDependencies(graph_, &a, &a, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddDependencies(graph_, nullptr, &a, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode from[] = {b, a}, to[] = {c, b};
  EXPECT_EQ(cuGraphAddDependencies(graph_, from, to, nullptr, 2), CUDA_ERROR_INVALID_VALUE);
  std::size_t count = 0;
  OK(cuGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, 1U) << "of several edges all are made or none is";
  OK(cuGraphAddDependencies(graph_, &b, &c, nullptr, 1));
  EXPECT_EQ(cuGraphRemoveDependencies(graph_, &a, &c, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphRemoveDependencies(graph_, &a, &b, nullptr, 1));
  OK(cuGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, 1U);
  CUgraph stranger = nullptr;
  OK(cuGraphCreate(&stranger, 0));
  CUgraphNode d = nullptr;
  EXPECT_EQ(cuGraphAddEmptyNode(&d, stranger, &a, 1), CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode twice[] = {a, a};
  EXPECT_EQ(cuGraphAddEmptyNode(&d, graph_, twice, 2), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(stranger));
}

TEST_F(Graphs, ACycleIsFoundWhenTheGraphIsInstantiated) {
  CUgraphNode a = add_empty(graph_, {}), b = add_empty(graph_, {a});
  OK(cuGraphAddDependencies(graph_, &b, &a, nullptr, 1));
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph_, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  EXPECT_NE(params.hErrNode_out, nullptr);
  CUgraph outer = nullptr;
  CUgraphNode child = nullptr;
  OK(cuGraphCreate(&outer, 0));
  OK(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, graph_));
  EXPECT_EQ(cuGraphInstantiate(&exec, outer, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(outer));
  OK(cuGraphRemoveDependencies(graph_, &b, &a, nullptr, 1));
  run_once(graph_);
}

TEST_F(Graphs, EdgesKeepTheirData) {
  CUgraphNode a = add_kernel(graph_, {}, add_, device_at(0), 1), b = add_kernel(graph_, {}, add_, device_at(0), 1);
  CUgraphEdgeData data{};
  data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  OK(cuGraphAddDependencies(graph_, &a, &b, &data, 1));
  CUgraphNode found = nullptr;
  std::size_t count = 1;
  EXPECT_EQ(cuGraphNodeGetDependencies(b, &found, nullptr, &count), CUDA_ERROR_LOSSY_QUERY);
  CUgraphEdgeData out{};
  OK(cuGraphNodeGetDependencies(b, &found, &out, &count));
  EXPECT_EQ(found, a);
  EXPECT_EQ(out.from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  EXPECT_EQ(out.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  OK(cuGraphRemoveDependencies(graph_, &a, &b, nullptr, 1)) << "whatever the edge's data";
  data.to_port = 1;
  EXPECT_EQ(cuGraphAddDependencies(graph_, &a, &b, &data, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, DestroyedNodesAndGraphsAreGone) {
  CUgraphNode a = add_empty(graph_, {}), b = add_empty(graph_, {a}), c = add_empty(graph_, {b});
  OK(cuGraphDestroyNode(b));
  EXPECT_EQ(count_nodes(graph_), 2U);
  CUgraphNodeType type{};
  EXPECT_EQ(cuGraphNodeGetType(b, &type), CUDA_ERROR_INVALID_VALUE);
  std::size_t count = 9;
  OK(cuGraphNodeGetDependencies(c, nullptr, nullptr, &count));
  EXPECT_EQ(count, 0U);
  OK(cuGraphDestroy(graph_));
  EXPECT_EQ(cuGraphNodeGetType(a, &type), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroy(graph_), CUDA_ERROR_INVALID_VALUE);
  graph_ = nullptr;
}

TEST_F(Graphs, ClonesAreTheirOwn) {
  CUgraphNode a = add_kernel(graph_, {}, add_, device_at(0), 1), b = add_kernel(graph_, {a}, add_, device_at(1), 2);
  CUgraph copy = nullptr;
  OK(cuGraphClone(&copy, graph_));
  EXPECT_EQ(count_nodes(copy), 2U);
  CUgraphNode a2 = nullptr, b2 = nullptr, found = nullptr;
  OK(cuGraphNodeFindInClone(&a2, a, copy));
  OK(cuGraphNodeFindInClone(&b2, b, copy));
  std::size_t count = 1;
  OK(cuGraphNodeGetDependencies(b2, &found, nullptr, &count));
  EXPECT_EQ(found, a2);
  EXPECT_EQ(cuGraphNodeFindInClone(&found, a2, graph_), CUDA_ERROR_INVALID_VALUE);
  const Kernel changed(add_, device_at(0), 40);
  OK(cuGraphKernelNodeSetParams(a2, &changed.params));
  run_once(graph_);
  EXPECT_EQ(on_device(0), 1U);
  OK(cuGraphDestroyNode(a2));
  EXPECT_EQ(cuGraphNodeFindInClone(&found, a, copy), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(copy));
}

TEST_F(Graphs, PrintsItselfForGraphviz) {
  add_note(graph_, {add_empty(graph_, {})}, 1);
  const std::string path = testing::TempDir() + "simgpu_graph_" + std::to_string(getpid()) + ".dot";
  OK(cuGraphDebugDotPrint(graph_, path.c_str(), 0));
  std::FILE* const file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  std::remove(path.c_str());
  EXPECT_NE(text.find("digraph"), std::string::npos);
  EXPECT_NE(text.find("HOST"), std::string::npos);
  EXPECT_NE(text.find("->"), std::string::npos);
  EXPECT_EQ(cuGraphDebugDotPrint(graph_, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

// ---- nodes ---------------------------------------------------------------------------------------------------------

TEST_F(Graphs, KernelNodesOwnTheirParameters) {
  CUgraphNode node = add_kernel(graph_, {}, add_, device_at(3), 7);
  CUDA_KERNEL_NODE_PARAMS params{};
  OK(cuGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(params.func, add_);
  EXPECT_EQ(params.gridDimX, 1U);
  ASSERT_NE(params.kernelParams, nullptr);
  EXPECT_EQ(params.extra, nullptr);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(params.kernelParams[0]), device_at(3));
  EXPECT_EQ(*static_cast<std::uint32_t*>(params.kernelParams[1]), 7U);
  params.blockDimX = 0;
  EXPECT_EQ(cuGraphKernelNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
  params.blockDimX = 1;
  OK(cuGraphKernelNodeSetParams(node, &params));  // the node's parameters are set from its own arrays
  run_once(graph_);
  EXPECT_EQ(on_device(3), 7U);
  CUDA_HOST_NODE_PARAMS host{};
  EXPECT_EQ(cuGraphHostNodeGetParams(node, &host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, KernelNodesKeepTheKernelBesideItsFunction) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  OK(cuLibraryLoadData(&library, graph_test::ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, library, "add"));
  OK(cuKernelGetFunction(&function, kernel));
  Kernel given(function, device_at(0), 5);
  given.params.kern = kernel;
  CUgraphNode node = nullptr;
  OK(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &given.params));
  CUDA_KERNEL_NODE_PARAMS params{};
  OK(cuGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(params.func, function);
  EXPECT_EQ(params.kern, kernel);
  OK(cuGraphKernelNodeSetParams(node, &params));
  OK(cuGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(params.kern, kernel);
  run_once(graph_);
  EXPECT_EQ(on_device(0), 5U);
  OK(cuLibraryUnload(library));
}

TEST_F(Graphs, KernelNodesGiveABufferBackAsABuffer) {
  struct {
    CUdeviceptr at;
    std::uint32_t value;
  } packed{device_at(0), 5};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS params = Kernel(add_, 0, 0).params;
  CUgraphNode node = nullptr;
  params.extra = extra;
  EXPECT_EQ(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE) << "both forms";
  params.kernelParams = nullptr;
  OK(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  packed.value = 6;
  CUDA_KERNEL_NODE_PARAMS out{};
  OK(cuGraphKernelNodeGetParams(node, &out));
  EXPECT_EQ(out.kernelParams, nullptr);
  ASSERT_NE(out.extra, nullptr);
  run_once(graph_);
  EXPECT_EQ(on_device(0), 5U);
}

TEST_F(Graphs, KernelNodesHaveAttributes) {
  CUgraphNode a = add_kernel(graph_, {}, add_, device_at(0), 1), b = add_kernel(graph_, {}, add_, device_at(0), 1);
  CUkernelNodeAttrValue value{};
  OK(cuGraphKernelNodeGetAttribute(a, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  EXPECT_EQ(value.cooperative, 0);
  value.cooperative = 1;
  OK(cuGraphKernelNodeSetAttribute(a, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  value.priority = -3;
  OK(cuGraphKernelNodeSetAttribute(a, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
  OK(cuGraphKernelNodeCopyAttributes(b, a));
  value = {};
  OK(cuGraphKernelNodeGetAttribute(b, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  EXPECT_EQ(value.cooperative, 1);
  OK(cuGraphKernelNodeGetAttribute(b, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
  EXPECT_EQ(value.priority, -3);
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
            CUDA_ERROR_INVALID_VALUE);
  const Kernel changed(add_, device_at(0), 2);
  OK(cuGraphKernelNodeSetParams(b, &changed.params));
  OK(cuGraphKernelNodeGetAttribute(b, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  EXPECT_EQ(value.cooperative, 1) << "new parameters leave the attributes";
  EXPECT_EQ(cuGraphKernelNodeCopyAttributes(b, add_empty(graph_, {})), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, CopiesAndFillsGiveBackWhatWasAsked) {
  const CUDA_MEMCPY3D asked = row(CU_MEMORYTYPE_DEVICE, device_at(0), CU_MEMORYTYPE_HOST, word_at(0), 8);
  CUgraphNode copy = add_copy(graph_, {}, asked), fill = add_fill(graph_, {copy}, device_at(4), 9, 2);
  CUDA_MEMCPY3D out{};
  OK(cuGraphMemcpyNodeGetParams(copy, &out));
  EXPECT_EQ(out.dstDevice, device_at(0));
  EXPECT_EQ(out.srcHost, word_);
  EXPECT_EQ(out.WidthInBytes, 8U);
  CUDA_MEMSET_NODE_PARAMS set{};
  OK(cuGraphMemsetNodeGetParams(fill, &set));
  EXPECT_EQ(set.value, 9U);
  set.elementSize = 3;
  EXPECT_EQ(cuGraphMemsetNodeSetParams(fill, &set), CUDA_ERROR_INVALID_VALUE);
  set.elementSize = 4;
  set.width = 0;
  EXPECT_EQ(cuGraphMemsetNodeSetParams(fill, &set), CUDA_ERROR_INVALID_VALUE);
  out.dstDevice = 16;
  EXPECT_EQ(cuGraphMemcpyNodeSetParams(copy, &out), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, AnyNodeCanBeMadeByOneStruct) {
  const Kernel kernel(add_, device_at(0), 3);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = kernel.params.func;
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = kernel.params.kernelParams;
  CUgraphNode node = nullptr, copy = nullptr;
  OK(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  CUgraphNodeParams back{};
  back.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  back.memcpy.copyCtx = context_;
  back.memcpy.copyParams = row(CU_MEMORYTYPE_HOST, word_at(0), CU_MEMORYTYPE_DEVICE, device_at(0), 4);
  OK(cuGraphAddNode(&copy, graph_, &node, nullptr, 1, &back));
  run_once(graph_);
  EXPECT_EQ(word_[0], 3U);
  EXPECT_EQ(cuGraphNodeSetParams(node, &back), CUDA_ERROR_INVALID_VALUE) << "another kind";
  const Kernel twice(multiply_, device_at(0), 10);
  params.kernel.func = twice.params.func;
  params.kernel.kernelParams = twice.params.kernelParams;
  OK(cuGraphNodeSetParams(node, &params));
  run_once(graph_);
  EXPECT_EQ(word_[0], 30U);
  params.reserved2 = 1;
  EXPECT_EQ(cuGraphNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeParams memory{};
  memory.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  EXPECT_EQ(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &memory), CUDA_ERROR_NOT_SUPPORTED);
}

// ---- launches ------------------------------------------------------------------------------------------------------

TEST_F(Graphs, NodesOfAllKindsRunInOrder) {
  std::uint32_t pageable[2] = {20, 0};
  const auto host = [](const void* p) { return reinterpret_cast<std::uint64_t>(p); };
  CUgraph inner = nullptr;
  OK(cuGraphCreate(&inner, 0));
  add_kernel(inner, {add_kernel(inner, {}, add_, device_at(0), 1)}, multiply_, device_at(0), 2);
  CUgraphNode in = add_copy(graph_, {}, row(CU_MEMORYTYPE_DEVICE, device_at(0), CU_MEMORYTYPE_HOST, host(pageable), 4));
  CUgraphNode first = add_note(graph_, {in}, 1);
  CUgraphNode child = nullptr;
  OK(cuGraphAddChildGraphNode(&child, graph_, &first, 1, inner));
  OK(cuGraphDestroy(inner));
  CUgraphNode filled = add_fill(graph_, {child}, device_at(1), 77, 1);
  CUgraphNode second = add_note(graph_, {filled}, 2);
  add_copy(graph_, {second}, row(CU_MEMORYTYPE_HOST, host(pageable + 1), CU_MEMORYTYPE_DEVICE, device_at(0), 4));
  CUgraphExec exec = instantiate(graph_);
  run(exec);
  EXPECT_EQ(pageable[1], 42U);
  EXPECT_EQ(on_device(1), 77U);
  pageable[0] = 30;  // the node reads this word at each launch
  run(exec);
  EXPECT_EQ(pageable[1], 62U);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2, 1, 2}));
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, BranchesRunSideBySide) {
  add_kernel(graph_, {}, meet_, word_at(0), word_at(1));
  add_kernel(graph_, {}, meet_, word_at(1), word_at(0));
  run_once(graph_);
  EXPECT_EQ(word_[0], 1U);
  EXPECT_EQ(word_[1], 1U);
}

TEST_F(Graphs, ALaunchKeepsTheOrderOfItsStream) {
  add_note(graph_, {}, 2);
  add_note(graph_, {}, 2);
  CUgraphExec exec = instantiate(graph_);
  hold(stream_);
  OK(cuLaunchHostFunc(stream_, write_note, note(1)));
  OK(cuGraphLaunch(exec, stream_));
  OK(cuGraphExecDestroy(exec));  // the launch is in flight and continues
  OK(cuLaunchHostFunc(stream_, write_note, note(3)));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(notes_.entries(), Numbers());
  let_go();
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2, 2, 3}));
}

TEST_F(Graphs, LaunchesOfOneExecutableGraphDoNotOverlap) {
  add_note(graph_, {}, 1);
  CUgraphExec exec = instantiate(graph_);
  hold(stream_);
  OK(cuGraphLaunch(exec, stream_));
  OK(cuGraphLaunch(exec, other_));
  EXPECT_EQ(cuStreamQuery(other_), CUDA_ERROR_NOT_READY);
  let_go();
  OK(cuStreamSynchronize(other_));
  EXPECT_EQ(notes_.entries(), (Numbers{1, 1}));
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, EventNodesRecordAndAwait) {
  CUevent recorded = nullptr, awaited = nullptr;
  OK(cuEventCreate(&recorded, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&awaited, CU_EVENT_DISABLE_TIMING));
  CUgraphNode wait = nullptr, record = nullptr;
  OK(cuGraphAddEventWaitNode(&wait, graph_, nullptr, 0, awaited));
  CUgraphNode noted = add_note(graph_, {wait}, 2);
  OK(cuGraphAddEventRecordNode(&record, graph_, &noted, 1, recorded));
  add_note(graph_, {record}, 3);
  CUevent found = nullptr;
  OK(cuGraphEventWaitNodeGetEvent(wait, &found));
  EXPECT_EQ(found, awaited);
  OK(cuGraphEventRecordNodeGetEvent(record, &found));
  EXPECT_EQ(found, recorded);
  EXPECT_EQ(cuGraphEventRecordNodeGetEvent(wait, &found), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = instantiate(graph_);
  hold(other_);
  OK(cuLaunchHostFunc(other_, write_note, note(1)));
  OK(cuEventRecord(awaited, other_));
  OK(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuEventQuery(recorded), CUDA_ERROR_NOT_READY);
  let_go();
  OK(cuEventSynchronize(recorded));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2, 3}));
  OK(cuGraphExecDestroy(exec));
  OK(cuEventDestroy(recorded));
  OK(cuEventDestroy(awaited));
}

TEST_F(Graphs, NodesCanBeSwitchedOff) {
  CUgraphNode a = add_kernel(graph_, {}, add_, device_at(0), 1), b = add_note(graph_, {a}, 1);
  CUgraphExec exec = instantiate(graph_);
  unsigned enabled = 9;
  OK(cuGraphNodeGetEnabled(exec, a, &enabled));
  EXPECT_EQ(enabled, 1U);
  OK(cuGraphNodeSetEnabled(exec, a, 0));
  run(exec);
  EXPECT_EQ(on_device(0), 0U);
  OK(cuGraphNodeGetEnabled(exec, a, &enabled));
  EXPECT_EQ(enabled, 0U);
  OK(cuGraphNodeSetEnabled(exec, a, 1));
  run(exec);
  EXPECT_EQ(on_device(0), 1U);
  EXPECT_EQ(cuGraphNodeSetEnabled(exec, b, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, OneNodeOfAnExecutableGraphChanges) {
  CUgraphNode kernel = add_kernel(graph_, {}, add_, device_at(0), 1), fill = add_fill(graph_, {}, device_at(1), 1, 1);
  CUgraphNode copy =
      add_copy(graph_, {fill}, row(CU_MEMORYTYPE_DEVICE, device_at(2), CU_MEMORYTYPE_DEVICE, device_at(1), 4));
  CUgraphNode noted = add_note(graph_, {}, 1);
  CUgraphExec exec = instantiate(graph_);
  const Kernel ten(add_, device_at(0), 10);
  hold(stream_);
  OK(cuGraphLaunch(exec, stream_));
  OK(cuGraphExecKernelNodeSetParams(exec, kernel, &ten.params));
  CUDA_MEMSET_NODE_PARAMS set{.dst = device_at(1), .pitch = 0, .value = 5, .elementSize = 4, .width = 1, .height = 1};
  OK(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context_));
  const CUDA_MEMCPY3D moved = row(CU_MEMORYTYPE_DEVICE, device_at(3), CU_MEMORYTYPE_DEVICE, device_at(1), 4);
  OK(cuGraphExecMemcpyNodeSetParams(exec, copy, &moved, context_));
  const CUDA_HOST_NODE_PARAMS host{.fn = write_note, .userData = note(2)};
  OK(cuGraphExecHostNodeSetParams(exec, noted, &host));
  let_go();
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(on_device(0), 1U) << "a launch before the change";
  EXPECT_EQ(on_device(2), 1U);
  run(exec);
  EXPECT_EQ(on_device(0), 11U);
  EXPECT_EQ(on_device(2), 1U);
  EXPECT_EQ(on_device(3), 5U);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2}));
  const CUDA_MEMCPY3D other_kind = row(CU_MEMORYTYPE_HOST, word_at(0), CU_MEMORYTYPE_DEVICE, device_at(1), 4);
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, copy, &other_kind, context_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphExecKernelNodeSetParams(exec, fill, &ten.params), CUDA_ERROR_INVALID_VALUE);
  run_once(graph_);
  EXPECT_EQ(on_device(0), 12U) << "the graph itself has not changed";
  OK(cuGraphDestroyNode(kernel));
  EXPECT_EQ(cuGraphExecKernelNodeSetParams(exec, kernel, &ten.params), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, InstantiationReportsTheError) {
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&exec, graph_, 1ULL << 20), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphInstantiate(nullptr, graph_, 0), CUDA_ERROR_INVALID_VALUE);
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  params.hUploadStream = stream_;
  params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  OK(cuGraphInstantiateWithParams(&exec, graph_, &params));
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
  cuuint64_t flags = 0;
  OK(cuGraphExecGetFlags(exec, &flags));
  EXPECT_EQ(flags, cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD});
  OK(cuGraphUpload(exec, stream_));
  run(exec);
  OK(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
  CUgraphNode noted = add_note(graph_, {}, 1);
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph_, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
  EXPECT_EQ(params.hErrNode_out, noted);
}

template <class F>
F old_form(const char* name, int version) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(cuGetProcAddress(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status), CUDA_SUCCESS) << name;
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<F>(found);
}

TEST_F(Graphs, TheFormsOfOlderVersionsDoTheSame) {
  const auto add_old =
      old_form<CUresult (*)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_KERNEL_NODE_PARAMS_v1*)>(
          "cuGraphAddKernelNode", 10000);
  const auto get_old =
      old_form<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1*)>("cuGraphKernelNodeGetParams", 11000);
  const auto edges_old =
      old_form<CUresult (*)(CUgraph, CUgraphNode*, CUgraphNode*, std::size_t*)>("cuGraphGetEdges", 10000);
  const auto instantiate_old =
      old_form<CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t)>("cuGraphInstantiate", 11000);
  const auto update_old =
      old_form<CUresult (*)(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*)>("cuGraphExecUpdate", 11000);
  const Kernel kernel(add_, device_at(0), 6);
  CUDA_KERNEL_NODE_PARAMS_v1 params{};
  params.func = add_;
  params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = kernel.params.kernelParams;
  CUgraphNode first = nullptr, second = nullptr;
  OK(add_old(&first, graph_, nullptr, 0, &params));
  OK(add_old(&second, graph_, &first, 1, &params));
  CUDA_KERNEL_NODE_PARAMS_v1 found{};
  OK(get_old(second, &found));
  EXPECT_EQ(*static_cast<std::uint32_t*>(found.kernelParams[1]), 6U);
  CUgraphNode from = nullptr, to = nullptr;
  std::size_t count = 1;
  OK(edges_old(graph_, &from, &to, &count));
  EXPECT_EQ(from, first);
  EXPECT_EQ(to, second);
  CUgraphExec exec = nullptr;
  CUgraphNode wrong = first;
  char text[8] = "before";
  OK(instantiate_old(&exec, graph_, &wrong, text, sizeof text));
  EXPECT_EQ(wrong, nullptr);
  EXPECT_STREQ(text, "");
  run(exec);
  EXPECT_EQ(on_device(0), 12U);
  auto result = CU_GRAPH_EXEC_UPDATE_ERROR;
  OK(update_old(exec, graph_, &wrong, &result));
  EXPECT_EQ(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  OK(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, ALaunchWithoutNodesIsOneAllTheSame) {
  run_once(graph_);
  EXPECT_EQ(notes_.entries(), Numbers());
}

TEST_F(Graphs, AChildGraphIsChangedThroughItsOwnHandle) {
  CUgraph inner = nullptr, copy = nullptr;
  OK(cuGraphCreate(&inner, 0));
  CUgraphNode kernel = add_kernel(inner, {}, add_, device_at(0), 1), child = nullptr, inside = nullptr;
  OK(cuGraphAddChildGraphNode(&child, graph_, nullptr, 0, inner));
  OK(cuGraphChildGraphNodeGetGraph(child, &copy));
  EXPECT_NE(copy, inner);
  EXPECT_EQ(cuGraphDestroy(copy), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphNodeFindInClone(&inside, kernel, copy));
  const Kernel changed(add_, device_at(0), 100);
  OK(cuGraphKernelNodeSetParams(inside, &changed.params));
  CUgraphExec exec = instantiate(graph_);
  run(exec);
  EXPECT_EQ(on_device(0), 100U);
  OK(cuGraphExecChildGraphNodeSetParams(exec, child, inner));
  run(exec);
  EXPECT_EQ(on_device(0), 101U);
  add_empty(inner, {kernel});
  EXPECT_EQ(cuGraphExecChildGraphNodeSetParams(exec, child, inner), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(inner));
}

TEST_F(Graphs, HoldNoMemoryOfTheirOwn) {
  const auto get = cuDeviceGetGraphMemAttribute;
  const auto set = cuDeviceSetGraphMemAttribute;
  for (const auto attribute : {CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
                               CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH}) {
    const bool is_high =
        attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    cuuint64_t value = 77;
    OK(get(0, attribute, &value));
    EXPECT_EQ(value, 0U);
    EXPECT_EQ(set(0, attribute, &value), is_high ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    value = 5;
    EXPECT_EQ(set(0, attribute, &value), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(get(0, attribute, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(set(0, attribute, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(get(99, attribute, &value), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(set(99, attribute, &value), CUDA_ERROR_INVALID_DEVICE);
  }
  OK(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(cuDeviceGraphMemTrim(99), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace
