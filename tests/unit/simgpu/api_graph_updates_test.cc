// Tests updates of whole executable graphs, user objects, and conditional nodes on the simulated GPU.
#include <chrono>
#include <functional>

#include "tests/unit/simgpu/api_graph_fixture.h"

namespace {

using graph_test::GraphTest;
using graph_test::Numbers;

// ---- updates -------------------------------------------------------------------------------------------------------

class GraphUpdates : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    OK(cuGraphCreate(&next_, 0));
  }
  void TearDown() override {
    if (exec_ != nullptr) {
      EXPECT_EQ(cuGraphExecDestroy(exec_), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuGraphDestroy(next_), CUDA_SUCCESS);
    GraphTest::TearDown();
  }
  void expect_refused(CUgraphExecUpdateResult why, CUgraphNode node, CUgraphNode from = nullptr) {
    CUgraphExecUpdateResultInfo info{};
    EXPECT_EQ(cuGraphExecUpdate(exec_, next_, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, why);
    EXPECT_EQ(info.errorNode, node);
    EXPECT_EQ(info.errorFromNode, from);
  }

  CUgraph next_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

TEST_F(GraphUpdates, TakesTheParametersOfAGraphOfTheSameShape) {
  CUgraphNode a = add_kernel(graph_, {}, add_, device_at(0), 1);
  add_fill(graph_, {add_note(graph_, {a}, 1)}, device_at(1), 1, 1);
  exec_ = instantiate(graph_);
  run(exec_);
  CUgraphNode b = add_kernel(next_, {}, multiply_, device_at(0), 30);  // a kernel with another function
  add_fill(next_, {add_note(next_, {b}, 2)}, device_at(1), 2, 4);
  CUgraphExecUpdateResultInfo info{};
  info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
  OK(cuGraphExecUpdate(exec_, next_, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_EQ(info.errorNode, nullptr);
  run(exec_);
  EXPECT_EQ(on_device(0), 30U);
  EXPECT_EQ(on_device(4), 2U);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2}));
  const Kernel seven(add_, device_at(0), 7);  // nodes of the first graph still identify nodes of the executable graph
  OK(cuGraphExecKernelNodeSetParams(exec_, a, &seven.params));
  run(exec_);
  EXPECT_EQ(on_device(0), 37U);
}

TEST_F(GraphUpdates, ReportTheDifference) {
  CUgraphNode a = add_kernel(graph_, {}, add_, device_at(0), 1), b = add_kernel(graph_, {}, add_, device_at(1), 1);
  add_empty(graph_, {a, b});
  exec_ = instantiate(graph_);
  expect_refused(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);  // the number of nodes differs
  CUgraphNode c = add_kernel(next_, {}, add_, device_at(0), 1), d = add_note(next_, {}, 1);
  CUgraphNode end = add_empty(next_, {c});
  CUgraphExecUpdateResultInfo info{};
  EXPECT_EQ(cuGraphExecUpdate(exec_, next_, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  OK(cuGraphAddDependencies(next_, &d, &end, nullptr, 1));
  expect_refused(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, d);
  OK(cuGraphDestroyNode(d));
  d = add_kernel(next_, {}, add_, device_at(1), 1);
  OK(cuGraphAddDependencies(next_, &d, &end, nullptr, 1));
  CUkernelNodeAttrValue value{};
  value.cooperative = 1;
  OK(cuGraphKernelNodeSetAttribute(d, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  expect_refused(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, d);
  value.cooperative = 0;
  OK(cuGraphKernelNodeSetAttribute(d, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  OK(cuGraphExecUpdate(exec_, next_, &info));
  OK(cuGraphExecUpdate(exec_, next_, nullptr));
}

TEST_F(GraphUpdates, CopiesKeepTheirKindOfMemory) {
  add_copy(graph_, {}, row(CU_MEMORYTYPE_HOST, word_at(0), CU_MEMORYTYPE_DEVICE, device_at(0), 4));
  exec_ = instantiate(graph_);
  CUgraphNode copy =
      add_copy(next_, {}, row(CU_MEMORYTYPE_DEVICE, device_at(1), CU_MEMORYTYPE_DEVICE, device_at(0), 4));
  expect_refused(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, copy);
  const CUDA_MEMCPY3D fits = row(CU_MEMORYTYPE_HOST, word_at(1), CU_MEMORYTYPE_DEVICE, device_at(0), 4);
  OK(cuGraphMemcpyNodeSetParams(copy, &fits));
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate(exec_, next_, &info));
}

// ---- user objects --------------------------------------------------------------------------------------------------

class UserObjects : public GraphTest {
 protected:
  CUuserObject make(int number, unsigned references) {
    CUuserObject object = nullptr;
    EXPECT_EQ(cuUserObjectCreate(&object, note(number), write_note, references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
              CUDA_SUCCESS);
    return object;
  }
  // Destructors run on a thread of the driver.
  void wait_for_notes(std::size_t count) {
    while (notes_.entries().size() < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

TEST_F(UserObjects, EndWithTheirLastReference) {
  CUuserObject object = make(1, 2);
  OK(cuUserObjectRetain(object, 1));
  OK(cuUserObjectRelease(object, 2));
  EXPECT_EQ(notes_.entries(), Numbers());
  EXPECT_EQ(cuUserObjectRelease(object, 2), CUDA_ERROR_INVALID_VALUE);
  OK(cuUserObjectRelease(object, 1));
  wait_for_notes(1);
  EXPECT_EQ(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuUserObjectCreate(&object, nullptr, write_note, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuUserObjectCreate(&object, nullptr, nullptr, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuUserObjectCreate(&object, nullptr, write_note, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(UserObjects, LiveAsLongAsGraphsAndLaunches) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUuserObject object = make(1, 1);
  OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = instantiate(graph);
  hold(stream_);
  OK(cuGraphLaunch(exec, stream_));
  OK(cuGraphDestroy(graph));
  OK(cuGraphExecDestroy(exec));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(notes_.entries(), Numbers()) << "a launch is in flight";
  let_go();
  wait_for_notes(1);
}

TEST_F(UserObjects, GraphsGiveReferencesBack) {
  CUuserObject object = make(1, 1);
  OK(cuGraphRetainUserObject(graph_, object, 3, 0));
  OK(cuGraphReleaseUserObject(graph_, object, 4)) << "which does nothing";
  OK(cuGraphReleaseUserObject(graph_, object, 2));
  OK(cuUserObjectRelease(object, 1));
  EXPECT_EQ(notes_.entries(), Numbers());
  CUgraph copy = nullptr;
  OK(cuGraphClone(&copy, graph_));
  OK(cuGraphReleaseUserObject(graph_, object, 1));
  EXPECT_EQ(notes_.entries(), Numbers()) << "the clone has one of its own";
  OK(cuGraphDestroy(copy));
  wait_for_notes(1);
  EXPECT_EQ(cuGraphRetainUserObject(graph_, object, 1, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(UserObjects, AnUpdateReplacesThem) {
  CUgraph next = nullptr;
  OK(cuGraphCreate(&next, 0));
  OK(cuGraphRetainUserObject(graph_, make(1, 1), 1, CU_GRAPH_USER_OBJECT_MOVE));
  OK(cuGraphRetainUserObject(next, make(2, 1), 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = instantiate(graph_);
  OK(cuGraphDestroy(graph_));
  graph_ = nullptr;
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate(exec, next, &info));
  wait_for_notes(1);
  EXPECT_EQ(notes_.entries(), Numbers{1});
  OK(cuGraphDestroy(next));
  OK(cuGraphExecDestroy(exec));
  wait_for_notes(2);
}

TEST_F(UserObjects, AGraphWhoseCaptureIsOpenTakesThem) {
  OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status{};
  CUgraph open = nullptr, graph = nullptr;
  OK(cuStreamGetCaptureInfo(stream_, &status, nullptr, &open, nullptr, nullptr, nullptr));
  OK(cuGraphRetainUserObject(open, make(1, 1), 1, CU_GRAPH_USER_OBJECT_MOVE));
  OK(cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(graph, open);
  EXPECT_EQ(notes_.entries(), Numbers());
  OK(cuGraphDestroy(graph));
  wait_for_notes(1);
}

// ---- conditional nodes ---------------------------------------------------------------------------------------------

constexpr char setting_ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count_down(.param .u64 at, .param .u64 condition) {
  .reg .u64 %p, %h; .reg .u32 %w;
  ld.param.u64 %p, [at]; ld.param.u64 %h, [condition];
  ld.global.u32 %w, [%p]; sub.u32 %w, %w, 1; st.global.u32 [%p], %w;
  { .param .b64 first; .param .b32 second;
    st.param.b64 [first], %h; st.param.b32 [second], %w;
    call.uni cudaGraphSetConditional, (first, second); }
  ret;
}
)";

class ConditionalNodes : public GraphTest {
 protected:
  CUgraphConditionalHandle make_handle(unsigned value, unsigned flags = CU_GRAPH_COND_ASSIGN_DEFAULT) {
    CUgraphConditionalHandle handle = 0;
    EXPECT_EQ(cuGraphConditionalHandleCreate(&handle, graph_, context_, value, flags), CUDA_SUCCESS);
    return handle;
  }
  std::vector<CUgraph> add_conditional(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size,
                                       CUgraphNode* node, const Nodes& after = {}) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    params.conditional.ctx = context_;
    EXPECT_EQ(cuGraphAddNode(node, graph_, after.data(), nullptr, after.size(), &params), CUDA_SUCCESS);
    return {params.conditional.phGraph_out, params.conditional.phGraph_out + size};
  }
};

TEST_F(ConditionalNodes, RunTheBodyThatTheValueChooses) {
  CUgraphNode node = nullptr;
  const auto yes = add_conditional(make_handle(1), CU_GRAPH_COND_TYPE_IF, 2, &node);
  add_kernel(yes[0], {}, add_, device_at(0), 1);
  add_kernel(yes[1], {}, add_, device_at(0), 100);
  const auto no = add_conditional(make_handle(0), CU_GRAPH_COND_TYPE_IF, 1, &node, {node});
  add_kernel(no[0], {}, add_, device_at(1), 1);
  const auto second = add_conditional(make_handle(1), CU_GRAPH_COND_TYPE_SWITCH, 2, &node, {node});
  add_kernel(second[0], {}, add_, device_at(2), 1);
  add_kernel(second[1], {}, add_, device_at(2), 2);
  const auto none = add_conditional(make_handle(5), CU_GRAPH_COND_TYPE_SWITCH, 2, &node, {node});
  add_kernel(none[0], {}, add_, device_at(3), 1);
  CUgraphNodeType type{};
  OK(cuGraphNodeGetType(node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
  run_once(graph_);
  EXPECT_EQ(on_device(0), 1U);
  EXPECT_EQ(on_device(1), 0U);
  EXPECT_EQ(on_device(2), 2U);
  EXPECT_EQ(on_device(3), 0U);
}

TEST_F(ConditionalNodes, ALoopRunsUntilAKernelEndsIt) {
  CUmodule module = nullptr;
  CUfunction count_down = nullptr;
  OK(cuModuleLoadData(&module, setting_ptx));
  OK(cuModuleGetFunction(&count_down, module, "count_down"));
  CUgraphConditionalHandle handle = make_handle(1);
  CUgraphNode node = nullptr;
  const auto body = add_conditional(handle, CU_GRAPH_COND_TYPE_WHILE, 1, &node);
  OK(cuStreamBeginCaptureToGraph(stream_, body[0], nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr at = device_at(0), counted = device_at(1);
  std::uint32_t one = 1;
  void* first[] = {&counted, &one};
  void* second[] = {&at, &handle};
  OK(cuLaunchKernel(add_, 1, 1, 1, 1, 1, 1, 0, stream_, first, nullptr));
  OK(cuLaunchKernel(count_down, 1, 1, 1, 1, 1, 1, 0, stream_, second, nullptr));
  OK(cuStreamEndCapture(stream_, nullptr));
  CUgraphNode after = add_note(graph_, {node}, 1);
  EXPECT_NE(after, nullptr);
  CUgraphExec exec = instantiate(graph_);
  for (int i = 0; i < 2; ++i) {
    OK(cuMemsetD32Async(device_at(0), 5, 1, stream_));
    run(exec);
  }
  EXPECT_EQ(on_device(1), 10U);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 1}));
  OK(cuGraphExecDestroy(exec));
  OK(cuModuleUnload(module));
}

TEST_F(ConditionalNodes, HaveRulesOfTheirOwn) {
  CUgraphNode node = nullptr;
  const CUgraphConditionalHandle handle = make_handle(0);
  const auto body = add_conditional(handle, CU_GRAPH_COND_TYPE_IF, 1, &node);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.size = 1;
  params.conditional.ctx = context_;
  EXPECT_EQ(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE) << "its second node";
  params.conditional.handle = make_handle(0);
  params.conditional.size = 3;
  EXPECT_EQ(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS instantiate_params{};
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph_, &instantiate_params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(instantiate_params.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  params.conditional.size = 1;
  OK(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  CUgraph copy = nullptr;
  EXPECT_EQ(cuGraphClone(&copy, graph_), CUDA_ERROR_NOT_SUPPORTED);
  exec = instantiate(graph_);
  CUgraphExec second = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&second, graph_, 0), CUDA_ERROR_INVALID_VALUE) << "one at a time";
  OK(cuGraphExecDestroy(exec));
  CUgraphNode noted = add_note(body[0], {}, 1);
  EXPECT_EQ(cuGraphInstantiate(&exec, graph_, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroyNode(noted));
  OK(cuGraphInstantiate(&exec, graph_, 0));
  OK(cuGraphExecDestroy(exec));
  CUgraphConditionalHandle none = 0;
  EXPECT_EQ(cuGraphConditionalHandleCreate(&none, graph_, context_, 0, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ConditionalNodes, AMovedChildBelongsToItsNode) {
  CUgraph child = nullptr;
  OK(cuGraphCreate(&child, 0));
  add_kernel(child, {}, add_, device_at(0), 4);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child;
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  CUgraphNode node = nullptr;
  OK(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  EXPECT_EQ(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&exec, child, 0), CUDA_ERROR_INVALID_VALUE);
  run_once(graph_);
  EXPECT_EQ(on_device(0), 4U);
}

}  // namespace
