// The program of the fault tests. It works on the GPU for a while and checks every result, or waits forever, or
// allocates all memory. It prints when it has begun and how it ended.
//
// usage: faults_program LIBCUDA MODE MILLISECONDS [LABEL]
// MODE is busy, wait, exhaust, again, steady or stubborn. SIGTERM ends the work early, except in the mode wait. steady
// is busy without a time limit, and stubborn is again without a time limit. Both report their results at most twenty
// times a second. stubborn gives up after ten consecutive failed calls. Lines, each after the label:
//   begun                       the first result was right
//   right NUMBER at TIME        the number of results, all right; exit code 0, except for a report of steady or
//   stubborn
//   ended ERROR at TIME took T  a call returned this CUresult after T; exit code 3
//   lost ERROR took T           again, stubborn: a call returned this CUresult, and the program retries
//   back                        again, stubborn: calls succeed again
//   wrong ...                   a result was wrong; exit code 4
// Times are nanoseconds of CLOCK_MONOTONIC.
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "ring/api/cuda.h"

namespace {

constexpr const char* kernels = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 where)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [where];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r5, [%rd4];
  add.s32 %r5, %r5, 1;
  st.global.u32 [%rd4], %r5;
  ret;
}
.visible .global .align 4 .u32 stop;
.visible .entry spin()
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
AGAIN:
  ld.volatile.global.u32 %r1, [stop];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ret;
}
)";
constexpr unsigned block = 64, grid = 64, words = block * grid;
constexpr unsigned launches = 8;  // launches per result
constexpr std::size_t chunk = 32 << 20;

void* library = nullptr;
std::string label;
volatile std::sig_atomic_t told_to_end = 0;

template <class F>
F find(const char* name) {
  void* at = dlsym(library, name);
  if (at == nullptr) {
    std::printf("%swrong library: no %s\n", label.c_str(), name);
    std::exit(4);
  }
  return reinterpret_cast<F>(at);
}

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void say(const std::string& what) {
  const std::string line = label + what + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void say_right(unsigned results) { say("right " + std::to_string(results) + " at " + std::to_string(now())); }

// The duration of a program's work, and its reports in the meantime. The report rate is bounded, so a test that reads
// late finds only few reports.
class Work {
 public:
  // Without `milliseconds`, the work reports and never ends. Otherwise its time starts now.
  explicit Work(std::optional<long> milliseconds)
      : reports_(!milliseconds), until_(now() + milliseconds.value_or(0) * 1'000'000) {}
  bool reports() const { return reports_; }
  bool is_over() const { return told_to_end != 0 || (!reports_ && now() >= until_); }
  void report(unsigned results) {
    if (!reports_ || now() < next_) return;
    say_right(results);
    next_ = now() + 50'000'000;
  }

 private:
  const bool reports_;
  const long long until_;
  long long next_ = 0;
};

// Makes every call of the program. Exits with _Exit after an error, since a lost session needs no cleanup.
template <class F, class... A>
CUresult attempt(const char* name, A... arguments) {
  return find<F>(name)(arguments...);
}
template <class F, class... A>
void call(const char* name, A... arguments) {
  const long long start = now();
  const CUresult result = attempt<F>(name, arguments...);
  if (result == CUDA_SUCCESS) return;
  const long long end = now();
  say("ended " + std::to_string(static_cast<int>(result)) + " at " + std::to_string(end) + " took " +
      std::to_string(end - start) + " in " + name);
  std::_Exit(3);
}
#define CU(fn, ...) call<decltype(&::fn)>(#fn __VA_OPT__(, ) __VA_ARGS__)
#define TRY(fn, ...) attempt<decltype(&::fn)>(#fn __VA_OPT__(, ) __VA_ARGS__)

CUfunction function(const char* name) {
  CUmodule module = nullptr;
  CUfunction found = nullptr;
  CU(cuModuleLoadData, &module, static_cast<const void*>(kernels));
  CU(cuModuleGetFunction, &found, module, name);
  return found;
}

void start() {
  CUcontext context = nullptr;
  CU(cuInit, 0U);
  CU(cuDevicePrimaryCtxRetain, &context, 0);
  CU(cuCtxSetCurrent, context);
}

// Computes one result: copies numbers in, runs kernels on them, and copies them back.
void one_result(CUfunction add_one, CUdeviceptr at, unsigned first) {
  std::vector<unsigned> numbers(words);
  for (unsigned i = 0; i < words; ++i) numbers[i] = first + i;
  CU(cuMemcpyHtoD_v2, at, static_cast<const void*>(numbers.data()), sizeof(unsigned) * words);
  void* parameters[] = {&at};
  for (unsigned i = 0; i < launches; ++i)
    CU(cuLaunchKernel, add_one, grid, 1U, 1U, block, 1U, 1U, 0U, nullptr, parameters, nullptr);
  CU(cuMemcpyDtoH_v2, static_cast<void*>(numbers.data()), at, sizeof(unsigned) * words);
  for (unsigned i = 0; i < words; ++i) {
    if (numbers[i] == first + i + launches) continue;
    say("wrong result: word " + std::to_string(i) + " is " + std::to_string(numbers[i]));
    std::_Exit(4);
  }
}

int busy(std::optional<long> milliseconds) {
  start();
  const CUfunction add_one = function("add_one");
  CUdeviceptr at = 0;
  CU(cuMemAlloc_v2, &at, sizeof(unsigned) * words);
  Work work(milliseconds);
  unsigned results = 0;
  do {
    one_result(add_one, at, results * 7);
    if (results++ == 0) say("begun");
    work.report(results);
  } while (!work.is_over());
  CU(cuMemFree_v2, at);
  return say_right(results), 0;
}

// Makes a call that does not return while the host is alive.
int wait_for_ever() {
  start();
  const CUfunction spin = function("spin");
  CU(cuLaunchKernel, spin, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, nullptr);
  say("begun");
  CU(cuCtxSynchronize);
  say("wrong: an endless kernel has ended");
  return 4;
}

// Allocates all memory, then one byte more. The error of the last allocation must not affect later work.
int exhaust(long milliseconds) {
  start();
  std::vector<CUdeviceptr> taken;
  CUresult result = CUDA_SUCCESS;
  for (CUdeviceptr at = 0; taken.size() < 1 << 16 && (result = TRY(cuMemAlloc_v2, &at, chunk)) == CUDA_SUCCESS;)
    taken.push_back(at);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || taken.empty()) {
    say("wrong: the end of the memory is error " + std::to_string(static_cast<int>(result)));
    return 4;
  }
  for (const CUdeviceptr at : taken) CU(cuMemFree_v2, at);
  return busy(milliseconds);
}

// Retries ten times a second after an error, without giving up.
int again(std::optional<long> milliseconds) {
  constexpr unsigned most_failures = 10;  // consecutive failures, of a program that reports
  start();
  const CUfunction add_one = function("add_one");
  CUdeviceptr at = 0;
  CU(cuMemAlloc_v2, &at, sizeof(unsigned) * words);
  one_result(add_one, at, 0);
  say("begun");
  void* parameters[] = {&at};
  Work work(milliseconds);
  unsigned results = 1, failures = 0;
  CUresult before = CUDA_SUCCESS;
  while (!work.is_over() && !(work.reports() && failures == most_failures)) {
    const long long since = now();
    CUresult result = TRY(cuLaunchKernel, add_one, grid, 1U, 1U, block, 1U, 1U, 0U, nullptr, parameters, nullptr);
    if (result == CUDA_SUCCESS) result = TRY(cuCtxSynchronize);
    if (result != CUDA_SUCCESS && before == CUDA_SUCCESS)
      say("lost " + std::to_string(static_cast<int>(result)) + " took " + std::to_string(now() - since));
    if (result == CUDA_SUCCESS && before != CUDA_SUCCESS) say("back");
    before = result;
    if (result == CUDA_SUCCESS) {
      failures = 0;
      work.report(++results);
    } else {
      ++failures;
      usleep(100'000);
    }
  }
  if (before == CUDA_SUCCESS) return say_right(results), 0;
  say("ended " + std::to_string(static_cast<int>(before)) + " at " + std::to_string(now()) + " took 0");
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  if (argc > 4) label = std::string(argv[4]) + " ";
  const std::string mode = argv[2];
  if (mode != "wait") std::signal(SIGTERM, [](int) { told_to_end = 1; });
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return say(std::string("wrong library: ") + dlerror()), 4;
  const long milliseconds = std::atol(argv[3]);
  if (mode == "busy") return busy(milliseconds);
  if (mode == "steady") return busy(std::nullopt);
  if (mode == "wait") return wait_for_ever();
  if (mode == "exhaust") return exhaust(milliseconds);
  if (mode == "again") return again(milliseconds);
  if (mode == "stubborn") return again(std::nullopt);
  return 2;
}
