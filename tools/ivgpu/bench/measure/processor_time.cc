#include "tools/ivgpu/bench/measure/processor_time.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace ivgpu::bench {
namespace {

namespace fs = std::filesystem;

// Driver 580.159.04 gives its threads names that begin with "cuda"; no other threads have such names.
bool is_the_drivers(const std::string& name) { return name.starts_with("cuda"); }

// Adds nothing if the thread has ended. /proc/PID/task/TID/schedstat begins with nanoseconds of processor time.
void add_thread(const fs::path& task, ProcessorTime& used) {
  double nanoseconds = 0;
  std::string name;
  std::ifstream(task / "schedstat") >> nanoseconds;
  std::ifstream(task / "comm") >> name;
  used.all += nanoseconds / 1e9;
  if (!is_the_drivers(name)) used.own += nanoseconds / 1e9;
}

}  // namespace

ProcessorTime processor_time_of(const std::vector<pid_t>& processes) {
  ProcessorTime used;
  for (const pid_t process : processes) {
    std::error_code gone;
    for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task", gone))
      add_thread(task.path(), used);
  }
  return used;
}

}  // namespace ivgpu::bench
