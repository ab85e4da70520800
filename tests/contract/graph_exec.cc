// Cases for executable graphs: instantiation, launches and changes.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

// A graph with a sequence of two kernels, a copy, a fill and a host node. The second kernel stores to the third word.
struct Row {
  GraphWork& work;
  CUgraph graph = make_graph();
  StoreParameters first, second;
  unsigned source = 21;
  Counter count = 0;
  CUgraphNode kernel = nullptr, after = nullptr, copy = nullptr, fill = nullptr, host = nullptr;

  explicit Row(GraphWork& with) : work(with), first(with.a, 11), second(with.a + 8, 12) {
    const CUDA_MEMCPY3D copied = copy_of(work.a + 4, &source, 4);
    const CUDA_MEMSET_NODE_PARAMS filled = fill_of(work.a + 12, 31);
    const CUDA_HOST_NODE_PARAMS counted = counting(count);
    kernel = add_kernel(graph, kernel_of(work.store, first.list));
    after = add_kernel(graph, kernel_of(work.store, second.list), {kernel});
    CU(cuGraphAddMemcpyNode)(&copy, graph, &after, 1, &copied, work.context);
    CU(cuGraphAddMemsetNode)(&fill, graph, &copy, 1, &filled, work.context);
    CU(cuGraphAddHostNode)(&host, graph, &fill, 1, &counted);
  }
};

void launch_and_show(const std::string& what, GraphWork& work, CUgraphExec exec) {
  work.clear();
  show(what + ", launch", CU(cuGraphLaunch)(exec, work.stream));
  show(what + ", wait", CU(cuStreamSynchronize)(work.stream));
  for (unsigned word = 0; word < 4; ++word) show(what + ", word " + std::to_string(word), word_at(work.a + 4 * word));
}

GROUP(graph_execs, InContext) {
  GraphWork work;
  Row row(work);
  CUgraphExec exec = nullptr;
  show("cuGraphInstantiateWithFlags", CU(cuGraphInstantiateWithFlags)(&exec, row.graph, 0));
  launch_and_show("first", work, exec);
  show("calls", row.count);
  row.source = 22, row.first.value = 13;
  launch_and_show("again", work, exec);
  show("calls", row.count);
  CUgraphExec second = nullptr;
  for (const unsigned long long flags : {1ULL, 2ULL, 4ULL, 8ULL, 16ULL, 3ULL, 9ULL}) {
    const std::string name = "flags " + std::to_string(flags);
    cuuint64_t told = 77;
    second = untouched<CUgraphExec>();
    const CUresult code = CU(cuGraphInstantiateWithFlags)(&second, row.graph, flags);
    show(name, code);
    show_flag(name + ", the exec is null", second == nullptr);
    if (code != CUDA_SUCCESS) continue;
    show(name + ", cuGraphExecGetFlags", CU(cuGraphExecGetFlags)(second, &told));
    show(name + ", they are", static_cast<long long>(told));
    show(name + ", cuGraphExecDestroy", CU(cuGraphExecDestroy)(second));
  }
  show("no place", CU(cuGraphInstantiateWithFlags)(nullptr, row.graph, 0));
  show("no graph", CU(cuGraphInstantiateWithFlags)(&second, nullptr, 0));
  show("cuGraphExecGetFlags no place", CU(cuGraphExecGetFlags)(exec, nullptr));
  CUgraphNode wrong = untouched<CUgraphNode>();
  char log[16] = "unchanged";
  show("the second form", CU(cuGraphInstantiate_v2)(&second, row.graph, &wrong, log, sizeof log));
  show_flag("its node is null", wrong == nullptr);
  show_flag("its text is empty", log[0] == 0);
  show("the second form without text", CU(cuGraphInstantiate_v2)(&second, row.graph, nullptr, nullptr, 0));
  show("the first form", CU(cuGraphInstantiate)(&second, row.graph, nullptr, nullptr, 0));
  CUDA_GRAPH_INSTANTIATE_PARAMS how;
  const auto with = [&](const std::string& what, cuuint64_t flags, CUstream stream) {
    std::memset(&how, 0, sizeof how);
    how.flags = flags, how.hUploadStream = stream;
    how.result_out = odd<CUgraphInstantiateResult>(9);
    show(what, CU(cuGraphInstantiateWithParams)(&second, row.graph, &how));
    show(what + ", result", how.result_out);
  };
  with("by parameters", 0, nullptr);
  with("by parameters, upload", CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, work.stream);
  with("by parameters, upload to the NULL stream", CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, nullptr);
  with("by parameters, a stream without upload", 0, work.stream);
  with("by parameters, flags 16", 16, nullptr);
  with("by parameters, for the device", CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, nullptr);
  show("_ptsz", CU(cuGraphInstantiateWithParams_ptsz)(&second, row.graph, &how));
  show("cuGraphExecDestroy", CU(cuGraphExecDestroy)(exec));
  show("cuGraphExecDestroy null", CU(cuGraphExecDestroy)(nullptr));
}

GROUP(graph_launches, InContext) {
  GraphWork work;
  Row row(work);
  const CUgraphExec exec = instantiated(row.graph);
  show("upload", CU(cuGraphUpload)(exec, work.stream));
  show("upload to the NULL stream", CU(cuGraphUpload)(exec, nullptr));
  show("upload, _ptsz", CU(cuGraphUpload_ptsz)(exec, nullptr));
  show("upload null", CU(cuGraphUpload)(nullptr, work.stream));
  show("launch null", CU(cuGraphLaunch)(nullptr, work.stream));
  show("launch", CU(cuGraphLaunch)(exec, work.stream));
  show("launch twice", CU(cuGraphLaunch)(exec, work.stream));
  show("launch into another stream", CU(cuGraphLaunch)(exec, work.other));
  show("launch into the NULL stream", CU(cuGraphLaunch)(exec, nullptr));
  show("launch into the legacy stream", CU(cuGraphLaunch)(exec, CU_STREAM_LEGACY));
  show("launch into the thread's stream", CU(cuGraphLaunch)(exec, CU_STREAM_PER_THREAD));
  show("launch, _ptsz", CU(cuGraphLaunch_ptsz)(exec, nullptr));
  show("wait", CU(cuCtxSynchronize)());
  show("calls", row.count);
  show("launch by another thread", in_a_thread([&] { return CU(cuGraphLaunch)(exec, work.stream); }));
  show("destroy the exec while it runs", CU(cuGraphExecDestroy)(exec));
  show("wait", CU(cuCtxSynchronize)());
  show("calls", row.count);
  // Two launches of the same executable graph do not overlap, even in two streams.
  Gate gate;
  Counter order = 0;
  CUgraph held = make_graph();
  CUgraphNode hold = nullptr, then = nullptr;
  const CUDA_HOST_NODE_PARAMS holding{.fn = Gate::hold, .userData = &gate}, counted = counting(order);
  CU(cuGraphAddHostNode)(&hold, held, nullptr, 0, &holding);
  CU(cuGraphAddHostNode)(&then, held, &hold, 1, &counted);
  const CUgraphExec holder = instantiated(held);
  CU(cuGraphLaunch)(holder, work.stream);
  show_flag("it holds", gate.is_entered());
  show("launch it in another stream", CU(cuGraphLaunch)(holder, work.other));
  show("the first stream is", CU(cuStreamQuery)(work.stream));
  show("the second stream is", CU(cuStreamQuery)(work.other));
  gate.open = true;
  show("wait", CU(cuCtxSynchronize)());
  show("calls", order);
}

GROUP(graph_launches_alone, Loaded) {
  show_alone_in_context("launch into a destroyed stream", [] {
    GraphWork work;
    const CUgraphExec exec = instantiated(make_graph());
    CU(cuStreamDestroy_v2)(work.other);
    return CU(cuGraphLaunch)(exec, work.other);
  });
  show_alone_in_context("launch a kernel of an unloaded module", [] {
    GraphWork work;
    CUgraph graph = make_graph();
    add_kernel(graph, kernel_of(work.empty));
    const CUgraphExec exec = instantiated(graph);
    CU(cuModuleUnload)(work.module);
    const CUresult code = CU(cuGraphLaunch)(exec, work.stream);
    show("of an unloaded module, wait", CU(cuStreamSynchronize)(work.stream));
    return code;
  });
  show_alone_in_context("launch a kernel that fails", [] {
    GraphWork work;
    Counter count = 0;
    CUgraph graph = make_graph();
    const CUgraphNode stop = add_kernel(graph, kernel_of(function_of(work.module, "stop")));
    const CUDA_HOST_NODE_PARAMS counted = counting(count);
    CUgraphNode host = nullptr;
    CU(cuGraphAddHostNode)(&host, graph, &stop, 1, &counted);
    const CUgraphExec exec = instantiated(graph);
    const CUresult code = CU(cuGraphLaunch)(exec, work.stream);
    show("failed, wait", CU(cuStreamSynchronize)(work.stream));
    show("failed, launch", CU(cuGraphLaunch)(exec, work.stream));
    show("failed, upload", CU(cuGraphUpload)(exec, work.stream));
    show("failed, calls of the host node", settled(count, 1));
    show("failed, cuGraphCreate", CU(cuGraphCreate)(&graph, 0));
    show_flag("failed, add", add_empty(graph) != nullptr);
    CUgraphExec more = nullptr;
    show("failed, instantiate", CU(cuGraphInstantiateWithFlags)(&more, graph, 0));
    show("failed, begin", work.begin());
    show("failed, cuGraphExecDestroy", CU(cuGraphExecDestroy)(exec));
    show("failed, cuGraphDestroy", CU(cuGraphDestroy)(graph));
    return code;
  });
}

GROUP(graph_exec_parameters, InContext) {
  GraphWork work;
  Row row(work);
  const CUgraphExec exec = instantiated(row.graph);
  StoreParameters changed(work.a, 41);
  const auto kernel = CU(cuGraphExecKernelNodeSetParams_v2);
  CUDA_KERNEL_NODE_PARAMS params = kernel_of(work.store, changed.list), out;
  show("kernel", kernel(exec, row.kernel, &params));
  launch_and_show("kernel", work, exec);
  std::memset(&out, 0, sizeof out);
  CU(cuGraphKernelNodeGetParams_v2)(row.kernel, &out);
  if (out.kernelParams != nullptr) show("the graph's value", *static_cast<unsigned*>(out.kernelParams[1]));
  params.gridDimX = 3, params.blockDimX = 2;
  show("another grid", kernel(exec, row.kernel, &params));
  params.gridDimX = 0;
  show("a grid of 0", kernel(exec, row.kernel, &params));
  params = kernel_of(work.empty);
  show("another function", kernel(exec, row.kernel, &params));
  launch_and_show("another function", work, exec);
  show("another kind of node", kernel(exec, row.copy, &params));
  show("another graph's node", kernel(exec, add_kernel(make_graph(), kernel_of(work.empty)), &params));
  show("no exec", kernel(nullptr, row.kernel, &params));
  show("no node", kernel(exec, nullptr, &params));
  params = kernel_of(work.store, changed.list);
  show("back", kernel(exec, row.kernel, &params));
  CUDA_KERNEL_NODE_PARAMS_v1 old;
  std::memcpy(&old, &params, sizeof old);
  show("version 1", CU(cuGraphExecKernelNodeSetParams)(exec, row.kernel, &old));

  unsigned source = 51, to = 0;
  const auto copy = [&](const std::string& what, const CUDA_MEMCPY3D& copied) {
    show("copy " + what, CU(cuGraphExecMemcpyNodeSetParams)(exec, row.copy, &copied, work.context));
  };
  copy("from elsewhere", copy_of(work.a + 4, &source, 4));
  launch_and_show("copy", work, exec);
  copy("of fewer bytes, elsewhere", copy_of(work.a + 16, &source, 1));
  copy("to the host", copy_of(&to, work.a, 4));
  copy("on the device", copy_of(work.a + 4, work.a, 4));
  copy("of nothing", copy_of(work.a + 4, &source, 0));
  CUDA_MEMCPY3D rows = copy_of(work.a + 16, &source, 1);
  rows.Height = 2, rows.srcPitch = rows.dstPitch = 2;
  copy("of rows", rows);
  copy("as it was", copy_of(work.a + 4, &source, 4));
  const CUDA_MEMCPY3D good = copy_of(work.a + 4, &source, 4);
  show("copy without a context", CU(cuGraphExecMemcpyNodeSetParams)(exec, row.copy, &good, nullptr));
  show("copy by a kernel's node", CU(cuGraphExecMemcpyNodeSetParams)(exec, row.kernel, &good, work.context));

  const auto fill = [&](const std::string& what, const CUDA_MEMSET_NODE_PARAMS& filled) {
    show("fill " + what, CU(cuGraphExecMemsetNodeSetParams)(exec, row.fill, &filled, work.context));
  };
  fill("with another value", fill_of(work.a + 12, 61));
  launch_and_show("fill", work, exec);
  fill("elsewhere", fill_of(work.a + 16, 61));
  fill("of more words", fill_of(work.a + 12, 61, 3));
  fill("of nothing", fill_of(work.a + 12, 61, 0));
  CUDA_MEMSET_NODE_PARAMS bytes = fill_of(work.a + 12, 61);
  bytes.elementSize = 1;
  fill("of bytes", bytes);
  bytes.elementSize = 3;
  fill("of elements of 3", bytes);
  bytes = fill_of(work.a + 16, 61);
  bytes.height = 2, bytes.pitch = 8;
  fill("of rows", bytes);

  Counter other = 0;
  const CUDA_HOST_NODE_PARAMS counted = counting(other);
  const CUDA_HOST_NODE_PARAMS none{};
  show("host", CU(cuGraphExecHostNodeSetParams)(exec, row.host, &counted));
  show("host, no function", CU(cuGraphExecHostNodeSetParams)(exec, row.host, &none));
  show("host by a kernel's node", CU(cuGraphExecHostNodeSetParams)(exec, row.kernel, &counted));
  launch_and_show("in the end", work, exec);
  show("calls of the other function", other);
  show("copied to the host", to);
  show("destroy a node", CU(cuGraphDestroyNode)(row.host));
}

GROUP(graph_exec_children, InContext) {
  GraphWork work;
  CUgraph graph = make_graph(), child = make_graph(), changed = make_graph(), other = make_graph();
  StoreParameters first(work.a, 5), second(work.a, 6);
  add_kernel(child, kernel_of(work.store, first.list));
  add_kernel(changed, kernel_of(work.store, second.list));
  add_empty(other);
  CUgraphNode node = nullptr;
  CU(cuGraphAddChildGraphNode)(&node, graph, nullptr, 0, child);
  const CUgraphNode empty = add_empty(graph);
  const CUgraphExec exec = instantiated(graph);
  const auto set = CU(cuGraphExecChildGraphNodeSetParams);
  show("the same graph", set(exec, node, child));
  show("another value", set(exec, node, changed));
  launch_and_show("another value", work, exec);
  show("another topology", set(exec, node, other));
  show("an empty node", set(exec, empty, changed));
  show("null", set(exec, node, nullptr));
  show("the graph itself", set(exec, node, graph));
}

GROUP(graph_nodes_switched_off, InContext) {
  GraphWork work;
  Row row(work);
  const CUgraphExec exec = instantiated(row.graph);
  unsigned on = 77;
  const auto set = CU(cuGraphNodeSetEnabled);
  const auto get = CU(cuGraphNodeGetEnabled);
  show("get", get(exec, row.kernel, &on));
  show("it is", on);
  show("kernel off", set(exec, row.kernel, 0));
  get(exec, row.kernel, &on);
  show("it is", on);
  show("copy off", set(exec, row.copy, 0));
  show("fill off", set(exec, row.fill, 0));
  show("host off", set(exec, row.host, 0));
  show("get of a host node", get(exec, row.host, &on));
  launch_and_show("off", work, exec);
  show("kernel on", set(exec, row.kernel, 7));
  get(exec, row.kernel, &on);
  show("it is", on);
  launch_and_show("on", work, exec);
  show("no exec", set(nullptr, row.kernel, 0));
  show("no node", set(exec, nullptr, 0));
  show("another graph's node", set(exec, add_kernel(make_graph(), kernel_of(work.empty)), 0));
  show("get without a place", get(exec, row.kernel, nullptr));
}

}  // namespace
}  // namespace contract
