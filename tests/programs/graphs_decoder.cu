// A small decoder in integers, driven by graphs in the two ways in which engines serve language models. Each step
// processes one token of each sequence, extends the caches of keys and values, and computes logits. A host function
// chooses the next tokens.
//
// `served`, the way of vLLM: one graph per batch size, captured once, the largest first, all on the same buffers.
// Requests come and go, and each step replays the graph of the next larger size.
//
// `updated`, the way of llama.cpp: each step is captured anew, with its position as an argument of the kernels, and
// updates the one executable. Some steps have additional kernels, which drop the oldest positions. In these steps the
// update fails, and the graph is instantiated anew.
//
// Both ways must produce the same tokens as a decoder without graphs, and as the CPU.
#include <deque>
#include <memory>

#include "graphs.h"

namespace {

constexpr unsigned vocabulary = 64, width = 32, layers = 2, context = 64;
constexpr unsigned most = 8;          // maximum number of sequences in a batch
constexpr unsigned slots = most + 1;  // slots of the caches; the last slot is for rows without a sequence
constexpr unsigned prompt = 3;        // tokens at the beginning of each sequence
constexpr unsigned forgotten = 8;     // positions

// The part of a step that belongs to one sequence.
struct Row {
  unsigned token, position, slot;
};

struct Weights {
  unsigned *embedding, *query, *key, *value, *head;
};

// The index of a sequence's keys or values in a layer's cache.
__host__ __device__ unsigned cached(unsigned layer, unsigned slot, unsigned position) {
  return ((layer * slots + slot) * context + position) * width;
}

// The product of one row of a weight matrix and a vector.
__host__ __device__ unsigned dot(const unsigned* a, const unsigned* b) {
  unsigned sum = 0;
  for (unsigned i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

__global__ void embed(const Row* rows, unsigned offset, Weights weights, unsigned* x) {
  const Row row = rows[blockIdx.x];
  const unsigned d = threadIdx.x;
  x[blockIdx.x * width + d] = weights.embedding[row.token * width + d] + (row.position + offset) % 7;
}

__global__ void project(const Row* rows, unsigned offset, unsigned layer, Weights weights, const unsigned* x,
                        unsigned* queries, unsigned* keys, unsigned* values) {
  const Row row = rows[blockIdx.x];
  const unsigned d = threadIdx.x, matrix = (layer * width + d) * width;
  const unsigned* const in = x + blockIdx.x * width;
  const unsigned place = cached(layer, row.slot, row.position + offset) + d;
  queries[blockIdx.x * width + d] = dot(weights.query + matrix, in) % 97;
  keys[place] = dot(weights.key + matrix, in) % 89;
  values[place] = dot(weights.value + matrix, in) % 83;
}

// Uses one thread per position first, then one thread per element.
__global__ void attend(const Row* rows, unsigned offset, unsigned layer, const unsigned* queries, const unsigned* keys,
                       const unsigned* values, unsigned* x) {
  __shared__ unsigned scores[context];
  const Row row = rows[blockIdx.x];
  const unsigned last = row.position + offset, i = threadIdx.x;
  if (i <= last) scores[i] = dot(queries + blockIdx.x * width, keys + cached(layer, row.slot, i)) % 17;
  __syncthreads();
  if (i >= width) return;
  unsigned sum = 0;
  for (unsigned t = 0; t <= last; ++t) sum += scores[t] * values[cached(layer, row.slot, t) + i];
  unsigned& out = x[blockIdx.x * width + i];
  out = (out + sum) % 251;
}

__global__ void find_logits(Weights weights, const unsigned* x, unsigned* logits) {
  logits[blockIdx.x * vocabulary + threadIdx.x] =
      dot(weights.head + threadIdx.x * width, x + blockIdx.x * width) % 1009;
}

// Drops `count` positions, and moves the remaining ones to the front.
__global__ void forget(const Row* rows, unsigned layer, unsigned count, unsigned* cache) {
  const unsigned slot = rows[blockIdx.x].slot;
  for (unsigned t = 0; t + forgotten < count; ++t)
    cache[cached(layer, slot, t) + threadIdx.x] = cache[cached(layer, slot, t + forgotten) + threadIdx.x];
}

unsigned largest(const unsigned* logits) {
  unsigned best = 0;
  for (unsigned i = 1; i < vocabulary; ++i)
    if (logits[i] > logits[best]) best = i;
  return best;
}

std::vector<unsigned> numbers(size_t count, unsigned salt) {
  std::vector<unsigned> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<unsigned>(check::small_number(i, salt));
  return out;
}

// A sequence: the prompt, then the chosen tokens.
struct Sequence {
  explicit Sequence(unsigned number) {
    for (unsigned i = 0; i < prompt; ++i)
      tokens.push_back((number * 7 + i * 5 + static_cast<unsigned>(check::small_number(number, i))) % vocabulary);
  }
  std::vector<unsigned> tokens;
  unsigned done = 0;  // tokens that the model has processed

  // Uses the logits of the last token that the model has processed.
  void go_on(const unsigned* logits) {
    if (++done == tokens.size()) tokens.push_back(largest(logits));
  }
};

// The model in host memory, and a decoder on the CPU.
class Reference {
 public:
  std::vector<unsigned> embedding = numbers(vocabulary * width, 1), query = numbers(layers * width * width, 2),
                        key = numbers(layers * width * width, 3), value = numbers(layers * width * width, 4),
                        head = numbers(vocabulary * width, 5);

  // Drops positions before each step for which `forgets` returns true.
  template <class Forgets>
  std::vector<unsigned> decode(Sequence sequence, unsigned steps, Forgets&& forgets) const {
    std::vector<std::vector<unsigned>> keys[layers], values[layers];
    for (unsigned step = 0; step < steps; ++step) {
      if (forgets(step))
        for (unsigned layer = 0; layer < layers; ++layer)
          for (auto* cache : {&keys[layer], &values[layer]}) cache->erase(cache->begin(), cache->begin() + forgotten);
      const auto position = static_cast<unsigned>(keys[0].size());
      std::vector<unsigned> x(width), logits(vocabulary);
      for (unsigned d = 0; d < width; ++d) x[d] = embedding[sequence.tokens[step] * width + d] + position % 7;
      for (unsigned layer = 0; layer < layers; ++layer) {
        const std::vector<unsigned> q = product(query, layer, x, 97);
        keys[layer].push_back(product(key, layer, x, 89));
        values[layer].push_back(product(value, layer, x, 83));
        std::vector<unsigned> sum(width, 0);
        for (unsigned t = 0; t <= position; ++t) {
          const unsigned score = dot(q.data(), keys[layer][t].data()) % 17;
          for (unsigned d = 0; d < width; ++d) sum[d] += score * values[layer][t][d];
        }
        for (unsigned d = 0; d < width; ++d) x[d] = (x[d] + sum[d]) % 251;
      }
      for (unsigned v = 0; v < vocabulary; ++v) logits[v] = dot(head.data() + v * width, x.data()) % 1009;
      sequence.go_on(logits.data());
    }
    return sequence.tokens;
  }

 private:
  static std::vector<unsigned> product(const std::vector<unsigned>& matrix, unsigned layer,
                                       const std::vector<unsigned>& x, unsigned modulus) {
    std::vector<unsigned> out(width);
    for (unsigned d = 0; d < width; ++d) out[d] = dot(matrix.data() + (layer * width + d) * width, x.data()) % modulus;
    return out;
  }
};

// The data of a step's host function. A null sequence stands for an empty row.
struct Choice {
  const unsigned* logits;
  Row* rows;
  Sequence* sequences[most];
};

void CUDART_CB choose(void* argument) {
  const Choice& choice = *static_cast<Choice*>(argument);
  for (unsigned i = 0; i < most; ++i) {
    if (choice.sequences[i] == nullptr) continue;
    Sequence& sequence = *choice.sequences[i];
    sequence.go_on(choice.logits + i * vocabulary);
    choice.rows[i].token = sequence.tokens[sequence.done];
  }
}

// The model on the device, with one set of buffers for every batch size.
class Decoder {
 public:
  explicit Decoder(const Reference& reference)
      : rows(graphs::pinned_buffer<Row>(most)), logits(graphs::pinned_buffer<unsigned>(most * vocabulary)) {
    weights_ = {check::device_copy(reference.embedding), check::device_copy(reference.query),
                check::device_copy(reference.key), check::device_copy(reference.value),
                check::device_copy(reference.head)};
    rows_ = check::device_buffer<Row>(most);
    x_ = check::device_buffer<unsigned>(most * width);
    queries_ = check::device_buffer<unsigned>(most * width);
    logits_ = check::device_buffer<unsigned>(most * vocabulary);
    for (unsigned** cache : {&keys_, &values_})
      *cache = check::device_copy(std::vector<unsigned>(cached(layers, 0, 0)));
    CHECK_CUDA(cudaDeviceSynchronize());  // the copies may not be complete yet
    Choice nothing{logits, rows, {}};
    put_forgetting(1, 0);
    put_step(1, 0, nothing);  // launches each kernel once, which loads it
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  ~Decoder() {
    for (unsigned* buffer : {weights_.embedding, weights_.query, weights_.key, weights_.value, weights_.head, x_,
                             queries_, logits_, keys_, values_})
      CHECK_CUDA(cudaFree(buffer));
    CHECK_CUDA(cudaFree(rows_));
    CHECK_CUDA(cudaFreeHost(rows));
    CHECK_CUDA(cudaFreeHost(logits));
    CHECK_CUDA(cudaStreamDestroy(stream));
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Issues a step of `batch` rows into the stream, captured or not. `offset` is added to each row's position.
  void put_step(unsigned batch, unsigned offset, Choice& choice) const {
    CHECK_CUDA(cudaMemcpyAsync(rows_, rows, batch * sizeof(Row), cudaMemcpyHostToDevice, stream));
    embed<<<batch, width, 0, stream>>>(rows_, offset, weights_, x_);
    for (unsigned layer = 0; layer < layers; ++layer) {
      project<<<batch, width, 0, stream>>>(rows_, offset, layer, weights_, x_, queries_, keys_, values_);
      attend<<<batch, context, 0, stream>>>(rows_, offset, layer, queries_, keys_, values_, x_);
    }
    find_logits<<<batch, vocabulary, 0, stream>>>(weights_, x_, logits_);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpyAsync(logits, logits_, batch * vocabulary * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaLaunchHostFunc(stream, choose, &choice));
  }

  // The device still has the last step's rows.
  void put_forgetting(unsigned batch, unsigned count) const {
    for (unsigned layer = 0; layer < layers; ++layer)
      for (unsigned* cache : {keys_, values_}) forget<<<batch, width, 0, stream>>>(rows_, layer, count, cache);
    CHECK_CUDA(cudaGetLastError());
  }

  Row* const rows;         // pinned; the rows of the next step
  unsigned* const logits;  // pinned
  const cudaStream_t stream = graphs::create_stream();

 private:
  Weights weights_{};
  Row* rows_ = nullptr;
  unsigned *x_ = nullptr, *queries_ = nullptr, *logits_ = nullptr;
  unsigned *keys_ = nullptr, *values_ = nullptr;  // indexed by layer, slot and position
};

void compare(const char* what, unsigned number, const std::vector<unsigned>& got,
             const std::vector<unsigned>& expected) {
  CHECK_THAT(got.size() == expected.size(), "%s, sequence %u: there are %zu tokens, not %zu.", what, number, got.size(),
             expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    CHECK_THAT(got[i] == expected[i], "%s, sequence %u: token %zu is %u, not %u.", what, number, i, got[i],
               expected[i]);
}

void print_tokens(unsigned number, const std::vector<unsigned>& tokens) {
  std::printf("sequence %u: %zu tokens, checksum %016llx:", number, tokens.size(),
              static_cast<unsigned long long>(check::checksum(tokens)));
  for (size_t i = prompt; i < tokens.size() && i < prompt + 10; ++i) std::printf(" %u", tokens[i]);
  std::printf("\n");
}

// ---- requests that come and go --------------------------------------------------------------------------------------

struct Request {
  explicit Request(unsigned number_of_it)
      : number(number_of_it),
        steps(12 + 3 * static_cast<unsigned>(check::small_number(number_of_it, 17))),
        sequence(number_of_it) {}
  unsigned number, steps;
  Sequence sequence;
};

// Processes up to eight requests at a time. `run` runs a step of a batch, and waits for it.
class Server {
 public:
  Server(const Decoder& decoder, unsigned requests) : decoder_(decoder), choice_{decoder.logits, decoder.rows, {}} {
    for (unsigned i = 0; i < requests; ++i) waiting_.emplace_back(std::make_unique<Request>(i));
    tokens_.resize(requests);
  }

  Choice& choice() { return choice_; }

  template <class F>
  std::vector<std::vector<unsigned>> serve(F&& run) {
    while (const unsigned active = admit()) {
      unsigned batch = 1;
      while (batch < active) batch *= 2;
      prepare(batch);
      run(batch);
      ++steps_of_[batch];
      retire();
    }
    return tokens_;
  }
  unsigned steps_of(unsigned batch) const {
    const auto found = steps_of_.find(batch);
    return found == steps_of_.end() ? 0 : found->second;
  }

 private:
  struct InWork {
    std::unique_ptr<Request> request;
    unsigned slot;
  };

  unsigned admit() {
    while (!waiting_.empty() && in_work_.size() < most) {
      in_work_.push_back({std::move(waiting_.front()), free_slots_.back()});
      waiting_.pop_front();
      free_slots_.pop_back();
    }
    return static_cast<unsigned>(in_work_.size());
  }

  void prepare(unsigned batch) {
    for (unsigned i = 0; i < most; ++i) choice_.sequences[i] = nullptr;
    for (unsigned i = 0; i < batch; ++i) decoder_.rows[i] = {0, 0, most};
    for (unsigned i = 0; i < in_work_.size(); ++i) {
      Sequence& sequence = in_work_[i].request->sequence;
      choice_.sequences[i] = &sequence;
      decoder_.rows[i] = {sequence.tokens[sequence.done], sequence.done, in_work_[i].slot};
    }
  }

  void retire() {
    std::vector<InWork> going_on;
    for (InWork& one : in_work_) {
      if (one.request->sequence.done < one.request->steps) {
        going_on.push_back(std::move(one));
        continue;
      }
      tokens_[one.request->number] = one.request->sequence.tokens;
      free_slots_.push_back(one.slot);
    }
    in_work_ = std::move(going_on);
  }

  const Decoder& decoder_;
  Choice choice_;
  std::deque<std::unique_ptr<Request>> waiting_;
  std::vector<InWork> in_work_;
  std::vector<unsigned> free_slots_ = {7, 6, 5, 4, 3, 2, 1, 0};
  std::vector<std::vector<unsigned>> tokens_;
  std::map<unsigned, unsigned> steps_of_;
};

void served(const Reference& reference, const Decoder& decoder, unsigned requests) {
  Server server(decoder, requests), eager(decoder, requests);
  std::map<unsigned, cudaGraphExec_t> execs;
  for (unsigned batch = most; batch >= 1; batch /= 2) {
    graphs::begin(decoder.stream);
    decoder.put_step(batch, 0, server.choice());
    const cudaGraph_t graph = graphs::end(decoder.stream);
    std::printf("served: batch %u: %s\n", batch, graphs::summary(graph).c_str());
    execs[batch] = graphs::instantiate(graph);
    CHECK_CUDA(cudaGraphDestroy(graph));
  }
  const auto tokens = server.serve([&](unsigned batch) { graphs::launch_and_wait(execs.at(batch), decoder.stream); });
  const auto eager_tokens = eager.serve([&](unsigned batch) {
    decoder.put_step(batch, 0, eager.choice());
    CHECK_CUDA(cudaStreamSynchronize(decoder.stream));
  });
  for (unsigned i = 0; i < requests; ++i) {
    const Request request(i);
    const auto expected = reference.decode(request.sequence, request.steps, [](unsigned) { return false; });
    compare("Served by graphs", i, tokens[i], expected);
    compare("Served without graphs", i, eager_tokens[i], expected);
    print_tokens(i, expected);
  }
  std::printf("served: %u, %u, %u and %u steps of the four sizes\n", server.steps_of(8), server.steps_of(4),
              server.steps_of(2), server.steps_of(1));
  for (const auto& [batch, exec] : execs) CHECK_CUDA(cudaGraphExecDestroy(exec));
}

// ---- one executable, updated for each step --------------------------------------------------------------------------

constexpr unsigned period = 20;
bool forgets(unsigned step) { return step != 0 && step % period == 0; }

// Sequences that advance together. The host waits for no launch, since a step's host function writes the next step's
// rows.
class Lockstep {
 public:
  Lockstep(const Decoder& decoder, unsigned batch, unsigned steps) : decoder_(decoder), batch_(batch), steps_(steps) {
    Choice choice{decoder.logits, decoder.rows, {}};
    for (unsigned i = 0; i < batch; ++i) sequences_.emplace_back(batch * 100 + i);
    for (unsigned i = 0; i < batch; ++i) {
      choice.sequences[i] = &sequences_[i];
      decoder.rows[i] = {sequences_[i].tokens[0], 0, i};
    }
    choices_.assign(steps, choice);
  }

  // `step` issues one step's work into the stream, or launches a graph with it.
  template <class F>
  void run(F&& step) {
    unsigned position = 0;
    for (unsigned i = 0; i < steps_; ++i, ++position) {
      const unsigned count = position;
      if (forgets(i)) position -= forgotten;
      step(i, [&, i, position] {
        if (forgets(i)) decoder_.put_forgetting(batch_, count);
        decoder_.put_step(batch_, position, choices_[i]);
      });
    }
    CHECK_CUDA(cudaStreamSynchronize(decoder_.stream));
  }

  void compare_with(const char* what, const Reference& reference) const {
    for (unsigned i = 0; i < batch_; ++i)
      compare(what, i, sequences_[i].tokens, reference.decode(Sequence(batch_ * 100 + i), steps_, forgets));
  }
  const std::vector<Sequence>& sequences() const { return sequences_; }

 private:
  const Decoder& decoder_;
  const unsigned batch_, steps_;
  std::vector<Sequence> sequences_;
  std::vector<Choice> choices_;  // one element per step
};

// The executable graph, updated to the newest step.
class Updated {
 public:
  explicit Updated(cudaStream_t stream) : stream_(stream) {}
  ~Updated() {
    if (exec_ != nullptr) CHECK_CUDA(cudaGraphExecDestroy(exec_));
  }
  Updated(const Updated&) = delete;
  Updated& operator=(const Updated&) = delete;

  template <class F>
  void run(F&& put) {
    graphs::begin(stream_);
    put();
    const cudaGraph_t graph = graphs::end(stream_);
    if (exec_ == nullptr || !update(graph)) exec_ = graphs::instantiate(graph);
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaGraphLaunch(exec_, stream_));
  }
  unsigned updates() const { return updates_; }
  unsigned failures() const { return failures_; }

 private:
  // If the update fails, the executable is destroyed. Its last launch may still run.
  bool update(cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo info{};
    const cudaError_t result = cudaGraphExecUpdate(exec_, graph, &info);
    if (result == cudaSuccess) {
      ++updates_;
      return true;
    }
    CHECK_THAT(result == cudaErrorGraphExecUpdateFailure, "cudaGraphExecUpdate gave %s.", cudaGetErrorName(result));
    (void)cudaGetLastError();
    ++failures_;
    CHECK_CUDA(cudaGraphExecDestroy(exec_));
    return false;
  }

  const cudaStream_t stream_;
  cudaGraphExec_t exec_ = nullptr;
  unsigned updates_ = 0, failures_ = 0;
};

void updated(const Reference& reference, const Decoder& decoder, unsigned steps) {
  Updated graph(decoder.stream);
  unsigned changes = 0;  // steps whose graph has other nodes than the previous step
  for (const unsigned batch : {1u, 8u, 2u, 4u}) {
    Lockstep by_graph(decoder, batch, steps);
    by_graph.run([&](unsigned step, auto put) {
      graph.run(put);
      changes += step != 0 && forgets(step) != forgets(step - 1);
    });
    by_graph.compare_with("Updated for each step", reference);
    Lockstep eager(decoder, batch, steps);
    eager.run([](unsigned, auto put) { put(); });
    eager.compare_with("Step by step without graphs", reference);
    for (unsigned i = 0; i < batch; ++i) print_tokens(batch * 100 + i, by_graph.sequences()[i].tokens);
  }
  CHECK_THAT(graph.failures() >= changes && graph.updates() > 0,
             "Of the updates %u failed and %u succeeded, where %u graphs had other nodes.", graph.failures(),
             graph.updates(), changes);
  std::printf("updated: %u steps of each batch size\n", steps);
}

}  // namespace

int main(int argc, char** argv) {
  long requests = 24, steps = 70;
  check::parse(argc, argv, "graphs_decoder", "decodes with graphs",
               {{"--requests", "sequences that are served", &requests, 1, 100000},
                {"--steps", "steps of each batch size that is updated", &steps, 1, 90}});
  const Reference reference;
  const Decoder decoder(reference);
  served(reference, decoder, static_cast<unsigned>(requests));
  updated(reference, decoder, static_cast<unsigned>(steps));
  return 0;
}
