// ivgpu-nvml: queries NVIDIA's management library for the broker: GPU memory and who holds it, or the facts for guests.
//
// Process model: ivgpud starts one instance when a VM has a quota, and asks it twice a second. It starts another when a
// guest asks for facts, and asks it at most once a second. It is a separate process because a call of that library can
// block for ever in the GPU's kernel driver. A crash in it must cost no VM, either. Each input line names GPUs. The
// answer is lines as in host/broker/gpu/gpu_usage.h and host/broker/gpu/gpu_facts.h, and then "end". It exits when its
// input or its broker ends.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "host/broker/gpu/managed_memory.h"
#include "host/broker/gpu/nvml.h"
#include "ring/layout/process_start.h"

namespace {

void print_missing(const std::string& gpu, const std::string& why) {
  std::printf("missing %s %s\n", gpu.c_str(), why.c_str());
}

void print_use(const std::string& gpu, pid_t process, std::uint64_t bytes) {
  std::printf("use %s %d %llu\n", gpu.c_str(), process, static_cast<unsigned long long>(bytes));
}

// The processes that NVML lists on a GPU.
struct Listed {
  std::set<pid_t> processes;
  std::uint64_t total = 0;
};
using AllListed = std::map<std::string, Listed>;

void print_facts(const nvml::Library& library, const std::string& gpu, AllListed& listed) {
  const auto device = library.find(gpu);
  if (!device) return print_missing(gpu, "NVML does not know it: " + device.error().message);
  Listed here;
  here.total = library.memory(*device);
  if (here.total != 0) std::printf("total %s %llu\n", gpu.c_str(), static_cast<unsigned long long>(here.total));
  const auto processes = library.processes(*device);
  if (!processes) return print_missing(gpu, "NVML lists no processes: " + processes.error().message);
  for (const nvml::Process& p : *processes) {
    if (!p.answered) return print_missing(gpu, "NVML does not tell how much memory a process holds");
    print_use(gpu, static_cast<pid_t>(p.pid), p.bytes);
    here.processes.insert(static_cast<pid_t>(p.pid));
  }
  listed[gpu] = std::move(here);
}

// Managed memory may be on any of the process's GPUs, so it counts on each.
void report_managed(const AllListed& listed) {
  static auto& managed = *new host::broker::ManagedMemory;  // leaked: its thread may block in the kernel at exit
  constexpr std::chrono::seconds patience{2};
  constexpr std::uint64_t more_than_any = std::uint64_t{1} << 56;  // for a GPU of unknown size
  std::set<pid_t> all;
  for (const auto& [gpu, here] : listed) all.insert(here.processes.begin(), here.processes.end());
  if (all.empty()) return;
  const auto held = managed.look(all, patience);
  for (const auto& [gpu, here] : listed)
    for (const pid_t process : here.processes) {
      const auto& one = held.at(process);
      const std::uint64_t bytes = one.bytes.value_or(here.total != 0 ? here.total : more_than_any);
      if (bytes != 0) print_use(gpu, process, bytes);
      if (!one.unread.empty()) std::printf("unread %s %s\n", gpu.c_str(), one.unread.c_str());
    }
}

void report_facts(const nvml::Library& library, const std::string& gpu) {
  const auto device = library.find(gpu);
  if (!device) return print_missing(gpu, "NVML does not know it: " + device.error().message);
  std::fputs(host::broker::fact_lines(gpu, library.facts(*device)).c_str(), stdout);
}

void answer(const host::Result<std::unique_ptr<nvml::Library>>& library, const std::string& question) {
  std::istringstream words(question);
  AllListed listed;
  std::function<void(const nvml::Library&, const std::string&)> print =
      [&](const nvml::Library& of, const std::string& gpu) { print_facts(of, gpu, listed); };
  for (std::string gpu; words >> gpu;) {
    if (gpu == "facts")
      print = report_facts;
    else if (library)
      print(**library, gpu);
    else
      print_missing(gpu, "NVML cannot be asked: " + library.error().message);
  }
  report_managed(listed);
  std::puts("end");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  ring::start_process();
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fputs("ivgpu-nvml: takes the path of a libnvidia-ml.so.1, or nothing; ivgpud starts it, nobody else\n",
               stderr);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  const auto library = nvml::Library::load(argc == 2 ? argv[1] : "libnvidia-ml.so.1");
  for (std::string question; std::getline(std::cin, question);) answer(library, question);
  return 0;
}
