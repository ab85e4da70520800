// Asks a driver what a scheduler of turns must know of streams that wait for a value in memory: what queries say of them,
// which calls they hold up, what events around such a wait cost, and what the wait of one process costs another.
// docs/design/043-value-waits.md has the answers of an H200. usage: probe_value_waits [LIBCUDA [LIBNVIDIA-ML]]
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/broker/nvml.h"
#include "tests/probes/programs.h"

namespace {

using namespace probe;

std::string text(const char* format, auto... values) {
  char all[256];
  std::snprintf(all, sizeof all, format, values...);
  return all;
}

// A word that host and GPU see.
struct Word {
  volatile std::uint32_t* host = nullptr;
  CUdeviceptr device = 0;
  std::uint32_t next = 0;

  Word() {
    void* at = nullptr;
    MUST(CU(cuMemHostAlloc)(&at, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(CU(cuMemHostGetDevicePointer_v2)(&device, at, 0));
    host = static_cast<volatile std::uint32_t*>(at);
    *host = 0;
  }
  void await_in(CUstream stream) { MUST(CU(cuStreamWaitValue32_v2)(stream, device, ++next, CU_STREAM_WAIT_VALUE_EQ)); }
  void write() { *host = next; }
};

struct Streams {
  CUstream apart = nullptr, other_apart = nullptr, joined = nullptr, other_joined = nullptr;
  Streams() {
    for (CUstream* one : {&apart, &other_apart}) MUST(CU(cuStreamCreate)(one, CU_STREAM_NON_BLOCKING));
    for (CUstream* one : {&joined, &other_joined}) MUST(CU(cuStreamCreate)(one, CU_STREAM_DEFAULT));
  }
  std::vector<std::pair<const char*, CUstream>> waiters() const {
    return {{"a non-blocking stream", apart}, {"a blocking stream", joined}, {"the legacy stream", CU_STREAM_LEGACY}};
  }
};

const char* say(CUresult r) { return r == CUDA_SUCCESS ? "done" : r == CUDA_ERROR_NOT_READY ? "busy" : "an error"; }

// ---- one process ---------------------------------------------------------------------------------------------------

CUevent new_event() {
  CUevent event = nullptr;
  MUST(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

void ask_queries(const Gpu& gpu) {
  const Streams s;
  Word word;
  const CUevent before = new_event(), behind = new_event(), joined = new_event();
  for (const auto& [where, waiter] : s.waiters()) {
    MUST(CU(cuEventRecord)(before, waiter));
    word.await_in(waiter);
    MUST(CU(cuEventRecord)(behind, waiter));
    MUST(CU(cuStreamWaitEvent)(s.other_apart, behind, 0));
    MUST(CU(cuEventRecord)(joined, s.other_apart));
    usleep(2000);
    std::string all = text("event before %s, behind %s", say(CU(cuEventQuery)(before)), say(CU(cuEventQuery)(behind)));
    all += text(", in a stream that waits for it %s", say(CU(cuEventQuery)(joined)));
    for (const auto& [name, asked] : {std::pair<const char*, CUstream>{"itself", waiter},
                                      {"legacy", CU_STREAM_LEGACY},
                                      {"per-thread", CU_STREAM_PER_THREAD},
                                      {"another blocking", s.other_joined}})
      all += text(", %s %s", name, say(CU(cuStreamQuery)(asked)));
    row(std::string("a value is awaited in ") + where, all);
    word.write();
    MUST(CU(cuCtxSynchronize)());
  }
  gpu.launch(nullptr);
  MUST(CU(cuCtxSynchronize)());
}

// For how long another thread's wait for the whole context lasts.
void ask_whole_context(const Gpu& gpu) {
  const Streams s;
  Word word;
  const auto ask = [&](const char* what, bool wait_first) {
    std::atomic<double> took{-1};
    if (wait_first) word.await_in(s.apart);
    gpu.busy(s.other_apart, 20000);
    std::thread asking([&] {
      MUST(CU(cuCtxSetCurrent)(gpu.context));
      const auto begin = Clock::now();
      MUST(CU(cuCtxSynchronize)());
      took = us_since(begin);
    });
    usleep(5000);
    if (!wait_first) word.await_in(s.apart);
    usleep(95000);
    word.write();
    asking.join();
    row(what, text("%.1f ms", took / 1000));
    MUST(CU(cuCtxSynchronize)());
  };
  ask("cuCtxSynchronize beside a kernel of 20 ms, a value that is awaited before is written after 100 ms", true);
  ask("the same, it is awaited 5 ms after that call has begun", false);
}

// Which calls return only once the value is written, 30 ms after the call.
void ask_which_calls_wait(const Gpu& gpu) {
  const Streams s;
  Word word;
  CUdeviceptr d = 0;
  std::uint32_t h = 0;
  void* pinned = nullptr;
  MUST(CU(cuMemAlloc_v2)(&d, 4 * mib));
  MUST(CU(cuMemHostAlloc)(&pinned, 4096, 0));
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"a launch and a wait in another non-blocking stream",
       [&] {
         gpu.launch(s.other_apart);
         MUST(CU(cuStreamSynchronize)(s.other_apart));
       }},
      {"a launch into another blocking stream", [&] { gpu.launch(s.other_joined); }},
      {"an allocation of 4 MiB",
       [&] {
         CUdeviceptr more = 0;
         MUST(CU(cuMemAlloc_v2)(&more, 4 * mib));
         (void)more;
       }},
      {"a free of 4 MiB",
       [&] {
         MUST(CU(cuMemFree_v2)(d));
         d = 0;
       }},
      {"cuMemcpyHtoD", [&] { MUST(CU(cuMemcpyHtoD_v2)(d, &h, 4)); }},
      {"cuMemcpyDtoH", [&] { MUST(CU(cuMemcpyDtoH_v2)(&h, d, 4)); }},
      {"cuMemcpyHtoDAsync of pinned memory in another stream",
       [&] { MUST(CU(cuMemcpyHtoDAsync_v2)(d, pinned, 4, s.other_apart)); }},
      {"cuMemsetD8", [&] { MUST(CU(cuMemsetD8_v2)(d, 1, 4)); }},
      {"cuModuleLoadData and a launch",
       [&] {
         CUmodule module = nullptr;
         CUfunction f = nullptr;
         MUST(CU(cuModuleLoadData)(&module, ptx));
         MUST(CU(cuModuleGetFunction)(&f, module, "empty"));
         MUST(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s.other_apart, nullptr, nullptr));
       }},
      {"cuStreamCreate and its end",
       [&] {
         CUstream one = nullptr;
         MUST(CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING));
         MUST(CU(cuStreamDestroy_v2)(one));
       }},
      {"cuMemHostAlloc", [&] {
         void* more = nullptr;
         MUST(CU(cuMemHostAlloc)(&more, 1 << 20, 0));
       }}};
  for (const auto& [name, call] : calls) {
    std::string all;
    for (const auto& [where, waiter] : s.waiters()) {
      if (d == 0) MUST(CU(cuMemAlloc_v2)(&d, 4 * mib));
      word.await_in(waiter);
      std::thread writing([&] {
        usleep(30000);
        word.write();
      });
      const auto begin = Clock::now();
      call();
      const double took = us_since(begin);
      writing.join();
      MUST(CU(cuCtxSynchronize)());
      all += text("%s%s %s (%.0f us)", all.empty() ? "" : "; ", where, took > 25000 ? "waits" : "goes on", took);
    }
    row(std::string("beside a value that is awaited in, ") + name, all);
  }
}

// Waits for values that are there, alone and with an event before and behind each.
void ask_costs() {
  const Streams s;
  Word word;
  const CUevent before = new_event(), behind = new_event();
  const auto many = [&](const char* what, const std::function<void()>& one) {
    double best = 1e9;
    for (int run = 0; run < 5; ++run) {
      const auto begin = Clock::now();
      for (int i = 0; i < 500; ++i) one();
      best = std::min(best, us_since(begin) / 500);
      MUST(CU(cuCtxSynchronize)());
    }
    row(what, text("%.2f us", best));
  };
  word.next = 1, word.write();
  const auto await = [&] { MUST(CU(cuStreamWaitValue32_v2)(s.apart, word.device, 1, CU_STREAM_WAIT_VALUE_EQ)); };
  many("a wait for a value that is there, issued", await);
  many("the same with an event before and one behind", [&] {
    MUST(CU(cuEventRecord)(before, s.apart));
    await();
    MUST(CU(cuEventRecord)(behind, s.apart));
  });
  MUST(CU(cuCtxSynchronize)());
  word.await_in(s.apart);
  MUST(CU(cuEventRecord)(behind, s.apart));
  const auto query = [&](const char* what, const std::function<void()>& one) {
    const auto begin = Clock::now();
    for (int i = 0; i < 1000; ++i) one();
    row(what, text("%.2f us", us_since(begin) / 1000));
  };
  query("cuEventQuery of an event behind one that is not there", [&] { CU(cuEventQuery)(behind); });
  query("cuStreamQuery of that stream", [&] { CU(cuStreamQuery)(s.apart); });
  query("cuStreamQuery of a stream without work", [&] { CU(cuStreamQuery)(s.other_apart); });
  word.write();
  MUST(CU(cuCtxSynchronize)());
}

// ---- two processes -------------------------------------------------------------------------------------------------

// What the other process does while the first launches and waits.
struct Beside {
  const char* name;
  int streams;      // in which a value is awaited; 0: it has a context, and that is all
  bool in_legacy;   // one of them
  unsigned ask_us;  // an event behind the wait is asked about so often; 0: never
};

void ask_beside(Shared& shared) {
  for (const Beside& beside : {Beside{"has a context", 0, false, 0},
                               {"awaits a value in a stream", 1, false, 0},
                               {"awaits one in the legacy stream", 1, true, 0},
                               {"awaits one in each of eight streams", 8, false, 0},
                               {"awaits one in a stream, and asks about it each 10 us", 1, false, 10},
                               {"the same each ms", 1, false, 1000}}) {
    processes(
        2, shared,
        [&](int index, const std::function<void()>& ready) {
          const Gpu gpu;
          Word word;
          const CUevent behind = new_event();
          gpu.launch(nullptr);
          MUST(CU(cuCtxSynchronize)());
          ready();
          if (index == 1) {
            for (int i = 0; i < beside.streams; ++i) {
              CUstream stream = nullptr;
              if (!beside.in_legacy) MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
              MUST(CU(cuStreamWaitValue32_v2)(stream, word.device, 1, CU_STREAM_WAIT_VALUE_EQ));
              MUST(CU(cuEventRecord)(behind, stream));
            }
            while (shared.stop == 0) {
              if (beside.ask_us == 0) {
                usleep(1000);
                continue;
              }
              CU(cuEventQuery)(behind);
              for (const auto begin = Clock::now(); us_since(begin) < beside.ask_us;) __builtin_ia32_pause();
            }
            *word.host = 1;
            MUST(CU(cuCtxSynchronize)());
            return;
          }
          usleep(100'000);
          std::vector<double> all;
          while (shared.stop == 0) {
            const auto begin = Clock::now();
            gpu.launch(nullptr);
            MUST(CU(cuCtxSynchronize)());
            all.push_back(us_since(begin));
          }
          std::sort(all.begin(), all.end());
          row(std::string("launch and wait beside a process that ") + beside.name,
              text("%.1f us, p99 %.1f, most %.0f", all[all.size() / 2], all[all.size() * 99 / 100], all.back()));
        },
        0.8);
  }
}

// What NVML's samples say of a process that awaits a value, beside one that `works` or not.
void ask_samples(Shared& shared, const std::string& nvml_path, bool works) {
  struct Told {
    std::atomic<unsigned> process[2];
    char gpu[32];
  };
  auto* const told =
      static_cast<Told*>(mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  processes(
      2, shared,
      [&](int index, const std::function<void()>& ready) {
        const Gpu gpu;
        Word word;
        if (index == 0) MUST(CU(cuDeviceGetPCIBusId)(told->gpu, sizeof told->gpu, 0));
        told->process[index] = static_cast<unsigned>(getpid());
        if (index == 1) word.await_in(nullptr);
        ready();
        while (shared.stop == 0) {
          if (index == 0 && works) {
            gpu.launch(nullptr);
            MUST(CU(cuCtxSynchronize)());
          } else {
            usleep(1000);
          }
        }
        word.write();
        MUST(CU(cuCtxSynchronize)());
      },
      0.5,
      [&] {
        std::string why;
        const auto library = nvml::Library::load(nvml_path, why);
        const auto device = library != nullptr ? library->find(told->gpu, why) : nullptr;
        if (device == nullptr) return row("NVML", why);
        int looks = 0, named[2] = {}, other = 0;
        unsigned most[2] = {};
        std::int64_t newest =
            std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
        for (const auto begin = Clock::now(); us_since(begin) < 3e6; ++looks) {
          usleep(200'000);
          std::vector<nvml::Work> work;
          if (!library->work(device, newest, work, why)) row("NVML's samples", why);
          for (const nvml::Work& one : work) {
            newest = std::max(newest, one.stamp_us);
            const bool first = one.pid == told->process[0], second = one.pid == told->process[1];
            if (!first && !second) ++other;
            if (first) ++named[0], most[0] = std::max(most[0], one.percent);
            if (second) ++named[1], most[1] = std::max(most[1], one.percent);
          }
        }
        row(std::string("NVML, of a process that awaits a value, beside one that ") +
                (works ? "launches and waits" : "does nothing"),
            text("of %d looks it is named in %d, with %u %% at most; the other in %d, with %u %%; others %d", looks,
                 named[1], most[1], named[0], most[0], other));
      });
}

}  // namespace

int main(int argc, char** argv) {
  if (!open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  Shared& shared = *share();
  std::printf("| question | answer |\n|---|---|\n");
  ask_alone("queries", [] { ask_queries(Gpu()); });
  ask_alone("whole context", [] { ask_whole_context(Gpu()); });
  ask_alone("costs", [] {
    const Gpu gpu;
    ask_costs();
  });
  ask_beside(shared);
  for (const bool works : {true, false}) ask_samples(shared, argc > 2 ? argv[2] : "libnvidia-ml.so.1", works);
  ask_alone("which calls wait", [] { ask_which_calls_wait(Gpu()); });
}
