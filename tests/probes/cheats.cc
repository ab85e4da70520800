// Asks a GPU and NVML what a look for workers that submit without a turn must know (host/broker/turn_watch.h): which cheat
// beside two that take turns is named by samples, whether large copies and new contexts are; and what the making and the
// end of a context cost a process that launches and waits. docs/design/028-turns.md has the answers.
//
// usage: probe_cheats [LIBCUDA [LIBNVIDIA-ML [copies]]]. It takes some five minutes, with `copies` half of that.
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "host/broker/nvml.h"
#include "tests/probes/programs.h"

namespace {

using namespace probe;

constexpr int most = 4;  // children

struct Told {
  std::atomic<unsigned> process[most];
  std::atomic<std::uint64_t> done[most];
  // What another process does, and how long launches and waits took meanwhile.
  enum Phase : int { Without, Making, With, Ending, phases };
  std::atomic<int> phase{Without};
  std::atomic<double> us[phases];
  std::atomic<std::uint64_t> launches[phases];
  char gpu[32];
};
Told* told = nullptr;
std::string nvml_path = "libnvidia-ml.so.1";

std::string text(const char* format, auto... values) {
  char all[256];
  std::snprintf(all, sizeof all, format, values...);
  return all;
}

// ---- samples -------------------------------------------------------------------------------------------------------

struct Named {
  int looks = 0;
  unsigned least = 100, most = 0;
  int enough = 0;              // looks with a quarter or more
  double second_after_s = -1;  // the second of these
};

// Looks as the broker does, and tells how often each child was named. Process 0: any other.
std::map<unsigned, Named> look(double seconds, int& looks) {
  std::map<unsigned, Named> all;
  std::string why;
  const auto library = nvml::Library::load(nvml_path, why);
  const auto device = library != nullptr ? library->find(told->gpu, why) : nullptr;
  if (device == nullptr) {
    row("NVML", why);
    return all;
  }
  std::int64_t newest =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const auto begin = Clock::now();
  for (looks = 0; us_since(begin) < seconds * 1e6; ++looks) {
    usleep(100'000);
    std::vector<nvml::Work> work;
    if (!library->work(device, newest, work, why)) row("NVML's samples", why);
    std::map<unsigned, unsigned> percent;
    for (const nvml::Work& one : work) {
      newest = std::max(newest, one.stamp_us);
      const bool is_child = std::ranges::any_of(told->process, [&](const auto& p) { return p == one.pid; });
      percent[is_child ? one.pid : 0] = one.percent;
    }
    for (const auto& [process, part] : percent) {
      Named& named = all[process];
      ++named.looks;
      named.least = std::min(named.least, part), named.most = std::max(named.most, part);
      if (part >= 25 && ++named.enough == 2) named.second_after_s = us_since(begin) / 1e6;
    }
  }
  return all;
}

std::string in_words(const Named& named, int looks) {
  if (named.looks == 0) return text("is named in none of %d looks", looks);
  return text("is named in %d of %d looks, with %u to %u %%; a second time with 25 %% after %.2f s", named.looks, looks,
              named.least, named.most, named.second_after_s);
}

using Work = std::function<void(int index, const Gpu&)>;

// Children of these names work for so long, and are looked at.
void ask_samples(Shared& shared, const std::string& what, const std::vector<std::string>& names, const Work& work) {
  constexpr double seconds = 4;
  for (auto& process : told->process) process = 0;
  for (auto& done : told->done) done = 0;
  processes(
      static_cast<int>(names.size()), shared,
      [&](int index, const std::function<void()>& ready) {
        const Gpu gpu;
        told->process[index] = static_cast<unsigned>(getpid());
        ready();
        work(index, gpu);
      },
      0.5,
      [&] {
        std::vector<std::uint64_t> before;
        for (const auto& done : told->done) before.push_back(done);
        int looks = 0;
        auto named = look(seconds, looks);
        row(what, "");
        for (std::size_t i = 0; i < names.size(); ++i) {
          const double each_s = static_cast<double>(told->done[i] - before[i]) / seconds;
          row("  " + names[i], text("%.0f pieces a second; ", each_s) + in_words(named[told->process[i]], looks));
        }
        if (named.contains(0)) row("  others", in_words(named[0], looks));
      });
}

// Launches and waits for a millisecond, then it is the other's turn.
void take_turns(Shared& shared, int index, const Gpu& gpu) {
  while (shared.stop == 0) {
    if (shared.turn.load(std::memory_order_acquire) != index) continue;
    for (const auto begin = Clock::now(); us_since(begin) < 1000; ++told->done[index]) {
      gpu.launch(nullptr);
      MUST(CU(cuCtxSynchronize)());
    }
    shared.turn.store(1 - index, std::memory_order_release);
  }
}

// Kernels of `kernel_us`, in so much of its own time.
void cheat(const Shared& shared, const Gpu& gpu, unsigned kernel_us, unsigned percent, int index = 2) {
  for (; shared.stop == 0; ++told->done[index]) {
    gpu.busy(nullptr, kernel_us);
    MUST(CU(cuCtxSynchronize)());
    if (percent < 100) usleep(kernel_us * (100 - percent) / percent);
  }
}

void ask_cheat(Shared& shared, unsigned kernel_us, unsigned percent) {
  const std::string what =
      percent == 0 ? "two take turns" : text("the same beside kernels of %u us, %u %% of the time", kernel_us, percent);
  std::vector<std::string> names = {"the first", "the second"};
  if (percent != 0) names.emplace_back("the cheat");
  ask_samples(shared, what, names, [&](int index, const Gpu& gpu) {
    if (index < 2) return take_turns(shared, index, gpu);
    cheat(shared, gpu, kernel_us, percent);
  });
}

struct Copies {
  const char* name;
  std::size_t bytes;
  bool pinned, to_gpu;
};

// Who works beside copies: kernels of so many microseconds, in so much of the time; or two that take turns.
struct Company {
  unsigned kernel_us = 0, percent = 0;
  bool turns = false;
};

void ask_copies(Shared& shared, const Copies& copies, const Company& company) {
  std::vector<std::string> names = {"the first", "the second", copies.name};
  std::string what = "copies beside two that take turns";
  if (!company.turns) {
    names.erase(names.begin());
    names[0] = text("kernels of %u us, %u %% of the time", company.kernel_us, company.percent);
    what = "copies beside kernels";
    if (company.percent == 0) names.erase(names.begin()), what = "copies alone";
  }
  const int copier = static_cast<int>(names.size()) - 1;
  ask_samples(shared, what, names, [&](int index, const Gpu& gpu) {
    if (index != copier && company.turns) return take_turns(shared, index, gpu);
    if (index != copier) return cheat(shared, gpu, company.kernel_us, company.percent, index);
    CUdeviceptr d = 0;
    void* h = nullptr;
    std::vector<char> pageable(copies.pinned ? 0 : copies.bytes, 1);
    MUST(CU(cuMemAlloc_v2)(&d, copies.bytes));
    if (copies.pinned) MUST(CU(cuMemHostAlloc)(&h, copies.bytes, 0));
    if (!copies.pinned) h = pageable.data();
    for (; shared.stop == 0; ++told->done[copier]) {
      MUST(copies.to_gpu ? CU(cuMemcpyHtoDAsync_v2)(d, h, copies.bytes, nullptr)
                         : CU(cuMemcpyDtoHAsync_v2)(h, d, copies.bytes, nullptr));
      MUST(CU(cuCtxSynchronize)());
    }
  });
}

// ---- contexts ------------------------------------------------------------------------------------------------------

// A process that makes a context, has it for a while and ends: a process of its own, as a worker is.
void one_context(bool releases) {
  int pipes[2];
  char byte = 0;
  if (pipe(pipes) != 0) std::exit(1);
  told->phase = Told::Making;
  const pid_t child = fork();
  if (child == 0) {
    const Gpu gpu;
    gpu.launch(nullptr);
    MUST(CU(cuCtxSynchronize)());
    if (write(pipes[1], &byte, 1) != 1) std::exit(1);
    usleep(200'000);
    told->phase = Told::Ending;
    if (releases) MUST(CU(cuDevicePrimaryCtxRelease_v2)(0));
    _exit(0);
  }
  if (read(pipes[0], &byte, 1) != 1) std::exit(1);
  told->phase = Told::With;
  waitpid(child, nullptr, 0);
  told->phase = Told::Without;
  close(pipes[0]), close(pipes[1]);
  usleep(200'000);
}

void ask_contexts(Shared& shared, bool releases) {
  constexpr int times = 8;
  for (int p = 0; p < Told::phases; ++p) told->us[p] = 0, told->launches[p] = 0;
  told->phase = Told::Without;
  processes(
      1, shared,
      [&](int, const std::function<void()>& ready) {
        const Gpu gpu;
        ready();
        while (shared.stop == 0) {
          const int phase = told->phase;
          const auto begin = Clock::now();
          gpu.launch(nullptr);
          MUST(CU(cuCtxSynchronize)());
          told->us[phase] = told->us[phase] + us_since(begin);
          ++told->launches[phase];
        }
      },
      0.5,
      [&] {
        for (int i = 0; i < times; ++i) one_context(releases);
      });
  const auto mean = [](int phase) { return told->us[phase] / static_cast<double>(told->launches[phase]); };
  const double alone = mean(Told::Without);
  row(releases ? "a context is made, and released" : "a context is made, and its process ends",
      text("launch and wait: %.2f us, beside an idle context %.2f us", alone, mean(Told::With)));
  for (const auto& [phase, name] : {std::pair{Told::Making, "its making"}, {Told::Ending, "its end"}}) {
    const double all = told->us[phase] / times / 1000;
    const double lost = all - static_cast<double>(told->launches[phase]) * alone / times / 1000;
    row(std::string("  ") + name,
        text("takes %.1f ms, in which a process that launches and waits loses %.1f ms", all, lost));
  }
}

void find_gpu() {
  MUST(CU(cuInit)(0));
  MUST(CU(cuDeviceGetPCIBusId)(told->gpu, sizeof told->gpu, 0));
}

}  // namespace

int main(int argc, char** argv) {
  if (!probe::open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  if (argc > 2) nvml_path = argv[2];
  Shared* const shared = share();
  told = new (mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Told;
  std::printf("| question | answer |\n|---|---|\n");
  probe::ask_alone("gpu", find_gpu);
  const bool copies_alone = argc > 3 && std::string(argv[3]) == "copies";
  for (const bool releases : {true, false})
    if (!copies_alone) probe::ask_alone("contexts", [&] { ask_contexts(*shared, releases); });
  for (const auto& [kernel_us, percent] : std::vector<std::pair<unsigned, unsigned>>{
           {0, 0}, {2000, 100}, {200, 100}, {20, 100}, {2000, 50}, {2000, 25}, {2000, 10}, {200, 50}, {200, 10}})
    if (!copies_alone) probe::ask_alone("cheat", [&] { ask_cheat(*shared, kernel_us, percent); });
  for (const Copies& copies :
       {Copies{"16 MiB to the GPU", 16 * mib, true, true}, Copies{"16 MiB from the GPU", 16 * mib, true, false},
        Copies{"1 MiB to the GPU", mib, true, true},
        Copies{"16 MiB of pageable memory to the GPU", 16 * mib, false, true},
        Copies{"16 MiB from the GPU to pageable memory", 16 * mib, false, false}})
    for (const Company& company :
         {Company{}, Company{500, 100}, Company{100, 50}, Company{100, 10}, Company{100, 1}, Company{0, 0, true}})
      probe::ask_alone("copies", [&] { ask_copies(*shared, copies, company); });
}
