// Helpers of the programs about graphs: lists of nodes and edges, counts by type, launches, and a kernel that blocks a
// stream.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "check.h"

namespace graphs {

inline const char* type_name(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "graph";
    case cudaGraphNodeTypeEmpty: return "empty";
    case cudaGraphNodeTypeWaitEvent: return "event wait";
    case cudaGraphNodeTypeEventRecord: return "event record";
    case cudaGraphNodeTypeConditional: return "conditional";
    default: return "another type";
  }
}

inline const char* update_name(cudaGraphExecUpdateResult result) {
  switch (result) {
    case cudaGraphExecUpdateSuccess: return "success";
    case cudaGraphExecUpdateError: return "error";
    case cudaGraphExecUpdateErrorTopologyChanged: return "topology changed";
    case cudaGraphExecUpdateErrorNodeTypeChanged: return "node type changed";
    case cudaGraphExecUpdateErrorFunctionChanged: return "function changed";
    case cudaGraphExecUpdateErrorParametersChanged: return "parameters changed";
    case cudaGraphExecUpdateErrorNotSupported: return "not supported";
    case cudaGraphExecUpdateErrorUnsupportedFunctionChange: return "unsupported function change";
    case cudaGraphExecUpdateErrorAttributesChanged: return "attributes changed";
    default: return "another result";
  }
}

using Nodes = std::vector<cudaGraphNode_t>;

inline Nodes nodes_of(cudaGraph_t graph) {
  size_t count = 0;
  CHECK_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  Nodes nodes(count);
  if (count != 0) CHECK_CUDA(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

inline cudaGraphNodeType type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  CHECK_CUDA(cudaGraphNodeGetType(node, &type));
  return type;
}

// Returns the only node of its type.
inline cudaGraphNode_t find_node(cudaGraph_t graph, cudaGraphNodeType type) {
  cudaGraphNode_t found = nullptr;
  for (const cudaGraphNode_t node : nodes_of(graph)) {
    if (type_of(node) != type) continue;
    CHECK_THAT(found == nullptr, "The graph has two nodes of type %s.", type_name(type));
    found = node;
  }
  CHECK_THAT(found != nullptr, "The graph has no node of type %s.", type_name(type));
  return found;
}

inline size_t edge_count(cudaGraph_t graph) {
  size_t count = 0;
  CHECK_CUDA(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  return count;
}

// Returns the number of nodes of each type, in the order of the types, and the number of edges.
inline std::string summary(cudaGraph_t graph) {
  std::map<cudaGraphNodeType, int> counts;
  for (const cudaGraphNode_t node : nodes_of(graph)) ++counts[type_of(node)];
  std::string text;
  for (const auto& [type, count] : counts) text += std::to_string(count) + " " + type_name(type) + ", ";
  return text + std::to_string(edge_count(graph)) + " edges";
}

inline cudaGraph_t create() {
  cudaGraph_t graph = nullptr;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  return graph;
}

inline void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed) {
  CHECK_CUDA(cudaStreamBeginCapture(stream, mode));
}

inline cudaGraph_t end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK_THAT(graph != nullptr, "cudaStreamEndCapture gave no graph.");
  return graph;
}

inline cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

inline void launch_and_wait(cudaGraphExec_t exec, cudaStream_t stream) {
  CHECK_CUDA(cudaGraphLaunch(exec, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

// Launches a graph once, and destroys its executable.
inline void run_once(cudaGraph_t graph, cudaStream_t stream) {
  const cudaGraphExec_t exec = instantiate(graph);
  launch_and_wait(exec, stream);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

inline cudaStream_t create_stream() {
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

inline cudaEvent_t create_event() {
  cudaEvent_t event = nullptr;
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

// Copies these words to the device so that every stream sees them. cudaMemcpy alone may return before the device has
// the words.
template <class T>
T* settled_copy(const std::vector<T>& values) {
  T* const buffer = check::device_copy(values);
  CHECK_CUDA(cudaDeviceSynchronize());
  return buffer;
}

template <class T>
T* pinned_buffer(size_t count) {
  void* buffer = nullptr;
  CHECK_CUDA(cudaMallocHost(&buffer, count * sizeof(T)));
  std::memset(buffer, 0, count * sizeof(T));
  return static_cast<T*>(buffer);
}

// Gives up after a bounded count, so that a program that failed does not leave a kernel running forever.
template <class Word>
__global__ void hold(const volatile Word* open) {
  for (int i = 0; i < (1 << 22) && *open == 0; ++i) __nanosleep(50000);
}

// Blocks a stream until the host opens the gate. The constructor launches the kernel once, because loading a kernel may
// wait.
class Gate {
 public:
  Gate() : open_(pinned_buffer<int>(1)) {
    close(nullptr);
    open();
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  ~Gate() { (void)cudaFreeHost(open_); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void close(cudaStream_t stream) {
    __atomic_store_n(open_, 0, __ATOMIC_RELEASE);
    hold<<<1, 1, 0, stream>>>(open_);
    CHECK_CUDA(cudaGetLastError());
  }
  void open() { __atomic_store_n(open_, 1, __ATOMIC_RELEASE); }

 private:
  int* open_;
};

// Prints the name of a call's error. The error must be the expected one.
inline void expect(const char* what, cudaError_t got, cudaError_t expected) {
  CHECK_THAT(got == expected, "%s gave %s, not %s.", what, cudaGetErrorName(got), cudaGetErrorName(expected));
  std::printf("%s: %s\n", what, cudaGetErrorName(got));
  (void)cudaGetLastError();
}

}  // namespace graphs
