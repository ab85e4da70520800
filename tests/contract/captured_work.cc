// Cases for the nodes that a capture records for work in its stream, and for the execution of the graph.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "tests/contract/graphs.h"

namespace contract {
namespace {

// Returns the sorted types of the graph's nodes: "0 2" is a kernel and a fill.
std::string types_in(CUgraph graph) {
  CUgraphNode nodes[16] = {};
  std::size_t count = std::size(nodes);
  CU(cuGraphGetNodes)(graph, nodes, &count);
  std::multiset<int> types;
  for (std::size_t i = 0; i < count && i < std::size(nodes); ++i) {
    auto type = odd<CUgraphNodeType>(99);
    CU(cuGraphNodeGetType)(nodes[i], &type);
    types.insert(type);
  }
  std::string text;
  for (const int type : types) text += (text.empty() ? "" : " ") + std::to_string(type);
  return text;
}

void show_types(const std::string& what, CUgraph graph) {
  const std::string types = types_in(graph);
  std::size_t begin = 0;
  int place = 0;
  while (begin < types.size()) {
    const std::size_t end = std::min(types.find(' ', begin), types.size());
    show(what + ", type " + std::to_string(++place), std::stoi(types.substr(begin, end - begin)));
    begin = end + 1;
  }
}

GROUP(captured_copies, InContext) {
  GraphWork work;
  unsigned from[2] = {11, 12}, to[2] = {0, 0};
  void* pinned_memory = nullptr;
  CU(cuMemHostAlloc)(&pinned_memory, 64, 0);
  const auto pinned = static_cast<unsigned*>(pinned_memory);
  pinned[0] = 21, pinned[1] = 0;
  const auto copy = [&](const std::string& what, auto put, auto change, auto tell) {
    work.clear();
    work.begin();
    show(what, put());
    CUgraph graph = show_end(what, work.stream);
    show_types(what, graph);
    change();
    show(what + ", it runs", run_once(graph, work.stream));
    show(what + ", the word", tell());
    CU(cuGraphDestroy)(graph);
  };
  const auto set_word = [](CUdeviceptr at, unsigned value) { CU(cuMemsetD32_v2)(at, value, 1); };
  const auto of_device = [&] { return static_cast<long long>(word_at(work.a)); };
  copy(
      "from pageable memory", [&] { return CU(cuMemcpyHtoDAsync_v2)(work.a, from, 4, work.stream); },
      [&] { from[0] = 13; }, of_device);
  copy(
      "from pinned memory", [&] { return CU(cuMemcpyHtoDAsync_v2)(work.a, pinned, 4, work.stream); },
      [&] { pinned[0] = 22; }, of_device);
  copy(
      "to pageable memory", [&] { return CU(cuMemcpyDtoHAsync_v2)(to, work.a, 4, work.stream); },
      [&] { set_word(work.a, 14); }, [&] { return static_cast<long long>(to[0]); });
  copy(
      "to pinned memory", [&] { return CU(cuMemcpyDtoHAsync_v2)(pinned + 1, work.a, 4, work.stream); },
      [&] { set_word(work.a, 15); }, [&] { return static_cast<long long>(pinned[1]); });
  copy(
      "on the device", [&] { return CU(cuMemcpyDtoDAsync_v2)(work.a, work.a + 32, 4, work.stream); },
      [&] { set_word(work.a + 32, 16); }, of_device);
  copy(
      "of pageable memory by cuMemcpyAsync",
      [&] { return CU(cuMemcpyAsync)(work.a, address_of(from), 4, work.stream); }, [&] { from[0] = 17; }, of_device);
  CUDA_MEMCPY2D rows;
  std::memset(&rows, 0, sizeof rows);
  rows.srcMemoryType = CU_MEMORYTYPE_HOST, rows.srcHost = from, rows.srcPitch = 4;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE, rows.dstDevice = work.a, rows.dstPitch = 8;
  rows.WidthInBytes = 4, rows.Height = 2;
  copy(
      "of rows", [&] { return CU(cuMemcpy2DAsync_v2)(&rows, work.stream); }, [&] { from[0] = 18; }, of_device);
  work.begin();
  show("of no bytes", CU(cuMemcpyHtoDAsync_v2)(work.a, from, 0, work.stream));
  show("to null", CU(cuMemcpyHtoDAsync_v2)(0, from, 4, work.stream));
  show("it is", capture_of(work.stream));
  show_end("of no bytes", work.stream);
  work.begin();
  show("to a bad address", CU(cuMemcpyHtoDAsync_v2)(16, from, 4, work.stream));
  show("it is", capture_of(work.stream));
  show_end("to a bad address", work.stream);
}

GROUP(captured_fills, InContext) {
  GraphWork work;
  work.begin();
  show("of words", CU(cuMemsetD32Async)(work.a, 7, 4, work.stream));
  show("of bytes", CU(cuMemsetD8Async)(work.a + 16, 1, 4, work.stream));
  show("of halves", CU(cuMemsetD16Async)(work.a + 20, 2, 2, work.stream));
  show("of rows", CU(cuMemsetD2D32Async)(work.a + 32, 8, 3, 1, 2, work.stream));
  show("of nothing", CU(cuMemsetD32Async)(work.a, 7, 0, work.stream));
  CUgraph graph = show_end("fills", work.stream);
  show_types("fills", graph);
  show("they run", run_once(graph, work.stream));
  show("a word", word_at(work.a + 12));
  show("bytes", word_at(work.a + 16));
  show("halves", word_at(work.a + 20));
  show("the second row", word_at(work.a + 40));
  show("beside the rows", word_at(work.a + 36));
}

// A driver captures a fill of any address, and checks the address only when the graph is instantiated.
GROUP(captured_fills_of_nothing, InContext) {
  GraphWork work;
  CUdeviceptr freed = 0;
  show("cuMemAlloc", CU(cuMemAlloc_v2)(&freed, 32 << 20));
  show("cuMemFree", CU(cuMemFree_v2)(freed));
  const auto pageable = std::make_unique<std::uint32_t>(7);
  const std::pair<const char*, CUdeviceptr> addresses[] = {
      {"null", 0},
      {"16", 16},
      {"freed memory", freed},
      {"the program's", reinterpret_cast<CUdeviceptr>(pageable.get())}};
  for (const auto& [name, at] : addresses) {
    const std::string what = name;
    work.begin();
    show(what + ", bytes", CU(cuMemsetD8Async)(at, 1, 4, work.stream));
    show(what + ", words", CU(cuMemsetD32Async)(at, 1, 1, work.stream));
    show(what + ", rows", CU(cuMemsetD2D32Async)(at, 8, 1, 1, 2, work.stream));
    CUgraph graph = show_end(what, work.stream);
    CUgraphExec exec = nullptr;
    show(what + ", instantiate", CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    show(what + ", destroy", CU(cuGraphDestroy)(graph));
  }
  work.begin();
  show("a word at an odd address", CU(cuMemsetD32Async)(work.a + 1, 7, 1, work.stream));
  show("rows that overlap", CU(cuMemsetD2D32Async)(work.a, 4, 7, 2, 2, work.stream));
  show("a pitch that is no multiple", CU(cuMemsetD2D32Async)(work.a, 10, 7, 2, 2, work.stream));
  show("it is", capture_of(work.stream));
  show_end("the others", work.stream);
}

GROUP(captured_launches, InContext) {
  GraphWork work;
  StoreParameters parameters(work.a, 31);
  struct {
    CUdeviceptr out;
    unsigned value;
  } packed{work.a + 4, 32};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  const auto launch_kernel = CU(cuLaunchKernel);
  work.begin();
  show("by parameters", launch_kernel(work.store, 1, 1, 1, 1, 1, 1, 0, work.stream, parameters.list, nullptr));
  show("by extra", launch_kernel(work.store, 1, 1, 1, 1, 1, 1, 0, work.stream, nullptr, extra));
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridDimX = config.gridDimY = config.gridDimZ = 2;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = work.stream;
  show("by a configuration", CU(cuLaunchKernelEx)(&config, work.empty, nullptr, nullptr));
  CUgraphNode nodes[3] = {};
  std::size_t count = 3;
  CUgraph graph = show_end("launches", work.stream);
  show("cuGraphGetNodes", CU(cuGraphGetNodes)(graph, nodes, &count));
  for (const CUgraphNode node : nodes) {
    CUDA_KERNEL_NODE_PARAMS out;
    std::memset(&out, 0, sizeof out);
    show("cuGraphKernelNodeGetParams", CU(cuGraphKernelNodeGetParams_v2)(node, &out));
    show("grid", out.gridDimX);
    show_flag("the function", out.func == work.store || out.func == work.empty);
    show_flag("parameters", out.kernelParams != nullptr);
    show_flag("extra", out.extra != nullptr);
  }
  parameters.value = 41, packed.value = 42;
  show("they run", run_once(graph, work.stream));
  show("the first word", word_at(work.a));
  show("the second word", word_at(work.a + 4));
  work.begin();
  show("a grid of 0", launch_kernel(work.store, 0, 1, 1, 1, 1, 1, 0, work.stream, parameters.list, nullptr));
  show("it is", capture_of(work.stream));
  show("a block of 2000", launch_kernel(work.store, 1, 1, 1, 2000, 1, 1, 0, work.stream, parameters.list, nullptr));
  show("it is", capture_of(work.stream));
  show_guarded("no function",
               [&] { return launch_kernel(nullptr, 1, 1, 1, 1, 1, 1, 0, work.stream, parameters.list, nullptr); });
  show("it is", capture_of(work.stream));
  show("parameters and extra", launch_kernel(work.store, 1, 1, 1, 1, 1, 1, 0, work.stream, parameters.list, extra));
  show("it is", capture_of(work.stream));
  show_end("bad launches", work.stream);
}

GROUP(captured_host_functions, InContext) {
  GraphWork work;
  Counter count = 0;
  work.begin();
  show("a host function", CU(cuLaunchHostFunc)(work.stream, count_call, &count));
  show("another", CU(cuLaunchHostFunc)(work.stream, count_call, &count));
  show("of null", CU(cuLaunchHostFunc)(work.stream, nullptr, nullptr));
  show("it is", capture_of(work.stream));
  CUgraph graph = show_end("host functions", work.stream);
  show_types("host functions", graph);
  show("calls before a launch", count);
  show("it runs", run_once(graph, work.stream));
  show("calls", count);
  show("it runs again", run_once(graph, work.stream));
  show("calls", count);
  work.begin();
  show("a callback", CU(cuStreamAddCallback)(
                         work.stream, [](CUstream, CUresult, void* counter) { count_call(counter); }, &count, 0));
  show("it is", capture_of(work.stream));
  show_end("a callback", work.stream);
  show("calls in the end", count);
}

GROUP(captured_events, InContext) {
  GraphWork work;
  float ms = -1;
  CUevent timed = nullptr;
  CU(cuEventCreate)(&timed, 0);
  const auto record = CU(cuEventRecordWithFlags);
  show("record external outside", record(work.event, work.stream, CU_EVENT_RECORD_EXTERNAL));
  show("wait external outside", CU(cuStreamWaitEvent)(work.other, work.event, CU_EVENT_WAIT_EXTERNAL));
  work.begin();
  show("record external", record(work.event, work.stream, CU_EVENT_RECORD_EXTERNAL));
  show("wait external", CU(cuStreamWaitEvent)(work.stream, work.event, CU_EVENT_WAIT_EXTERNAL));
  show("record flags 2", record(work.event, work.stream, 2));
  show("wait flags 2", CU(cuStreamWaitEvent)(work.stream, work.event, 2));
  show("it is", capture_of(work.stream));
  show("record", record(timed, work.stream, 0));
  CUgraph graph = show_end("events", work.stream);
  show_types("events", graph);
  show("query the external one", CU(cuEventQuery)(work.event));
  show("query the captured one", CU(cuEventQuery)(timed));
  show("its time", CU(cuEventElapsedTime_v2)(&ms, timed, timed));
  show("another stream waits for it", CU(cuStreamWaitEvent)(work.other, timed, 0));
  show("another stream waits for the external one", CU(cuStreamWaitEvent)(work.other, work.event, 0));
  show("it runs", run_once(graph, work.stream));
  show("query the external one, then", CU(cuEventQuery)(work.event));
  work.begin();
  show("an event that was never recorded, wait", CU(cuStreamWaitEvent)(work.stream, work.second, 0));
  show("it is", capture_of(work.stream));
  show_end("never recorded", work.stream);
  CU(cuEventRecord)(work.second, work.other);
  CU(cuStreamSynchronize)(work.other);
  work.begin();
  show("an event of no capture, wait", CU(cuStreamWaitEvent)(work.stream, work.second, 0));
  show("it is", capture_of(work.stream));
  show_end("of no capture", work.stream);
  work.begin();
  show("an event of no capture, wait external",
       CU(cuStreamWaitEvent)(work.stream, work.second, CU_EVENT_WAIT_EXTERNAL));
  graph = show_end("external", work.stream);
  show_types("external", graph);
  show("it runs", run_once(graph, work.stream));
}

GROUP(captured_allocations, InContext) {
  GraphWork work;
  CUdeviceptr made = 0;
  work.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  show("cuMemAllocAsync", CU(cuMemAllocAsync)(&made, 64, work.stream));
  show_flag("an address", made != 0);
  StoreParameters parameters(made, 51);
  CU(cuLaunchKernel)(work.store, 1, 1, 1, 1, 1, 1, 0, work.stream, parameters.list, nullptr);
  show("copy from it", CU(cuMemcpyDtoDAsync_v2)(work.a, made, 4, work.stream));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(made, work.stream));
  show("cuMemFreeAsync again", CU(cuMemFreeAsync)(made, work.stream));
  show("it is", capture_of(work.stream));
  CUgraph graph = show_end("allocations", work.stream);
  show_types("allocations", graph);
  show("it runs", run_once(graph, work.stream));
  show("the word", word_at(work.a));
  work.begin();
  show("of 0", CU(cuMemAllocAsync)(&made, 0, work.stream));
  show("it is", capture_of(work.stream));
  show_end("of 0", work.stream);
  CUdeviceptr plain = 0;
  CU(cuMemAllocAsync)(&plain, 64, work.other);
  CU(cuStreamSynchronize)(work.other);
  work.begin();
  show("free memory of no capture", CU(cuMemFreeAsync)(plain, work.stream));
  show("it is", capture_of(work.stream));
  show_end("memory of no capture", work.stream);
}

GROUP(captured_streams_end, Loaded) {
  show_alone_in_context("destroy the joined stream", [] {
    GraphWork work;
    work.begin();
    CU(cuEventRecord)(work.event, work.stream);
    CU(cuStreamWaitEvent)(work.other, work.event, 0);
    const CUresult code = CU(cuStreamDestroy_v2)(work.other);
    show("joined, the first is", capture_of(work.stream));
    show_end("joined", work.stream);
    return code;
  });
  show_alone_in_context("destroy the captured stream", [] {
    GraphWork work;
    work.begin();
    const CUresult code = CU(cuStreamDestroy_v2)(work.stream);
    show("destroyed, another stream is", capture_of(work.other));
    return code;
  });
  show_alone_in_context("end a destroyed stream's capture", [] {
    GraphWork work;
    CUgraph graph = nullptr;
    work.begin();
    CU(cuStreamDestroy_v2)(work.stream);
    return CU(cuStreamEndCapture)(work.stream, &graph);
  });
  show_alone_in_context("destroy the event of a fork", [] {
    GraphWork work;
    work.begin();
    CU(cuEventRecord)(work.event, work.stream);
    const CUresult code = CU(cuEventDestroy_v2)(work.event);
    show_end("without the event", work.stream);
    return code;
  });
  show_alone_in_context("begin in a destroyed stream", [] {
    GraphWork work;
    CU(cuStreamDestroy_v2)(work.stream);
    return work.begin();
  });
  show_alone_in_context("unload the module of a captured launch", [] {
    GraphWork work;
    work.begin();
    work.launch_empty(work.stream);
    const CUresult code = CU(cuModuleUnload)(work.module);
    show("unloaded, it is", capture_of(work.stream));
    show_end("unloaded", work.stream);
    return code;
  });
}

}  // namespace
}  // namespace contract
