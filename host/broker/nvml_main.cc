// ivgpu-nvml: tells a broker how much memory GPUs have and who holds it, by NVIDIA's management library.
//
// Process model: ivgpud starts it once a VM has a quota, and asks it twice a second. It is a process of its own since a
// call of that library can take as long as the GPU's kernel driver likes, or for ever, and a fault in it must cost no VM.
// For each line on the standard input, which names GPUs, it answers with the lines of host/broker/gpu_usage.h and "end".
// It ends with its input, or with its broker.
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "host/broker/nvml.h"

namespace {

void say_missing(const std::string& gpu, const std::string& why) {
  std::printf("missing %s %s\n", gpu.c_str(), why.c_str());
}

void tell(const nvml::Library& library, const std::string& gpu) {
  std::string why;
  const nvml::Library::Device device = library.find(gpu, why);
  if (device == nullptr) return say_missing(gpu, "NVML does not know it: " + why);
  if (const std::uint64_t total = library.memory(device, why); total != 0)
    std::printf("total %s %llu\n", gpu.c_str(), static_cast<unsigned long long>(total));
  std::vector<nvml::Process> processes;
  if (!library.processes(device, processes, why)) return say_missing(gpu, "NVML lists no processes: " + why);
  for (const nvml::Process& p : processes) {
    if (!p.told) return say_missing(gpu, "NVML does not tell how much memory a process holds");
    std::printf("use %s %u %llu\n", gpu.c_str(), p.pid, static_cast<unsigned long long>(p.bytes));
  }
}

void answer(const nvml::Library* library, const std::string& why, const std::string& question) {
  std::istringstream words(question);
  for (std::string gpu; words >> gpu;) {
    if (library != nullptr)
      tell(*library, gpu);
    else
      say_missing(gpu, "NVML cannot be asked: " + why);
  }
  std::puts("end");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fputs("ivgpu-nvml: takes the path of a libnvidia-ml.so.1, or nothing; ivgpud starts it, nobody else\n",
               stderr);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  std::string why;
  const auto library = nvml::Library::load(argc == 2 ? argv[1] : "libnvidia-ml.so.1", why);
  for (std::string question; std::getline(std::cin, question);) answer(library.get(), why, question);
  return 0;
}
