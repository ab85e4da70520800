// User objects, whose destructors must run once, when the last reference ends. The program tests references of the
// program, of graphs, clones, child graphs and executables, moved references, objects of graphs whose capture is open,
// executables that are destroyed or updated while they run, and threads that continually make graphs with objects. At
// the end no object may remain.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "graphs.h"

namespace {

__global__ void add(unsigned* to, const unsigned* from) { *to += *from; }

std::atomic<int> living{0};

// The data of a user object: a word that a graph reads. The destructor deletes the word, and counts.
struct Source {
  explicit Source(unsigned value) : word(new unsigned(value)) { ++living; }
  std::unique_ptr<unsigned> word;
  unsigned* to = nullptr;  // the address to which a host node writes the word
  std::atomic<int> calls{0};
};

void CUDART_CB hand_over(void* argument) {
  const Source& source = *static_cast<Source*>(argument);
  *source.to = *source.word;
}

void CUDART_CB destroy(void* argument) {
  Source& source = *static_cast<Source*>(argument);
  source.word.reset();
  --living;
  ++source.calls;  // the last access: the source may be destroyed afterwards
}

cudaUserObject_t create(Source& source, unsigned references = 1) {
  cudaUserObject_t object = nullptr;
  CHECK_CUDA(cudaUserObjectCreate(&object, &source, destroy, references, cudaUserObjectNoDestructorSync));
  return object;
}

void alive(const char* what, const Source& source) {
  CHECK_THAT(source.calls == 0, "%s: the destructor ran too early.", what);
}

// The destructor may run later, in a thread of the driver.
void gone(const char* what, const Source& source) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (source.calls == 0) {
    CHECK_THAT(std::chrono::steady_clock::now() < limit, "%s: the destructor has not run for a minute.", what);
    std::this_thread::yield();
  }
  CHECK_THAT(source.calls == 1, "%s: the destructor ran %d times.", what, source.calls.load());
}

void finish(const char* what, std::initializer_list<const Source*> sources) {
  for (const Source* source : sources) gone(what, *source);
  std::printf("%s: %zu destroyed\n", what, sources.size());
}

// Adds the object's word to a sum. A host node or a copy node reads the word.
class Work {
 public:
  // Does not wait for the device, since other threads may capture.
  Work() : words_(check::device_buffer<unsigned>(2)), handed_over_(graphs::pinned_buffer<unsigned>(1)) {
    CHECK_CUDA(cudaMemsetAsync(words_, 0, 2 * sizeof(unsigned), stream));
  }
  ~Work() {
    CHECK_CUDA(cudaFree(words_));
    CHECK_CUDA(cudaFreeHost(handed_over_));
    CHECK_CUDA(cudaStreamDestroy(stream));
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Launches the kernel once, since loading a kernel may wait for the device.
  void load() const {
    add<<<1, 1, 0, stream>>>(words_, words_ + 1);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  void put(Source& source) const {
    source.to = handed_over_;
    CHECK_CUDA(cudaLaunchHostFunc(stream, hand_over, &source));
    add<<<1, 1, 0, stream>>>(words_, handed_over_);
    CHECK_CUDA(cudaGetLastError());
  }
  void put_copy(const Source& source) const {
    CHECK_CUDA(cudaMemcpyAsync(words_ + 1, source.word.get(), sizeof(unsigned), cudaMemcpyHostToDevice, stream));
    add<<<1, 1, 0, stream>>>(words_, words_ + 1);
    CHECK_CUDA(cudaGetLastError());
  }
  cudaGraph_t capture(Source& source) const {
    graphs::begin(stream, cudaStreamCaptureModeThreadLocal);
    put(source);
    return graphs::end(stream);
  }
  // Captures with a reference to the object, which the program gives up.
  cudaGraph_t capture(Source& source, cudaUserObject_t object) const {
    const cudaGraph_t graph = capture(source);
    CHECK_CUDA(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    return graph;
  }
  void run(cudaGraphExec_t exec, unsigned times = 1) const {
    for (unsigned i = 0; i < times; ++i) CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  void expect(const char* what, unsigned added) {
    unsigned got = 0;
    CHECK_CUDA(cudaMemcpyAsync(&got, words_, sizeof got, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    sum_ += added;
    CHECK_THAT(got == sum_, "%s: the sum is %u, not %u.", what, got, sum_);
  }

  const cudaStream_t stream = graphs::create_stream();

 private:
  unsigned* words_;        // the sum, and the copied word
  unsigned* handed_over_;  // pinned
  unsigned sum_ = 0;
};

void references_of_the_program() {
  const char* const what = "references of the program";
  Source source(1);
  const cudaUserObject_t object = create(source, 3);
  CHECK_CUDA(cudaUserObjectRetain(object, 2));
  CHECK_CUDA(cudaUserObjectRelease(object, 4));
  alive(what, source);
  CHECK_CUDA(cudaUserObjectRelease(object, 1));
  finish(what, {&source});
}

void references_of_a_graph(Work& work) {
  const char* const what = "references of a graph";
  Source kept(2), moved(3), released(4);
  const cudaUserObject_t first = create(kept), second = create(moved, 2), third = create(released);
  const cudaGraph_t graph = work.capture(kept);
  CHECK_CUDA(cudaGraphRetainUserObject(graph, first, 1, 0));
  CHECK_CUDA(cudaGraphRetainUserObject(graph, second, 2, cudaGraphUserObjectMove));
  CHECK_CUDA(cudaGraphRetainUserObject(graph, third, 3, 0));
  CHECK_CUDA(cudaUserObjectRelease(first, 1));
  CHECK_CUDA(cudaUserObjectRelease(third, 1));
  CHECK_CUDA(cudaGraphReleaseUserObject(graph, second, 1));
  CHECK_CUDA(cudaGraphReleaseUserObject(graph, third, 2));
  for (const Source* source : {&kept, &moved, &released}) alive(what, *source);
  CHECK_CUDA(cudaGraphReleaseUserObject(graph, third, 1));
  gone(what, released);
  for (const Source* source : {&kept, &moved}) alive(what, *source);
  CHECK_CUDA(cudaGraphDestroy(graph));
  finish(what, {&kept, &moved, &released});
}

// A clone and an executable have their own references: the destructor runs after the last of the three.
void clones_and_executables(Work& work) {
  const char* const what = "clones and executables";
  Source source(5);
  const cudaGraph_t graph = work.capture(source, create(source));
  cudaGraph_t clone = nullptr;
  CHECK_CUDA(cudaGraphClone(&clone, graph));
  CHECK_CUDA(cudaGraphDestroy(graph));
  alive(what, source);
  const cudaGraphExec_t first = graphs::instantiate(clone), second = graphs::instantiate(clone);
  CHECK_CUDA(cudaGraphDestroy(clone));
  alive(what, source);
  work.run(first, 3);
  work.expect(what, 3 * 5);
  CHECK_CUDA(cudaGraphExecDestroy(first));
  alive(what, source);
  *source.word = 6;
  work.run(second);
  work.expect(what, 6);
  CHECK_CUDA(cudaGraphExecDestroy(second));
  finish(what, {&source});
}

// A launch keeps its objects until it has finished.
void destroyed_while_it_runs(Work& work, graphs::Gate& gate) {
  const char* const what = "destroyed while it runs";
  Source source(7);
  const cudaGraph_t graph = work.capture(source, create(source));
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  work.run(exec);
  work.expect(what, 7);
  gate.close(work.stream);
  for (int i = 0; i < 2; ++i) CHECK_CUDA(cudaGraphLaunch(exec, work.stream));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  alive(what, source);
  gate.open();
  work.expect(what, 2 * 7);
  finish(what, {&source});
}

// An update replaces the executable's references. The references of unfinished launches stay.
void updated_while_it_runs(Work& work, graphs::Gate& gate) {
  const char* const what = "updated while it runs";
  Source before(8), after(9);
  const cudaGraph_t old = work.capture(before, create(before)), next = work.capture(after, create(after));
  const cudaGraphExec_t exec = graphs::instantiate(old);
  CHECK_CUDA(cudaGraphDestroy(old));
  work.run(exec);
  work.expect(what, 8);
  gate.close(work.stream);
  CHECK_CUDA(cudaGraphLaunch(exec, work.stream));
  cudaGraphExecUpdateResultInfo info{};
  CHECK_CUDA(cudaGraphExecUpdate(exec, next, &info));
  CHECK_CUDA(cudaGraphDestroy(next));
  for (const Source* source : {&before, &after}) alive(what, *source);
  CHECK_CUDA(cudaGraphLaunch(exec, work.stream));
  gate.open();
  work.expect(what, 8 + 9);
  gone(what, before);
  alive(what, after);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  finish(what, {&before, &after});
}

cudaGraphNode_t add_child(cudaGraph_t parent, cudaGraph_t child) {
  cudaGraphNode_t node = nullptr;
  CHECK_CUDA(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
  CHECK_CUDA(cudaGraphDestroy(child));
  return node;
}

// A child graph has its own references. They end with the child's node, or when another child replaces the graph.
void child_graphs(Work& work) {
  const char* const what = "child graphs";
  Source first(10), second(11), third(12);
  const cudaGraph_t parent = graphs::create(), other = graphs::create();
  const cudaGraphNode_t child = add_child(parent, work.capture(first, create(first)));
  const cudaGraphNode_t other_child = add_child(other, work.capture(third, create(third)));
  const cudaGraphExec_t exec = graphs::instantiate(parent);
  for (const Source* source : {&first, &third}) alive(what, *source);
  work.run(exec);
  work.expect(what, 10);
  const cudaGraph_t replacement = work.capture(second, create(second));
  CHECK_CUDA(cudaGraphExecChildGraphNodeSetParams(exec, child, replacement));
  CHECK_CUDA(cudaGraphDestroy(replacement));
  work.run(exec, 2);
  work.expect(what, 2 * 11);
  for (const Source* source : {&first, &second}) alive(what, *source);
  CHECK_CUDA(cudaGraphDestroy(parent));
  gone(what, first);
  alive(what, second);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  gone(what, second);
  alive(what, third);
  CHECK_CUDA(cudaGraphDestroyNode(other_child));
  finish(what, {&first, &second, &third});
  CHECK_CUDA(cudaGraphDestroy(other));
}

cudaGraph_t captured_graph(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  cudaGraph_t graph = nullptr;
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  CHECK_THAT(status == cudaStreamCaptureStatusActive && graph != nullptr, "The capture has no graph.");
  return graph;
}

// Each captured call leaves its object with the graph, as libraries do.
void objects_of_an_open_capture(Work& work) {
  const char* const what = "objects of an open capture";
  constexpr unsigned count = 8;
  std::vector<std::unique_ptr<Source>> sources;
  unsigned sum = 0;
  graphs::begin(work.stream);
  for (unsigned i = 0; i < count; ++i) {
    sources.push_back(std::make_unique<Source>(20 + i));
    const cudaUserObject_t object = create(*sources.back());
    CHECK_CUDA(cudaGraphRetainUserObject(captured_graph(work.stream), object, 1, cudaGraphUserObjectMove));
    work.put_copy(*sources.back());
    sum += 20 + i;
  }
  const cudaGraph_t graph = graphs::end(work.stream);
  std::printf("%s: %s\n", what, graphs::summary(graph).c_str());
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  CHECK_CUDA(cudaGraphDestroy(graph));
  work.run(exec, 4);
  work.expect(what, 4 * sum);
  for (const std::unique_ptr<Source>& source : sources) alive(what, *source);
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  for (const std::unique_ptr<Source>& source : sources) gone(what, *source);
  std::printf("%s: %u destroyed\n", what, count);
}

// The graph has an object before the capture into it begins, and gets another object during the capture.
void objects_of_a_graph_captured_into(Work& work) {
  const char* const what = "objects of a graph captured into";
  Source before(30), during(31);
  const cudaGraph_t graph = graphs::create();
  CHECK_CUDA(cudaGraphRetainUserObject(graph, create(before), 1, cudaGraphUserObjectMove));
  CHECK_CUDA(cudaStreamBeginCaptureToGraph(work.stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
  work.put_copy(before);
  CHECK_CUDA(cudaGraphRetainUserObject(graph, create(during), 1, cudaGraphUserObjectMove));
  work.put_copy(during);
  CHECK_THAT(graphs::end(work.stream) == graph, "The capture gave another graph.");
  graphs::run_once(graph, work.stream);
  work.expect(what, 30 + 31);
  finish(what, {&before, &during});
}

void one_of_many(Work& work, unsigned value) {
  const char* const what = "threads";
  Source source(value);
  const cudaGraph_t graph = work.capture(source, create(source));
  const cudaGraphExec_t exec = graphs::instantiate(graph);
  CHECK_CUDA(cudaGraphLaunch(exec, work.stream));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaGraphLaunch(exec, work.stream));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  work.expect(what, 2 * value);
  gone(what, source);
}

void threads_with_objects(long threads, long rounds) {
  std::vector<std::thread> all;
  for (long i = 0; i < threads; ++i)
    all.emplace_back([=] {
      Work work;
      for (long round = 0; round < rounds; ++round) one_of_many(work, static_cast<unsigned>(i * 1000 + round));
    });
  for (std::thread& thread : all) thread.join();
  std::printf("threads: %ld, %ld objects each\n", threads, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  long threads = 4, rounds = 50;
  check::parse(argc, argv, "graphs_objects", "counts the destructors of user objects",
               {{"--threads", "threads that make graphs with objects", &threads, 1, 64},
                {"--rounds", "objects of each thread", &rounds, 1, 100000}});
  {
    Work work;
    graphs::Gate gate;
    work.load();
    references_of_the_program();
    references_of_a_graph(work);
    clones_and_executables(work);
    destroyed_while_it_runs(work, gate);
    updated_while_it_runs(work, gate);
    child_graphs(work);
    objects_of_an_open_capture(work);
    objects_of_a_graph_captured_into(work);
  }
  threads_with_objects(threads, rounds);
  CHECK_THAT(living == 0, "%d objects live on.", living.load());
  std::printf("objects that live on: %d\n", living.load());
  return 0;
}
