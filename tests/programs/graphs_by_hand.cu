// Graphs built from single nodes: the same work as a captured graph, once by a separate call for each type of node, and
// once by cudaGraphAddNode for all types. Counts, edges and results must equal those of the captured graph. The program
// then tests lists, edges, clones, disabled nodes, kernel nodes' parameters and attributes, uploads, and the graph's
// DOT output.
#include <unistd.h>

#include <functional>
#include <set>

#include "graphs.h"

namespace {

constexpr unsigned block = 64;

__global__ void scale(unsigned* data, unsigned n, unsigned factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * factor + i;
}

// Adds rows of `width` words with a pitch to words without gaps.
__global__ void combine(const unsigned* words, const unsigned* rows, unsigned* out, unsigned n, unsigned width,
                        unsigned pitch) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = words[i] + rows[i / width * pitch + i % width];
}

unsigned blocks(unsigned n) { return (n + block - 1) / block; }

void scale_here(std::vector<unsigned>& data, unsigned factor) {
  for (unsigned i = 0; i < data.size(); ++i) data[i] = data[i] * factor + i;
}

struct Shape {
  unsigned width, height;
  unsigned n() const { return width * height; }
  size_t row_bytes() const { return width * sizeof(unsigned); }
  unsigned half() const { return width / 2; }  // words of each row that the copy of rows writes
  unsigned host_pitch() const { return width + 3; }
  size_t host_pitch_bytes() const { return host_pitch() * sizeof(unsigned); }
};

// The data of the host node, which adds up words.
struct Sum {
  const unsigned* words;
  unsigned n;
  unsigned sum = 0;
  int calls = 0;
};

void add_up(void* argument) {
  Sum& sum = *static_cast<Sum*>(argument);
  sum.sum = 0;
  for (unsigned i = 0; i < sum.n; ++i) sum.sum += sum.words[i];
  ++sum.calls;
}

// The parts of the work that are left out because their nodes are disabled.
struct Without {
  bool scale = false, fill = false, rows = false;
};

// The buffers of all graphs, and the CPU's result.
struct Work {
  explicit Work(Shape wanted) : shape(wanted) {
    const unsigned n = shape.n();
    in = graphs::pinned_buffer<unsigned>(n);
    rows_in = graphs::pinned_buffer<unsigned>(shape.host_pitch() * shape.height);
    out = graphs::pinned_buffer<unsigned>(n);
    for (unsigned** words : {&a, &c, &d}) *words = check::device_buffer<unsigned>(n);
    CHECK_CUDA(cudaMallocPitch(&b, &pitch_bytes, shape.row_bytes(), shape.height));
    scale<<<1, 1>>>(a, 0, 0);
    combine<<<1, 1>>>(a, b, c, 0, 1, 1);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    sum.words = out;
    sum.n = n;
  }
  ~Work() {
    for (unsigned* pinned : {in, rows_in, out}) CHECK_CUDA(cudaFreeHost(pinned));
    for (unsigned* words : {a, b, c, d}) CHECK_CUDA(cudaFree(words));
    for (const cudaStream_t one : {stream, other}) CHECK_CUDA(cudaStreamDestroy(one));
    for (const cudaEvent_t event : {ready, done}) CHECK_CUDA(cudaEventDestroy(event));
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  unsigned pitch() const { return static_cast<unsigned>(pitch_bytes / sizeof(unsigned)); }
  size_t bytes() const { return shape.n() * sizeof(unsigned); }

  // Sets new input, and clears the device's buffers.
  void reset(unsigned salt) {
    for (unsigned i = 0; i < shape.n(); ++i) in[i] = static_cast<unsigned>(check::small_number(i, salt));
    for (unsigned i = 0; i < shape.host_pitch() * shape.height; ++i)
      rows_in[i] = static_cast<unsigned>(check::small_number(i, salt + 1));
    std::fill_n(out, shape.n(), 0u);
    for (unsigned* words : {a, c, d}) CHECK_CUDA(cudaMemset(words, 0, bytes()));
    CHECK_CUDA(cudaMemset2D(b, pitch_bytes, 1, shape.row_bytes(), shape.height));
    CHECK_CUDA(cudaDeviceSynchronize());
  }

  std::vector<unsigned> expected(unsigned factor, Without without = {}) const {
    std::vector<unsigned> words(in, in + shape.n());
    if (!without.scale) scale_here(words, factor);
    for (unsigned i = 0; i < shape.n(); ++i) {
      const unsigned row = i / shape.width, column = i % shape.width;
      const bool copied = column < shape.half() && !without.rows;
      words[i] += copied ? rows_in[row * shape.host_pitch() + column] : without.fill ? 0x01010101u : 0x03030303u;
    }
    scale_here(words, 3);
    scale_here(words, 5);
    return words;
  }

  // Launches the graph, waits for the event that the graph records, and compares the results. The graph waits for the
  // event `ready`.
  void run(const char* what, cudaGraphExec_t exec, const std::vector<unsigned>& wanted) {
    const int calls = sum.calls;
    CHECK_CUDA(cudaEventRecord(ready, other));
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaEventSynchronize(done));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    check::compare(what, std::vector<unsigned>(out, out + shape.n()), wanted);
    unsigned added = 0;
    for (const unsigned word : wanted) added += word;
    CHECK_THAT(sum.calls == calls + 1 && sum.sum == added, "%s: the host node ran %d times, its sum is %u, not %u.",
               what, sum.calls - calls, sum.sum, added);
  }

  const Shape shape;
  unsigned *in, *rows_in, *out;                                     // pinned
  unsigned *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;  // on the device; b has rows with a pitch
  size_t pitch_bytes = 0;
  Sum sum{};
  const cudaStream_t stream = graphs::create_stream(), other = graphs::create_stream();
  const cudaEvent_t ready = graphs::create_event(), done = graphs::create_event();
};

// The graph, and its nodes by name.
struct Made {
  cudaGraph_t graph;
  cudaGraphNode_t copy_in, fill, rows, wait, scaled, combined, within, child, empty, copy_out, host, record;
};

constexpr unsigned factor = 7;

// Parameters for both ways of adding a node.
cudaMemcpy3DParms copy_parameters(void* to, const void* from, size_t bytes) {
  cudaMemcpy3DParms params{};
  params.srcPtr = make_cudaPitchedPtr(const_cast<void*>(from), bytes, bytes, 1);
  params.dstPtr = make_cudaPitchedPtr(to, bytes, bytes, 1);
  params.extent = make_cudaExtent(bytes, 1, 1);
  params.kind = cudaMemcpyDefault;
  return params;
}

cudaMemcpy3DParms row_parameters(const Work& work) {
  const Shape& shape = work.shape;
  cudaMemcpy3DParms params{};
  params.srcPtr = make_cudaPitchedPtr(work.rows_in, shape.host_pitch_bytes(), shape.row_bytes(), shape.height);
  params.dstPtr = make_cudaPitchedPtr(work.b, work.pitch_bytes, shape.row_bytes(), shape.height);
  params.extent = make_cudaExtent(shape.half() * sizeof(unsigned), shape.height, 1);
  params.kind = cudaMemcpyHostToDevice;
  return params;
}

// Adds nodes by a separate call for each type.
class ByCalls {
 public:
  explicit ByCalls(cudaGraph_t graph) : graph_(graph) {}

  cudaGraphNode_t kernel(const graphs::Nodes& behind, void* function, unsigned n, void** arguments) {
    cudaKernelNodeParams params{};
    params.func = function;
    params.gridDim = dim3(blocks(n));
    params.blockDim = dim3(block);
    params.kernelParams = arguments;
    CHECK_CUDA(cudaGraphAddKernelNode(&node_, graph_, behind.data(), behind.size(), &params));
    return node_;
  }
  cudaGraphNode_t copy(const graphs::Nodes& behind, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    CHECK_CUDA(cudaGraphAddMemcpyNode1D(&node_, graph_, behind.data(), behind.size(), to, from, bytes, kind));
    return node_;
  }
  cudaGraphNode_t copy(const graphs::Nodes& behind, const cudaMemcpy3DParms& params) {
    CHECK_CUDA(cudaGraphAddMemcpyNode(&node_, graph_, behind.data(), behind.size(), &params));
    return node_;
  }
  cudaGraphNode_t fill(const graphs::Nodes& behind, void* to, size_t pitch, unsigned char value, size_t width,
                       size_t height) {
    cudaMemsetParams params{};
    params.dst = to;
    params.pitch = pitch;
    params.value = value;
    params.elementSize = 1;
    params.width = width;
    params.height = height;
    CHECK_CUDA(cudaGraphAddMemsetNode(&node_, graph_, behind.data(), behind.size(), &params));
    return node_;
  }
  cudaGraphNode_t host(const graphs::Nodes& behind, cudaHostFn_t function, void* data) {
    cudaHostNodeParams params{};
    params.fn = function;
    params.userData = data;
    CHECK_CUDA(cudaGraphAddHostNode(&node_, graph_, behind.data(), behind.size(), &params));
    return node_;
  }
  cudaGraphNode_t child(const graphs::Nodes& behind, cudaGraph_t graph) {
    CHECK_CUDA(cudaGraphAddChildGraphNode(&node_, graph_, behind.data(), behind.size(), graph));
    return node_;
  }
  cudaGraphNode_t empty(const graphs::Nodes& behind) {
    CHECK_CUDA(cudaGraphAddEmptyNode(&node_, graph_, behind.data(), behind.size()));
    return node_;
  }
  cudaGraphNode_t record(const graphs::Nodes& behind, cudaEvent_t event) {
    CHECK_CUDA(cudaGraphAddEventRecordNode(&node_, graph_, behind.data(), behind.size(), event));
    return node_;
  }
  cudaGraphNode_t wait(const graphs::Nodes& behind, cudaEvent_t event) {
    CHECK_CUDA(cudaGraphAddEventWaitNode(&node_, graph_, behind.data(), behind.size(), event));
    return node_;
  }

 private:
  cudaGraph_t graph_;
  cudaGraphNode_t node_ = nullptr;
};

// Adds nodes of all types by one call.
class ByParameters {
 public:
  explicit ByParameters(cudaGraph_t graph) : graph_(graph) {}

  cudaGraphNode_t kernel(const graphs::Nodes& behind, void* function, unsigned n, void** arguments) {
    return add(behind, cudaGraphNodeTypeKernel, [&](cudaGraphNodeParams& params) {
      params.kernel.func = function;
      params.kernel.gridDim = dim3(blocks(n));
      params.kernel.blockDim = dim3(block);
      params.kernel.kernelParams = arguments;
    });
  }
  cudaGraphNode_t copy(const graphs::Nodes& behind, void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    return copy(behind, copy_parameters(to, from, bytes));
  }
  cudaGraphNode_t copy(const graphs::Nodes& behind, const cudaMemcpy3DParms& copy) {
    return add(behind, cudaGraphNodeTypeMemcpy, [&](cudaGraphNodeParams& params) { params.memcpy.copyParams = copy; });
  }
  cudaGraphNode_t fill(const graphs::Nodes& behind, void* to, size_t pitch, unsigned char value, size_t width,
                       size_t height) {
    return add(behind, cudaGraphNodeTypeMemset, [&](cudaGraphNodeParams& params) {
      params.memset.dst = to;
      params.memset.pitch = pitch;
      params.memset.value = value;
      params.memset.elementSize = 1;
      params.memset.width = width;
      params.memset.height = height;
    });
  }
  cudaGraphNode_t host(const graphs::Nodes& behind, cudaHostFn_t function, void* data) {
    return add(behind, cudaGraphNodeTypeHost, [&](cudaGraphNodeParams& params) {
      params.host.fn = function;
      params.host.userData = data;
    });
  }
  cudaGraphNode_t child(const graphs::Nodes& behind, cudaGraph_t graph) {
    return add(behind, cudaGraphNodeTypeGraph, [&](cudaGraphNodeParams& params) {
      params.graph.graph = graph;
      params.graph.ownership = cudaGraphChildGraphOwnershipClone;
    });
  }
  cudaGraphNode_t empty(const graphs::Nodes& behind) {
    return add(behind, cudaGraphNodeTypeEmpty, [](cudaGraphNodeParams&) {});
  }
  cudaGraphNode_t record(const graphs::Nodes& behind, cudaEvent_t event) {
    return add(behind, cudaGraphNodeTypeEventRecord,
               [&](cudaGraphNodeParams& params) { params.eventRecord.event = event; });
  }
  cudaGraphNode_t wait(const graphs::Nodes& behind, cudaEvent_t event) {
    return add(behind, cudaGraphNodeTypeWaitEvent,
               [&](cudaGraphNodeParams& params) { params.eventWait.event = event; });
  }

 private:
  cudaGraphNode_t add(const graphs::Nodes& behind, cudaGraphNodeType type,
                      const std::function<void(cudaGraphNodeParams&)>& set) {
    cudaGraphNode_t node = nullptr;
    cudaGraphNodeParams params = {};
    params.type = type;
    set(params);
    CHECK_CUDA(cudaGraphAddNode(&node, graph_, behind.data(), nullptr, behind.size(), &params));
    return node;
  }

  cudaGraph_t graph_;
};

// A graph of two consecutive kernels.
template <class Way>
cudaGraph_t make_child(const Work& work) {
  const cudaGraph_t graph = graphs::create();
  Way add(graph);
  unsigned* words = work.d;
  unsigned n = work.shape.n(), three = 3, five = 5;
  void* first[] = {&words, &n, &three};
  void* second[] = {&words, &n, &five};
  const cudaGraphNode_t node = add.kernel({}, reinterpret_cast<void*>(scale), n, first);
  add.kernel({node}, reinterpret_cast<void*>(scale), n, second);
  return graph;
}

template <class Way>
Made make_by_hand(Work& work) {
  Made made{};
  made.graph = graphs::create();
  Way add(made.graph);
  const Shape& shape = work.shape;
  unsigned n = shape.n(), by = factor, width = shape.width, pitch = work.pitch();
  void* scaling[] = {&work.a, &n, &by};
  void* combining[] = {&work.a, &work.b, &work.c, &n, &width, &pitch};
  const cudaGraph_t child = make_child<Way>(work);

  made.copy_in = add.copy({}, work.a, work.in, work.bytes(), cudaMemcpyHostToDevice);
  made.fill = add.fill({made.copy_in}, work.b, work.pitch_bytes, 3, shape.row_bytes(), shape.height);
  made.rows = add.copy({made.fill}, row_parameters(work));
  made.wait = add.wait({made.copy_in}, work.ready);
  made.scaled = add.kernel({made.wait}, reinterpret_cast<void*>(scale), n, scaling);
  made.combined = add.kernel({made.scaled, made.rows}, reinterpret_cast<void*>(combine), n, combining);
  made.within = add.copy({made.combined}, work.d, work.c, work.bytes(), cudaMemcpyDeviceToDevice);
  made.child = add.child({made.within}, child);
  made.empty = add.empty({made.child});
  made.copy_out = add.copy({made.empty}, work.out, work.d, work.bytes(), cudaMemcpyDeviceToHost);
  made.host = add.host({made.copy_out}, add_up, &work.sum);
  made.record = add.record({made.host}, work.done);
  CHECK_CUDA(cudaGraphDestroy(child));  // the node has its own copy of the child graph
  return made;
}

cudaGraphNode_t last_node(cudaStream_t stream, cudaGraph_t* graph) {
  cudaStreamCaptureStatus status{};
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, graph, &nodes, &edges, &count));
  CHECK_THAT(count == 1, "The captured stream has %zu last nodes.", count);
  return nodes[0];
}

// A child graph and an empty node cannot be captured. The program adds them explicitly in the middle of the capture.
void add_what_cannot_be_captured(const Work& work) {
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t last = last_node(work.stream, &graph);
  const cudaGraph_t child = make_child<ByCalls>(work);
  ByCalls add(graph);
  cudaGraphNode_t node = add.empty({add.child({last}, child)});
  CHECK_CUDA(cudaStreamUpdateCaptureDependencies(work.stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
  CHECK_CUDA(cudaGraphDestroy(child));
}

cudaGraph_t capture(Work& work) {
  const Shape& shape = work.shape;
  const unsigned n = shape.n();
  const cudaEvent_t forked = graphs::create_event(), joined = graphs::create_event();
  graphs::begin(work.stream);
  CHECK_CUDA(cudaMemcpyAsync(work.a, work.in, work.bytes(), cudaMemcpyHostToDevice, work.stream));
  CHECK_CUDA(cudaEventRecord(forked, work.stream));
  CHECK_CUDA(cudaStreamWaitEvent(work.other, forked, 0));
  CHECK_CUDA(cudaMemset2DAsync(work.b, work.pitch_bytes, 3, shape.row_bytes(), shape.height, work.other));
  CHECK_CUDA(cudaMemcpy2DAsync(work.b, work.pitch_bytes, work.rows_in, shape.host_pitch_bytes(),
                               shape.half() * sizeof(unsigned), shape.height, cudaMemcpyHostToDevice, work.other));
  CHECK_CUDA(cudaEventRecord(joined, work.other));
  CHECK_CUDA(cudaStreamWaitEvent(work.stream, work.ready, cudaEventWaitExternal));
  scale<<<blocks(n), block, 0, work.stream>>>(work.a, n, factor);
  CHECK_CUDA(cudaStreamWaitEvent(work.stream, joined, 0));
  combine<<<blocks(n), block, 0, work.stream>>>(work.a, work.b, work.c, n, shape.width, work.pitch());
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpyAsync(work.d, work.c, work.bytes(), cudaMemcpyDeviceToDevice, work.stream));
  add_what_cannot_be_captured(work);
  CHECK_CUDA(cudaMemcpyAsync(work.out, work.d, work.bytes(), cudaMemcpyDeviceToHost, work.stream));
  CHECK_CUDA(cudaLaunchHostFunc(work.stream, add_up, &work.sum));
  CHECK_CUDA(cudaEventRecordWithFlags(work.done, work.stream, cudaEventRecordExternal));
  const cudaGraph_t graph = graphs::end(work.stream);
  for (const cudaEvent_t event : {forked, joined}) CHECK_CUDA(cudaEventDestroy(event));
  return graph;
}

// Checks that the three ways give equal graphs and equal results.
void twins(Work& work) {
  const cudaGraph_t all[] = {make_by_hand<ByCalls>(work).graph, make_by_hand<ByParameters>(work).graph, capture(work)};
  const char* const names[] = {"by a call for each type", "by parameters", "captured"};
  const std::string summary = graphs::summary(all[0]);
  for (int i = 0; i < 3; ++i) {
    const std::string other = graphs::summary(all[i]);
    std::printf("%s: %s\n", names[i], other.c_str());
    CHECK_THAT(other == summary, "The graphs differ.");
    const cudaGraphExec_t exec = graphs::instantiate(all[i]);
    for (unsigned salt = 0; salt < 3; ++salt) {
      work.reset(salt);
      work.run(names[i], exec, work.expected(factor));
    }
    std::printf("%s: sum %u\n", names[i], work.sum.sum);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(all[i]));
  }
}

using Set = std::set<cudaGraphNode_t>;
using Pairs = std::set<std::pair<cudaGraphNode_t, cudaGraphNode_t>>;

Pairs edges_of(cudaGraph_t graph) {
  size_t count = graphs::edge_count(graph);
  graphs::Nodes from(count), to(count);
  std::vector<cudaGraphEdgeData> data(count);
  CHECK_CUDA(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &count));
  Pairs pairs;
  for (size_t i = 0; i < count; ++i) pairs.insert({from[i], to[i]});
  return pairs;
}

using List = cudaError_t (*)(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*);

Set neighbours(List list, cudaGraphNode_t node) {
  size_t count = 0;
  CHECK_CUDA(list(node, nullptr, nullptr, &count));
  graphs::Nodes nodes(count);
  std::vector<cudaGraphEdgeData> data(count);
  if (count != 0) CHECK_CUDA(list(node, nodes.data(), data.data(), &count));
  return Set(nodes.begin(), nodes.end());
}

Set dependencies(cudaGraphNode_t node) { return neighbours(cudaGraphNodeGetDependencies, node); }
Set dependents(cudaGraphNode_t node) { return neighbours(cudaGraphNodeGetDependentNodes, node); }

Set roots_of(cudaGraph_t graph) {
  size_t count = 0;
  CHECK_CUDA(cudaGraphGetRootNodes(graph, nullptr, &count));
  graphs::Nodes nodes(count);
  if (count != 0) CHECK_CUDA(cudaGraphGetRootNodes(graph, nodes.data(), &count));
  return Set(nodes.begin(), nodes.end());
}

void lists_and_edges(Work& work) {
  const Made made = make_by_hand<ByCalls>(work);
  const Pairs wanted = {{made.copy_in, made.fill},    {made.fill, made.rows},       {made.copy_in, made.wait},
                        {made.wait, made.scaled},     {made.scaled, made.combined}, {made.rows, made.combined},
                        {made.combined, made.within}, {made.within, made.child},    {made.child, made.empty},
                        {made.empty, made.copy_out},  {made.copy_out, made.host},   {made.host, made.record}};
  CHECK_THAT(edges_of(made.graph) == wanted, "The list of edges is wrong.");
  CHECK_THAT((roots_of(made.graph) == Set{made.copy_in}), "The list of roots is wrong.");
  CHECK_THAT((dependencies(made.combined) == Set{made.scaled, made.rows}), "A list of dependencies is wrong.");
  CHECK_THAT(dependencies(made.copy_in).empty(), "A root has dependencies.");
  CHECK_THAT((dependents(made.copy_in) == Set{made.fill, made.wait}), "A list of dependents is wrong.");
  CHECK_THAT(dependents(made.record).empty(), "The last node has dependents.");
  const graphs::Nodes nodes = graphs::nodes_of(made.graph);
  CHECK_THAT(Set(nodes.begin(), nodes.end()).size() == 12, "The list of nodes is wrong.");

  // Without this edge the second branch has its own root.
  CHECK_CUDA(cudaGraphRemoveDependencies(made.graph, &made.copy_in, &made.fill, nullptr, 1));
  CHECK_THAT((roots_of(made.graph) == Set{made.copy_in, made.fill}), "An edge less gives other roots.");
  std::printf("an edge less: %zu edges, %zu roots\n", graphs::edge_count(made.graph), roots_of(made.graph).size());
  const cudaGraphNode_t from[] = {made.copy_in, made.scaled}, to[] = {made.fill, made.rows};
  CHECK_CUDA(cudaGraphAddDependencies(made.graph, from, to, nullptr, 2));
  CHECK_THAT((dependencies(made.rows) == Set{made.fill, made.scaled}), "Edges more give other dependencies.");
  std::printf("edges more: %zu edges, %zu roots\n", graphs::edge_count(made.graph), roots_of(made.graph).size());
  graphs::expect("an edge again", cudaGraphAddDependencies(made.graph, from, to, nullptr, 1), cudaErrorInvalidValue);
  graphs::expect("an edge from a node to itself", cudaGraphAddDependencies(made.graph, from, from, nullptr, 1),
                 cudaErrorInvalidValue);
  graphs::expect("remove an edge that is none", cudaGraphRemoveDependencies(made.graph, to, from, nullptr, 1),
                 cudaErrorInvalidValue);
  const cudaGraphExec_t exec = graphs::instantiate(made.graph);
  work.reset(4);
  work.run("With other edges", exec, work.expected(factor));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(made.graph));
}

cudaGraphNode_t in_clone(cudaGraph_t clone, cudaGraphNode_t node) {
  cudaGraphNode_t found = nullptr;
  CHECK_CUDA(cudaGraphNodeFindInClone(&found, node, clone));
  CHECK_THAT(found != nullptr && found != node && graphs::type_of(found) == graphs::type_of(node),
             "A clone's node is not another node of the same type.");
  return found;
}

// Sets the factor of a kernel node, and keeps its other parameters.
void set_factor(cudaGraphNode_t node, unsigned value) {
  cudaKernelNodeParams params{};
  CHECK_CUDA(cudaGraphKernelNodeGetParams(node, &params));
  auto** const words = static_cast<unsigned**>(params.kernelParams[0]);
  auto* const n = static_cast<unsigned*>(params.kernelParams[1]);
  unsigned* copied_words = *words;
  unsigned copied_n = *n;
  void* arguments[] = {&copied_words, &copied_n, &value};
  params.kernelParams = arguments;
  CHECK_CUDA(cudaGraphKernelNodeSetParams(node, &params));
}

unsigned factor_of(cudaGraphNode_t node) {
  cudaKernelNodeParams params{};
  CHECK_CUDA(cudaGraphKernelNodeGetParams(node, &params));
  CHECK_THAT(params.kernelParams != nullptr, "A kernel node has no parameters.");
  return *static_cast<unsigned*>(params.kernelParams[2]);
}

void clones(Work& work) {
  const Made made = make_by_hand<ByCalls>(work);
  cudaGraph_t clone = nullptr;
  CHECK_CUDA(cudaGraphClone(&clone, made.graph));
  CHECK_THAT(graphs::summary(clone) == graphs::summary(made.graph), "A clone differs from its original.");
  Pairs wanted;
  for (const auto& [from, to] : edges_of(made.graph)) wanted.insert({in_clone(clone, from), in_clone(clone, to)});
  CHECK_THAT(edges_of(clone) == wanted, "A clone has other edges than its original.");

  // The graph and its clone can be changed independently.
  set_factor(in_clone(clone, made.scaled), 11);
  CHECK_CUDA(cudaGraphDestroyNode(in_clone(clone, made.empty)));
  std::printf("a clone without a node: %s\n", graphs::summary(clone).c_str());
  CHECK_THAT(factor_of(made.scaled) == factor, "A clone's new parameter is its original's, too.");
  cudaGraphNode_t gone = nullptr;
  graphs::expect("find the destroyed node", cudaGraphNodeFindInClone(&gone, made.empty, clone), cudaErrorInvalidValue);

  // The destroyed node's edges were removed with the node.
  const cudaGraphNode_t child = in_clone(clone, made.child), copy_out = in_clone(clone, made.copy_out);
  CHECK_CUDA(cudaGraphAddDependencies(clone, &child, &copy_out, nullptr, 1));
  std::printf("the clone with a new edge: %s\n", graphs::summary(clone).c_str());
  const cudaGraphExec_t changed = graphs::instantiate(clone), original = graphs::instantiate(made.graph);
  CHECK_CUDA(cudaGraphDestroy(clone));
  CHECK_CUDA(cudaGraphDestroy(made.graph));
  work.reset(5);
  work.run("A changed clone", changed, work.expected(11));
  work.reset(6);
  work.run("The clone's original", original, work.expected(factor));
  for (const cudaGraphExec_t exec : {changed, original}) CHECK_CUDA(cudaGraphExecDestroy(exec));
}

void nodes_switched_off(Work& work) {
  const Made made = make_by_hand<ByCalls>(work);
  const cudaGraphExec_t exec = graphs::instantiate(made.graph);
  for (unsigned mask = 0; mask < 8; ++mask) {
    const Without without = {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
    CHECK_CUDA(cudaGraphNodeSetEnabled(exec, made.scaled, !without.scale));
    CHECK_CUDA(cudaGraphNodeSetEnabled(exec, made.fill, !without.fill));
    CHECK_CUDA(cudaGraphNodeSetEnabled(exec, made.rows, !without.rows));
    unsigned enabled = 2;
    CHECK_CUDA(cudaGraphNodeGetEnabled(exec, made.fill, &enabled));
    CHECK_THAT(enabled == (without.fill ? 0u : 1u), "A node that is switched %s says %u.", without.fill ? "off" : "on",
               enabled);
    work.reset(10 + mask);
    work.run("With nodes switched off", exec, work.expected(factor, without));
    std::printf("switched off, mask %u: sum %u\n", mask, work.sum.sum);
  }
  graphs::expect("switch a host node off", cudaGraphNodeSetEnabled(exec, made.host, 0), cudaErrorInvalidValue);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(made.graph));
}

void kernel_nodes(Work& work) {
  const Made made = make_by_hand<ByParameters>(work);
  cudaKernelNodeParams params{};
  CHECK_CUDA(cudaGraphKernelNodeGetParams(made.scaled, &params));
  CHECK_THAT(params.gridDim.x == blocks(work.shape.n()) && params.gridDim.y == 1 && params.gridDim.z == 1,
             "A kernel node says another grid.");
  CHECK_THAT(params.blockDim.x == block && params.blockDim.y == 1 && params.sharedMemBytes == 0,
             "A kernel node says another block.");
  CHECK_THAT(factor_of(made.scaled) == factor, "A kernel node says another parameter.");

  // A smaller block and a larger grid, with shared memory that the kernel does not use.
  unsigned n = work.shape.n(), by = 13;
  void* arguments[] = {&work.a, &n, &by};
  params.gridDim = dim3(n);
  params.blockDim = dim3(1);
  params.sharedMemBytes = 256;
  params.kernelParams = arguments;
  CHECK_CUDA(cudaGraphKernelNodeSetParams(made.scaled, &params));
  CHECK_CUDA(cudaGraphKernelNodeGetParams(made.scaled, &params));
  CHECK_THAT(params.gridDim.x == n && params.blockDim.x == 1 && params.sharedMemBytes == 256,
             "A kernel node does not keep its new grid.");

  cudaKernelNodeAttrValue value{}, got{};
  value.priority = -1;
  CHECK_CUDA(cudaGraphKernelNodeSetAttribute(made.scaled, cudaLaunchAttributePriority, &value));
  CHECK_CUDA(cudaGraphKernelNodeCopyAttributes(made.combined, made.scaled));
  for (const cudaGraphNode_t node : {made.scaled, made.combined}) {
    got.priority = 9;
    CHECK_CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &got));
    CHECK_THAT(got.priority == -1, "A kernel node says priority %d.", got.priority);
  }
  value.cooperative = 1;
  CHECK_CUDA(cudaGraphKernelNodeSetAttribute(made.combined, cudaLaunchAttributeCooperative, &value));
  CHECK_CUDA(cudaGraphKernelNodeGetAttribute(made.combined, cudaLaunchAttributeCooperative, &got));
  CHECK_THAT(got.cooperative == 1, "A kernel node says that it is not cooperative.");
  std::printf("kernel nodes: parameters and attributes are kept\n");
  graphs::expect("a kernel's parameters of a host node", cudaGraphKernelNodeGetParams(made.host, &params),
                 cudaErrorInvalidValue);

  cudaGraphExec_t exec = nullptr;
  CHECK_CUDA(cudaGraphInstantiate(&exec, made.graph, cudaGraphInstantiateFlagUseNodePriority));
  work.reset(20);
  work.run("A kernel node with other parameters", exec, work.expected(13));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(made.graph));
}

// Queries the parameters of the other node types, and sets them to other values. The graph must then use the new
// values.
void other_nodes(Work& work) {
  const Made made = make_by_hand<ByCalls>(work);
  cudaMemcpy3DParms copy{};
  CHECK_CUDA(cudaGraphMemcpyNodeGetParams(made.rows, &copy));
  CHECK_THAT(copy.extent.width == work.shape.half() * sizeof(unsigned) && copy.extent.height == work.shape.height &&
                 copy.extent.depth == 1 && copy.srcPtr.pitch == work.shape.host_pitch_bytes() &&
                 copy.dstPtr.pitch == work.pitch_bytes,
             "A copy of rows says another shape.");
  cudaMemsetParams fill{};
  CHECK_CUDA(cudaGraphMemsetNodeGetParams(made.fill, &fill));
  CHECK_THAT(fill.dst == work.b && fill.value == 3 && fill.elementSize == 1 && fill.width == work.shape.row_bytes() &&
                 fill.height == work.shape.height && fill.pitch == work.pitch_bytes,
             "A fill says other parameters.");
  cudaHostNodeParams host{};
  CHECK_CUDA(cudaGraphHostNodeGetParams(made.host, &host));
  CHECK_THAT(host.fn == add_up && host.userData == &work.sum, "A host node says another function.");
  cudaGraph_t child = nullptr;
  CHECK_CUDA(cudaGraphChildGraphNodeGetGraph(made.child, &child));
  std::printf("the child graph: %s\n", graphs::summary(child).c_str());
  cudaEvent_t event = nullptr;
  CHECK_CUDA(cudaGraphEventRecordNodeGetEvent(made.record, &event));
  CHECK_THAT(event == work.done, "A record node says another event.");
  CHECK_CUDA(cudaGraphEventWaitNodeGetEvent(made.wait, &event));
  CHECK_THAT(event == work.ready, "A wait node says another event.");

  auto* const elsewhere = graphs::pinned_buffer<unsigned>(work.shape.n());
  Sum sum{elsewhere, work.shape.n()};
  const cudaEvent_t recorded = graphs::create_event();
  host.userData = &sum;
  CHECK_CUDA(cudaGraphHostNodeSetParams(made.host, &host));
  CHECK_CUDA(cudaGraphMemcpyNodeSetParams1D(made.copy_out, elsewhere, work.d, work.bytes(), cudaMemcpyDeviceToHost));
  fill.value = 1;
  CHECK_CUDA(cudaGraphMemsetNodeSetParams(made.fill, &fill));
  CHECK_CUDA(cudaGraphEventRecordNodeSetEvent(made.record, recorded));
  const cudaGraphExec_t exec = graphs::instantiate(made.graph);
  work.reset(21);
  CHECK_CUDA(cudaGraphLaunch(exec, work.stream));
  CHECK_CUDA(cudaEventSynchronize(recorded));
  CHECK_CUDA(cudaStreamSynchronize(work.stream));
  Without without;
  without.fill = true;  // a reset writes the same bytes as the fill
  const std::vector<unsigned> wanted = work.expected(factor, without);
  check::compare("Nodes with other parameters", std::vector<unsigned>(elsewhere, elsewhere + work.shape.n()), wanted);
  CHECK_THAT(sum.calls == 1 && work.out[0] == 0, "A node worked with its old parameters.");
  std::printf("other parameters: sum %u\n", sum.sum);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(made.graph));
  CHECK_CUDA(cudaEventDestroy(recorded));
  CHECK_CUDA(cudaFreeHost(elsewhere));
}

void uploads(Work& work) {
  const Made made = make_by_hand<ByCalls>(work);
  const cudaGraphExec_t exec = graphs::instantiate(made.graph);
  work.reset(22);
  CHECK_CUDA(cudaGraphUpload(exec, work.stream));
  work.run("Behind an upload", exec, work.expected(factor));
  cudaGraphInstantiateParams params{};
  params.flags = cudaGraphInstantiateFlagUpload;
  params.uploadStream = work.other;
  cudaGraphExec_t uploaded = nullptr;
  CHECK_CUDA(cudaGraphInstantiateWithParams(&uploaded, made.graph, &params));
  CHECK_THAT(params.result_out == cudaGraphInstantiateSuccess, "An instantiation gave result %d.",
             static_cast<int>(params.result_out));
  CHECK_CUDA(cudaStreamSynchronize(work.other));
  work.reset(23);
  work.run("Uploaded at once", uploaded, work.expected(factor));
  std::printf("uploads: sum %u\n", work.sum.sum);
  for (const cudaGraphExec_t one : {exec, uploaded}) CHECK_CUDA(cudaGraphExecDestroy(one));
  CHECK_CUDA(cudaGraphDestroy(made.graph));
}

void picture(Work& work) {
  const Made made = make_by_hand<ByCalls>(work);
  const char* const folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/graphs_by_hand.XXXXXX";
  const int file = mkstemp(path.data());
  CHECK_THAT(file >= 0, "There is no place for a temporary file.");
  const cudaError_t result = cudaGraphDebugDotPrint(made.graph, path.c_str(), cudaGraphDebugDotFlagsVerbose);
  char text[8] = {};
  const ssize_t got = pread(file, text, 7, 0);
  (void)close(file);
  (void)unlink(path.c_str());
  CHECK_THAT(result == cudaSuccess, "cudaGraphDebugDotPrint gave %s.", cudaGetErrorName(result));
  CHECK_THAT(got == 7 && std::strcmp(text, "digraph") == 0, "A graph's picture begins with \"%s\".", text);
  std::printf("a picture: %s\n", text);
  CHECK_CUDA(cudaGraphDestroy(made.graph));
}

}  // namespace

int main(int argc, char** argv) {
  long width = 40, height = 12;
  check::parse(argc, argv, "graphs_by_hand", "makes graphs node by node",
               {{"--width", "words of a row", &width, 2, 10000}, {"--height", "rows", &height, 2, 10000}});
  Work work({static_cast<unsigned>(width), static_cast<unsigned>(height)});
  twins(work);
  lists_and_edges(work);
  clones(work);
  nodes_switched_off(work);
  kernel_nodes(work);
  other_nodes(work);
  uploads(work);
  picture(work);
  return 0;
}
