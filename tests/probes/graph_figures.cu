// Measures captures, graphs and host functions for docs/measurements/graphs.md. Run several processes natively and
// several processes through `ivgpu run`. Each process prints a line per figure: its name and the median of the process
// in microseconds.
//   nvcc -std=c++17 -O2 -arch=sm_90 -o graph_figures tests/probes/graph_figures.cu
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void check(cudaError_t result, int line) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorName(result));
  std::exit(1);
}
#define CHECK(call) check(call, __LINE__)

__global__ void add(int* to, int by) { *to += by; }

double micros(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// Prints the median of `times` calls of `measured`, which returns microseconds.
template <class F>
void tell(const char* name, int times, F measured) {
  std::vector<double> all;
  for (int i = 0; i < times / 10 + 1; ++i) measured();
  for (int i = 0; i < times; ++i) all.push_back(measured());
  std::nth_element(all.begin(), all.begin() + times / 2, all.end());
  std::printf("%s %.3f\n", name, all[static_cast<std::size_t>(times / 2)]);
}
template <class F>
double timed(F f) {
  const auto begin = Clock::now();
  f();
  return micros(Clock::now() - begin);
}

struct Work {
  cudaStream_t stream = nullptr;
  int* word = nullptr;
  Work() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&word, sizeof *word));
    add<<<1, 1, 0, stream>>>(word, 1);
    CHECK(cudaStreamSynchronize(stream));
  }
  cudaGraph_t captured(int kernels) const {
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) add<<<1, 1, 0, stream>>>(word, i);
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
  }
};

std::atomic<Clock::rep> started{0};
void CUDART_CB note(void*) { started = Clock::now().time_since_epoch().count(); }

}  // namespace

int main() {
  const Work work;
  cudaGraphExec_t exec = nullptr;
  const cudaGraph_t twenty = work.captured(20), one = work.captured(1), hundred = work.captured(100);
  CHECK(cudaGraphInstantiate(&exec, twenty, 0));
  const auto launch = [&](cudaGraphExec_t e) {
    return timed([&] {
      CHECK(cudaGraphLaunch(e, work.stream));
      CHECK(cudaStreamSynchronize(work.stream));
    });
  };
  tell("launch_20_and_wait", 2000, [&] { return launch(exec); });
  cudaGraphExec_t single = nullptr;
  CHECK(cudaGraphInstantiate(&single, one, 0));
  tell("launch_1_and_wait", 2000, [&] { return launch(single); });
  tell("instantiate_100", 200, [&] {
    cudaGraphExec_t made = nullptr;
    const double took = timed([&] { CHECK(cudaGraphInstantiate(&made, hundred, 0)); });
    CHECK(cudaGraphExecDestroy(made));
    return took;
  });
  tell("capture_100", 200, [&] {
    cudaGraph_t graph = nullptr;
    const double took = timed([&] { graph = work.captured(100); });
    CHECK(cudaGraphDestroy(graph));
    return took;
  });
  tell("capture_instantiate_drop_100000", 1, [&] {
    return timed([&] {
      cudaGraphExec_t made = nullptr;
      const cudaGraph_t graph = work.captured(100000);
      CHECK(cudaGraphInstantiate(&made, graph, 0));
      CHECK(cudaGraphExecDestroy(made));
      CHECK(cudaGraphDestroy(graph));
    });
  });
  tell("host_function_issue_to_start", 1000, [&] {
    const auto begin = Clock::now();
    CHECK(cudaLaunchHostFunc(work.stream, note, nullptr));
    CHECK(cudaStreamSynchronize(work.stream));
    return micros(Clock::duration(started.load()) - begin.time_since_epoch());
  });
  tell("host_function_start_to_kernels_end", 1000, [&] {
    CHECK(cudaLaunchHostFunc(work.stream, note, nullptr));
    add<<<1, 1, 0, work.stream>>>(work.word, 1);
    CHECK(cudaStreamSynchronize(work.stream));
    return micros(Clock::now().time_since_epoch() - Clock::duration(started.load()));
  });
  std::vector<cudaGraphNode_t> nodes(20);
  std::size_t count = nodes.size();
  CHECK(cudaGraphGetNodes(twenty, nodes.data(), &count));
  int by = 0;
  void* arguments[] = {const_cast<int**>(&work.word), &by};
  cudaKernelNodeParams params{};
  CHECK(cudaGraphKernelNodeGetParams(nodes[0], &params));
  params.kernelParams = arguments;
  tell("set_20_parameters_launch_and_wait", 500, [&] {
    return timed([&] {
      for (const cudaGraphNode_t node : nodes) ++by, CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
      CHECK(cudaGraphLaunch(exec, work.stream));
      CHECK(cudaStreamSynchronize(work.stream));
    });
  });
  return 0;
}
