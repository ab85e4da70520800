// Tests stream capture on the simulated GPU: the captured nodes, and the calls that invalidate a capture, with their
// error codes.
#include <dlfcn.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ring/api/entry_points.h"
#include "tests/unit/simgpu/api_graph_fixture.h"

namespace {

using graph_test::GraphTest;
using graph_test::Numbers;

class Capture : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    OK(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&joined_, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamCreate(&blocking_, CU_STREAM_DEFAULT));
  }
  void TearDown() override {
    EXPECT_EQ(cuStreamDestroy(blocking_), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy(event_), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy(joined_), CUDA_SUCCESS);
    GraphTest::TearDown();
  }

  void launch(CUstream stream, CUfunction function, CUdeviceptr at, std::uint32_t value) {
    void* list[] = {&at, &value};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, list, nullptr));
  }
  void put_note(CUstream stream, int number) { OK(cuLaunchHostFunc(stream, write_note, note(number))); }
  void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    OK(cuStreamBeginCapture(stream, mode));
  }
  CUstreamCaptureStatus status(CUstream stream) {
    CUstreamCaptureStatus found{};
    EXPECT_EQ(cuStreamIsCapturing(stream, &found), CUDA_SUCCESS);
    return found;
  }
  CUgraph end(CUstream stream) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    return graph;
  }
  CUresult failed_end(CUstream stream) {
    CUgraph graph = graph_;
    const CUresult result = cuStreamEndCapture(stream, &graph);
    EXPECT_EQ(graph, nullptr);
    return result;
  }
  // Checks that the call returns this code and invalidates a capture of stream_.
  void expect_end(CUresult code, const std::function<CUresult()>& call,
                  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    begin(stream_, mode);
    EXPECT_EQ(call(), code);
    EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  }
  // Checks that the call returns this code and that the capture stays valid.
  void expect_no_end(CUresult code, const std::function<CUresult()>& call,
                     CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    begin(stream_, mode);
    EXPECT_EQ(call(), code);
    EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuGraphDestroy(end(stream_)));
  }
  std::vector<CUgraphNodeType> types(CUgraph graph) {
    std::size_t count = 64;
    std::vector<CUgraphNode> nodes(count);
    EXPECT_EQ(cuGraphGetNodes(graph, nodes.data(), &count), CUDA_SUCCESS);
    std::vector<CUgraphNodeType> out(count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(cuGraphNodeGetType(nodes[i], &out[i]), CUDA_SUCCESS);
    return out;
  }
  std::size_t count_edges(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), CUDA_SUCCESS);
    return count;
  }

  CUevent event_ = nullptr, joined_ = nullptr;
  CUstream blocking_ = nullptr;
};

using Types = std::vector<CUgraphNodeType>;

// ---- captured work -------------------------------------------------------------------------------------------------

TEST_F(Capture, WorkIsDoneAtEachLaunchAndNotBefore) {
  begin(stream_);
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuMemsetD32Async(device_at(0), 5, 1, stream_));
  launch(stream_, add_, device_at(0), 2);
  launch(stream_, multiply_, device_at(0), 3);
  OK(cuMemcpyDtoDAsync(device_at(1), device_at(0), 4, stream_));
  put_note(stream_, 1);
  CUgraph graph = end(stream_);
  EXPECT_EQ(types(graph), (Types{CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL,
                                 CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_HOST}));
  EXPECT_EQ(count_edges(graph), 4U);
  EXPECT_EQ(notes_.entries(), Numbers());
  EXPECT_EQ(on_device(0), 0U);
  CUgraphExec exec = instantiate(graph);
  run(exec);
  run(exec);
  EXPECT_EQ(on_device(1), 21U);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 1}));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, PageableMemoryIsReadAndWrittenAtEachLaunch) {
  std::uint32_t in = 1, out = 0;
  begin(stream_);
  OK(cuMemcpyHtoDAsync(device_at(0), &in, 4, stream_));
  launch(stream_, add_, device_at(0), 100);
  OK(cuMemcpyDtoHAsync(&out, device_at(0), 4, stream_));
  CUgraph graph = end(stream_);
  EXPECT_EQ(count_nodes(graph), 3U);
  CUgraphExec exec = instantiate(graph);
  in = 7;
  run(exec);
  EXPECT_EQ(out, 107U);
  in = 8;
  run(exec);
  EXPECT_EQ(out, 108U);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, NodesHaveTheParametersOfTheCalls) {
  struct {
    CUdeviceptr at;
    std::uint32_t value;
  } packed{device_at(0), 5};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  begin(stream_);
  OK(cuLaunchKernel(add_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, extra));
  OK(cuLaunchCooperativeKernel(nothing_, 2, 1, 1, 3, 1, 1, 0, stream_, nullptr));
  CUDA_MEMCPY2D rows{};
  rows.dstMemoryType = rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = device_at(0);
  rows.srcDevice = device_at(8);
  rows.dstPitch = rows.srcPitch = 16;
  rows.WidthInBytes = 4;
  rows.Height = 2;
  OK(cuMemcpy2DAsync(&rows, stream_));
  OK(cuMemsetD2D16Async(device_at(0), 16, 9, 2, 3, stream_));
  CUgraph graph = end(stream_);
  std::size_t count = 4;
  CUgraphNode nodes[4] = {};
  OK(cuGraphGetNodes(graph, nodes, &count));
  CUDA_KERNEL_NODE_PARAMS kernel{};
  OK(cuGraphKernelNodeGetParams(nodes[0], &kernel));
  EXPECT_EQ(kernel.func, add_);
  EXPECT_EQ(kernel.kernelParams, nullptr);
  EXPECT_NE(kernel.extra, nullptr);
  OK(cuGraphKernelNodeGetParams(nodes[1], &kernel));
  EXPECT_EQ(kernel.gridDimX, 2U);
  EXPECT_EQ(kernel.blockDimX, 3U);
  CUkernelNodeAttrValue value{};
  OK(cuGraphKernelNodeGetAttribute(nodes[1], CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
  EXPECT_EQ(value.cooperative, 1);
  CUDA_MEMCPY3D copy{};
  OK(cuGraphMemcpyNodeGetParams(nodes[2], &copy));
  EXPECT_EQ(copy.Height, 2U);
  EXPECT_EQ(copy.dstPitch, 16U);
  EXPECT_EQ(copy.srcDevice, device_at(8));
  CUDA_MEMSET_NODE_PARAMS fill{};
  OK(cuGraphMemsetNodeGetParams(nodes[3], &fill));
  EXPECT_EQ(fill.elementSize, 2U);
  EXPECT_EQ(fill.width, 2U);
  EXPECT_EQ(fill.height, 3U);
  EXPECT_EQ(fill.pitch, 16U);
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, OtherStreamsJoinByEvents) {
  begin(stream_);
  put_note(stream_, 1);
  OK(cuEventRecord(event_, stream_));
  OK(cuStreamWaitEvent(other_, event_, 0));
  EXPECT_EQ(status(other_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  put_note(other_, 2);
  OK(cuEventRecord(joined_, other_));
  OK(cuStreamWaitEvent(stream_, joined_, 0));
  put_note(stream_, 3);
  CUgraph graph = end(stream_);
  EXPECT_EQ(status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(count_edges(graph), 3U);
  run_once(graph);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2, 3}));
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, BranchesOfACaptureRunSideBySide) {
  const auto meet = [&](CUstream stream, std::size_t mine, std::size_t theirs) {
    CUdeviceptr list[] = {word_at(mine), word_at(theirs)};
    void* params[] = {&list[0], &list[1]};
    OK(cuLaunchKernel(meet_, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  };
  begin(stream_);
  OK(cuEventRecord(event_, stream_));
  OK(cuStreamWaitEvent(other_, event_, 0));
  meet(stream_, 0, 1);
  meet(other_, 1, 0);
  OK(cuEventRecord(joined_, other_));
  OK(cuStreamWaitEvent(stream_, joined_, 0));
  put_note(stream_, 1);
  CUgraph graph = end(stream_);
  EXPECT_EQ(count_nodes(graph), 3U);
  EXPECT_EQ(count_edges(graph), 2U);
  run_once(graph);
  EXPECT_EQ(notes_.entries(), Numbers{1});
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, ExternalEventsBecomeNodes) {
  EXPECT_EQ(cuEventRecordWithFlags(event_, stream_, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuStreamWaitEvent(stream_, event_, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
  begin(stream_);
  OK(cuStreamWaitEvent(stream_, event_, CU_EVENT_WAIT_EXTERNAL));
  put_note(stream_, 2);
  OK(cuEventRecordWithFlags(joined_, stream_, CU_EVENT_RECORD_EXTERNAL));
  CUgraph graph = end(stream_);
  EXPECT_EQ(types(graph),
            (Types{CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_NODE_TYPE_EVENT_RECORD}));
  CUgraphExec exec = instantiate(graph);
  hold(other_);
  put_note(other_, 1);
  OK(cuEventRecord(event_, other_));
  OK(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuEventQuery(joined_), CUDA_ERROR_NOT_READY);
  let_go();
  OK(cuEventSynchronize(joined_));
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2}));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, ALaunchOfAGraphIsNotCaptured) {
  add_note(graph_, {}, 1);
  CUgraphExec inner = instantiate(graph_);
  begin(stream_);
  EXPECT_EQ(cuGraphLaunch(inner, stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuGraphExecDestroy(inner));
  EXPECT_EQ(notes_.entries(), Numbers());
}

TEST_F(Capture, AFailedLaunchInvalidatesIt) {
  begin(stream_);
  EXPECT_EQ(cuLaunchKernel(nothing_, 0, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(nothing_, 0, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, AnInvalidOneDestroysTheGraphThatItAddsTo) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  OK(cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Capture, TheOpenGraphCanBeSeenAndChanged) {
  begin(stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
  put_note(stream_, 1);
  CUstreamCaptureStatus found{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  OK(cuStreamGetCaptureInfo(stream_, &found, &id, &graph, &nodes, &edges, &count));
  EXPECT_EQ(found, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(id, 0U);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_ILLEGAL_STATE);
  CUgraphNode first = nodes[0], added = add_note(graph, {first}, 2);
  OK(cuStreamUpdateCaptureDependencies(stream_, &added, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  put_note(stream_, 3);
  CUgraphNode lone = add_empty(graph, {});
  OK(cuStreamUpdateCaptureDependencies(stream_, &lone, nullptr, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  OK(cuStreamGetCaptureInfo(stream_, &found, nullptr, nullptr, &nodes, nullptr, &count));
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream_, &lone, nullptr, 1, 2), CUDA_ERROR_INVALID_VALUE);
  CUgraph ended = end(stream_);
  EXPECT_EQ(ended, graph);
  run_once(graph);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2, 3}));
  OK(cuGraphDestroy(graph));
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream_, &lone, nullptr, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(Capture, AGraphThatIsThereTakesMore) {
  CUgraphNode first = add_note(graph_, {}, 1);
  OK(cuStreamBeginCaptureToGraph(stream_, graph_, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiate(&exec, graph_, 0)) << "of the nodes that are there";
  OK(cuGraphExecDestroy(exec));
  put_note(stream_, 2);
  OK(cuStreamEndCapture(stream_, nullptr));
  EXPECT_EQ(count_nodes(graph_), 2U);
  run_once(graph_);
  EXPECT_EQ(notes_.entries(), (Numbers{1, 2}));
}

TEST_F(Capture, AKernelMayBeginBeforeTheOneBeforeItEnds) {
  begin(stream_);
  launch(stream_, add_, device_at(0), 1);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream_;
  config.attrs = &attribute;
  config.numAttrs = 1;
  OK(cuLaunchKernelEx(&config, nothing_, nullptr, nullptr));
  CUgraph graph = end(stream_);
  CUgraphNode from = nullptr, to = nullptr;
  CUgraphEdgeData data{};
  std::size_t count = 1;
  OK(cuGraphGetEdges(graph, &from, &to, &data, &count));
  EXPECT_EQ(data.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  run_once(graph);
  OK(cuGraphDestroy(graph));
}

// ---- calls that invalidate a capture -------------------------------------------------------------------------------

TEST_F(Capture, BeginAndEndReturnTheDriversErrors) {
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamBeginCapture(stream_, static_cast<CUstreamCaptureMode>(3)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_ILLEGAL_STATE);
  begin(stream_);
  EXPECT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  std::thread([&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_ILLEGAL_STATE) << "the wrong thread has ended it";
  begin(stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
  CUgraph graph = nullptr;
  std::thread([&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    graph = end(stream_);
  }).join();
  OK(cuGraphDestroy(graph));
}

TEST_F(Capture, ForksHaveToBeJoined) {
  begin(stream_);
  OK(cuEventRecord(event_, stream_));
  OK(cuStreamWaitEvent(other_, event_, 0));
  launch(other_, add_, device_at(0), 1);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(status(other_), CU_STREAM_CAPTURE_STATUS_NONE);

  begin(stream_);
  OK(cuEventRecord(event_, stream_));
  OK(cuStreamWaitEvent(other_, event_, 0));
  EXPECT_EQ(failed_end(other_), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, TwoCapturesDoNotMerge) {
  begin(stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
  begin(other_, CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cuEventRecord(event_, other_));
  EXPECT_EQ(cuStreamWaitEvent(stream_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(failed_end(other_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, NothingFromOutsideIsWaitedFor) {
  OK(cuEventRecord(event_, other_));
  expect_end(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, [&] { return cuStreamWaitEvent(stream_, event_, 0); });
}

TEST_F(Capture, TheCapturedStreamAnswersNoQuestions) {
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    unsigned flags = 0;
    unsigned long long id = 0;
    constexpr CUresult code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    expect_end(
        code, [&] { return cuStreamQuery(stream_); }, mode);
    expect_end(
        code, [&] { return cuStreamSynchronize(stream_); }, mode);
    expect_end(
        code, [&] { return cuStreamGetFlags(stream_, &flags); }, mode);
    expect_end(
        code, [&] { return cuStreamGetId(stream_, &id); }, mode);
    expect_end(
        code, [&] { return cuCtxSynchronize(); }, mode);
    expect_end(
        code, [&] { return cuCtxRecordEvent(context_, event_); }, mode);
    expect_end(
        code, [&] { return cuCtxWaitEvent(context_, event_); }, mode);
    const auto callback = [](CUstream, CUresult, void*) {};
    expect_end(
        code, [&] { return cuStreamAddCallback(stream_, callback, nullptr, 0); }, mode);
  }
}

TEST_F(Capture, AnInvalidCaptureTakesNothingMore) {
  begin(stream_);
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuLaunchHostFunc(stream_, write_note, note(1)), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuMemsetD32Async(device_at(0), 1, 1, stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuEventRecord(event_, stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(failed_end(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  put_note(stream_, 2);
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(notes_.entries(), Numbers{2});
}

TEST_F(Capture, EventsOfACaptureAreNotAskedAbout) {
  const auto record_and = [&](const std::function<CUresult()>& call) {
    expect_end(CUDA_ERROR_CAPTURED_EVENT, [&] {
      EXPECT_EQ(cuEventRecord(event_, stream_), CUDA_SUCCESS);
      return call();
    });
  };
  record_and([&] { return cuEventQuery(event_); });
  record_and([&] { return cuEventSynchronize(event_); });
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_INVALID_VALUE) << "after the capture's end";
  EXPECT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuEventRecord(event_, other_));
  OK(cuEventSynchronize(event_));
}

TEST_F(Capture, TheNullStreamDoesNotWaitForABlockingStream) {
  std::uint32_t value = 0;
  const auto expect_implicit = [&](const std::function<CUresult()>& call) {
    begin(blocking_, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(failed_end(blocking_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  };
  expect_implicit([&] { return cuMemcpyHtoD(device_at(0), &value, 4); });
  expect_implicit([&] { return cuMemcpyDtoH(&value, device_at(0), 4); });
  expect_implicit([&] { return cuMemsetD32(device_at(0), 1, 1); });
  expect_implicit([&] { return cuMemsetD32Async(device_at(0), 1, 1, nullptr); });
  expect_implicit([&] { return cuLaunchKernel(nothing_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); });
  expect_implicit([&] { return cuStreamQuery(nullptr); });
  expect_implicit([&] { return cuStreamSynchronize(nullptr); });
  begin(blocking_);
  CUstreamCaptureStatus found{};
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &found), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  OK(cuGraphDestroy(end(blocking_)));
  expect_no_end(CUDA_SUCCESS, [&] { return cuMemcpyHtoD(device_at(0), &value, 4); });
}

// ---- prohibited calls ----------------------------------------------------------------------------------------------

// Calls that are unsafe in a capture but check for a null event or pool first.
const std::set<std::string_view> asked_by_name{"cuEventQuery", "cuEventSynchronize", "cuMemAllocFromPoolAsync"};

int call_with_nothing(std::string_view symbol) {
  using Any = std::uint64_t;
  const auto call =
      reinterpret_cast<int (*)(Any, Any, Any, Any, Any, Any)>(dlsym(RTLD_DEFAULT, std::string(symbol).c_str()));
  return call == nullptr ? -1 : call(0, 0, 0, 0, 0, 0);
}

TEST_F(Capture, EveryUnsafeCallOfTheTableEndsIt) {
  std::size_t count = 0;
  for (const api::EntryPoint& entry : api::entry_points) {
    if (entry.manner.in_capture != api::InCapture::Unsafe || asked_by_name.contains(entry.name)) continue;
    ++count;
    SCOPED_TRACE(entry.name);
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL})
      expect_end(
          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return static_cast<CUresult>(call_with_nothing(entry.name)); },
          mode);
  }
  EXPECT_GE(count, 20U);
  OK(cuEventRecord(event_, other_));
  expect_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuEventQuery(event_); });
  expect_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuEventSynchronize(event_); });
  expect_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuStreamSynchronize(other_); });
  CUgraphExec exec = nullptr;
  expect_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuGraphInstantiate(&exec, graph_, 0); });
}

// The result depends on the mode of the capture, on the mode of the calling thread, and on whether that thread began
// the capture.
TEST_F(Capture, TheModesDecideWhoMayDoUnsafeThings) {
  constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                 relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  const auto allocate_as = [](CUstreamCaptureMode mode) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    const CUresult result = cuMemAlloc(&memory, 64);
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    if (result == CUDA_SUCCESS) {
      CUstreamCaptureMode free_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&free_mode), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
      EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&free_mode), CUDA_SUCCESS);
    }
    return result;
  };
  const auto elsewhere = [&](CUstreamCaptureMode mode) {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      result = allocate_as(mode);
    }).join();
    return result;
  };
  const auto expect = [&](CUstreamCaptureMode capture, CUstreamCaptureMode thread, bool here, bool refused) {
    SCOPED_TRACE(testing::Message() << "capture " << capture << " thread " << thread << " here " << here);
    const auto call = [&] { return here ? allocate_as(thread) : elsewhere(thread); };
    if (refused)
      expect_end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call, capture);
    else
      expect_no_end(CUDA_SUCCESS, call, capture);
  };
  for (const auto thread : {global, local, relaxed}) {
    expect(global, thread, true, thread != relaxed);
    expect(local, thread, true, thread != relaxed);
    expect(relaxed, thread, true, false);
    expect(global, thread, false, thread == global);
    expect(local, thread, false, false);
    expect(relaxed, thread, false, false);
  }
}

TEST_F(Capture, OtherWorkGoesOnBesideIt) {
  std::uint32_t value = 3;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  begin(stream_);
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&event, 0));
  launch(stream, add_, device_at(0), 1);
  OK(cuMemcpyHtoDAsync(device_at(1), &value, 4, stream));
  OK(cuEventRecord(event, stream));
  OK(cuStreamWaitEvent(other_, event, 0));
  OK(cuStreamDestroy(stream));
  OK(cuEventDestroy(event));
  OK(cuMemcpyHtoD(device_at(2), &value, 4));
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuGraphDestroy(end(stream_)));
  OK(cuCtxSynchronize());
  EXPECT_EQ(on_device(0), 1U);
  EXPECT_EQ(on_device(2), 3U);
}

TEST_F(Capture, AStreamThatIsDestroyedTakesItsCaptureAlong) {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  begin(stream);
  put_note(stream, 1);
  OK(cuStreamDestroy(stream));
  CUdeviceptr memory = 0;
  OK(cuMemAlloc(&memory, 4)) << "no capture is open any more";
  OK(cuMemFree(memory));
  std::thread([&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  }).join();
  OK(cuMemAlloc(&memory, 4));
  OK(cuMemFree(memory));
}

TEST_F(Capture, AThreadsOwnStreamIsCapturedByItsForms) {
  const auto begin_own = reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureMode)>(
      dlsym(RTLD_DEFAULT, "cuStreamBeginCapture_v2_ptsz"));
  const auto end_own =
      reinterpret_cast<CUresult (*)(CUstream, CUgraph*)>(dlsym(RTLD_DEFAULT, "cuStreamEndCapture_ptsz"));
  OK(begin_own(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(status(CU_STREAM_PER_THREAD), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  put_note(CU_STREAM_PER_THREAD, 1);
  CUgraph graph = nullptr;
  OK(end_own(nullptr, &graph));
  EXPECT_EQ(count_nodes(graph), 1U);
  OK(cuGraphDestroy(graph));
  const auto begin_old = reinterpret_cast<CUresult (*)(CUstream)>(dlsym(RTLD_DEFAULT, "cuStreamBeginCapture"));
  OK(begin_old(stream_));
  CUdeviceptr memory = 0;
  OK(cuMemAlloc(&memory, 4)) << "the old form has the relaxed mode";
  OK(cuMemFree(memory));
  OK(cuGraphDestroy(end(stream_)));
}

}  // namespace
