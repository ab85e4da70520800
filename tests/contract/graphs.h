// Helpers that cases for callbacks, captures and graphs share.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/contract/contexts.h"

namespace contract {

// Makes the first device's primary context current, in a process that has not used the driver.
inline void enter_context() {
  CUcontext context = nullptr;
  CU(cuInit)(0);
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
}

// Calls show_alone() with the primary context current.
template <class F>
void show_alone_in_context(const std::string& what, const F& call) {
  show_alone(what, [&] {
    enter_context();
    return call();
  });
}

// Returns the result of the call in another thread with the same current context.
template <class F>
CUresult in_a_thread(const F& call) {
  const CUcontext context = current_context();
  CUresult code = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    CU(cuCtxSetCurrent)(context);
    code = call();
  }).join();
  return code;
}

// A host function that counts its calls. Its data is the counter.
using Counter = std::atomic<int>;
inline void count_call(void* counter) { ++*static_cast<Counter*>(counter); }

// Waits until the count is `wanted`, but at most two seconds. Returns the count.
inline int settled(const Counter& count, int wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (count < wanted && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return count;
}

// A host function that blocks its stream until the gate opens, but at most five seconds.
struct Gate {
  std::atomic<bool> open = false, entered = false;

  static void hold(void* gate) {
    auto& self = *static_cast<Gate*>(gate);
    self.entered = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!self.open && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool is_entered() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!entered && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return entered;
  }
};

// Returns a pointer that no call ever returns.
template <class Handle>
Handle untouched() {
  static char place;
  return reinterpret_cast<Handle>(&place);
}

// The parameters of the kernel `store`.
struct StoreParameters {
  CUdeviceptr out;
  unsigned value;
  void* list[2] = {&out, &value};

  StoreParameters(CUdeviceptr to, unsigned word) : out(to), value(word) {}
  StoreParameters(const StoreParameters&) = delete;
  StoreParameters& operator=(const StoreParameters&) = delete;
};

// The objects that captures and nodes use. The streams are non-blocking.
struct GraphWork {
  CUmodule module = nullptr;
  CUfunction empty = nullptr, store = nullptr;
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr, second = nullptr;
  CUdeviceptr a = 0;  // 64 zero bytes
  CUcontext context = nullptr;

  GraphWork() {
    context = current_context();
    module = load_module();
    empty = function_of(module, "empty");
    store = function_of(module, "store");
    CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING);
    CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    CU(cuEventCreate)(&second, CU_EVENT_DISABLE_TIMING);
    CU(cuMemAlloc_v2)(&a, 64);
    clear();
  }
  void clear() const {
    CU(cuMemsetD8_v2)(a, 0, 64);
    CU(cuCtxSynchronize)();
  }
  CUresult begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED) const {
    return CU(cuStreamBeginCapture_v2)(stream, mode);
  }
  CUresult launch_empty(CUstream into) const { return launch_of(empty, into); }
  CUresult launch_store(CUstream into, unsigned value) const {
    StoreParameters parameters(a, value);
    return CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, into, parameters.list, nullptr);
  }

 private:
  static CUresult launch_of(CUfunction function, CUstream into) {
    return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, into, nullptr, nullptr);
  }
};

// ---- nodes ---------------------------------------------------------------------------------------------------------

inline CUDA_KERNEL_NODE_PARAMS kernel_of(CUfunction function, void** parameters = nullptr) {
  CUDA_KERNEL_NODE_PARAMS out;
  std::memset(&out, 0, sizeof out);
  out.func = function;
  out.gridDimX = out.gridDimY = out.gridDimZ = 1;
  out.blockDimX = out.blockDimY = out.blockDimZ = 1;
  out.kernelParams = parameters;
  return out;
}

inline CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D out;
  std::memset(&out, 0, sizeof out);
  out.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = from;
  out.dstDevice = to;
  out.WidthInBytes = bytes;
  out.Height = out.Depth = 1;
  return out;
}

inline CUDA_MEMCPY3D copy_of(void* to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D out = copy_of(CUdeviceptr{0}, from, bytes);
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = to;
  return out;
}

inline CUDA_MEMCPY3D copy_of(CUdeviceptr to, const void* from, std::size_t bytes) {
  CUDA_MEMCPY3D out = copy_of(to, CUdeviceptr{0}, bytes);
  out.srcMemoryType = CU_MEMORYTYPE_HOST;
  out.srcHost = from;
  return out;
}

// Returns the parameters of a fill of `words` words with `value`.
inline CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr to, unsigned value, std::size_t words = 1) {
  CUDA_MEMSET_NODE_PARAMS out;
  std::memset(&out, 0, sizeof out);
  out.dst = to;
  out.value = value;
  out.elementSize = 4;
  out.width = words;
  out.height = 1;
  return out;
}

inline CUDA_HOST_NODE_PARAMS counting(Counter& counter) { return {.fn = count_call, .userData = &counter}; }

inline CUgraph make_graph() {
  CUgraph graph = nullptr;
  CU(cuGraphCreate)(&graph, 0);
  return graph;
}

inline CUgraphNode add_empty(CUgraph graph, const std::vector<CUgraphNode>& after = {}) {
  CUgraphNode node = nullptr;
  CU(cuGraphAddEmptyNode)(&node, graph, after.data(), after.size());
  return node;
}

inline CUgraphNode add_kernel(CUgraph graph, const CUDA_KERNEL_NODE_PARAMS& parameters,
                              const std::vector<CUgraphNode>& after = {}) {
  CUgraphNode node = nullptr;
  CU(cuGraphAddKernelNode_v2)(&node, graph, after.data(), after.size(), &parameters);
  return node;
}

inline CUgraphExec instantiated(CUgraph graph) {
  CUgraphExec exec = nullptr;
  CU(cuGraphInstantiateWithFlags)(&exec, graph, 0);
  return exec;
}

// ---- queries -------------------------------------------------------------------------------------------------------

// Returns the number of nodes, or -1 if the call fails.
inline long long nodes_in(CUgraph graph) {
  std::size_t count = 0;
  return CU(cuGraphGetNodes)(graph, nullptr, &count) == CUDA_SUCCESS ? static_cast<long long>(count) : -1;
}
inline long long edges_in(CUgraph graph) {
  std::size_t count = 0;
  const CUresult code = CU(cuGraphGetEdges_v2)(graph, nullptr, nullptr, nullptr, &count);
  return code == CUDA_SUCCESS ? static_cast<long long>(count) : -1;
}
inline CUstreamCaptureStatus capture_of(CUstream stream) {
  auto status = odd<CUstreamCaptureStatus>(9);
  CU(cuStreamIsCapturing)(stream, &status);
  return status;
}

// Ends the capture, and shows the result, whether there is a graph, and the contents of the graph.
inline CUgraph show_end(const std::string& what, CUstream stream) {
  auto graph = untouched<CUgraph>();
  const CUresult code = CU(cuStreamEndCapture)(stream, &graph);
  show(what + ", the end", code);
  if (code != CUDA_SUCCESS) {
    show_flag(what + ", the graph is null", graph == nullptr);
    return nullptr;
  }
  show(what + ", nodes", nodes_in(graph));
  show(what + ", edges", edges_in(graph));
  return graph;
}

// Launches the graph once and waits for its end.
inline CUresult run_once(CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  if (const CUresult code = CU(cuGraphInstantiateWithFlags)(&exec, graph, 0); code != CUDA_SUCCESS) return code;
  const CUresult launched = CU(cuGraphLaunch)(exec, stream);
  const CUresult waited = CU(cuStreamSynchronize)(stream);
  CU(cuGraphExecDestroy)(exec);
  return launched != CUDA_SUCCESS ? launched : waited;
}

}  // namespace contract
