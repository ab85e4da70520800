// Asks a driver what a scheduler that disables channels must know: what switching costs the caller and other processes,
// what programs that wait gain from leases, and what delays a late burst. docs/design/048-gpu-time.md has the results.
// usage: probe_leases [LIBCUDA]
//
// The first process is the helper, which has no libcuda. Its children are programs; each child publishes its channels
// in shared memory.
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "host/scheduler/group_log.h"
#include "host/scheduler/rm_client.h"
#include "tests/probes/probe.h"

namespace {

host::rm::GroupLog& groups() {
  static host::rm::GroupLog log;
  return log;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  const int rc = static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  if (rc == 0) groups().note(fd, request, argument);
  return rc;
}

namespace {

using host::rm::ChannelRef;

// Sets the length of the group's time slices on the GPU. Returns the driver's status, or a negative errno.
std::int64_t set_timeslice(const host::rm::Group& group, std::uint64_t us) {
  constexpr std::uint32_t set =
      0xa06c0103;  // NVA06C_CTRL_CMD_SET_TIMESLICE, ctrla06c.h; its parameter is a number of microseconds
  host::rm::Control call{group.client, group.group, set, 0, reinterpret_cast<std::uintptr_t>(&us), sizeof us, 0};
  const auto number = _IOC(_IOC_READ | _IOC_WRITE, host::rm::escape_magic, host::rm::escape_control, sizeof call);
  return ioctl(group.fd, number, &call) == 0 ? std::int64_t{call.status} : -errno;
}
using Clock = std::chrono::steady_clock;

double now_us() { return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count(); }
void spin_until(double us) {
  while (now_us() < us) __builtin_ia32_pause();
}

const char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry empty() { ret; }
.visible .entry work(.param .u32 n, .param .u64 sink) {
  .reg .u32 %r<4>; .reg .f32 %f<3>; .reg .u64 %a; .reg .pred %p;
  ld.param.u32 %r1, [n];
  mov.f32 %f1, 0f3f800000;
again:
  fma.rn.f32 %f1, %f1, 0f3f7fffff, 0f34000000;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra again;
  ld.param.u64 %a, [sink];
  setp.eq.f32 %p, %f1, 0f00000000;
  @%p st.global.f32 [%a], %f1;
  ret;
}
.visible .entry add(.param .u64 to) {
  .reg .u64 %a; .reg .u32 %r;
  ld.param.u64 %a, [to];
  ld.global.u32 %r, [%a];
  add.u32 %r, %r, 1;
  st.global.u32 [%a], %r;
  ret;
}
.visible .entry meet(.param .u64 at, .param .u32 all) {
  .reg .u64 %a; .reg .u32 %r<4>; .reg .pred %p;
  ld.param.u64 %a, [at];
  ld.param.u32 %r1, [all];
  atom.global.add.u32 %r2, [%a], 1;
again:
  ld.volatile.global.u32 %r3, [%a];
  setp.lt.u32 %p, %r3, %r1;
  @%p bra again;
  ret;
}
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[3] = {120, 10, 0};
.visible .entry print() {
  .reg .u64 %a;
  mov.u64 %a, text;
  cvta.global.u64 %a, %a;
  {
  .param .b64 f; .param .b64 v; .param .b32 r;
  st.param.b64 [f], %a;
  st.param.b64 [v], 0;
  call.uni (r), vprintf, (f, v);
  }
  ret;
}
.visible .entry fault() {
  .reg .u64 %a; .reg .u32 %r;
  mov.u64 %a, 16;
  mov.u32 %r, 1;
  st.global.u32 [%a], %r;
  ret;
}
)";

enum Mode : int { Idle, Wait, Busy, Light, Alloc, Context, Slice, Fault, Kinds, End };

struct Child {
  std::atomic<int> mode{Idle}, answered{-1};
  std::atomic<int> order{0}, done_order{0};
  // Parameters.
  std::atomic<double> kernel_us{0}, period_us{0};
  std::atomic<int> waves{1}, kernels{1};
  std::atomic<std::uint64_t> slice_us{0};
  // Results.
  std::atomic<bool> demand{false};
  std::atomic<std::uint64_t> count{0};
  std::atomic<int> samples{0};
  float sample[1 << 18];
  std::atomic<int> result{0};
  std::uint32_t channels = 0;
  ChannelRef channel[256];
  std::atomic<pid_t> pid{0};
};
constexpr int children = 5;
struct All {
  Child child[children];
  std::uint8_t uuid[16];
  std::atomic<int> ready{0};
};
All* all;

struct Program {
  Child& me;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction empty = nullptr, work = nullptr, fault = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr sink = 0;
  int sms = 0;
  double iterations_per_us = 0;

  explicit Program(Child& child) : me(child) {
    CUdevice device = 0;
    MUST(CU(cuInit)(0));
    MUST(CU(cuDeviceGet)(&device, 0));
    MUST(CU(cuDeviceGetUuid_v2)(reinterpret_cast<CUuuid*>(all->uuid), device));
    MUST(CU(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
    MUST(CU(cuCtxSetCurrent)(context));
    MUST(CU(cuModuleLoadData)(&module, ptx));
    MUST(CU(cuModuleGetFunction)(&empty, module, "empty"));
    MUST(CU(cuModuleGetFunction)(&work, module, "work"));
    MUST(CU(cuModuleGetFunction)(&fault, module, "fault"));
    MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    MUST(CU(cuMemAlloc_v2)(&sink, 4096));
    publish();
  }
  void publish() {
    me.channels = 0;
    for (const auto& group : groups().compute_groups(0))
      for (const auto channel : group.channels)
        if (me.channels < 256) me.channel[me.channels++] = {group.client, channel.handle};
  }
  void calibrate() {
    std::uint32_t n = 1000000;
    void* p[] = {&n, &sink};
    for (int i = 0; i < 3; ++i) {
      const double t = now_us();
      MUST(CU(cuLaunchKernel)(work, static_cast<unsigned>(2 * sms), 1, 1, 1024, 1, 1, 0, stream, p, nullptr));
      MUST(CU(cuStreamSynchronize)(stream));
      iterations_per_us = n / (now_us() - t);
    }
  }
  void nothing() { MUST(CU(cuLaunchKernel)(empty, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr)); }
  void run(double us, int waves) {
    auto n = static_cast<std::uint32_t>(us * iterations_per_us / waves);
    void* p[] = {&n, &sink};
    MUST(CU(cuLaunchKernel)(work, static_cast<unsigned>(2 * sms * waves), 1, 1, 1024, 1, 1, 0, stream, p, nullptr));
  }
  void wait() { MUST(CU(cuStreamSynchronize)(stream)); }
  void note(double us) {
    const int i = me.samples.load();
    if (i < static_cast<int>(std::size(me.sample))) me.sample[i] = static_cast<float>(us), me.samples = i + 1;
  }
  bool goes_on(int mode) { return me.mode.load() == mode; }

  // A graph of eight kernels and a copy, a cooperative kernel, managed memory that both sides increment, and a line of
  // printf. Each round compares the results with the expected ones. `result`: the number of wrong results.
  void kinds() {
    CUfunction add = nullptr, meet = nullptr, print = nullptr;
    MUST(CU(cuModuleGetFunction)(&add, module, "add"));
    MUST(CU(cuModuleGetFunction)(&meet, module, "meet"));
    MUST(CU(cuModuleGetFunction)(&print, module, "print"));
    CUdeviceptr plain = 0, managed = 0, barrier = 0;
    MUST(CU(cuMemAlloc_v2)(&plain, 4096));
    MUST(CU(cuMemsetD32_v2)(plain, 0, 1024));
    MUST(CU(cuMemAlloc_v2)(&barrier, 4096));
    MUST(CU(cuMemAllocManaged)(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    auto* const shared = reinterpret_cast<volatile std::uint32_t*>(managed);
    *shared = 0;
    std::uint32_t seen = 0;
    void* to_plain[] = {&plain};
    void* to_managed[] = {&managed};
    auto blocks = static_cast<std::uint32_t>(2 * sms);
    void* to_meet[] = {&barrier, &blocks};
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    MUST(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < 8; ++i) MUST(CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, stream, to_plain, nullptr));
    MUST(CU(cuMemcpyDtoHAsync_v2)(&seen, plain, sizeof seen, stream));
    MUST(CU(cuStreamEndCapture)(stream, &graph));
    MUST(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    const int out = dup(1), file = memfd_create("printed", 0);
    dup2(file, 1);
    std::uint32_t rounds = 0;
    int wrong = 0;
    while (goes_on(Kinds)) {
      ++rounds;
      MUST(CU(cuMemsetD32Async)(barrier, 0, 1, stream));
      MUST(CU(cuGraphLaunch)(exec, stream));
      MUST(CU(cuLaunchCooperativeKernel)(meet, blocks, 1, 1, 1, 1, 1, 0, stream, to_meet));
      MUST(CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, stream, to_managed, nullptr));
      MUST(CU(cuLaunchKernel)(print, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
      wait();
      wrong += seen != 8 * rounds;
      wrong += *shared != 2 * rounds - 1;
      *shared = *shared + 1;
      me.count = rounds;
    }
    MUST(CU(cuCtxSynchronize)());
    dup2(out, 1);
    wrong += lseek(file, 0, SEEK_END) != 2 * static_cast<off_t>(rounds);
    close(file), close(out);
    me.result = wrong;
  }

  void serve() {
    CUevent event[8];
    for (CUevent& e : event) MUST(CU(cuEventCreate)(&e, CU_EVENT_DISABLE_TIMING));
    for (;;) {
      const int mode = me.mode.load();
      if (mode != Idle && me.answered.load() != mode) me.answered = mode;
      if (mode == Idle) me.answered = Idle, usleep(50);
      if (mode == Wait) {
        me.demand = true;
        while (goes_on(mode)) {
          const double t = now_us();
          nothing();
          wait();
          note(now_us() - t);
          ++me.count;
        }
        me.demand = false;
      }
      if (mode == Busy) {
        me.demand = true;
        const double us = me.kernel_us;
        const int waves = me.waves;
        for (std::uint64_t i = 0; goes_on(mode); ++i) {
          if (i >= 4) {
            MUST(CU(cuEventSynchronize)(event[i % 4]));
            ++me.count;
          }
          run(us, waves);
          MUST(CU(cuEventRecord)(event[i % 4], stream));
        }
        wait();
        me.demand = false;
      }
      if (mode == Light) {
        double next = now_us();
        while (goes_on(mode)) {
          next += me.period_us * (0.9 + 0.2 * (rand() / (RAND_MAX + 1.0)));
          spin_until(next);
          const double t = now_us();
          me.demand = true;
          for (int i = 0; i < me.kernels; ++i) run(me.kernel_us, 1);
          wait();
          me.demand = false;
          note(now_us() - t);
          ++me.count;
        }
      }
      if (mode == Alloc)
        while (goes_on(mode)) {
          CUdeviceptr p = 0;
          const double t = now_us();
          MUST(CU(cuMemAlloc_v2)(&p, 4 << 20));
          note(now_us() - t);
          MUST(CU(cuMemFree_v2)(p));
          usleep(200);
          ++me.count;
        }
      if (mode == Context)
        while (goes_on(mode)) {
          CUcontext other = nullptr;
          const double t = now_us();
          MUST(CU(cuCtxCreate_v4)(&other, nullptr, 0, 0));
          note(now_us() - t);
          MUST(CU(cuCtxDestroy_v2)(other));
          MUST(CU(cuCtxSetCurrent)(context));
          ++me.count;
        }
      if (mode == Slice) {
        int result = 0;
        for (const auto& group : groups().compute_groups(0))
          result = static_cast<int>(set_timeslice(group, me.slice_us));
        me.result = result;
        while (goes_on(mode)) usleep(50);
      }
      if (mode == Kinds) kinds();
      if (mode == Fault) {
        CU(cuLaunchKernel)(fault, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
        me.result = CU(cuStreamSynchronize)(stream);
        _exit(0);
      }
      if (mode == End) _exit(0);
    }
  }
};

std::string path = "libcuda.so.1";

void start(int i, bool first) {
  Child& c = all->child[i];
  const int ready = all->ready;
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    probe::library = dlopen(path.c_str(), RTLD_NOW);
    if (!probe::library) std::printf("%s\n", dlerror()), _exit(1);
    Program p(c);
    p.calibrate();
    ++all->ready;
    p.serve();
  }
  c.pid = pid;
  while (first && all->ready == ready) usleep(100);
}

std::unique_ptr<host::rm::GpuClient> client;
std::vector<ChannelRef> list_of(std::initializer_list<int> who) {
  std::vector<ChannelRef> found;
  for (const int i : who)
    found.insert(found.end(), all->child[i].channel, all->child[i].channel + all->child[i].channels);
  return found;
}
std::int64_t failed = 0;
int calls = 0;
double in_calls = 0;
double flip(std::span<const ChannelRef> list, bool off) {
  const double t = now_us();
  const auto r = client->switch_channels(list, off);
  if (r) failed = r;
  ++calls;
  in_calls += now_us() - t;
  return now_us() - t;
}
void set(int i, Mode mode) {
  all->child[i].mode = mode;
  for (const double end = now_us() + 3e6; all->child[i].answered != mode && now_us() < end;) usleep(20);
}
void clear() {
  for (Child& c : all->child) c.count = 0, c.samples = 0;
  failed = 0, calls = 0, in_calls = 0;
}
void all_idle() {
  for (int i = 0; i < children; ++i) all->child[i].mode = Idle;
  for (int i = 0; i < children; ++i)
    for (const double end = now_us() + 3e6; all->child[i].answered != Idle && now_us() < end;) usleep(20);
}
void slice(int i, std::uint64_t us) {
  all->child[i].slice_us = us;
  set(i, Slice);
  set(i, Idle);
}
std::string quantiles(int i) {
  Child& c = all->child[i];
  std::vector<float> v(c.sample, c.sample + c.samples);
  if (v.empty()) return "none";
  std::sort(v.begin(), v.end());
  char text[100];
  std::snprintf(text, sizeof text, "p50 %.0f p99 %.0f max %.0f us (%zu)", v[v.size() / 2], v[v.size() * 99 / 100],
                v.back(), v.size());
  return text;
}
double rate_over(int i, double us) { return static_cast<double>(all->child[i].count) / us * 1e6; }
void busy(int i, double us, int waves) {
  all->child[i].kernel_us = us, all->child[i].waves = waves;
  set(i, Busy);
}
void light(int i, double us, int kernels, double period) {
  all->child[i].kernel_us = us, all->child[i].kernels = kernels, all->child[i].period_us = period;
  set(i, Light);
}
#define SAY(...) (std::printf(__VA_ARGS__), std::fflush(stdout))

void costs() {
  for (const bool works : {false, true}) {
    if (works) busy(0, 2000, 40), busy(1, 2000, 40);
    for (const auto& [name, list] : {std::pair{"one context", list_of({0})}, {"two contexts", list_of({0, 1})}}) {
      std::vector<double> off, on;
      clear();
      for (int i = 0; i < 300; ++i) {
        off.push_back(flip(list, true));
        usleep(500);
        on.push_back(flip(list, false));
        usleep(500);
      }
      std::sort(off.begin(), off.end()), std::sort(on.begin(), on.end());
      SAY("switch %s (%zu channels, %s): off p50 %.0f p99 %.0f max %.0f, on p50 %.0f p99 %.0f max %.0f us, failed "
          "%ld\n",
          name, list.size(), works ? "busy" : "idle", off[150], off[297], off[299], on[150], on[297], on[299],
          static_cast<long>(failed));
    }
  }
  all_idle();
}

// Measures which order of disabling and enabling costs less, and what `wait` programs gain from leases.
void leases(const std::vector<int>& who, double lease, int order, double seconds, const std::vector<double>& alone,
            const char* name) {
  clear();
  std::vector<std::vector<ChannelRef>> lists;
  for (const int i : who) lists.push_back(list_of({i}));
  for (std::size_t k = 1; k < who.size(); ++k) flip(lists[k], true);
  clear();
  const double t0 = now_us();
  std::size_t holder = 0;
  for (double next = t0 + lease; now_us() - t0 < seconds * 1e6; next += lease) {
    spin_until(next);
    const std::size_t to = (holder + 1) % who.size();
    if (order == 0) flip(lists[holder], true), flip(lists[to], false);
    if (order == 1) flip(lists[to], false), flip(lists[holder], true);
    holder = to;
    next = std::max(next, now_us() - lease);
  }
  const double took = now_us() - t0;
  std::string text;
  double sum = 0;
  for (std::size_t k = 0; k < who.size(); ++k) {
    const double part = rate_over(who[k], took) / alone[k];
    sum += part;
    char one[160];
    std::snprintf(one, sizeof one, " %.3f (%s)", part, quantiles(who[k]).c_str());
    text += one;
  }
  SAY("leases %s %.0f ms, %s: sum %.3f;%s; helper %.0f %% of the time, failed %ld\n", name, lease / 1e3,
      order == 0 ? "off first" : "on first", sum, text.c_str(), 100 * in_calls / took, static_cast<long>(failed));
  for (const auto& l : lists) flip(l, false);
}

double alone(int i, double seconds) {
  usleep(50000);
  clear();
  const double t = now_us();
  usleep(static_cast<useconds_t>(seconds * 1e6));
  return rate_over(i, now_us() - t);
}

void waits() {
  set(0, Wait);
  const double a = alone(0, 0.3);
  SAY("wait alone %.0f a second, %s\n", a, quantiles(0).c_str());
  set(1, Wait);
  alone(0, 0.3);
  SAY("two wait, slices: %.3f, %s\n", alone(0, 0.3) / a, quantiles(0).c_str());
  for (const double lease : {2e3, 5e3, 10e3, 20e3})
    for (const int order : {0, 1}) leases({0, 1}, lease, order, 0.6, {a, a}, "2 wait");
  set(2, Wait), set(3, Wait);
  for (const double lease : {2e3, 5e3, 10e3}) leases({0, 1, 2, 3}, lease, 1, 0.8, {a, a, a, a}, "4 wait");
  all_idle();
  busy(1, 2000, 40);
  const double b = alone(1, 0.3);
  set(0, Wait);
  for (const double lease : {5e3, 10e3})
    for (const int order : {0, 1}) leases({0, 1}, lease, order, 0.6, {a, b}, "wait, busy 2 ms");
  all_idle();
}

void longs() {
  for (const double us : {2000., 20000.}) {
    busy(0, us, 40);
    const double a = alone(0, 0.6);
    busy(1, us, 40);
    for (const std::uint64_t s : {2048, 4000, 10000}) {
      slice(0, s), slice(1, s);
      busy(0, us, 40), busy(1, us, 40);
      const double x = alone(0, 1.0), y = rate_over(1, 1e6);
      SAY("two busy %.0f us, slices %lu: %.3f %.3f sum %.3f\n", us, static_cast<unsigned long>(s), x / a, y / a,
          (x + y) / a);
    }
    for (const double lease : {10e3, 20e3, 40e3}) leases({0, 1}, lease, 1, 1.0, {a, a}, "two busy");
    slice(0, 2048), slice(1, 2048);
    all_idle();
  }
}

void allocs() {
  set(4, Alloc);
  usleep(100000);
  clear();
  usleep(600000);
  SAY("cuMemAlloc of 4 MiB alone: %s\n", quantiles(4).c_str());
  set(0, Wait), set(1, Wait);
  clear();
  usleep(600000);
  SAY("cuMemAlloc beside two wait under slices: %s\n", quantiles(4).c_str());
  for (const double lease : {2e3, 5e3, 10e3, 20e3}) {
    leases({0, 1}, lease, 1, 0.8, {1, 1}, "beside cuMemAlloc");
    SAY("cuMemAlloc beside leases of %.0f ms: %s\n", lease / 1e3, quantiles(4).c_str());
  }
  set(4, Context);
  clear();
  usleep(800000);
  SAY("cuCtxCreate beside two wait under slices: %s\n", quantiles(4).c_str());
  leases({0, 1}, 10e3, 1, 1.0, {1, 1}, "beside cuCtxCreate");
  SAY("cuCtxCreate beside leases of 10 ms: %s\n", quantiles(4).c_str());
  all_idle();
}

// The first child is interactive. The others keep the GPU busy, and are disabled while the first child has work.
void preempt(const std::vector<int>& others, const char* name, double quiet_us) {
  std::vector<ChannelRef> list;
  for (const int i : others) {
    const auto l = list_of({i});
    list.insert(list.end(), l.begin(), l.end());
  }
  clear();
  const double t0 = now_us();
  bool off = false;
  double last = 0;
  while (now_us() - t0 < 1.5e6) {
    const bool demand = all->child[0].demand;
    if (demand) last = now_us();
    if (demand && !off) flip(list, true), off = true;
    if (!demand && off && now_us() - last > quiet_us) flip(list, false), off = false;
  }
  if (off) flip(list, false);
  const double took = now_us() - t0;
  std::string rates;
  for (const int i : others) rates += " " + std::to_string(rate_over(i, took));
  SAY("%s, preempted: light %s; others%s; helper %.1f %%, failed %ld\n", name, quantiles(0).c_str(), rates.c_str(),
      100 * in_calls / took, static_cast<long>(failed));
}

void lights() {
  struct Mix {
    const char* name;
    double us;
    int kernels;
    double period;
    double busy_us;
    int waves, others;
  };
  for (const Mix& m : {Mix{"0.5 ms each 10 beside 2 ms", 25, 20, 10e3, 2000, 40, 1},
                       {"0.5 ms each 10 beside 20 ms", 25, 20, 10e3, 20000, 40, 1},
                       {"0.5 ms each 10 beside two of 20 ms", 25, 20, 10e3, 20000, 40, 2},
                       {"5 ms each 50 beside 2 ms", 50, 100, 50e3, 2000, 40, 1},
                       {"one small each 1 ms beside 80 ms", 1, 1, 1e3, 80000, 40, 1},
                       {"one small each 1 ms beside 80 ms of one wave", 1, 1, 1e3, 80000, 1, 1},
                       {"0.5 ms each 10 beside 50 us of one wave", 25, 20, 10e3, 50, 1, 1}}) {
    light(0, m.us, m.kernels, m.period);
    alone(0, 0.6);
    SAY("%s: light alone %s\n", m.name, quantiles(0).c_str());
    all_idle();
    std::vector<int> others;
    for (int k = 1; k <= m.others; ++k) others.push_back(k), busy(k, m.busy_us, m.waves);
    SAY("%s: busy without it %.1f a second\n", m.name, alone(1, 1.0));
    for (const std::uint64_t s : {2048, 200, 1000}) {
      for (const int k : others) slice(k, s), busy(k, m.busy_us, m.waves);
      light(0, m.us, m.kernels, m.period);
      const double r = alone(1, 1.2);
      SAY("%s, slices %lu: light %s; busy %.1f\n", m.name, static_cast<unsigned long>(s), quantiles(0).c_str(), r);
      set(0, Idle);
    }
    for (const int k : others) slice(k, 2048), busy(k, m.busy_us, m.waves);
    light(0, m.us, m.kernels, m.period);
    usleep(100000);
    preempt(others, m.name, 30);
    for (const int k : others) slice(k, 10000), busy(k, m.busy_us, m.waves);
    preempt(others, (std::string(m.name) + ", slices 10 ms").c_str(), 30);
    for (const int k : others) slice(k, 2048);
    all_idle();
  }
}

std::uint64_t launches(int i, unsigned ms = 20) {
  usleep(2000);
  const auto before = all->child[i].count.load();
  usleep(ms * 1000);
  return all->child[i].count - before;
}
// Tests how the driver handles lists and repetitions. Each question has its own process, since some questions leave
// channels disabled.
void lists() {
  const auto ask = [](const char* what, int i, const std::function<void(const std::vector<ChannelRef>&)>& run) {
    set(i, Wait);
    const auto list = list_of({i});
    clear();
    run(list);
    const auto then = launches(i);
    for (int k = 0; k < 4; ++k) (void)client->switch_channels(list, false);
    SAY("%s: status %#lx, then %lu launches in 20 ms; after four more on %lu\n", what, static_cast<long>(failed), then,
        launches(i));
    set(i, Idle);
  };
  ask("off, on", 0, [](const auto& l) { flip(l, true), flip(l, false); });
  ask("off, off, on", 1, [](const auto& l) { flip(l, true), flip(l, true), flip(l, false); });
  ask("on, on, off", 2, [](const auto& l) { flip(l, false), flip(l, false), flip(l, true); });
  ask("off in two lists of four, on in one", 3,
      [](const auto& l) { flip(std::span(l).first(4), true), flip(std::span(l).subspan(4), true), flip(l, false); });
  ask("off, on by a new client", 4, [](const auto& l) {
    flip(l, true);
    client.reset();
    const int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC), gpu_fd = open("/dev/nvidia0", O_RDWR | O_CLOEXEC);
    host::rm::Uuid uuid;
    std::copy(all->uuid, all->uuid + 16, uuid.begin());
    client = host::rm::GpuClient::create(fd, gpu_fd, uuid).value();
    flip(l, false);
  });
  ask("off with a dead channel last", 0, [](const auto& l) {
    auto with = l;
    with.push_back({l[0].client, 0x12345});
    flip(with, true);
  });
  ask("off with a dead channel first", 0, [](const auto& l) {
    std::vector<ChannelRef> with{{l[0].client, 0x12345}};
    with.insert(with.end(), l.begin(), l.end());
    flip(with, true);
  });
  ask("off with a dead channel last, on", 0, [](const auto& l) {
    auto with = l;
    with.push_back({l[0].client, 0x12345});
    flip(with, true), flip(l, false);
  });
  ask("off, on with a dead channel last", 0, [](const auto& l) {
    flip(l, true);
    auto with = l;
    with.push_back({l[0].client, 0x12345});
    flip(with, false);
  });
  ask("off with a dead client last", 0, [](const auto& l) {
    auto with = l;
    with.push_back({0xc1d0ffff, 1});
    flip(with, true);
  });
  ask("one channel of eight off", 0, [](const auto& l) { flip(std::span(l).first(1), true); });
  ask("off for 10 s, on", 0, [](const auto& l) {
    flip(l, true);
    usleep(10000000);
    flip(l, false);
  });
}

void ends() {
  set(0, Wait), set(1, Wait);
  const auto faulty = list_of({3});
  flip(faulty, true);
  all->child[3].mode = Fault;
  usleep(50000);
  const int before = all->child[3].result;
  flip(faulty, false);
  usleep(300000);
  SAY("a fault queued while off: result %d before it is on, then %d\n", before, all->child[3].result.load());
  SAY("its list afterwards: status %#lx\n", static_cast<long>(client->switch_channels(faulty, true)));
  SAY("others after the fault: %lu %lu launches in 20 ms\n", launches(0), launches(1));
  // Kills a process while it is disabled, and measures the creation of a context while another process is disabled.
  const auto killed = list_of({2});
  set(2, Busy);
  flip(killed, true);
  const double t = now_us();
  kill(all->child[2].pid, SIGKILL);
  waitpid(all->child[2].pid, nullptr, 0);
  SAY("killed while off: gone after %.0f us; its list: status %#lx; others %lu launches in 20 ms\n", now_us() - t,
      static_cast<long>(client->switch_channels(killed, false)), launches(0));
  // Creates new contexts during leases, and compares the channels of the process before and after.
  all_idle();
}

// Switches each kind of work 10,000 times, while another process launches and waits.
void kinds() {
  const auto list = list_of({0});
  clear();
  all->child[0].result = -1;
  set(1, Wait), set(0, Kinds);
  constexpr int switches = 10000;
  for (int i = 0; i < switches; ++i) {
    flip(list, true);
    usleep(static_cast<useconds_t>(rand() % 500));
    flip(list, false);
    usleep(static_cast<useconds_t>(rand() % 1000));
  }
  all->child[0].mode = Idle;
  for (const double end = now_us() + 5e6; all->child[0].result < 0 && now_us() < end;) usleep(100);
  SAY("graph, cooperative kernel, managed memory, printf, off and on %d times: %lu rounds, %d wrong; last refusal "
      "%#lx\n",
      switches, all->child[0].count.load(), all->child[0].result.load(), static_cast<long>(failed));
  all_idle();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) path = argv[1];
  all = new (mmap(nullptr, sizeof(All), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) All;
  start(0, true);
  for (int i = 1; i < children; ++i) start(i, true);
  SAY("channels: %u, client %#x; child 1 client %#x\n", all->child[0].channels, all->child[0].channel[0].client,
      all->child[1].channel[0].client);
  const int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC), gpu_fd = open("/dev/nvidia0", O_RDWR | O_CLOEXEC);
  host::rm::Uuid uuid;
  std::copy(all->uuid, all->uuid + 16, uuid.begin());
  double t = now_us();
  auto made = host::rm::GpuClient::create(fd, gpu_fd, uuid);
  SAY("a client of its own, without libcuda: %s in %.0f us\n", made ? "yes" : made.error().message.c_str(),
      now_us() - t);
  if (!made) return 1;
  client = *std::move(made);
  const std::pair<const char*, void (*)()> parts[] = {{"costs", costs},   {"waits", waits},   {"longs", longs},
                                                      {"allocs", allocs}, {"lights", lights}, {"lists", lists},
                                                      {"kinds", kinds},   {"ends", ends}};
  for (const auto& [name, run] : parts) {
    if (argc > 2 && !std::strstr(argv[2], name)) continue;
    t = now_us();
    run();
    SAY("# %s: %.1f s\n", name, (now_us() - t) / 1e6);
  }
  for (Child& c : all->child) kill(c.pid, SIGKILL);
}
