#include "host/untrusted/launches/launch_graph.h"

#include <algorithm>
#include <cstring>

#include "ring/api/id.h"

namespace host {
namespace {

// The parameters of a node, as the driver takes them.
class NodeParams {
 public:
  NodeParams(CUfunction function, const LaunchShape& shape, std::span<const std::byte> parameters)
      : bytes_(parameters.size()),
        extra_{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(parameters.data()), CU_LAUNCH_PARAM_BUFFER_SIZE,
               &bytes_, CU_LAUNCH_PARAM_END} {
    params_.func = function;
    params_.gridDimX = shape.grid[0], params_.gridDimY = shape.grid[1], params_.gridDimZ = shape.grid[2];
    params_.blockDimX = shape.block[0], params_.blockDimY = shape.block[1], params_.blockDimZ = shape.block[2];
    params_.sharedMemBytes = shape.shared;
    params_.extra = extra_;
  }
  NodeParams(const NodeParams&) = delete;
  NodeParams& operator=(const NodeParams&) = delete;

  const CUDA_KERNEL_NODE_PARAMS* get() const { return &params_; }

 private:
  std::size_t bytes_;
  void* extra_[5];
  CUDA_KERNEL_NODE_PARAMS params_{};
};

// Returns whether a kernel of a graph runs as cuLaunchKernel runs it. A kernel with a cluster needs an attribute of its
// node.
bool runs_the_same(const Driver& driver, CUfunction function) {
  for (const CUfunction_attribute attribute :
       {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH}) {
    int value = 0;
    if (driver.cuFuncGetAttribute(&value, attribute, function) == CUDA_SUCCESS && value != 0) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<LaunchGraph> LaunchGraph::make(const Driver& driver, KeptGraphs& kept, KeptGraphs::Place place,
                                               LaunchStream stream, Shapes shapes,
                                               std::span<const PendingLaunch> launches) {
  std::unique_ptr<LaunchGraph> graph(new LaunchGraph(driver, kept, place, stream, shapes));
  if (driver.cuGraphCreate(&graph->graph_, 0) != CUDA_SUCCESS) return nullptr;
  graph->nodes_.reserve(launches.size());
  for (const PendingLaunch& launch : launches)
    if (graph->add(launch) != CUDA_SUCCESS) return nullptr;
  const bool made = driver.cuGraphInstantiateWithFlags(&graph->exec_, graph->graph_, 0) == CUDA_SUCCESS;
  return made ? std::move(graph) : nullptr;
}

LaunchGraph::~LaunchGraph() {
  if (exec_ != nullptr) driver_.cuGraphExecDestroy(exec_);
  if (graph_ != nullptr) driver_.cuGraphDestroy(graph_);
  kept_.give_back(place_);
}

CUresult LaunchGraph::add(const PendingLaunch& launch) {
  Node node{.node = nullptr,
            .function = static_cast<CUfunction>(launch.shape.handle),
            .shape = launch.shape,
            .parameters = {}};
  if (api::Id::of(launch.shape.function).kind == api::Handle::Kernel)
    if (const CUresult r = driver_.cuKernelGetFunction(&node.function, static_cast<CUkernel>(launch.shape.handle));
        r != CUDA_SUCCESS)
      return r;
  if (!runs_the_same(driver_, node.function)) return CUDA_ERROR_NOT_SUPPORTED;
  const std::span<const std::byte> parameters = launch.parameters();
  node.parameters.assign(parameters.begin(), parameters.end());
  const NodeParams params(node.function, node.shape, node.parameters);
  const CUgraphNode* const before = nodes_.empty() ? nullptr : &nodes_.back().node;
  const CUresult result =
      driver_.cuGraphAddKernelNode_v2(&node.node, graph_, before, before != nullptr ? 1 : 0, params.get());
  if (result == CUDA_SUCCESS) nodes_.push_back(std::move(node));
  return result;
}

bool LaunchGraph::serves(LaunchStream stream, Shapes shapes, std::span<const PendingLaunch> launches) const {
  const auto is_served = [&](const PendingLaunch& launch, const Node& node) {
    return shapes == Shapes::Same ? launch.shape == node.shape : launch.shape.has_same_function(node.shape);
  };
  return stream == stream_ && shapes == shapes_ && std::ranges::equal(launches, nodes_, is_served);
}

CUresult LaunchGraph::launch(std::span<const PendingLaunch> launches) {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (const CUresult r = set(nodes_[i], launches[i]); r != CUDA_SUCCESS) return r;
  return driver_.cuGraphLaunch(exec_, stream_.handle);
}

// Sets nothing if the node has these parameters: a comparison costs less than the driver's call.
CUresult LaunchGraph::set(Node& node, const PendingLaunch& launch) {
  const std::span<const std::byte> parameters = launch.parameters();
  const bool is_set = (shapes_ == Shapes::Same || launch.shape == node.shape) &&
                      std::memcmp(node.parameters.data(), parameters.data(), parameters.size()) == 0;
  if (is_set) return CUDA_SUCCESS;
  const NodeParams params(node.function, launch.shape, parameters);
  const CUresult result = driver_.cuGraphExecKernelNodeSetParams_v2(exec_, node.node, params.get());
  if (result != CUDA_SUCCESS) return result;
  node.shape = launch.shape;
  std::memcpy(node.parameters.data(), parameters.data(), parameters.size());
  return CUDA_SUCCESS;
}

}  // namespace host
