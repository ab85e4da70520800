// Cases for adding, querying and changing nodes of each type.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

// Calls `add(node, graph, dependencies, count)` with valid and invalid graphs and dependencies. Returns a valid node.
template <class Add>
CUgraphNode show_adding(const std::string& what, CUgraph graph, Add add) {
  CUgraphNode node = nullptr, made = nullptr, before = add_empty(graph);
  CUgraph elsewhere = make_graph();
  CUgraphNode foreign = add_empty(elsewhere);
  CUgraphNode twice[] = {before, before};
  show(what, add(&node, graph, nullptr, 0));
  auto type = odd<CUgraphNodeType>(99);
  CU(cuGraphNodeGetType)(node, &type);
  show(what + ", type", type);
  show(what + ", behind a node", add(&made, graph, &before, 1));
  show(what + ", behind a node twice", add(&made, graph, twice, 2));
  made = untouched<CUgraphNode>();
  show(what + ", behind another graph's node", add(&made, graph, &foreign, 1));
  show_flag(what + ", the node is untouched", made == untouched<CUgraphNode>());
  show_flag(what + ", the node is null", made == nullptr);
  show(what + ", behind null", add(&made, graph, nullptr, 1));
  show(what + ", in no graph", add(&made, nullptr, nullptr, 0));
  show(what + ", without a place", add(nullptr, graph, nullptr, 0));
  return node;
}

GROUP(empty_nodes, InContext) {
  CUgraph graph = make_graph();
  const CUgraphNode node = show_adding("empty", graph, CU(cuGraphAddEmptyNode));
  show("cuGraphNodeGetType no place", CU(cuGraphNodeGetType)(node, nullptr));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  show("cuGraphNodeGetType of null", CU(cuGraphNodeGetType)(nullptr, &type));
  show("nodes", nodes_in(graph));
  show("edges", edges_in(graph));
}

GROUP(kernel_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  StoreParameters parameters(work.a, 5), changed(work.a, 6);
  CUDA_KERNEL_NODE_PARAMS good = kernel_of(work.store, parameters.list), out;
  const CUgraphNode node =
      show_adding("kernel", graph, [&](CUgraphNode* to, CUgraph in, const CUgraphNode* after, std::size_t n) {
        return CU(cuGraphAddKernelNode_v2)(to, in, after, n, &good);
      });
  CUgraphNode made = nullptr;
  const auto with = [&](const std::string& what, auto change) {
    CUDA_KERNEL_NODE_PARAMS params = good;
    change(params);
    show("add " + what, CU(cuGraphAddKernelNode_v2)(&made, graph, nullptr, 0, &params));
    show("set " + what, CU(cuGraphKernelNodeSetParams_v2)(node, &params));
  };
  with("a grid of 0", [](auto& p) { p.gridDimX = 0; });
  with("a block of 0", [](auto& p) { p.blockDimY = 0; });
  with("a block of 2000", [](auto& p) { p.blockDimX = 2000; });
  with("a grid of 70000 in y", [](auto& p) { p.gridDimY = 70000; });
  with("a MiB of shared memory", [](auto& p) { p.sharedMemBytes = 1 << 20; });
  with("no function", [](auto& p) { p.func = nullptr; });
  with("its context", [&](auto& p) { p.ctx = work.context; });
  CUkernel kernel = nullptr;
  CUlibrary library = nullptr;
  CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CU(cuLibraryGetKernel)(&kernel, library, "store");
  with("a kernel of a library", [&](auto& p) { p.func = nullptr, p.kern = kernel; });
  with("a function and a kernel", [&](auto& p) { p.kern = kernel; });
  with("another function", [&](auto& p) { p = kernel_of(work.empty); });
  good = kernel_of(work.store, parameters.list);
  show("set", CU(cuGraphKernelNodeSetParams_v2)(node, &good));
  parameters.value = 7;
  std::memset(&out, 0, sizeof out);
  show("get", CU(cuGraphKernelNodeGetParams_v2)(node, &out));
  show_flag("the function", out.func == work.store);
  show_flag("no kernel", out.kern == nullptr);
  show_flag("a context", out.ctx != nullptr);
  show_flag("it is the current one", out.ctx == work.context);
  show("the grid", out.gridDimX);
  show_flag("the parameters are not the program's", out.kernelParams != nullptr && out.kernelParams != parameters.list);
  if (out.kernelParams != nullptr) show("the value as it was given", *static_cast<unsigned*>(out.kernelParams[1]));
  show_flag("no extra", out.extra == nullptr);
  struct {
    CUdeviceptr to;
    unsigned value;
  } packed{work.a, 8};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  good.kernelParams = nullptr, good.extra = extra;
  show("by extra", CU(cuGraphAddKernelNode_v2)(&made, graph, nullptr, 0, &good));
  show("get", CU(cuGraphKernelNodeGetParams_v2)(made, &out));
  show_flag("parameters", out.kernelParams != nullptr);
  show_flag("extra", out.extra != nullptr);
  good.kernelParams = changed.list;
  show("by both", CU(cuGraphAddKernelNode_v2)(&made, graph, nullptr, 0, &good));
  CUDA_KERNEL_NODE_PARAMS_v1 old;
  std::memcpy(&old, &out, sizeof old);
  old.func = work.store, old.kernelParams = changed.list, old.extra = nullptr;
  show("version 1, add", CU(cuGraphAddKernelNode)(&made, graph, nullptr, 0, &old));
  show("version 1, get", CU(cuGraphKernelNodeGetParams)(made, &old));
  show("version 1, set", CU(cuGraphKernelNodeSetParams)(made, &old));
  const CUgraphNode other_kind = add_empty(graph);
  show("get of an empty node", CU(cuGraphKernelNodeGetParams_v2)(other_kind, &out));
  show("set of an empty node", CU(cuGraphKernelNodeSetParams_v2)(other_kind, &out));
  show_guarded("get without a place", [&] { return CU(cuGraphKernelNodeGetParams_v2)(node, nullptr); });
  show_guarded("set nothing", [&] { return CU(cuGraphKernelNodeSetParams_v2)(node, nullptr); });
  show_guarded("add nothing", [&] { return CU(cuGraphAddKernelNode_v2)(&made, graph, nullptr, 0, nullptr); });
  good = kernel_of(work.store);
  show_guarded("add no parameters", [&] { return CU(cuGraphAddKernelNode_v2)(&made, graph, nullptr, 0, &good); });
  show_guarded("set no parameters", [&] { return CU(cuGraphKernelNodeSetParams_v2)(node, &good); });
}

GROUP(kernel_node_attributes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  const CUgraphNode node = add_kernel(graph, kernel_of(work.empty)), copy = add_kernel(graph, kernel_of(work.empty));
  const auto get = CU(cuGraphKernelNodeGetAttribute);
  const auto set = CU(cuGraphKernelNodeSetAttribute);
  CUkernelNodeAttrValue value;
  for (const CUkernelNodeAttrID id :
       {CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_LAUNCH_ATTRIBUTE_IGNORE,
        odd<CUkernelNodeAttrID>(99)}) {
    const std::string name = "attribute " + std::to_string(id);
    std::memset(&value, 0, sizeof value);
    show(name + ", get", get(node, id, &value));
    show(name + ", set as it is", set(node, id, &value));
  }
  std::memset(&value, 0, sizeof value);
  value.priority = -2;
  show("priority -2", set(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  value.priority = 9;
  show("get", get(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  show("it is", value.priority);
  value.priority = -99;
  show("priority -99", set(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  get(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
  show("it is", value.priority);
  value.cooperative = 1;
  show("cooperative", set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  show("copy", CU(cuGraphKernelNodeCopyAttributes)(copy, node));
  get(copy, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
  show("the copy is cooperative", value.cooperative);
  show("copy to itself", CU(cuGraphKernelNodeCopyAttributes)(node, node));
  const CUgraphNode empty = add_empty(graph);
  show("copy from an empty node", CU(cuGraphKernelNodeCopyAttributes)(node, empty));
  show("get of an empty node", get(empty, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  show("it runs", run_once(graph, work.stream));
  show("get of null", get(nullptr, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  show_guarded("get without a place", [&] { return get(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr); });
  show_guarded("set nothing", [&] { return set(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr); });
}

GROUP(copy_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  unsigned from[4] = {31, 32, 33, 34}, to[4] = {};
  CUDA_MEMCPY3D good = copy_of(work.a, from, 8), out;
  const CUgraphNode node =
      show_adding("copy", graph, [&](CUgraphNode* at, CUgraph in, const CUgraphNode* after, std::size_t n) {
        return CU(cuGraphAddMemcpyNode)(at, in, after, n, &good, work.context);
      });
  CUgraphNode made = nullptr;
  const auto with = [&](const std::string& what, auto change) {
    CUDA_MEMCPY3D params = good;
    change(params);
    show("add " + what, CU(cuGraphAddMemcpyNode)(&made, graph, nullptr, 0, &params, work.context));
    show("set " + what, CU(cuGraphMemcpyNodeSetParams)(node, &params));
  };
  with("no bytes", [](auto& p) { p.WidthInBytes = 0; });
  with("no rows", [](auto& p) { p.Height = 0; });
  with("to null", [](auto& p) { p.dstDevice = 0; });
  with("to a bad address", [](auto& p) { p.dstDevice = 16; });
  with("from null", [](auto& p) { p.srcHost = nullptr; });
  with("memory of kind 9", [](auto& p) { p.srcMemoryType = odd<CUmemorytype>(9); });
  with("rows without a pitch", [](auto& p) { p.Height = 2; });
  with("to the host", [&](auto& p) { p = copy_of(to, work.a, 8); });
  with("from host to host",
       [&](auto& p) { p = copy_of(to, work.a, 8), p.srcMemoryType = CU_MEMORYTYPE_HOST, p.srcHost = from; });
  with("of unified kind", [&](auto& p) {
    p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    p.srcDevice = work.a + 32;
  });
  show("add without a context", CU(cuGraphAddMemcpyNode)(&made, graph, nullptr, 0, &good, nullptr));
  show("set", CU(cuGraphMemcpyNodeSetParams)(node, &good));
  std::memset(&out, 0, sizeof out);
  show("get", CU(cuGraphMemcpyNodeGetParams)(node, &out));
  show("bytes", static_cast<long long>(out.WidthInBytes));
  show("rows", static_cast<long long>(out.Height));
  show("source kind", out.srcMemoryType);
  show("destination kind", out.dstMemoryType);
  show_flag("the source", out.srcHost == from);
  show_flag("the destination", out.dstDevice == work.a);
  CUgraph alone = make_graph();
  CU(cuGraphAddMemcpyNode)(&made, alone, nullptr, 0, &good, work.context);
  CUgraphNode back = nullptr;
  const CUDA_MEMCPY3D to_host = copy_of(to, work.a, 8);
  CU(cuGraphAddMemcpyNode)(&back, alone, &made, 1, &to_host, work.context);
  from[1] = 42;
  show("it runs", run_once(alone, work.stream));
  show("the first word", to[0]);
  show("the second word", to[1]);
  show("get of an empty node", CU(cuGraphMemcpyNodeGetParams)(add_empty(graph), &out));
  show_guarded("get without a place", [&] { return CU(cuGraphMemcpyNodeGetParams)(node, nullptr); });
  show_guarded("set nothing", [&] { return CU(cuGraphMemcpyNodeSetParams)(node, nullptr); });
}

GROUP(fill_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  CUDA_MEMSET_NODE_PARAMS good = fill_of(work.a, 9, 2), out;
  const CUgraphNode node =
      show_adding("fill", graph, [&](CUgraphNode* at, CUgraph in, const CUgraphNode* after, std::size_t n) {
        return CU(cuGraphAddMemsetNode)(at, in, after, n, &good, work.context);
      });
  CUgraphNode made = nullptr;
  const auto with = [&](const std::string& what, auto change) {
    CUDA_MEMSET_NODE_PARAMS params = good;
    change(params);
    show("add " + what, CU(cuGraphAddMemsetNode)(&made, graph, nullptr, 0, &params, work.context));
    show("set " + what, CU(cuGraphMemsetNodeSetParams)(node, &params));
  };
  with("elements of 3", [](auto& p) { p.elementSize = 3; });
  with("elements of 1", [](auto& p) { p.elementSize = 1; });
  with("no elements", [](auto& p) { p.width = 0; });
  with("no rows", [](auto& p) { p.height = 0; });
  with("to null", [](auto& p) { p.dst = 0; });
  with("to a bad address", [](auto& p) { p.dst = 16; });
  with("to an odd address", [&](auto& p) { p.dst = work.a + 1; });
  with("two rows", [](auto& p) { p.height = 2, p.pitch = 16; });
  with("two rows of pitch 4", [](auto& p) { p.height = 2, p.pitch = 4; });
  show("add without a context", CU(cuGraphAddMemsetNode)(&made, graph, nullptr, 0, &good, nullptr));
  show("set", CU(cuGraphMemsetNodeSetParams)(node, &good));
  std::memset(&out, 0, sizeof out);
  show("get", CU(cuGraphMemsetNodeGetParams)(node, &out));
  show("value", out.value);
  show("element", out.elementSize);
  show("width", static_cast<long long>(out.width));
  show("height", static_cast<long long>(out.height));
  show("pitch", static_cast<long long>(out.pitch));
  CUgraph alone = make_graph();
  CU(cuGraphAddMemsetNode)(&made, alone, nullptr, 0, &good, work.context);
  show("it runs", run_once(alone, work.stream));
  show("the second word", word_at(work.a + 4));
  show("the third word", word_at(work.a + 8));
  show("get of an empty node", CU(cuGraphMemsetNodeGetParams)(add_empty(graph), &out));
  show_guarded("get without a place", [&] { return CU(cuGraphMemsetNodeGetParams)(node, nullptr); });
  show_guarded("set nothing", [&] { return CU(cuGraphMemsetNodeSetParams)(node, nullptr); });
}

GROUP(host_nodes, InContext) {
  GraphWork work;
  CUgraph graph = make_graph();
  Counter count = 0, other = 0;
  CUDA_HOST_NODE_PARAMS good = counting(count), changed = counting(other), out{};
  const CUgraphNode node =
      show_adding("host", graph, [&](CUgraphNode* at, CUgraph in, const CUgraphNode* after, std::size_t n) {
        return CU(cuGraphAddHostNode)(at, in, after, n, &good);
      });
  CUgraphNode made = nullptr;
  CUDA_HOST_NODE_PARAMS none{};
  show("add no function", CU(cuGraphAddHostNode)(&made, graph, nullptr, 0, &none));
  show("set no function", CU(cuGraphHostNodeSetParams)(node, &none));
  show("get", CU(cuGraphHostNodeGetParams)(node, &out));
  show_flag("the function", out.fn == count_call);
  show_flag("the data", out.userData == &count);
  show("calls before a launch", count);
  show("it runs", run_once(graph, work.stream));
  show("calls", count);
  show("set", CU(cuGraphHostNodeSetParams)(node, &changed));
  show("it runs", run_once(graph, work.stream));
  show("calls of the first", count);
  show("calls of the second", other);
  show("get of an empty node", CU(cuGraphHostNodeGetParams)(add_empty(graph), &out));
  show_guarded("get without a place", [&] { return CU(cuGraphHostNodeGetParams)(node, nullptr); });
  show_guarded("set nothing", [&] { return CU(cuGraphHostNodeSetParams)(node, nullptr); });
  show_guarded("add nothing", [&] { return CU(cuGraphAddHostNode)(&made, graph, nullptr, 0, nullptr); });
}

}  // namespace
}  // namespace contract
