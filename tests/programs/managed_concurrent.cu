// Managed memory that host and GPU use at the same time. Host threads attach tasks to their streams and run each task
// on the GPU, or on the processor while kernels of other threads run. A running kernel answers words that the host
// writes. Arrays are prefetched before each of many kernels.
#include <algorithm>
#include <atomic>
#include <thread>

#include "check.h"

namespace {

constexpr int block = 128, host_below = 20;  // a task with fewer rows runs on the processor

template <class T>
T* managed(size_t count) {
  void* at = nullptr;
  CHECK_CUDA(cudaMallocManaged(&at, count * sizeof(T)));
  return static_cast<T*>(at);
}

unsigned grid_of(int n) { return static_cast<unsigned>((n + block - 1) / block); }

// ---- tasks of several threads

// result = matrix * vector, with small integers, so that each sum is exact.
struct Task {
  int rows = 0;
  double *matrix = nullptr, *vector = nullptr, *result = nullptr;
};

__host__ __device__ double row_sum(const Task& t, int row) {
  double sum = 0;
  for (int column = 0; column < t.rows; ++column) sum += t.matrix[row * t.rows + column] * t.vector[column];
  return sum;
}

__global__ void multiply(Task t) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < t.rows) t.result[row] = row_sum(t, row);
}

double matrix_number(int task, size_t place) { return check::small_number(place, 3 * static_cast<unsigned>(task)); }
double vector_number(int task, size_t place) { return check::small_number(place, 3 * static_cast<unsigned>(task) + 1); }

Task make_task(int number, int most_rows) {
  Task t;
  t.rows = 1 + (number * 37 + check::small_number(static_cast<size_t>(number), 5)) % most_rows;
  const size_t rows = t.rows;
  t.matrix = managed<double>(rows * rows), t.vector = managed<double>(rows), t.result = managed<double>(rows);
  CHECK_CUDA(cudaDeviceSynchronize());
  for (size_t i = 0; i < rows * rows; ++i) t.matrix[i] = matrix_number(number, i);
  for (size_t i = 0; i < rows; ++i) t.vector[i] = vector_number(number, i), t.result[i] = -1;
  return t;
}

void attach(const Task& t, cudaStream_t stream, unsigned flags) {
  for (double* at : {t.matrix, t.vector, t.result}) CHECK_CUDA(cudaStreamAttachMemAsync(stream, at, 0, flags));
}

// The processor's tasks use one stream that has no kernels. The GPU's tasks use the thread's own stream, and no thread
// waits for them.
void run_task(const Task& t, cudaStream_t hosts, cudaStream_t own) {
  if (t.rows >= host_below) {
    attach(t, own, cudaMemAttachSingle);
    multiply<<<grid_of(t.rows), block, 0, own>>>(t);
    CHECK_CUDA(cudaGetLastError());
    return;
  }
  attach(t, hosts, cudaMemAttachHost);
  CHECK_CUDA(cudaStreamSynchronize(hosts));
  for (int row = 0; row < t.rows; ++row) t.result[row] = row_sum(t, row);
}

// Computes the result from the original numbers rather than from the memory, so that a changed matrix is detected, too.
void check_task(int number, const Task& t) {
  for (int row = 0; row < t.rows; ++row) {
    double wanted = 0;
    for (int column = 0; column < t.rows; ++column)
      wanted += matrix_number(number, static_cast<size_t>(row) * t.rows + column) * vector_number(number, column);
    CHECK_THAT(t.result[row] == wanted, "Task %d of %d rows on the %s: row %d is %g, the CPU says %g.", number, t.rows,
               t.rows < host_below ? "host" : "GPU", row, t.result[row], wanted);
  }
}

void run_tasks(int count, int thread_count, int most_rows) {
  std::vector<cudaStream_t> streams(thread_count + 1);
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreate(&stream));
  std::vector<Task> tasks(count);
  for (int i = 0; i < count; ++i) tasks[i] = make_task(i, most_rows);
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int me = 0; me < thread_count; ++me)
    threads.emplace_back([&, me] {
      for (int i = next++; i < count; i = next++) run_task(tasks[i], streams[0], streams[me + 1]);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i) check_task(i, tasks[i]);
  const auto by_host = std::count_if(tasks.begin(), tasks.end(), [](const Task& t) { return t.rows < host_below; });
  for (const Task& t : tasks)
    for (double* at : {t.matrix, t.vector, t.result}) CHECK_CUDA(cudaFree(at));
  for (cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  std::printf("managed_concurrent: %d tasks of %d threads, %td on the host: ok\n", count, thread_count, by_host);
}

// ---- a kernel that answers while it runs

constexpr int row_words = 32;
constexpr long long most_looks = 1ll << 27;  // the kernel ends after this many polls even without a question

struct Talk {
  alignas(128) volatile unsigned asked;
  alignas(128) volatile unsigned answered;
  alignas(128) volatile unsigned question[row_words];  // a cache line that host and kernel write alternately
  volatile unsigned gave_up;
};

unsigned asked_word(unsigned round, int i) { return round * 77u + static_cast<unsigned>(i); }
__host__ __device__ unsigned answer_to(unsigned word) { return word * 2654435761u + 1; }

__global__ void answer(Talk* talk, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) {
    long long looks = 0;
    while (talk->asked != round)
      if (++looks == most_looks) {
        talk->gave_up = round;
        return;
      }
    __threadfence_system();
    for (int i = 0; i < row_words; ++i) talk->question[i] = answer_to(talk->question[i]);
    __threadfence_system();
    talk->answered = round;
  }
}

void talk_with_kernel(unsigned rounds, cudaStream_t stream) {
  Talk* const talk = managed<Talk>(1);
  answer<<<1, 1, 0, stream>>>(talk, rounds);
  CHECK_CUDA(cudaGetLastError());
  for (unsigned round = 1; round <= rounds; ++round) {
    for (int i = 0; i < row_words; ++i) talk->question[i] = asked_word(round, i);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    talk->asked = round;
    while (talk->answered != round)
      CHECK_THAT(talk->gave_up == 0, "The kernel did not see question %u.", static_cast<unsigned>(talk->gave_up));
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (int i = 0; i < row_words; ++i)
      CHECK_THAT(talk->question[i] == answer_to(asked_word(round, i)), "Answer %u: word %d is %u.", round, i,
                 static_cast<unsigned>(talk->question[i]));
  }
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaFree(talk));
  std::printf("managed_concurrent: a running kernel answers %u times: ok\n", rounds);
}

// ---- prefetches

__global__ void add(const float* from, float* to, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] += from[i];
}

void prefetch(int n, int repeats) {
  const cudaMemLocation device{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0};
  float *const from = managed<float>(n), *const to = managed<float>(n);
  const size_t bytes = n * sizeof *to;
  for (int i = 0; i < n; ++i) from[i] = 1, to[i] = 2;
  for (int i = 0; i < repeats; ++i) {
    for (float* at : {from, to}) CHECK_CUDA(cudaMemPrefetchAsync(at, bytes, device, 0, nullptr));
    add<<<grid_of(n), block>>>(from, to, n);
    CHECK_CUDA(cudaDeviceSynchronize());
  }
  CHECK_CUDA(cudaMemPrefetchAsync(to, bytes, host, 0, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i)
    CHECK_THAT(to[i] == static_cast<float>(repeats + 2), "Prefetched: element %d is %g, not %d.", i, to[i],
               repeats + 2);
  CHECK_CUDA(cudaFree(from));
  CHECK_CUDA(cudaFree(to));
  std::printf("managed_concurrent: prefetched before each of %d kernels: ok\n", repeats);
}

}  // namespace

int main(int argc, char** argv) {
  long tasks = 60, threads = 4, rows = 100, rounds = 200, n = 20000, repeats = 10;
  check::parse(argc, argv, "managed_concurrent", "managed memory that host and GPU use at the same time",
               {{"--tasks", "products of a matrix and a vector", &tasks, 1, 100000},
                {"--threads", "threads that run them", &threads, 1, 64},
                {"--rows", "most rows of a matrix", &rows, 1, 4000},
                {"--rounds", "words that a running kernel answers", &rounds, 1, 1000000},
                {"--n", "elements of an array that is prefetched", &n, 1, 1 << 28},
                {"--repeats", "kernels that change it", &repeats, 1, 10000}});
  int concurrent = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  CHECK_THAT(concurrent == 1, "The device says that host and GPU may not use managed memory at the same time.");
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  run_tasks(static_cast<int>(tasks), static_cast<int>(threads), static_cast<int>(rows));
  talk_with_kernel(static_cast<unsigned>(rounds), stream);
  prefetch(static_cast<int>(n), static_cast<int>(repeats));
  CHECK_CUDA(cudaStreamDestroy(stream));
  return 0;
}
