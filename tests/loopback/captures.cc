// Captures and graphs with the real guest library and a real worker: a program's mistakes, and objects that end early.
// The contract suite covers the driver's usual answers.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "guest/base/switches.h"
#include "tests/loopback/in_process.h"
#include "tests/loopback/kernels.h"

namespace {

using loopback::backend, loopback::InProcess;

class Captured : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    ASSERT_EQ(cu::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuMemAlloc_v2(&word_, 64), CUDA_SUCCESS);
  }
  CUresult begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED) {
    return cu::cuStreamBeginCapture_v2(stream_, mode);
  }
  CUresult fill(unsigned value) { return cu::cuMemsetD32Async(word_, value, 4, stream_); }
  CUresult end(CUgraph* graph) { return cu::cuStreamEndCapture(stream_, graph); }
  // Returns a graph with one fill.
  CUgraph captured(unsigned value) {
    CUgraph graph = nullptr;
    EXPECT_EQ(begin(), CUDA_SUCCESS);
    EXPECT_EQ(fill(value), CUDA_SUCCESS);
    EXPECT_EQ(end(&graph), CUDA_SUCCESS);
    return graph;
  }
  CUgraphExec instantiated(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cu::cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
  }
  unsigned word() {
    unsigned value = 0;
    EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuMemcpyDtoH_v2(&value, word_, sizeof value), CUDA_SUCCESS);
    return value;
  }
  // Expects that a new capture works and that no capture counts as open.
  void expect_that_captures_work() {
    EXPECT_FALSE(guest::session()->graphs.captures.any());
    const CUgraph graph = captured(77);
    const CUgraphExec exec = instantiated(graph);
    EXPECT_EQ(cu::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    EXPECT_EQ(word(), 77U);
    EXPECT_FALSE(guest::session()->graphs.captures.any());
  }

  InProcess loopback_{backend()};
  CUstream stream_ = nullptr;
  CUdeviceptr word_ = 0;
};

TEST_F(Captured, RunsAsOftenAsItIsLaunched) {
  const CUgraphExec exec = instantiated(captured(5));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(fill(1), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    EXPECT_EQ(word(), 5U);
  }
  EXPECT_EQ(cu::cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(Captured, AStreamThatIsDestroyedTakesItsCaptureAlong) {
  ASSERT_EQ(begin(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamDestroy_v2(stream_), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(end(&graph), CUDA_ERROR_INVALID_HANDLE);
  CUdeviceptr more = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&more, 64), CUDA_SUCCESS) << "no capture is open that would forbid it";
  ASSERT_EQ(cu::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  expect_that_captures_work();
}

TEST_F(Captured, TheEndByAnotherThreadEndsItWithAnError) {
  ASSERT_EQ(begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUresult result = CUDA_SUCCESS;
  std::thread([&] { result = end(&graph); }).join();
  EXPECT_EQ(result, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(graph, nullptr);
  expect_that_captures_work();
}

TEST_F(Captured, AnInvalidatedCapturesGraphIsNoGraphAnyMore) {
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph during = nullptr, graph = nullptr;
  ASSERT_EQ(cu::cuStreamGetCaptureInfo_v2(stream_, &status, nullptr, &during, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_NE(during, nullptr);
  EXPECT_EQ(cu::cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end(&graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  std::size_t count = 0;
  EXPECT_EQ(cu::cuGraphGetNodes(during, nullptr, &count), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cu::cuGraphInstantiateWithFlags(&exec, during, 0), CUDA_ERROR_INVALID_VALUE);
  expect_that_captures_work();
}

TEST_F(Captured, AContextThatEndsTakesItsCapturesAlong) {
  CUcontext other = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cu::cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuCtxDestroy_v2(other), CUDA_SUCCESS);
  EXPECT_FALSE(guest::session()->graphs.captures.any());
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(Captured, AThreadThatEndsLeavesItsCaptureOpenForTheOthers) {
  std::thread([&] {
    CUcontext context = nullptr;
    EXPECT_EQ(cu::cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(begin(), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(fill(9), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(end(&graph), CUDA_SUCCESS);
  std::size_t nodes = 0;
  EXPECT_EQ(cu::cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 1U);
}

// The thread has a capture of mode GLOBAL, which the library's own calls must not end.
TEST_F(Captured, WorkElsewhereGoesOnBesideIt) {
  CUstream other = nullptr;
  std::vector<unsigned char> bytes(300'000, 7), back(300'000);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&memory, bytes.size()), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(begin(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemcpyHtoDAsync_v2(memory, bytes.data(), bytes.size(), other), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemcpyDtoHAsync_v2(back.data(), memory, back.size(), other), CUDA_SUCCESS);
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(fill(3), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(end(&graph), CUDA_SUCCESS);
}

TEST_F(Captured, CountsThatNoMemoryHasAreRefused) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr, nodes[2] = {};
  ASSERT_EQ(cu::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphAddEmptyNode(&node, graph, nullptr, 0), CUDA_SUCCESS);
  nodes[0] = nodes[1] = node;
  constexpr std::size_t huge = std::size_t{1} << 63;
  EXPECT_EQ(cu::cuGraphAddEmptyNode(&node, graph, nodes, huge), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuGraphAddDependencies_v2(graph, nodes, nodes, nullptr, huge), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamUpdateCaptureDependencies_v2(stream_, nodes, nullptr, huge, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuGraphAddEmptyNode(&node, graph, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  std::size_t count = 0;
  EXPECT_EQ(cu::cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1U);
}

TEST_F(Captured, NodesOfGraphsThatHaveEndedAreUnknown) {
  CUgraph graph = nullptr, clone = nullptr, other = nullptr;
  CUgraphNode node = nullptr, in_clone = nullptr, another = nullptr;
  ASSERT_EQ(cu::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphCreate(&other, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphAddEmptyNode(&node, graph, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphClone(&clone, graph), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphNodeFindInClone(&in_clone, node, clone), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphDestroy(clone), CUDA_SUCCESS);
  CUgraphNodeType type{};
  EXPECT_EQ(cu::cuGraphNodeGetType(in_clone, &type), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuGraphAddEmptyNode(&another, other, &in_clone, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGraphDestroy(clone), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cu::cuGraphDestroyNode(node), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGraphDestroyNode(node), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Captured, AConditionalHandleThatNobodyGaveIsRefused) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUcontext context = nullptr;
  ASSERT_EQ(cu::cuCtxGetCurrent(&context), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = 0x1234;
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx = context;
  EXPECT_EQ(cu::cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  params.conditional.size = 0x7fffffff;
  ASSERT_EQ(cu::cuGraphConditionalHandleCreate(&params.conditional.handle, graph, context, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
}

void count(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

// The functions survive the graph while an executable exists. Their tokens end with the last executable.
TEST_F(Captured, HostFunctionsAreCalledAtEachLaunchUntilTheLastExecutableEnds) {
  std::atomic<int> calls{0};
  CUgraph graph = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuLaunchHostFunc(stream_, count, &calls), CUDA_SUCCESS);
  ASSERT_EQ(end(&graph), CUDA_SUCCESS);
  EXPECT_EQ(calls, 0);
  std::array execs{instantiated(graph), instantiated(graph)};
  EXPECT_EQ(cu::cuGraphDestroy(graph), CUDA_SUCCESS);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(cu::cuGraphLaunch(execs[i % 2], stream_), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(calls, 10);
  EXPECT_TRUE(guest::session()->callbacks().find(1));
  for (const CUgraphExec exec : execs) EXPECT_EQ(cu::cuGraphExecDestroy(exec), CUDA_SUCCESS);
  while (guest::session()->callbacks().find(1)) std::this_thread::yield();  // the test's limit ends this loop
}

TEST_F(Captured, AUserObjectEndsOnceWithTheLastThatHasIt) {
  std::atomic<int> destroyed{0};
  CUuserObject object = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cu::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuUserObjectCreate(&object, &destroyed, count, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
  const CUgraphExec exec = instantiated(graph);
  EXPECT_EQ(cu::cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(cu::cuGraphExecDestroy(exec), CUDA_SUCCESS);
  while (destroyed == 0) std::this_thread::yield();
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(cu::cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
}

// A list that is longer than one reply.
TEST_F(Captured, ALongListComesWhole) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  constexpr std::size_t all = 5000;
  ASSERT_EQ(cu::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  std::vector<CUgraphNode> made, nodes(all), from(all), to(all);
  for (std::size_t i = 0; i < all; ++i) {
    ASSERT_EQ(cu::cuGraphAddEmptyNode(&node, graph, i == 0 ? nullptr : &made.back(), i == 0 ? 0 : 1), CUDA_SUCCESS);
    made.push_back(node);
  }
  std::size_t count = all;
  ASSERT_EQ(cu::cuGraphGetNodes(graph, nodes.data(), &count), CUDA_SUCCESS);
  EXPECT_EQ(count, all);
  EXPECT_EQ(nodes, made);
  ASSERT_EQ(cu::cuGraphGetEdges_v2(graph, from.data(), to.data(), nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, all - 1);
  EXPECT_EQ(from[all - 2], made[all - 2]);
  EXPECT_EQ(to[all - 2], made[all - 1]);
}

// Captured launches and changes of executables' parameters. The driver is known to accept all of them except the first,
// so the guest posts them.
class Accepted : public Captured {
 protected:
  void SetUp() override {
    Captured::SetUp();
    CUmodule module = nullptr;
    ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuModuleGetFunction(&function_, module, "fill"), CUDA_SUCCESS);
    ASSERT_EQ(launch(1), CUDA_SUCCESS);
    ASSERT_EQ(word(), 1U);
  }
  CUresult launch(unsigned value, unsigned grid = 1) {
    unsigned elements = 1;
    void* parameters[] = {&word_, &elements, &value};
    return cu::cuLaunchKernel(function_, grid, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr);
  }
  CUresult set(CUgraphExec exec, CUgraphNode node, unsigned value, unsigned grid = 1) {
    unsigned elements = 1;
    void* parameters[] = {&word_, &elements, &value};
    CUDA_KERNEL_NODE_PARAMS all{};
    all.func = function_;
    all.gridDimX = grid, all.gridDimY = all.gridDimZ = all.blockDimX = all.blockDimY = all.blockDimZ = 1;
    all.kernelParams = parameters;
    return cu::cuGraphExecKernelNodeSetParams_v2(exec, node, &all);
  }
  CUgraphNode only_node(CUgraph graph) {
    CUgraphNode node = nullptr;
    std::size_t one = 1;
    EXPECT_EQ(cu::cuGraphGetNodes(graph, &node, &one), CUDA_SUCCESS);
    return node;
  }
  // Returns how many of these calls waited for a reply.
  template <class F>
  static std::uint64_t waits_of(F calls) {
    auto& waited = guest::this_channel().counts.waited_calls;
    const std::uint64_t before = waited.load();
    calls();
    return waited.load() - before;
  }

  CUfunction function_ = nullptr;
};

TEST_F(Accepted, CapturedLaunchesAreNotWaitedFor) {
  CUgraph graph = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  const auto launches = [&] {
    for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(launch(i), CUDA_SUCCESS);
  };
  EXPECT_EQ(waits_of(launches), 0U);
  ASSERT_EQ(end(&graph), CUDA_SUCCESS);
  std::size_t nodes = 0;
  EXPECT_EQ(cu::cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 20U);
  EXPECT_EQ(cu::cuGraphLaunch(instantiated(graph), stream_), CUDA_SUCCESS);
  EXPECT_EQ(word(), 19U);
}

// As natively, the refused launch and each later launch return an error.
TEST_F(Accepted, LaunchesOfADisturbedCaptureAreWaitedFor) {
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(launch(1), CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(launch(1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraph graph = nullptr;
  EXPECT_EQ(end(&graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(waits_of([&] { EXPECT_EQ(launch(1), CUDA_SUCCESS); }), 0U);
  EXPECT_EQ(end(&graph), CUDA_SUCCESS);
}

// The program itself must order the two threads, since captured launches do not name the graph that they fill.
TEST_F(Accepted, AnotherThreadSeesEachCapturedLaunch) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cu::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_SUCCESS);
  for (std::size_t round = 1; round <= 50; ++round) {
    ASSERT_EQ(launch(1), CUDA_SUCCESS);
    std::size_t nodes = 0;
    std::thread([&] { EXPECT_EQ(cu::cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS); }).join();
    EXPECT_EQ(nodes, round);
  }
  EXPECT_EQ(end(&graph), CUDA_SUCCESS);
}

TEST_F(Accepted, ParametersOfAKnownShapeAreNotWaitedFor) {
  CUgraph graph = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(launch(1), CUDA_SUCCESS);
  ASSERT_EQ(end(&graph), CUDA_SUCCESS);
  const CUgraphNode node = only_node(graph);
  const CUgraphExec exec = instantiated(graph);
  const auto set_to = [&](unsigned value, unsigned grid = 1) {
    return waits_of([&] { EXPECT_EQ(set(exec, node, value, grid), CUDA_SUCCESS); });
  };
  const auto runs = [&] { return cu::cuGraphLaunch(exec, stream_) == CUDA_SUCCESS ? word() : 0; };
  EXPECT_EQ(set_to(2), 1U);
  EXPECT_EQ(set_to(3), 0U);
  EXPECT_EQ(runs(), 3U);
  EXPECT_EQ(set_to(4, 2), 1U);
  EXPECT_EQ(set_to(5, 2), 0U);
  EXPECT_EQ(runs(), 5U);
  EXPECT_EQ(waits_of([&] { EXPECT_EQ(set(exec, node, 6, 0), CUDA_ERROR_INVALID_VALUE); }), 1U);
  CUgraphExecUpdateResultInfo info{};
  ASSERT_EQ(cu::cuGraphExecUpdate_v2(exec, graph, &info), CUDA_SUCCESS);
  EXPECT_EQ(set_to(7, 2), 1U);
  EXPECT_EQ(runs(), 7U);
  ASSERT_EQ(cu::cuGraphDestroyNode(node), CUDA_SUCCESS);
  EXPECT_EQ(set(exec, node, 8, 2), CUDA_ERROR_INVALID_VALUE);
}

struct WithoutKnowledge {
  WithoutKnowledge() { setenv("IVGPU_OFF", "known_accepted", 1); }
};
class AcceptedUnknown : WithoutKnowledge, public Accepted {};

TEST_F(AcceptedUnknown, EachCallIsWaitedFor) {
  ASSERT_FALSE(guest::switches().known_accepted);
  CUgraph graph = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(waits_of([&] { EXPECT_EQ(launch(3), CUDA_SUCCESS); }), 1U);
  ASSERT_EQ(end(&graph), CUDA_SUCCESS);
  const CUgraphExec exec = instantiated(graph);
  const CUgraphNode node = only_node(graph);
  for (const unsigned value : {4U, 5U})
    EXPECT_EQ(waits_of([&] { EXPECT_EQ(set(exec, node, value), CUDA_SUCCESS); }), 1U);
  EXPECT_EQ(cu::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(word(), 5U);
}

// Sets CUDA_LAUNCH_BLOCKING, with which launches wait. A captured launch must not wait, since a wait ends the capture.
struct Blocking {
  Blocking() { setenv("CUDA_LAUNCH_BLOCKING", "1", 1); }
};
class CapturedWhereLaunchesBlock : Blocking, public Captured {};

TEST_F(CapturedWhereLaunchesBlock, LaunchesDoNotBlock) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  unsigned elements = 1, value = 6;
  void* parameters[] = {&word_, &elements, &value};
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuModuleGetFunction(&function, module, "fill"), CUDA_SUCCESS);
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(end(&graph), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGraphLaunch(instantiated(graph), stream_), CUDA_SUCCESS);
  EXPECT_EQ(word(), 6U);
}

}  // namespace
