// Processes that exit while their other threads launch, copy and wait. The driver's exit handler runs first, and
// afterwards the threads' calls fail. The threads therefore stop before the runtime destroys objects that a call would
// use, and each process ends with its own exit code.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "check.h"

namespace {

constexpr int exit_code = 7, still_working = 8;
constexpr int launchers = 3, copiers = 1;

__global__ void add_one(int* word) { atomicAdd(word, 1); }

std::atomic<int> under_way{0}, stopped{0};

// Called by a thread whose call has failed. The thread makes no further call.
[[noreturn]] void stop() {
  ++stopped;
  for (;;) pause();
}

void launch_for_ever(int* word) {
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (long i = 0;; ++i) {
    add_one<<<1, 32, 0, stream>>>(word);
    if (cudaPeekAtLastError() != cudaSuccess) stop();
    if (i % 16 == 15 && cudaStreamSynchronize(stream) != cudaSuccess) stop();
    if (i == 32) ++under_way;
  }
}

void copy_for_ever(int* word) {
  int value = 0;
  for (long i = 0;; ++i) {
    if (cudaMemcpy(&value, word, sizeof(value), cudaMemcpyDeviceToHost) != cudaSuccess) stop();
    if (i == 4) ++under_way;
  }
}

// This exit handler is registered before the first call of CUDA, so it runs after the driver's handler. The time limit
// covers a driver that continues to serve calls.
void await_threads() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (stopped < launchers + copiers)
    if (std::chrono::steady_clock::now() > end) _exit(still_working);
}

int child() {
  CHECK_THAT(std::atexit(await_threads) == 0, "No exit handler can be registered.");
  int* const word = check::device_buffer<int>(1);
  for (int i = 0; i < launchers; ++i) std::thread(launch_for_ever, word).detach();
  for (int i = 0; i < copiers; ++i) std::thread(copy_for_ever, word).detach();
  while (under_way < launchers + copiers) std::this_thread::yield();
  std::exit(exit_code);
}

int run_child() {
  std::fflush(stdout);
  const pid_t process = fork();
  CHECK_THAT(process >= 0, "A process could not be forked.");
  if (process == 0) {
    execl("/proc/self/exe", "exit_while_launching", "--child", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  CHECK_THAT(waitpid(process, &status, 0) == process, "The child is gone.");
  CHECK_THAT(WIFEXITED(status), "A child was ended by signal %d.", WTERMSIG(status));
  return WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--child") == 0) return child();
  long rounds = 12;  // more rounds than a VM has slots
  check::parse(argc, argv, "exit_while_launching", "exits while other threads launch",
               {{"--rounds", "processes, one after the other", &rounds, 1, 100000}});
  for (long round = 0; round < rounds; ++round) {
    const int code = run_child();
    CHECK_THAT(code != still_working, "In round %ld calls still succeeded behind the driver's exit handler.", round);
    CHECK_THAT(code == exit_code, "Round %ld ended with exit code %d.", round, code);
  }
  std::printf("exit_while_launching: %ld processes, exit code %d each\n", rounds, exit_code);
  return 0;
}
