// Conditional nodes, whose handles kernels set by cudaGraphSetConditional: IF with one and with two bodies, WHILE until
// a counter on the device reaches 0, SWITCH, an IF and a WHILE within a WHILE, a chain of conditions in one graph, and
// values that are assigned at each launch.
#include "graphs.h"

namespace {

__global__ void set_from(cudaGraphConditionalHandle handle, const unsigned* value) {
  cudaGraphSetConditional(handle, *value);
}

__global__ void add(unsigned* to, unsigned value) { *to += value; }

// One round of a loop: counts the round, and continues the loop while `left` is not 0.
__global__ void use_up(cudaGraphConditionalHandle handle, unsigned* left, unsigned* rounds) {
  *rounds += 1;
  *left -= 1;
  cudaGraphSetConditional(handle, *left != 0);
}

// Chooses a body by the parity of the round's number.
__global__ void choose(cudaGraphConditionalHandle handle, const unsigned* rounds) {
  cudaGraphSetConditional(handle, *rounds % 2);
}

// Starts an inner loop with as many rounds as the outer loop has completed.
__global__ void begin_inner(cudaGraphConditionalHandle handle, const unsigned* rounds, unsigned* left) {
  *left = *rounds;
  cudaGraphSetConditional(handle, 1);
}

// One step of Newton's method for the integer square root. The loop continues until the root stops decreasing.
__global__ void improve(cudaGraphConditionalHandle handle, const unsigned* of, unsigned* root, unsigned* rounds) {
  const unsigned next = (*root + *of / *root) / 2;
  const bool better = next < *root;
  if (better) *root = next;
  *rounds += 1;
  cudaGraphSetConditional(handle, better ? 1 : 0);
}

unsigned root_here(unsigned of, unsigned* rounds) {
  unsigned root = of;
  for (;;) {
    ++*rounds;
    const unsigned next = (root + of / root) / 2;
    if (next >= root) return root;
    root = next;
  }
}

template <class... Values>
cudaGraphNode_t add_kernel(cudaGraph_t graph, const graphs::Nodes& behind, void (*kernel)(Values...),
                           Values... values) {
  cudaGraphNode_t node = nullptr;
  void* arguments[] = {&values...};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(kernel);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  CHECK_CUDA(cudaGraphAddKernelNode(&node, graph, behind.data(), behind.size(), &params));
  return node;
}

cudaGraphConditionalHandle create_handle(cudaGraph_t graph) {
  cudaGraphConditionalHandle handle{};
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  return handle;
}

cudaGraphConditionalHandle create_handle_with_value(cudaGraph_t graph, unsigned value) {
  cudaGraphConditionalHandle handle{};
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, value, cudaGraphCondAssignDefault));
  return handle;
}

struct Conditional {
  cudaGraphNode_t node = nullptr;
  std::vector<cudaGraph_t> bodies;
};

Conditional add_conditional(cudaGraph_t graph, const graphs::Nodes& behind, cudaGraphConditionalHandle handle,
                            cudaGraphConditionalNodeType type, unsigned bodies) {
  Conditional made;
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = bodies;
  CHECK_CUDA(cudaGraphAddNode(&made.node, graph, behind.data(), nullptr, behind.size(), &params));
  made.bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + bodies);
  return made;
}

// Words on the device that a test addresses by number, and a stream.
class Words {
 public:
  Words() : words_(check::device_buffer<unsigned>(count)) { clear(); }
  ~Words() {
    CHECK_CUDA(cudaFree(words_));
    CHECK_CUDA(cudaStreamDestroy(stream));
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  unsigned* at(int place) const { return words_ + place; }
  const unsigned* read(int place) const { return words_ + place; }
  void set(int place, unsigned value) const {
    CHECK_CUDA(cudaMemcpyAsync(words_ + place, &value, sizeof value, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  unsigned get(int place) const { return check::host_copy(words_ + place, 1)[0]; }
  void clear() const {
    CHECK_CUDA(cudaMemset(words_, 0, count * sizeof(unsigned)));
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  void expect(const char* what, int place, unsigned wanted) const {
    const unsigned got = get(place);
    CHECK_THAT(got == wanted, "%s: word %d is %u, the CPU says %u.", what, place, got, wanted);
  }

  const cudaStream_t stream = graphs::create_stream();

 private:
  static constexpr size_t count = 16;
  unsigned* words_;
};

// A node whose condition is word 0. Body i adds 1 to word 1 + i, and a kernel behind the node adds 1 to word 9.
void one_of_several(const Words& words, const char* what, cudaGraphConditionalNodeType type, unsigned bodies,
                    std::initializer_list<unsigned> values) {
  words.clear();
  const cudaGraph_t graph = graphs::create();
  const cudaGraphConditionalHandle handle = create_handle(graph);
  const cudaGraphNode_t first = add_kernel(graph, {}, set_from, handle, words.read(0));
  const Conditional conditional = add_conditional(graph, {first}, handle, type, bodies);
  for (unsigned i = 0; i < bodies; ++i)
    add_kernel(conditional.bodies[i], {}, add, words.at(1 + static_cast<int>(i)), 1u);
  add_kernel(graph, {conditional.node}, add, words.at(9), 1u);
  CHECK_THAT(graphs::type_of(conditional.node) == cudaGraphNodeTypeConditional, "%s: the node is of another type.",
             what);
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  std::vector<unsigned> expected(bodies, 0);
  unsigned launches = 0;
  for (const unsigned value : values) {
    words.set(0, value);
    graphs::launch_and_wait(exec, words.stream);
    const unsigned chosen = type == cudaGraphCondTypeSwitch ? value : value != 0 ? 0 : 1;
    if (chosen < bodies) ++expected[chosen];
    ++launches;
    for (unsigned i = 0; i < bodies; ++i) words.expect(what, 1 + static_cast<int>(i), expected[i]);
    words.expect(what, 9, launches);
  }
  std::printf("%s: %s;", what, graphs::summary(graph).c_str());
  for (const unsigned count : expected) std::printf(" %u", count);
  std::printf("\n");
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

// The loop counts word 0 down and word 1 up. It begins by its default value, so word 0 must not be 0 at the launch.
void loop_until_used_up(const Words& words, unsigned most) {
  words.clear();
  const cudaGraph_t graph = graphs::create();
  const cudaGraphConditionalHandle handle = create_handle_with_value(graph, 1);
  const Conditional loop = add_conditional(graph, {}, handle, cudaGraphCondTypeWhile, 1);
  add_kernel(loop.bodies[0], {}, use_up, handle, words.at(0), words.at(1));
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  unsigned total = 0;
  for (unsigned rounds = 1; rounds <= most; rounds = rounds * 3 + 1) {
    words.set(0, rounds);
    graphs::launch_and_wait(exec, words.stream);
    total += rounds;
    words.expect("A loop", 0, 0);
    words.expect("A loop", 1, total);
    std::printf("while: %u rounds, %u in all\n", rounds, total);
  }
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

// Captures the body of the loop: Newton's method, with a fill and a copy within the device.
void captured_body(const Words& words) {
  words.clear();
  const cudaGraph_t graph = graphs::create();
  const cudaGraphConditionalHandle handle = create_handle_with_value(graph, 1);
  const Conditional loop = add_conditional(graph, {}, handle, cudaGraphCondTypeWhile, 1);
  CHECK_CUDA(
      cudaStreamBeginCaptureToGraph(words.stream, loop.bodies[0], nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
  CHECK_CUDA(cudaMemsetAsync(words.at(3), 0, sizeof(unsigned), words.stream));
  improve<<<1, 1, 0, words.stream>>>(handle, words.at(0), words.at(1), words.at(2));
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpyAsync(words.at(3), words.at(1), sizeof(unsigned), cudaMemcpyDeviceToDevice, words.stream));
  CHECK_THAT(graphs::end(words.stream) == loop.bodies[0], "A capture into a body gave another graph.");
  std::printf("captured body: %s\n", graphs::summary(loop.bodies[0]).c_str());
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  for (const unsigned number : {1u, 2u, 99u, 100u, 123456u, 4000000000u}) {
    words.set(0, number);
    words.set(1, number);
    words.set(2, 0);
    graphs::launch_and_wait(exec, words.stream);
    unsigned rounds = 0;
    const unsigned root = root_here(number, &rounds);
    words.expect("A root", 1, root);
    words.expect("A root's rounds", 2, rounds);
    words.expect("A root's copy", 3, root);
    std::printf("captured body: the root of %u is %u, after %u rounds\n", number, root, rounds);
  }
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

// WHILE { use_up; IF odd { +1 to word 2 } else { +10 to word 3 }; WHILE { as often as the round's number: word 5 } }
void nested(const Words& words, unsigned rounds) {
  words.clear();
  const cudaGraph_t graph = graphs::create();
  const cudaGraphConditionalHandle outer = create_handle_with_value(graph, 1);
  const Conditional loop = add_conditional(graph, {}, outer, cudaGraphCondTypeWhile, 1);
  const cudaGraph_t body = loop.bodies[0];
  const cudaGraphConditionalHandle odd = create_handle(body), inner = create_handle(body);
  const cudaGraphNode_t counted = add_kernel(body, {}, use_up, outer, words.at(0), words.at(1));
  const cudaGraphNode_t chosen = add_kernel(body, {counted}, choose, odd, words.read(1));
  const Conditional either = add_conditional(body, {chosen}, odd, cudaGraphCondTypeIf, 2);
  add_kernel(either.bodies[0], {}, add, words.at(2), 1u);
  add_kernel(either.bodies[1], {}, add, words.at(3), 10u);
  const cudaGraphNode_t begun = add_kernel(body, {either.node}, begin_inner, inner, words.read(1), words.at(4));
  const Conditional again = add_conditional(body, {begun}, inner, cudaGraphCondTypeWhile, 1);
  add_kernel(again.bodies[0], {}, use_up, inner, words.at(4), words.at(5));
  std::printf("nested: %s; %s\n", graphs::summary(graph).c_str(), graphs::summary(body).c_str());
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  unsigned done = 0, odds = 0, evens = 0, inners = 0;
  for (int launch = 0; launch < 3; ++launch) {
    words.set(0, rounds);
    graphs::launch_and_wait(exec, words.stream);
    for (unsigned i = 0; i < rounds; ++i) {
      ++done;
      if (done % 2 == 1)
        odds += 1;
      else
        evens += 10;
      inners += done;
    }
    const unsigned expected[] = {0, done, odds, evens, 0, inners};
    for (int place = 0; place < 6; ++place) words.expect("Nested conditions", place, expected[place]);
    std::printf("nested: %u rounds, %u odd, %u for even, %u inner\n", done, odds, evens, inners);
  }
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

// The next launch assigns the default value again, whatever value a body has set.
void default_values(const Words& words) {
  words.clear();
  const cudaGraph_t graph = graphs::create();
  const cudaGraphConditionalHandle one = create_handle_with_value(graph, 1), zero = create_handle_with_value(graph, 0),
                                   two = create_handle_with_value(graph, 2);
  const Conditional taken = add_conditional(graph, {}, one, cudaGraphCondTypeIf, 1);
  const cudaGraphNode_t counted = add_kernel(taken.bodies[0], {}, add, words.at(1), 1u);
  add_kernel(taken.bodies[0], {counted}, set_from, one, words.read(0));
  const Conditional left_out = add_conditional(graph, {taken.node}, zero, cudaGraphCondTypeIf, 1);
  add_kernel(left_out.bodies[0], {}, add, words.at(2), 1u);
  const Conditional third = add_conditional(graph, {left_out.node}, two, cudaGraphCondTypeSwitch, 4);
  for (int i = 0; i < 4; ++i) add_kernel(third.bodies[i], {}, add, words.at(3 + i), 1u);
  std::printf("default values: %s\n", graphs::summary(graph).c_str());
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  for (int launch = 0; launch < 5; ++launch) CHECK_CUDA(cudaGraphLaunch(exec, words.stream));
  CHECK_CUDA(cudaStreamSynchronize(words.stream));
  const unsigned expected[] = {0, 5, 0, 0, 0, 5, 0};
  for (int place = 0; place < 7; ++place) words.expect("Default values", place, expected[place]);
  std::printf("default values: taken %u times, left out %u, third %u\n", words.get(1), words.get(2), words.get(5));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

// A kernel sets the handle of the next node, and that node's body sets the handle of the node after it.
void chain_of_conditions(const Words& words) {
  constexpr int length = 5;
  words.clear();
  const cudaGraph_t graph = graphs::create();
  std::vector<cudaGraphConditionalHandle> handles;
  for (int i = 0; i < length; ++i) handles.push_back(create_handle_with_value(graph, 0));
  cudaGraphNode_t last = add_kernel(graph, {}, set_from, handles[0], words.read(0));
  for (int i = 0; i < length; ++i) {
    const Conditional link = add_conditional(graph, {last}, handles[i], cudaGraphCondTypeIf, 1);
    const cudaGraphNode_t counted = add_kernel(link.bodies[0], {}, add, words.at(6 + i), 1u);
    if (i + 1 < length) add_kernel(link.bodies[0], {counted}, set_from, handles[i + 1], words.read(1 + i));
    last = link.node;
  }
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  std::vector<unsigned> expected(length, 0);
  for (int broken = 0; broken <= length; ++broken) {
    for (int i = 0; i < length; ++i) words.set(i, i == broken ? 0 : 1);
    graphs::launch_and_wait(exec, words.stream);
    for (int i = 0; i < broken; ++i) ++expected[i];
    for (int i = 0; i < length; ++i) words.expect("A chain of conditions", 6 + i, expected[i]);
  }
  std::printf("chain of conditions:");
  for (const unsigned count : expected) std::printf(" %u", count);
  std::printf("\n");
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 1000;
  check::parse(argc, argv, "graphs_conditional", "runs graphs with conditional nodes",
               {{"--rounds", "rounds of the longest loop, at most", &rounds, 1, 10000000}});
  const Words words;
  one_of_several(words, "if", cudaGraphCondTypeIf, 1, {0, 1, 7, 0, 1});
  one_of_several(words, "if and else", cudaGraphCondTypeIf, 2, {0, 1, 7, 0, 0});
  one_of_several(words, "switch", cudaGraphCondTypeSwitch, 4, {3, 0, 1, 1, 2, 4, 3, 900});
  loop_until_used_up(words, static_cast<unsigned>(rounds));
  captured_body(words);
  nested(words, 9);
  default_values(words);
  chain_of_conditions(words);
  return 0;
}
