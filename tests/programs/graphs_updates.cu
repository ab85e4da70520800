// Executable graphs that change: parameters of single nodes, cudaGraphExecUpdate with the next capture, updates that
// must fail, and several executables of one graph. The program does not wait for launches between changes, and each
// launch writes to its own place, since a change must not affect a launch that is already in the stream.
#include "graphs.h"

namespace {

constexpr unsigned block = 64;

__global__ void blend(const unsigned* a, const unsigned* b, const unsigned* more, unsigned* out, unsigned n,
                      unsigned factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * factor + b[i] + *more;
}

__global__ void blend_less(const unsigned* a, const unsigned* b, const unsigned* more, unsigned* out, unsigned n,
                           unsigned factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * factor - b[i] - *more;
}

__global__ void add_value(unsigned* data, unsigned n, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += value;
}

__global__ void store(unsigned* at, unsigned value) { *at = value; }

unsigned blocks(unsigned n, unsigned threads) { return (n + threads - 1) / threads; }

// The data of one launch. All values follow from the round's number.
struct Round {
  unsigned number;
  unsigned factor() const { return number + 2; }
  unsigned fill() const { return (number & 0xff) * 0x01010101u; }
  unsigned more() const { return number * number; }
  unsigned child() const { return number * 3 + 1; }
  unsigned threads() const { return number % 3 == 0 ? 32 : number % 3 == 1 ? 64 : 128; }
  bool less() const { return number % 4 == 3; }
  unsigned word(unsigned in) const {
    const unsigned product = in * factor();
    return (less() ? product - fill() - more() : product + fill() + more()) + child();
  }
};

// The value that a round's host node has read.
struct Seen {
  const unsigned* out = nullptr;
  unsigned n = 0, sum = 0;
  int calls = 0;
};

void look(void* argument) {
  Seen& seen = *static_cast<Seen*>(argument);
  for (unsigned i = 0; i < seen.n; ++i) seen.sum += seen.out[i];
  ++seen.calls;
}

// Buffers with an element for each round, and the events that alternate.
struct Buffers {
  Buffers(unsigned words, unsigned number_of_rounds) : n(words), rounds(number_of_rounds), seen(number_of_rounds) {
    in = graphs::pinned_buffer<unsigned>(static_cast<size_t>(n) * rounds);
    out = graphs::pinned_buffer<unsigned>(static_cast<size_t>(n) * rounds);
    for (unsigned** buffer : {&a, &b, &c}) *buffer = check::device_buffer<unsigned>(n);
    more = check::device_buffer<unsigned>(rounds);
    for (size_t i = 0; i < static_cast<size_t>(n) * rounds; ++i)
      in[i] = static_cast<unsigned>(check::small_number(i, rounds));
    for (cudaEvent_t* event : {&ready[0], &ready[1], &done[0], &done[1]}) *event = graphs::create_event();
    blend<<<1, 1>>>(a, b, more, c, 0, 0);
    blend_less<<<1, 1>>>(a, b, more, c, 0, 0);
    add_value<<<1, 1>>>(c, 0, 0);
    store<<<1, 1>>>(more, 0);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    for (unsigned i = 0; i < rounds; ++i) seen[i] = {out_of(i), n, 0, 0};
  }
  ~Buffers() {
    for (unsigned* pinned : {in, out}) CHECK_CUDA(cudaFreeHost(pinned));
    for (unsigned* buffer : {a, b, c, more}) CHECK_CUDA(cudaFree(buffer));
    for (const cudaEvent_t event : {ready[0], ready[1], done[0], done[1]}) CHECK_CUDA(cudaEventDestroy(event));
    for (const cudaStream_t one : {stream, other}) CHECK_CUDA(cudaStreamDestroy(one));
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  const unsigned* in_of(unsigned round) const { return in + static_cast<size_t>(n) * round; }
  unsigned* out_of(unsigned round) const { return out + static_cast<size_t>(n) * round; }
  size_t bytes() const { return n * sizeof(unsigned); }

  // The other stream writes the value that the kernel reads after the graph's wait node.
  void prepare(Round round) {
    store<<<1, 1, 0, other>>>(more + round.number, round.more());
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaEventRecord(ready[round.number % 2], other));
  }

  void check_round(const char* what, Round round) const {
    const unsigned* const from = in_of(round.number);
    std::vector<unsigned> expected(n);
    unsigned sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += expected[i] = round.word(from[i]);
    const unsigned* const got = out_of(round.number);
    check::compare(what, std::vector<unsigned>(got, got + n), expected);
    const Seen& one = seen[round.number];
    CHECK_THAT(one.calls == 1 && one.sum == sum, "%s, round %u: the host node ran %d times, its sum is %u, not %u.",
               what, round.number, one.calls, one.sum, sum);
  }
  void check_all(const char* what) const {
    for (unsigned i = 0; i < rounds; ++i) check_round(what, {i});
    std::printf("%s: %u rounds, checksum %016llx\n", what, rounds,
                static_cast<unsigned long long>(check::checksum(out, bytes() * rounds)));
  }

  const unsigned n, rounds;
  unsigned *in, *out;                                                  // pinned; one element per round
  unsigned *a = nullptr, *b = nullptr, *c = nullptr, *more = nullptr;  // on the device
  cudaEvent_t ready[2], done[2];
  std::vector<Seen> seen;
  const cudaStream_t stream = graphs::create_stream(), other = graphs::create_stream();
};

// The arguments of a launch, for the call that copies them.
struct BlendArguments {
  BlendArguments(const Buffers& buffers, Round round)
      : a(buffers.a),
        b(buffers.b),
        more(buffers.more + round.number),
        out(buffers.c),
        n(buffers.n),
        factor(round.factor()) {
    params.func = reinterpret_cast<void*>(round.less() ? blend_less : blend);
    params.gridDim = dim3(blocks(n, round.threads()));
    params.blockDim = dim3(round.threads());
    params.kernelParams = list;
  }
  BlendArguments(const BlendArguments&) = delete;
  BlendArguments& operator=(const BlendArguments&) = delete;

  const unsigned *a, *b, *more;
  unsigned* out;
  unsigned n, factor;
  void* list[6] = {&a, &b, &more, &out, &n, &factor};
  cudaKernelNodeParams params{};
};

cudaMemsetParams fill_parameters(const Buffers& buffers, Round round) {
  cudaMemsetParams params{};
  params.dst = buffers.b;
  params.value = round.fill();
  params.elementSize = sizeof(unsigned);
  params.width = buffers.n;
  params.height = 1;
  return params;
}

cudaGraph_t make_child(const Buffers& buffers, Round round) {
  const cudaGraph_t graph = graphs::create();
  unsigned* data = buffers.c;
  unsigned n = buffers.n, value = round.child();
  void* arguments[] = {&data, &n, &value};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(add_value);
  params.gridDim = dim3(blocks(n, block));
  params.blockDim = dim3(block);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  CHECK_CUDA(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  return graph;
}

// The graph whose nodes change. The nodes form a chain.
struct Chain {
  Chain(Buffers& buffers, Round round) : graph(graphs::create()) {
    const BlendArguments blending(buffers, round);
    const cudaMemsetParams filling = fill_parameters(buffers, round);
    const cudaGraph_t inner = make_child(buffers, round);
    cudaHostNodeParams looking{};
    looking.fn = look;
    looking.userData = &buffers.seen[round.number];
    CHECK_CUDA(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, buffers.ready[0]));
    CHECK_CUDA(cudaGraphAddMemcpyNode1D(&copy_in, graph, &wait, 1, buffers.a, buffers.in_of(round.number),
                                        buffers.bytes(), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaGraphAddMemsetNode(&fill, graph, &copy_in, 1, &filling));
    CHECK_CUDA(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &blending.params));
    CHECK_CUDA(cudaGraphAddChildGraphNode(&child, graph, &kernel, 1, inner));
    CHECK_CUDA(cudaGraphAddMemcpyNode1D(&copy_out, graph, &child, 1, buffers.out_of(round.number), buffers.c,
                                        buffers.bytes(), cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaGraphAddHostNode(&host, graph, &copy_out, 1, &looking));
    CHECK_CUDA(cudaGraphAddEventRecordNode(&record, graph, &host, 1, buffers.done[0]));
    CHECK_CUDA(cudaGraphDestroy(inner));
  }
  ~Chain() { CHECK_CUDA(cudaGraphDestroy(graph)); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  const cudaGraph_t graph;
  cudaGraphNode_t wait, copy_in, fill, kernel, child, copy_out, host, record;
};

void set_by_calls(cudaGraphExec_t exec, const Chain& chain, Buffers& buffers, Round round) {
  const BlendArguments blending(buffers, round);
  const cudaMemsetParams filling = fill_parameters(buffers, round);
  const cudaGraph_t child = make_child(buffers, round);
  cudaHostNodeParams looking{};
  looking.fn = look;
  looking.userData = &buffers.seen[round.number];
  const unsigned which = round.number % 2;
  CHECK_CUDA(cudaGraphExecEventWaitNodeSetEvent(exec, chain.wait, buffers.ready[which]));
  CHECK_CUDA(cudaGraphExecMemcpyNodeSetParams1D(exec, chain.copy_in, buffers.a, buffers.in_of(round.number),
                                                buffers.bytes(), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaGraphExecMemsetNodeSetParams(exec, chain.fill, &filling));
  CHECK_CUDA(cudaGraphExecKernelNodeSetParams(exec, chain.kernel, &blending.params));
  CHECK_CUDA(cudaGraphExecChildGraphNodeSetParams(exec, chain.child, child));
  CHECK_CUDA(cudaGraphExecMemcpyNodeSetParams1D(exec, chain.copy_out, buffers.out_of(round.number), buffers.c,
                                                buffers.bytes(), cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaGraphExecHostNodeSetParams(exec, chain.host, &looking));
  CHECK_CUDA(cudaGraphExecEventRecordNodeSetEvent(exec, chain.record, buffers.done[which]));
  CHECK_CUDA(cudaGraphDestroy(child));
}

// Same for the node types that cudaGraphExecNodeSetParams changes.
void set_by_parameters(cudaGraphExec_t exec, const Chain& chain, Buffers& buffers, Round round) {
  set_by_calls(exec, chain, buffers, {round.number / 2});
  const BlendArguments blending(buffers, round);
  const auto set = [&](cudaGraphNode_t node, cudaGraphNodeParams params) {
    CHECK_CUDA(cudaGraphExecNodeSetParams(exec, node, &params));
  };
  cudaGraphNodeParams kernel = {}, fill = {}, host = {}, child = {}, wait = {}, record = {}, in = {}, out = {};
  kernel.type = cudaGraphNodeTypeKernel;
  kernel.kernel.func = blending.params.func;
  kernel.kernel.gridDim = blending.params.gridDim;
  kernel.kernel.blockDim = blending.params.blockDim;
  kernel.kernel.kernelParams = blending.params.kernelParams;
  set(chain.kernel, kernel);
  const cudaMemsetParams filling = fill_parameters(buffers, round);
  fill.type = cudaGraphNodeTypeMemset;
  fill.memset.dst = filling.dst;
  fill.memset.value = filling.value;
  fill.memset.elementSize = filling.elementSize;
  fill.memset.width = filling.width;
  fill.memset.height = filling.height;
  set(chain.fill, fill);
  host.type = cudaGraphNodeTypeHost;
  host.host.fn = look;
  host.host.userData = &buffers.seen[round.number];
  set(chain.host, host);
  child.type = cudaGraphNodeTypeGraph;
  child.graph.graph = make_child(buffers, round);
  set(chain.child, child);
  CHECK_CUDA(cudaGraphDestroy(child.graph.graph));
  wait.type = cudaGraphNodeTypeWaitEvent;
  wait.eventWait.event = buffers.ready[round.number % 2];
  set(chain.wait, wait);
  record.type = cudaGraphNodeTypeEventRecord;
  record.eventRecord.event = buffers.done[round.number % 2];
  set(chain.record, record);
  const auto copy = [&](void* to, const unsigned* from, cudaMemcpyKind kind) {
    cudaMemcpy3DParms params{};
    params.srcPtr = make_cudaPitchedPtr(const_cast<unsigned*>(from), buffers.bytes(), buffers.bytes(), 1);
    params.dstPtr = make_cudaPitchedPtr(to, buffers.bytes(), buffers.bytes(), 1);
    params.extent = make_cudaExtent(buffers.bytes(), 1, 1);
    params.kind = kind;
    return params;
  };
  in.type = out.type = cudaGraphNodeTypeMemcpy;
  in.memcpy.copyParams = copy(buffers.a, buffers.in_of(round.number), cudaMemcpyHostToDevice);
  out.memcpy.copyParams = copy(buffers.out_of(round.number), buffers.c, cudaMemcpyDeviceToHost);
  set(chain.copy_in, in);
  set(chain.copy_out, out);
}

using Set = void (*)(cudaGraphExec_t, const Chain&, Buffers&, Round);

// Waits after every tenth launch, for the event that this launch records.
void nodes_of_executables(const char* what, unsigned n, unsigned rounds, Set set) {
  Buffers buffers(n, rounds);
  const Chain chain(buffers, {0});
  const cudaGraphExec_t exec = graphs::instantiate(chain.graph);
  for (unsigned i = 0; i < rounds; ++i) {
    const Round round{i};
    set(exec, chain, buffers, round);
    buffers.prepare(round);
    CHECK_CUDA(cudaGraphLaunch(exec, buffers.stream));
    if (i % 10 != 9) continue;
    CHECK_CUDA(cudaEventSynchronize(buffers.done[i % 2]));
    buffers.check_round(what, round);
  }
  CHECK_CUDA(cudaStreamSynchronize(buffers.stream));
  buffers.check_all(what);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
}

// Captures the same work as a Chain. The child graph's kernel becomes a kernel of the stream.
cudaGraph_t capture(Buffers& buffers, Round round) {
  const cudaStream_t stream = buffers.stream;
  const unsigned n = buffers.n, threads = round.threads(), grid = blocks(n, threads);
  const unsigned* const more = buffers.more + round.number;
  graphs::begin(stream);
  CHECK_CUDA(cudaStreamWaitEvent(stream, buffers.ready[round.number % 2], cudaEventWaitExternal));
  CHECK_CUDA(cudaMemcpyAsync(buffers.a, buffers.in_of(round.number), buffers.bytes(), cudaMemcpyHostToDevice, stream));
  CHECK_CUDA(cudaMemsetAsync(buffers.b, static_cast<int>(round.fill() & 0xff), buffers.bytes(), stream));
  if (round.less())
    blend_less<<<grid, threads, 0, stream>>>(buffers.a, buffers.b, more, buffers.c, n, round.factor());
  else
    blend<<<grid, threads, 0, stream>>>(buffers.a, buffers.b, more, buffers.c, n, round.factor());
  add_value<<<blocks(n, block), block, 0, stream>>>(buffers.c, n, round.child());
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpyAsync(buffers.out_of(round.number), buffers.c, buffers.bytes(), cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaLaunchHostFunc(stream, look, &buffers.seen[round.number]));
  CHECK_CUDA(cudaEventRecordWithFlags(buffers.done[round.number % 2], stream, cudaEventRecordExternal));
  return graphs::end(stream);
}

void updates_by_graphs(unsigned n, unsigned rounds) {
  Buffers buffers(n, rounds);
  cudaGraphExec_t exec = nullptr;
  for (unsigned i = 0; i < rounds; ++i) {
    const Round round{i};
    const cudaGraph_t graph = capture(buffers, round);
    if (exec == nullptr) {
      exec = graphs::instantiate(graph);
    } else {
      cudaGraphExecUpdateResultInfo info{};
      CHECK_CUDA(cudaGraphExecUpdate(exec, graph, &info));
      CHECK_THAT(info.result == cudaGraphExecUpdateSuccess, "An update succeeded with the result \"%s\".",
                 graphs::update_name(info.result));
    }
    CHECK_CUDA(cudaGraphDestroy(graph));
    buffers.prepare(round);
    CHECK_CUDA(cudaGraphLaunch(exec, buffers.stream));
  }
  CHECK_CUDA(cudaStreamSynchronize(buffers.stream));
  buffers.check_all("updates by the next capture");
  CHECK_CUDA(cudaGraphExecDestroy(exec));
}

// Small graphs with a single word, for updates that fail.
class Failures {
 public:
  Failures() : words_(graphs::settled_copy<unsigned>({0, 0})), pinned_(graphs::pinned_buffer<unsigned>(1)) {}
  ~Failures() {
    CHECK_CUDA(cudaFree(words_));
    CHECK_CUDA(cudaFreeHost(pinned_));
    CHECK_CUDA(cudaStreamDestroy(stream_));
  }
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  void run() {
    attempt("a kernel more", cudaGraphExecUpdateErrorTopologyChanged, [&] {
      fill(5);
      add(1);
      add(2);
    });
    attempt("a kernel fewer", cudaGraphExecUpdateErrorTopologyChanged, [&] { fill(5); });
    attempt("a kernel in the place of the fill", cudaGraphExecUpdateErrorNodeTypeChanged, [&] {
      add(5);
      add(1);
    });
    attempt("a host function in the place of the kernel", cudaGraphExecUpdateErrorNodeTypeChanged, [&] {
      fill(5);
      CHECK_CUDA(cudaLaunchHostFunc(
          stream_, [](void*) {}, nullptr));
    });
    without_an_edge();
    copies();
  }

 private:
  void fill(int value) { CHECK_CUDA(cudaMemsetAsync(words_, value, 1, stream_)); }
  void clear() { CHECK_CUDA(cudaMemsetAsync(words_, 0, sizeof(unsigned), stream_)); }
  void add(unsigned value) {
    add_value<<<1, 1, 0, stream_>>>(words_, 1, value);
    CHECK_CUDA(cudaGetLastError());
  }
  template <class F>
  cudaGraph_t captured(F&& work) {
    graphs::begin(stream_);
    work();
    return graphs::end(stream_);
  }
  cudaGraph_t base() {
    return captured([&] {
      fill(5);
      add(1);
    });
  }

  unsigned word() const { return check::host_copy(words_, 1)[0]; }

  // Expects that the update fails, that the executable still works as before, and that a newly instantiated one works
  // as the graph states.
  void fail(const char* what, cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResult expected) {
    cudaGraphExecUpdateResultInfo info{};
    const cudaError_t error = cudaGraphExecUpdate(exec, graph, &info);
    (void)cudaGetLastError();
    std::printf("%s: %s, %s\n", what, cudaGetErrorName(error), graphs::update_name(info.result));
    CHECK_THAT(error == cudaErrorGraphExecUpdateFailure && info.result == expected, "It should say %s.",
               graphs::update_name(expected));
  }

  template <class F>
  void attempt(const char* what, cudaGraphExecUpdateResult expected, F&& work) {
    const cudaGraph_t old = base(), changed = captured(work);
    const cudaGraphExec_t exec = graphs::instantiate(old);
    fail(what, exec, changed, expected);
    graphs::launch_and_wait(exec, stream_);
    CHECK_THAT(word() == 6, "%s: behind a failed update the executable gave %u, not 6.", what, word());
    clear();
    graphs::run_once(changed, stream_);
    std::printf("  instantiated anew: %u\n", word());
    clear();
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(old));
  }

  void without_an_edge() {
    const cudaGraph_t old = base(), changed = base();
    const cudaGraphNode_t from = graphs::find_node(changed, cudaGraphNodeTypeMemset);
    const cudaGraphNode_t to = graphs::find_node(changed, cudaGraphNodeTypeKernel);
    CHECK_CUDA(cudaGraphRemoveDependencies(changed, &from, &to, nullptr, 1));
    const cudaGraphExec_t exec = graphs::instantiate(old);
    fail("an edge fewer", exec, changed, cudaGraphExecUpdateErrorTopologyChanged);
    CHECK_CUDA(cudaGraphAddDependencies(changed, &from, &to, nullptr, 1));
    cudaGraphExecUpdateResultInfo info{};
    CHECK_CUDA(cudaGraphExecUpdate(exec, changed, &info));
    std::printf("with the edge: %s\n", graphs::update_name(info.result));
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    for (const cudaGraph_t graph : {old, changed}) CHECK_CUDA(cudaGraphDestroy(graph));
  }

  void copies() {
    const cudaGraph_t within = captured(
        [&] { CHECK_CUDA(cudaMemcpyAsync(words_ + 1, words_, sizeof(unsigned), cudaMemcpyDeviceToDevice, stream_)); });
    const cudaGraph_t out = captured(
        [&] { CHECK_CUDA(cudaMemcpyAsync(pinned_, words_, sizeof(unsigned), cudaMemcpyDeviceToHost, stream_)); });
    const cudaGraphExec_t exec = graphs::instantiate(within);
    fail("a copy to the host in the place of one on the device", exec, out, cudaGraphExecUpdateErrorParametersChanged);
    const unsigned value = 77;
    CHECK_CUDA(cudaMemcpyAsync(words_, &value, sizeof value, cudaMemcpyHostToDevice, stream_));
    graphs::run_once(out, stream_);
    CHECK_THAT(*pinned_ == value, "The copy gave %u, not %u.", *pinned_, value);
    std::printf("  instantiated anew: %u\n", *pinned_);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(within));
  }

  unsigned *words_, *pinned_;
  const cudaStream_t stream_ = graphs::create_stream();
};

// Each executable has its own buffer and stream. Afterwards one executable is launched into all streams; its launches
// do not overlap, so the kernel needs no atomic operation.
void several_executables(unsigned n, unsigned rounds) {
  constexpr int count = 4;
  cudaStream_t streams[count];
  unsigned* buffers[count];
  cudaGraphExec_t execs[count];
  std::vector<unsigned> expected[count];
  const std::vector<unsigned> zeros(n, 0);
  for (int i = 0; i < count; ++i) {
    streams[i] = graphs::create_stream();
    buffers[i] = graphs::settled_copy(zeros);
    expected[i] = zeros;
  }
  const auto parameters = [&](void** arguments) {
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(add_value);
    params.gridDim = dim3(blocks(n, block));
    params.blockDim = dim3(block);
    params.kernelParams = arguments;
    return params;
  };
  unsigned value = 1;
  void* first[] = {&buffers[0], &n, &value};
  const cudaKernelNodeParams params = parameters(first);
  const cudaGraph_t graph = graphs::create();
  cudaGraphNode_t node = nullptr, second = nullptr;
  CHECK_CUDA(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  CHECK_CUDA(cudaGraphAddKernelNode(&second, graph, &node, 1, &params));
  for (cudaGraphExec_t& exec : execs) exec = graphs::instantiate(graph);
  for (unsigned round = 0; round < rounds; ++round)
    for (int i = 0; i < count; ++i) {
      value = round * count + static_cast<unsigned>(i);
      void* arguments[] = {&buffers[i], &n, &value};
      const cudaKernelNodeParams changed = parameters(arguments);
      CHECK_CUDA(cudaGraphExecKernelNodeSetParams(execs[i], node, &changed));
      CHECK_CUDA(cudaGraphExecKernelNodeSetParams(execs[i], second, &changed));
      CHECK_CUDA(cudaGraphLaunch(execs[i], streams[i]));
      for (unsigned& word : expected[i]) word += 2 * value;
    }
  for (int i = 0; i < count; ++i) {
    CHECK_CUDA(cudaStreamSynchronize(streams[i]));
    check::compare("An executable of several", check::host_copy(buffers[i], n), expected[i]);
    std::printf("executable %d: each word is %u\n", i, expected[i][0]);
  }
  const unsigned before = expected[0][0];
  for (unsigned round = 0; round < rounds * count; ++round)
    CHECK_CUDA(cudaGraphLaunch(execs[0], streams[round % count]));
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
  const unsigned added = 2 * (rounds - 1) * count * rounds * count;  // the last value, which each launch adds twice
  for (unsigned& word : expected[0]) word += added;
  check::compare("An executable in several streams", check::host_copy(buffers[0], n), expected[0]);
  std::printf("one executable in %d streams: each word is %u more\n", count, expected[0][0] - before);
  CHECK_CUDA(cudaGraphDestroy(graph));
  for (int i = 0; i < count; ++i) {
    CHECK_CUDA(cudaGraphExecDestroy(execs[i]));
    CHECK_CUDA(cudaStreamDestroy(streams[i]));
    CHECK_CUDA(cudaFree(buffers[i]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  long n = 300, rounds = 100;
  check::parse(
      argc, argv, "graphs_updates", "changes executable graphs",
      {{"--n", "words of each buffer", &n, 1, 1000000}, {"--rounds", "changes of each kind", &rounds, 1, 10000}});
  const auto words = static_cast<unsigned>(n), times = static_cast<unsigned>(rounds);
  nodes_of_executables("nodes by a call for each type", words, times, set_by_calls);
  nodes_of_executables("nodes by parameters", words, times, set_by_parameters);
  updates_by_graphs(words, times);
  Failures().run();
  several_executables(words, times);
  return 0;
}
