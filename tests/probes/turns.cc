// Asks a driver what a scheduler of turns must know: what looks at a stream cost, what marks cost, which work of two
// processes overlaps, what a change of the context takes, and what NVML says of processes.
// docs/design/028-turns.md has the answers of an H200. usage: probe_turns [LIBCUDA]
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/probes/programs.h"

namespace {

using namespace probe;

// The median and the 99th percentile of `samples` runs, in microseconds.
std::string quantiles(const std::function<void()>& run, int samples = 3000) {
  std::vector<double> all;
  for (int i = 0; i < samples; ++i) {
    const auto begin = Clock::now();
    run();
    all.push_back(us_since(begin));
  }
  std::sort(all.begin(), all.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.2f, p99 %.2f us", all[all.size() / 2], all[all.size() * 99 / 100]);
  return text;
}

// ---- one process ---------------------------------------------------------------------------------------------------

// Launch and wait in this thread while another looks.
void ask_looks(const Gpu& gpu) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  MUST(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  const auto launch_and_wait = [&] {
    gpu.launch(stream);
    MUST(CU(cuStreamSynchronize)(stream));
  };
  const auto beside = [&](const std::string& what, const std::function<void()>& look, int pause_us) {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> looks{0};
    std::thread looking([&] {
      MUST(CU(cuCtxSetCurrent)(gpu.context));
      while (!stop) {
        look();
        ++looks;
        for (const auto begin = Clock::now(); us_since(begin) < pause_us;) __builtin_ia32_pause();
      }
    });
    const std::string times = quantiles(launch_and_wait);
    row("launch and wait, another thread: " + what, times + ", " + std::to_string(looks) + " looks");
    stop = true;
    looking.join();
  };
  quantiles(launch_and_wait);
  row("launch and wait", quantiles(launch_and_wait));
  beside(
      "nothing", [] {}, 0);
  beside(
      "cuCtxSynchronize again and again", [] { MUST(CU(cuCtxSynchronize)()); }, 0);
  beside(
      "cuStreamQuery again and again",
      [&] {
        CU(cuStreamQuery)
        (stream);
      },
      0);
  beside(
      "cuStreamQuery, each 20 us",
      [&] {
        CU(cuStreamQuery)
        (stream);
      },
      20);
  beside(
      "cuEventQuery again and again",
      [&] {
        CU(cuEventQuery)
        (event);
      },
      0);
  row("cuStreamQuery, idle", quantiles([&] { CU(cuStreamQuery)(stream); }));
  row("cuEventQuery, done", quantiles([&] { CU(cuEventQuery)(event); }));
  row("cuCtxSynchronize, idle", quantiles([&] { CU(cuCtxSynchronize)(); }));
}

// What a query of one stream says of work in another.
void ask_queries(const Gpu& gpu) {
  CUstream apart = nullptr, joined = nullptr;
  MUST(CU(cuStreamCreate)(&apart, CU_STREAM_NON_BLOCKING));
  MUST(CU(cuStreamCreate)(&joined, CU_STREAM_DEFAULT));
  const auto ask = [&](const std::string& where, CUstream busy) {
    gpu.busy(busy, 20000);
    for (const auto& [name, asked] : {std::pair<const char*, CUstream>{"legacy", CU_STREAM_LEGACY},
                                      {"per-thread", CU_STREAM_PER_THREAD},
                                      {"non-blocking", apart},
                                      {"blocking", joined}})
      row("work in " + where + ", asked: " + name, CU(cuStreamQuery)(asked) == CUDA_SUCCESS ? "done" : "busy");
    MUST(CU(cuCtxSynchronize)());
  };
  ask("a non-blocking stream", apart);
  ask("a blocking stream", joined);
  ask("the legacy stream", CU_STREAM_LEGACY);
  ask("the per-thread stream", CU_STREAM_PER_THREAD);
}

// Launches without a wait, with a mark behind every n-th.
void ask_marks(const Gpu& gpu) {
  CUstream apart = nullptr;
  CUevent event = nullptr;
  void* host = nullptr;
  CUdeviceptr word = 0;
  MUST(CU(cuStreamCreate)(&apart, CU_STREAM_NON_BLOCKING));
  MUST(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  MUST(CU(cuMemHostAlloc)(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  MUST(CU(cuMemHostGetDevicePointer_v2)(&word, host, 0));
  const auto many = [&](const std::string& what, CUstream stream, int every, const std::function<void()>& mark) {
    double best = 1e9, issue = 1e9;
    for (int run = 0; run < 5; ++run) {
      const auto begin = Clock::now();
      for (int i = 0; i < 20000; ++i) {
        gpu.launch(stream);
        if (every != 0 && i % every == 0) mark();
        if (i == 500) issue = std::min(issue, us_since(begin) / 500);
      }
      MUST(CU(cuCtxSynchronize)());
      best = std::min(best, us_since(begin) / 20000);
    }
    char text[64];
    std::snprintf(text, sizeof text, "%.3f us each, issued %.3f", best, issue);
    row("launches, " + what, text);
  };
  for (const auto& [name, stream] : {std::pair<const char*, CUstream>{"non-blocking", apart}, {"legacy", nullptr}}) {
    const std::string where = std::string(", ") + name + " stream";
    many("no mark" + where, stream, 0, [] {});
    const auto record = [&, s = stream] { MUST(CU(cuEventRecord)(event, s)); };
    many("an event behind each" + where, stream, 1, record);
    many("an event behind every 8th" + where, stream, 8, record);
    many("an event behind every 64th" + where, stream, 64, record);
    many("a word behind each" + where, stream, 1,
         [&, s = stream] { MUST(CU(cuStreamWriteValue32_v2)(s, word, 1, CU_STREAM_WRITE_VALUE_DEFAULT)); });
    many("a word behind every 8th" + where, stream, 8,
         [&, s = stream] { MUST(CU(cuStreamWriteValue32_v2)(s, word, 1, CU_STREAM_WRITE_VALUE_DEFAULT)); });
  }
}

// ---- two processes -------------------------------------------------------------------------------------------------

// What one does alone, and beside a process whose kernels never end.
void ask_overlap(Shared& shared) {
  struct Work {
    const char* name;
    std::function<void(const Gpu&, CUdeviceptr, void*)> run;
  };
  const std::vector<Work> works = {
      {"a kernel and a wait", [](const Gpu& g, CUdeviceptr, void*) { g.launch(nullptr); }},
      {"a copy of 4 bytes to the GPU",
       [](const Gpu&, CUdeviceptr d, void* h) { MUST(CU(cuMemcpyHtoDAsync_v2)(d, h, 4, nullptr)); }},
      {"a copy of 16 MiB to the GPU",
       [](const Gpu&, CUdeviceptr d, void* h) { MUST(CU(cuMemcpyHtoDAsync_v2)(d, h, 16 * mib, nullptr)); }},
      {"a copy of 16 MiB from the GPU",
       [](const Gpu&, CUdeviceptr d, void* h) { MUST(CU(cuMemcpyDtoHAsync_v2)(h, d, 16 * mib, nullptr)); }},
      {"a copy of 16 MiB on the GPU",
       [](const Gpu&, CUdeviceptr d, void*) { MUST(CU(cuMemcpyDtoDAsync_v2)(d, d + 16 * mib, 16 * mib, nullptr)); }},
      {"a memset of 16 MiB",
       [](const Gpu&, CUdeviceptr d, void*) { MUST(CU(cuMemsetD8Async)(d, 1, 16 * mib, nullptr)); }},
      {"an allocation of 2 MiB and its free", [](const Gpu&, CUdeviceptr, void*) {
         CUdeviceptr more = 0;
         MUST(CU(cuMemAlloc_v2)(&more, 2 * mib));
         MUST(CU(cuMemFree_v2)(more));
       }}};
  for (const Work& work : works) {
    for (const int count : {1, 2}) {
      processes(
          count, shared,
          [&](int index, const std::function<void()>& ready) {
            const Gpu gpu;
            CUdeviceptr d = 0;
            void* h = nullptr;
            MUST(CU(cuMemAlloc_v2)(&d, 32 * mib));
            MUST(CU(cuMemHostAlloc)(&h, 16 * mib, 0));
            ready();
            int done = 0;
            if (index == 1) {  // kernels of 500 us without a gap
              const auto begin = Clock::now();
              for (; shared.stop == 0; ++done) {
                gpu.busy(nullptr, 500);
                if (done % 4 == 3) MUST(CU(cuCtxSynchronize)());
              }
              shared.result[1] = done * 500 / us_since(begin);
              return;
            }
            std::vector<double> all;
            while (shared.stop == 0) {
              const auto begin = Clock::now();
              work.run(gpu, d, h);
              MUST(CU(cuCtxSynchronize)());
              all.push_back(us_since(begin));
            }
            std::sort(all.begin(), all.end());
            shared.result[0] = all[all.size() / 2];
          },
          0.6);
      char text[96];
      std::snprintf(text, sizeof text, "%.1f us%s", shared.result[0].load(),
                    count == 1 ? "" : (", the kernels get " + std::to_string(shared.result[1].load())).c_str());
      row(std::string(work.name) + (count == 1 ? ", alone" : ", beside kernels of 0.5 ms"), text);
    }
  }
}

// Passing a turn: the time from the word to the end of the first launch and wait, with `pause` between the two turns.
void ask_changes(Shared& shared) {
  processes(
      2, shared,
      [&](int index, const std::function<void()>& ready) {
        const Gpu gpu;
        gpu.launch(nullptr);
        MUST(CU(cuCtxSynchronize)());
        ready();
        std::vector<double> first, second;
        while (shared.stop == 0) {
          if (shared.turn.load(std::memory_order_acquire) != index) continue;
          for (std::vector<double>* into : {&first, &second}) {
            const auto begin = Clock::now();
            gpu.launch(nullptr);
            MUST(CU(cuCtxSynchronize)());
            into->push_back(us_since(begin));
          }
          for (const auto begin = Clock::now(); us_since(begin) < 300;) {
            gpu.launch(nullptr);
            MUST(CU(cuCtxSynchronize)());
          }
          shared.turn.store(1 - index, std::memory_order_release);
        }
        if (index != 0) return;
        std::sort(first.begin(), first.end()), std::sort(second.begin(), second.end());
        char text[96];
        std::snprintf(text, sizeof text, "first %.1f (p99 %.1f), second %.1f (p99 %.1f) us", first[first.size() / 2],
                      first[first.size() * 99 / 100], second[second.size() / 2], second[second.size() * 99 / 100]);
        row("launch and wait after the turn has come", text);
      },
      1);
}

// ---- NVML ----------------------------------------------------------------------------------------------------------

struct ProcessMemory {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct ProcessSample {
  unsigned pid;
  unsigned long long stamp;
  unsigned sm, memory, encoder, decoder;
};

template <class F>
F nvml(const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library, name));
}

using Utilization = int (*)(void*, ProcessSample*, unsigned*, unsigned long long);

// What NVML's samples say of processes whose use of the GPU is known, asked as a broker would ask: four times a second,
// for what is newer than the newest seen. `busy_us`: of 10 ms, by each.
void ask_samples(Shared& shared, Utilization utilization, void* device, const std::vector<unsigned>& busy_us) {
  const auto child = [&](int index, const std::function<void()>& ready) {
    const Gpu gpu;
    row("  child " + std::to_string(index), "is process " + std::to_string(getpid()) + ", busy for " +
                                                std::to_string(busy_us[static_cast<std::size_t>(index)]) +
                                                " us of 10 ms");
    ready();
    while (shared.stop == 0) {
      const auto begin = Clock::now();
      gpu.busy(nullptr, busy_us[static_cast<std::size_t>(index)]);
      MUST(CU(cuCtxSynchronize)());
      if (const double left = 10'000 - us_since(begin); left > 0) usleep(static_cast<useconds_t>(left));
    }
  };
  processes(static_cast<int>(busy_us.size()), shared, child, 4, [&] {
    unsigned long long newest = 0;
    for (int look = 0; look < 12; ++look) {
      ProcessSample samples[256];
      unsigned count = 256;
      const int r = utilization(device, samples, &count, newest);
      std::string text = "result " + std::to_string(r);
      for (unsigned i = 0; r == 0 && i < count; ++i) {
        text += "; " + std::to_string(samples[i].pid) + ": " + std::to_string(samples[i].sm) + " % at +" +
                std::to_string(newest == 0 ? 0 : (samples[i].stamp - newest) / 1000) + " ms";
      }
      for (unsigned i = 0; r == 0 && i < count; ++i) newest = std::max(newest, samples[i].stamp);
      row("  NVML's samples since the newest, look " + std::to_string(look), text);
      usleep(250'000);
    }
  });
}

void ask_nvml(Shared& shared) {
  const auto init = nvml<int (*)()>("nvmlInit_v2");
  const auto handle = nvml<int (*)(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  const auto running = nvml<int (*)(void*, unsigned*, ProcessMemory*)>("nvmlDeviceGetComputeRunningProcesses_v3");
  const auto utilization = nvml<Utilization>("nvmlDeviceGetProcessUtilization");
  void* device = nullptr;
  if (init == nullptr || handle == nullptr || running == nullptr || utilization == nullptr || init() != 0 ||
      handle(0, &device) != 0)
    return row("NVML", "not there");
  const auto list = [&](const std::string& when) {
    ProcessMemory all[64];
    unsigned count = 64;
    const auto begin = Clock::now();
    const int r = running(device, &count, all);
    row("NVML's processes " + when, "result " + std::to_string(r) + ", " + std::to_string(count) + " in " +
                                        std::to_string(us_since(begin)) + " us");
    for (unsigned i = 0; r == 0 && i < count; ++i)
      row("  process " + std::to_string(all[i].pid), std::to_string(all[i].used >> 20) + " MiB");
  };
  list("before");
  for (const std::size_t more : {std::size_t{0}, 512 * mib})
    processes(
        2, shared,
        [&](int index, const std::function<void()>& ready) {
          const Gpu gpu;
          CUdeviceptr d = 0;
          if (more != 0) MUST(CU(cuMemAlloc_v2)(&d, more * static_cast<std::size_t>(index + 1)));
          row("  child " + std::to_string(index), "is process " + std::to_string(getpid()));
          ready();
          while (shared.stop == 0) {
            gpu.busy(nullptr, 1000);
            MUST(CU(cuCtxSynchronize)());
            if (index == 1) usleep(3000);
          }
        },
        2.5,
        [&] {
          list("with two contexts and " + std::to_string(more >> 20) + " MiB, and twice as much");
          ProcessSample samples[256];
          unsigned count = 256;
          const auto begin = Clock::now();
          const int r = utilization(device, samples, &count, 0);
          row("NVML's utilization", "result " + std::to_string(r) + ", " + std::to_string(count) + " samples in " +
                                        std::to_string(us_since(begin)) + " us");
          for (unsigned i = 0; r == 0 && i < count; ++i)
            row("  process " + std::to_string(samples[i].pid),
                std::to_string(samples[i].sm) + " %, at " + std::to_string(samples[i].stamp));
        });
  for (const auto& busy_us : {std::vector<unsigned>{10'000}, {10'000, 10'000}, {10'000, 1'000}, {10'000, 100}, {1'000}})
    ask_samples(shared, utilization, device, busy_us);
}

}  // namespace

int main(int argc, char** argv) {
  if (!probe::open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  Shared* const shared = share();
  std::printf("| question | answer |\n|---|---|\n");
  probe::ask_alone("NVML", [&] { ask_nvml(*shared); });
  probe::ask_alone("changes", [&] { ask_changes(*shared); });
  probe::ask_alone("overlap", [&] { ask_overlap(*shared); });
  for (const auto& [name, ask] : {std::pair<const char*, void (*)(const Gpu&)>{"looks", ask_looks},
                                  {"queries", ask_queries},
                                  {"marks", ask_marks}})
    probe::ask_alone(name, [ask = ask] { ask(Gpu()); });
}
