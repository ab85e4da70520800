#include "host/broker/gpu/gpu_library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace host::broker {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
}

// ivgpu's folder for guests. The loader's configuration names it if this machine is itself a VM with our device.
bool is_guests(std::string_view folder) { return folder.ends_with("/ivgpu/guest"); }

// Folders of the loader's configuration, then those of distributions and containers.
std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/etc/ld.so.conf.d", failed)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (line.starts_with('/') && !is_guests(line)) folders.emplace_back(line);
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/usr/local/nvidia/lib64",
                             "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"}) {
    folders.emplace_back(folder);
  }
  return folders;
}

Result<std::string> of_system() {
  for (const fs::path& folder : library_folders())
    if (is_file(folder / "libcuda.so.1")) return (folder / "libcuda.so.1").string();
  return Error{
      "[gpu] library = \"auto\": this machine has no libcuda.so.1; install NVIDIA's driver, or take \"sim\" for the "
      "simulated GPU"};
}

Result<std::string> simulated(const fs::path& own_folder) {
  const fs::path candidates[] = {own_folder / "../simgpu/libcuda.so.1",
                                 own_folder / "../lib/ivgpu/simgpu/libcuda.so.1"};
  for (const fs::path& candidate : candidates)
    if (is_file(candidate)) return candidate.lexically_normal().string();
  return Error{fmt::format("[gpu] library = \"sim\": the simulated GPU is neither {} nor {}",
                           candidates[0].lexically_normal().string(), candidates[1].lexically_normal().string())};
}

}  // namespace

Result<std::string> find_gpu_library(const std::string& wanted, const std::string& own_folder) {
  if (wanted == "auto") return of_system();
  if (wanted == "sim") return simulated(own_folder);
  if (is_file(wanted)) return wanted;
  return Error{fmt::format("[gpu] library = \"{}\": there is no such file", wanted)};
}

}  // namespace host::broker
