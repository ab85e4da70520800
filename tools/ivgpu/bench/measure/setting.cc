#include "tools/ivgpu/bench/measure/setting.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace ivgpu::bench {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string processor_of(const std::string& cpuinfo) {
  const std::size_t line = cpuinfo.find("model name");
  const std::size_t colon = line == std::string::npos ? line : cpuinfo.find(": ", line);
  if (colon == std::string::npos) return "an unknown processor";
  return cpuinfo.substr(colon + 2, cpuinfo.find('\n', colon) - colon - 2);
}

bool mps_is_there() {
  const std::string named = environment("CUDA_MPS_PIPE_DIRECTORY");
  std::error_code none;
  return fs::exists(fs::path(named.empty() ? "/tmp/nvidia-mps" : named) / "control", none);
}

Setting this_machine(bool simulated) {
  const std::string cpuinfo = read_file("/proc/cpuinfo");
  const std::string driver = first_line("/sys/module/nvidia/version");
  utsname system{};
  uname(&system);
  Setting s;
  s.version = IVGPU_VERSION;
  s.made = now();
  s.processor = processor_of(cpuinfo);
  s.processors = std::thread::hardware_concurrency();
  s.virtual_machine = cpuinfo.find(" hypervisor") != std::string::npos;
  s.kernel = system.release;
  s.driver = simulated ? "the simulated GPU" : "driver " + (driver.empty() ? "unknown" : driver);
  s.simulated = simulated;
  s.policy = !simulated && mps_is_there() ? "MPS" : "time slices";
  // The switches of the guest library in the environment of the measured programs.
  for (const char* name : {"IVGPU_OFF", "IVGPU_COPY_THREADS"}) s.switches.emplace_back(name, environment(name));
  return s;
}

}  // namespace ivgpu::bench
