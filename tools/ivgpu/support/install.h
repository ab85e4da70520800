// Finds ivgpu's files relative to this executable, in a build tree (build/bin/ivgpu) and in an installation
// (PREFIX/bin/ivgpu). Never searches the current directory or PATH.
#pragma once

#include <filesystem>

namespace ivgpu {

struct Install {
  std::filesystem::path broker;       // ivgpud
  std::filesystem::path check;        // ivgpu-check
  std::filesystem::path guest_lib;    // folder of the guest's libcuda.so.1
  std::filesystem::path sim_lib;      // folder of the simulated GPU's libcuda.so.1
  std::filesystem::path measure;      // the program that `ivgpu bench` runs
  std::filesystem::path plot;         // the Python script that draws the results of `ivgpu bench`
  std::filesystem::path torch_load;   // the Python script that runs loads in PyTorch
  std::filesystem::path programs;     // the test programs; empty if they are not installed
  std::filesystem::path guest_image;  // the script that makes the demo's guest
  std::filesystem::path cache;        // the user's own folder for that script's results; "": none
};

// The paths relative to the running executable. The files may be missing; require() reports a missing file.
Install find_install();

// Same for any path of the executable.
Install install_at(const std::filesystem::path& executable);

// Returns `path`. Throws an Error that names the missing file if `path` does not exist.
const std::filesystem::path& require(const std::filesystem::path& path, const char* what);

}  // namespace ivgpu
