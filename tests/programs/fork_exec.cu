// Processes that use CUDA: fork before the first CUDA call and after it, exec, spawn, libraries that use CUDA and are
// closed again, and processes that end with work in flight, by exit, abort or kill. A child must disturb neither the
// parent's memory nor its running kernel. In a forked child of a process that uses CUDA, calls return
// cudaErrorInitializationError, as with NVIDIA's driver.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "check.h"

extern char** environ;

namespace {

constexpr int n = 256;
constexpr int block = 64;

__global__ void square(const int* in, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * in[i];
}

// Gives up after a bounded count, so that a program that failed does not leave a kernel running forever.
__global__ void hold(const volatile int* released, int* gave_up) {
  for (int i = 0; i < (1 << 22); ++i) {
    if (*released != 0) return;
    __nanosleep(50000);
  }
  *gave_up = 1;
}

__global__ void spin(int* out, int turns) {
  int x = threadIdx.x;
  for (int i = 0; i < turns; ++i) x = x * 1664525 + 1013904223;
  out[threadIdx.x] = x;
}

// Uses the GPU once, from allocation to free.
void use(int salt) {
  std::vector<int> in(n), expected(n);
  for (int i = 0; i < n; ++i) {
    in[i] = i + salt;
    expected[i] = in[i] * in[i];
  }
  int* device_in = check::device_copy(in);
  int* device_out = check::device_buffer<int>(n);
  square<<<n / block, block>>>(device_in, device_out);
  CHECK_CUDA(cudaGetLastError());
  check::compare("squares", check::host_copy(device_out, n), expected);
  CHECK_CUDA(cudaFree(device_in));
  CHECK_CUDA(cudaFree(device_out));
}

// The parent's objects while children run: a buffer, and a kernel that waits for the host.
struct Held {
  int* buffer;
  int *released, *gave_up;  // pinned
  cudaStream_t stream;
};

Held hold_something() {
  Held held = {};
  CHECK_CUDA(cudaHostAlloc(&held.released, sizeof(int), cudaHostAllocMapped));
  CHECK_CUDA(cudaHostAlloc(&held.gave_up, sizeof(int), cudaHostAllocMapped));
  CHECK_CUDA(cudaStreamCreateWithFlags(&held.stream, cudaStreamNonBlocking));
  held.buffer = check::device_copy(std::vector<int>(n, 77));
  *held.released = *held.gave_up = 0;
  hold<<<1, 1, 0, held.stream>>>(held.released, held.gave_up);
  CHECK_CUDA(cudaGetLastError());
  return held;
}

void release(const Held& held) {
  CHECK_THAT(cudaStreamQuery(held.stream) == cudaErrorNotReady, "The kernel that waits for the host is gone.");
  (void)cudaGetLastError();
  __atomic_store_n(held.released, 1, __ATOMIC_RELEASE);
  CHECK_CUDA(cudaStreamSynchronize(held.stream));
  CHECK_THAT(*held.gave_up == 0, "The kernel that waits for the host did not see its word.");
  check::compare("the parent's buffer", check::host_copy(held.buffer, n), std::vector<int>(n, 77));
  CHECK_CUDA(cudaStreamDestroy(held.stream));
  CHECK_CUDA(cudaFreeHost(held.released));
  CHECK_CUDA(cudaFreeHost(held.gave_up));
  CHECK_CUDA(cudaFree(held.buffer));
}

pid_t fork_now() {
  std::fflush(stdout);
  const pid_t child = fork();
  CHECK_THAT(child >= 0, "A process could not be forked.");
  return child;
}

void expect_end(const char* what, pid_t child, bool by_signal, int wanted) {
  int status = 0;
  CHECK_THAT(waitpid(child, &status, 0) == child, "%s: no child.", what);
  const int got = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  CHECK_THAT(WIFSIGNALED(status) == by_signal && got == wanted, "%s: the child ended with %s %d, not with %s %d.", what,
             WIFEXITED(status) ? "code" : "signal", got, by_signal ? "signal" : "code", wanted);
  std::printf("fork_exec: %s: %s %d\n", what, by_signal ? "signal" : "code", got);
}

void run_as(const char* mode) {
  execl("/proc/self/exe", "fork_exec", "--child", mode, static_cast<char*>(nullptr));
  _exit(127);
}

// Runs a new program in a separate process, beside this one.
void run_child(const char* what, const char* mode, bool by_signal, int wanted) {
  const pid_t child = fork_now();
  if (child == 0) run_as(mode);
  expect_end(what, child, by_signal, wanted);
}

void fork_before_init() {
  pid_t children[3];
  for (int i = 0; i < 3; ++i) {
    children[i] = fork_now();
    if (children[i] != 0) continue;
    use(i);
    std::exit(i);
  }
  for (int i = 0; i < 3; ++i) expect_end("fork before the first call", children[i], false, i);
}

// Runs in a forked child. Returns the name of the first call whose result is not `expected`, or null.
const char* calls_in_the_child(const Held& held, cudaError_t expected) {
  void* buffer = nullptr;
  int value = 0;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&buffer, 64) != expected) return "cudaMalloc";
  if (cudaMemcpy(&value, held.buffer, sizeof(int), cudaMemcpyDeviceToHost) != expected) return "cudaMemcpy";
  if (cudaStreamCreate(&stream) != expected) return "cudaStreamCreate";
  spin<<<1, 1>>>(held.buffer, 1);
  if (cudaGetLastError() != expected) return "a launch";
  if (cudaStreamSynchronize(held.stream) != expected) return "cudaStreamSynchronize";
  if (cudaDeviceSynchronize() != expected) return "cudaDeviceSynchronize";
  if (cudaFree(held.buffer) != expected) return "cudaFree";
  return nullptr;
}

void fork_after_init() {
  const Held held = hold_something();
  for (const bool runs_exit_handlers : {false, true}) {
    const pid_t child = fork_now();
    if (child == 0) {
      const char* wrong = calls_in_the_child(held, cudaErrorInitializationError);
      if (wrong != nullptr) std::fprintf(stderr, "In a forked child, %s did not give the error.\n", wrong);
      if (!runs_exit_handlers) _exit(wrong == nullptr ? 3 : 1);
      std::exit(wrong == nullptr ? 4 : 1);
    }
    expect_end("fork after the first call", child, false, runs_exit_handlers ? 4 : 3);
  }
  const pid_t grandparent = fork_now();  // a child of the child, which calls exec and then is an ordinary program
  if (grandparent == 0) {
    const pid_t child = fork();
    if (child == 0) run_as("works");
    int status = 1;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  expect_end("exec in the child of a forked child", grandparent, false, 5);
  release(held);
  use(1000);
  std::printf("fork_exec: the parent was not disturbed\n");
}

void spawned() {
  pid_t child = 0;
  char program[] = "fork_exec", option[] = "--child", mode[] = "works";
  char* const arguments[] = {program, option, mode, nullptr};
  CHECK_THAT(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0, "Nothing was spawned.");
  expect_end("posix_spawn", child, false, 5);
}

void plugin() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  CHECK_THAT(length > 0, "/proc/self/exe cannot be read.");
  std::string name(path, static_cast<size_t>(length));
  name.replace(name.rfind('/') + 1, std::string::npos, "fork_exec_plugin.so");
  for (int round = 1; round <= 3; ++round) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    CHECK_THAT(library != nullptr, "%s", dlerror());
    const auto sum_of = reinterpret_cast<int (*)(int)>(dlsym(library, "fork_exec_plugin_sum"));
    CHECK_THAT(sum_of != nullptr, "The plugin has no function.");
    const int sum = sum_of(round * 20);
    CHECK_THAT(sum == round * 20 * 100 + round * 20 * (round * 20 - 1) / 2, "The plugin's sum is %d.", sum);
    CHECK_THAT(dlclose(library) == 0, "%s", dlerror());
    use(round);
    std::printf("fork_exec: plugin, round %d, sum %d\n", round, sum);
  }
}

void fill_queues() {
  constexpr int size = 1 << 16;
  int *pinned = nullptr, *out = nullptr;
  cudaStream_t streams[3];
  CHECK_CUDA(cudaMallocHost(&pinned, size * sizeof(int)));
  out = check::device_buffer<int>(size);
  for (cudaStream_t& stream : streams) {
    CHECK_CUDA(cudaStreamCreate(&stream));
    for (int i = 0; i < 20; ++i) {
      spin<<<1, 32, 0, stream>>>(out, 2000);
      CHECK_CUDA(cudaMemcpyAsync(pinned, out, size * sizeof(int), cudaMemcpyDeviceToHost, stream));
    }
  }
  CHECK_CUDA(cudaGetLastError());
}

int child(const std::string& mode) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (mode == "works") {
    use(2000);
    return 5;
  }
  if (mode == "plugin first") {
    plugin();
    return 6;
  }
  use(3000);
  fill_queues();
  if (mode == "return") return 7;
  if (mode == "exit") std::exit(8);
  if (mode == "_exit") _exit(9);
  if (mode == "exec") run_as("works");
  if (mode == "abort") std::abort();
  if (mode == "kill") kill(getpid(), SIGKILL);
  check::fail("There is no child called %s.", mode.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--child") == 0) return child(argv[2]);
  long rounds = 1;
  check::parse(argc, argv, "fork_exec", "forks, executes, opens libraries and ends processes",
               {{"--rounds", "times that all is done after the first call", &rounds, 1, 1000}});
  fork_before_init();
  use(0);
  for (long round = 0; round < rounds; ++round) {
    fork_after_init();
    spawned();
    plugin();
    run_child("a plugin before anything else", "plugin first", false, 6);
    const Held held = hold_something();
    run_child("return with work in flight", "return", false, 7);
    run_child("exit with work in flight", "exit", false, 8);
    run_child("_exit with work in flight", "_exit", false, 9);
    run_child("exec with work in flight", "exec", false, 5);
    run_child("abort with work in flight", "abort", true, SIGABRT);
    run_child("killed with work in flight", "kill", true, SIGKILL);
    release(held);
    use(4000);
  }
  return 0;
}
