// What a guest program feels of how it is woken, and how soon a killed one's slot is free again: for VMs with the
// kernel module and without it.
//
// usage: waking LIBCUDA figures           a line for each figure, p50 in us, how a wait of 300 ms naps, and how many
//                                         sleeps the host ended and did not end
//        waking LIBCUDA idle              how many calls in a row the host hears at once after an idle time
//        waking LIBCUDA queued            how many short naps a wait takes while another VM keeps its work from the GPU
//        waking LIBCUDA map               how long 1 GiB of pinned memory takes, in ms: by hand, in a larger region
//        waking LIBCUDA hold              says "held" when it has memory of the GPU, and waits to be killed
//        waking LIBCUDA wait              says what a forked child's call gives and what it finds in memory that the GPU
//                                         reaches, then how a call ends that waits for 300 s, and the one after it
//        waking LIBCUDA poll              makes short calls and copies, which wait without a sleep, until one fails; says
//                                         how, and how the next one ends
//        waking LIBCUDA direct DISK       writes pinned memory to a disk and reads it back, past the page cache
//        waking LIBCUDA death REGION      kills a `hold` of its own; REGION: the file that the region's header is in
// `wait` and `poll` write "begun" to standard error when the session is in use.
// Exit codes: 0, 1 a call failed, 2 it could not begin.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ring/layout/module_c.h"
#include "ring/layout/region_view.h"
#include "tests/deadline.h"
#include "tests/long_kernel.h"
#include "tests/named_driver.h"

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// ---- how the guest library waits ------------------------------------------------------------------------------------
// It finds these functions before the C library's, since they are exported. In `figures` a sleep that the host is to
// end gets a limit of a minute: no look after a shorter limit makes up for a wake-up that is lost.

#define EXPORTED extern "C" __attribute__((visibility("default")))
thread_local long sleeps = 0, short_sleeps = 0;
thread_local long long longest_sleep_ns = 0;
std::atomic<long> woken{0}, not_woken{0};
bool sleeps_last = false;

constexpr long long short_sleep_ns = 50'000;
constexpr auto sleep_limit = std::chrono::nanoseconds(test_deadline);

void count_sleep(bool ended_from_outside) { ++(ended_from_outside ? woken : not_woken); }

}  // namespace

EXPORTED int nanosleep(const timespec* time, timespec* rest) {
  const long long ns = time->tv_sec * 1'000'000'000LL + time->tv_nsec;
  ++sleeps;
  short_sleeps += ns <= short_sleep_ns;
  longest_sleep_ns = std::max(longest_sleep_ns, ns);
  return static_cast<int>(syscall(SYS_nanosleep, time, rest));
}

EXPORTED int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == IVGPU_IOC_WAIT && sleeps_last) {
    auto* wait = static_cast<IvgpuModuleWait*>(argument);
    wait->timeout_ns = std::max<std::uint64_t>(wait->timeout_ns, sleep_limit.count());
  }
  const int result = static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  if (request == IVGPU_IOC_WAIT && (result == 0 || errno == ETIMEDOUT)) count_sleep(result == 0);
  return result;
}

EXPORTED int ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t*) {
  const auto limit_ms = sleeps_last ? sleep_limit / 1ms : limit->tv_sec * 1000 + limit->tv_nsec / 1'000'000;
  const int ready = poll(fds, count, static_cast<int>(limit_ms));
  if (ready >= 0) count_sleep(ready > 0);
  return ready;
}

namespace {

CUfunction kernel = nullptr;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s gave error %d\n", what, static_cast<int>(result));
  _exit(1);
}
#define DO(fn, ...) check(CU(fn)(__VA_ARGS__), #fn)

void begin() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  DO(cuInit, 0);
  DO(cuDevicePrimaryCtxRetain, &context, 0);
  DO(cuCtxSetCurrent, context);
  DO(cuModuleLoadData, &module, long_kernel_text);
  DO(cuModuleGetFunction, &kernel, module, "long_kernel");
}

void run_kernel(std::chrono::nanoseconds time) {
  unsigned long long ns = static_cast<unsigned long long>(time.count());
  void* parameters[] = {&ns};
  DO(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  DO(cuStreamSynchronize, nullptr);
}

void empty_call() {
  CUfunc_cache config{};
  DO(cuCtxGetCacheConfig, &config);
}

double median(std::vector<double>& all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

template <class Before, class F>
double median_us(int rounds, Before before, F f) {
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i) {
    before();
    const auto start = Clock::now();
    f();
    all.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return median(all);
}

void figures() {
  const auto nothing = [] {};
  sleeps_last = true;
  begin();
  run_kernel(1ms);
  std::printf("round trip %.0f\n", median_us(300, nothing, empty_call));
  std::printf("after a kernel of 3 ms %.0f\n", median_us(50, nothing, [] { run_kernel(3ms); }) - 3000);
  std::printf("call after 100 ms idle %.0f\n", median_us(
                                                   11, [] { std::this_thread::sleep_for(100ms); }, empty_call));
  const long sleeps_before = sleeps;
  longest_sleep_ns = 0;
  run_kernel(300ms);
  std::printf("timed sleeps in 300 ms %ld\nlongest nap %lld\nwoken %ld\nnot woken %ld\n", sleeps - sleeps_before,
              longest_sleep_ns / 1000, woken.load(), not_woken.load());
}

// From the third timed sleep on, sleeps grow longer than a short one, unless the worker reports that its VM waits for a
// lease. The other VM begins when it reads the first line.
void queued() {
  constexpr long many = 20;
  begin();
  run_kernel(1ms);
  std::puts("queued: it begins");
  std::fflush(stdout);
  long most = 0;
  for (const auto latest = Clock::now() + 5 * test_deadline; most < many && Clock::now() < latest;) {
    const long before = short_sleeps;
    run_kernel(1us);
    most = std::max(most, short_sleeps - before);
  }
  std::printf("queued: short timed sleeps in a wait %ld\n", most);
}

// For a second after a doorbell a broker polls often (host/broker/transport/doorbell_poller.h). Afterwards it notices a
// call by the next doorbell, or at a poll every doorbell_idle_poll_ms. With 500 ms, six immediate reactions in a row
// cannot be a coincidence.
void idle() {
  constexpr int enough = 6;
  begin();
  run_kernel(1ms);
  int in_a_row = 0;
  for (const auto latest = Clock::now() + test_deadline; in_a_row < enough && Clock::now() < latest;) {
    std::this_thread::sleep_for(1050ms);
    const auto start = Clock::now();
    empty_call();
    in_a_row = Clock::now() - start < 150ms ? in_a_row + 1 : 0;
  }
  std::printf("calls in a row heard at once after idle %d\n", in_a_row);
}

// The host allocates a page of the region at the page's first access, so the second run accesses pages that exist
// already.
void map() {
  constexpr std::size_t bytes = 1 << 30, page = 4096;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  begin();
  for (const char* const what : {"first", "next"}) {
    void* memory = nullptr;
    auto start = Clock::now();
    DO(cuMemHostAlloc, &memory, bytes, 0);
    const double allocated = since(start);
    start = Clock::now();
    for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
    std::printf("%s 1 GiB: allocated in %.1f ms, touched in %.1f ms\n", what, allocated, since(start));
    DO(cuMemFreeHost, memory);
  }
}

void hold() {
  begin();
  CUdeviceptr memory = 0;
  DO(cuMemAlloc_v2, &memory, 1 << 20);
  std::puts("held");
  std::fflush(stdout);
  pause();
}

CUresult allocate() {
  CUdeviceptr memory = 0;
  return CU(cuMemAlloc_v2)(&memory, 16);
}

// The result of `f` in a forked child, or the negative number of the signal that ended it.
template <class F>
int in_child(F f) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void wait_long() {
  begin();
  run_kernel(1ms);
  std::printf("a forked child gets %d, ", in_child([] { return static_cast<int>(allocate()); }));
  // Registered memory belongs to the program; the child gets its own copy.
  constexpr std::size_t bytes = 1 << 16;
  auto* own =
      static_cast<volatile char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  own[0] = 42;
  DO(cuMemHostRegister_v2, const_cast<char*>(own), bytes, 0);
  void* pinned = nullptr;
  DO(cuMemHostAlloc, &pinned, bytes, 0);
  std::printf("of registered memory %d, ", in_child([&] { return static_cast<int>(own[0]); }));
  std::printf("of pinned memory %d\n",
              in_child([&] { return static_cast<int>(*static_cast<volatile char*>(pinned)); }));
  unsigned long long ns = 300'000'000'000;
  void* parameters[] = {&ns};
  DO(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  std::fputs("begun\n", stderr);
  std::printf("a call that waits gives %d, ", static_cast<int>(CU(cuStreamSynchronize)(nullptr)));
  std::printf("the next one %d\n", static_cast<int>(allocate()));
}

// One thread makes short calls, another copies through staging memory.
void poll_on() {
  constexpr std::size_t bytes = 8 << 20;
  begin();
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  DO(cuCtxGetCurrent, &context);
  DO(cuMemAlloc_v2, &memory, bytes);
  std::thread copier([&] {
    DO(cuCtxSetCurrent, context);
    std::vector<char> here(bytes);
    CUresult result = CUDA_SUCCESS;
    for (bool first = true; result == CUDA_SUCCESS; first = false) {
      result = CU(cuMemcpyHtoD_v2)(memory, here.data(), bytes);
      if (result == CUDA_SUCCESS) result = CU(cuMemcpyDtoH_v2)(here.data(), memory, bytes);
      if (first) std::fputs("begun\n", stderr);
    }
    std::printf("a copy that polls gives %d\n", static_cast<int>(result));
  });
  CUresult result = CUDA_SUCCESS;
  for (CUfunc_cache config{}; result == CUDA_SUCCESS;) result = CU(cuCtxGetCacheConfig)(&config);
  copier.join();
  std::printf("a call that polls gives %d, the next one %d\n", static_cast<int>(result), static_cast<int>(allocate()));
}

// The kernel uses the pages of pinned memory for its own I/O.
int direct(const char* disk) {
  constexpr std::size_t half = 1 << 20;
  begin();
  void* memory = nullptr;
  DO(cuMemHostAlloc, &memory, 2 * half, 0);
  auto* const bytes = static_cast<unsigned char*>(memory);
  for (std::size_t k = 0; k < half; ++k) bytes[k] = static_cast<unsigned char>(k * 7 + k / 4096);
  const int fd = open(disk, O_RDWR | O_DIRECT | O_CLOEXEC);
  if (fd < 0 || pwrite(fd, bytes, half, 0) != half || pread(fd, bytes + half, half, 0) != half)
    return std::perror(disk), 1;
  if (std::memcmp(bytes, bytes + half, half) != 0) return std::puts("O_DIRECT brings other bytes"), 1;
  return std::puts("O_DIRECT from and into pinned memory works"), 0;
}

// Starts this program as `hold`, and returns when that process holds GPU memory.
pid_t start_holder(const char* own, const char* driver) {
  int said[2];
  if (pipe(said) != 0) _exit(2);
  const pid_t child = fork();
  if (child == 0) {
    dup2(said[1], STDOUT_FILENO);
    execl("/proc/self/exe", own, driver, "hold", nullptr);
    _exit(2);
  }
  close(said[1]);
  char word[5] = {};
  if (read(said[0], word, sizeof word) != sizeof word || std::memcmp(word, "held\n", 5) != 0) _exit(2);
  close(said[0]);
  return child;
}

// The state word of the slot whose owner names this process.
ring::Shared<std::uint32_t> slot_of(pid_t process, const ring::RegionView& region) {
  const auto slots = region.header()[&ring::RegionHeader::slot_count].load();
  for (std::uint32_t k = 0; k < slots && k < ring::max_slots; ++k)
    if (region.entry(k)[&ring::SlotEntry::owner].copy_out().pid == static_cast<std::uint32_t>(process))
      return region.entry(k)[&ring::SlotEntry::state];
  std::puts("killed: it has no slot");
  std::exit(1);
}

int death(const char* own, const char* driver, const char* file) {
  const int fd = open(file, O_RDWR | O_CLOEXEC);
  void* at = mmap(nullptr, ring::region_header_bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return std::perror(file), 2;
  const ring::RegionView region(static_cast<std::byte*>(at));
  std::vector<double> all;
  for (int round = 0; round < 7; ++round) {
    const pid_t holder = start_holder(own, driver);
    const auto word = slot_of(holder, region);
    const std::uint32_t claimed = word.load();
    const auto start = Clock::now();
    kill(holder, SIGKILL);
    // The epoch changes when the worker has exited and the broker has scrubbed the slot.
    while (ring::SlotWord::of(word.load()).epoch == ring::SlotWord::of(claimed).epoch) {
      if (Clock::now() - start > test_deadline) return std::puts("killed: the slot is not free after a minute"), 1;
      std::this_thread::sleep_for(500us);
    }
    all.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    waitpid(holder, nullptr, 0);
  }
  std::printf("killed: the slot is free after %.0f ms\n", median(all));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[2] : "";
  if (mode == "death" && argc == 4) return death(argv[0], argv[1], argv[3]);
  if (mode == "direct" && argc == 4 && open_library(argv[1]) != nullptr) return direct(argv[3]);
  void (*const run)() = mode == "figures"  ? figures
                        : mode == "queued" ? queued
                        : mode == "map"    ? map
                        : mode == "idle"   ? idle
                        : mode == "hold"   ? hold
                        : mode == "wait"   ? wait_long
                        : mode == "poll"   ? poll_on
                                           : nullptr;
  if (run == nullptr || open_library(argv[1]) == nullptr)
    return std::fprintf(stderr,
                        "usage: waking LIBCUDA figures|queued|map|idle|hold|wait|poll|direct DISK|death REGION\n"),
           2;
  run();
  return 0;
}
