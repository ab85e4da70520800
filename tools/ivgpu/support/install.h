// The places of ivgpu's pieces, found from the place of this executable: the build tree (build/bin/ivgpu) and an
// installed tree (PREFIX/bin/ivgpu) both work, and nothing is looked for in the current directory or in PATH.
#pragma once

#include <filesystem>

namespace ivgpu {

struct Install {
  std::filesystem::path broker;       // ivgpud
  std::filesystem::path check;        // ivgpu-check
  std::filesystem::path guest_lib;    // folder of the guest's libcuda.so.1
  std::filesystem::path sim_lib;      // folder of the simulated GPU's libcuda.so.1
  std::filesystem::path measure;      // the program that `ivgpu bench` runs
  std::filesystem::path plot;         // the script that draws what it measured, for python3
  std::filesystem::path torch_load;   // the same for loads that PyTorch makes, for python3
  std::filesystem::path programs;     // the test programs, empty where they are not installed
  std::filesystem::path guest_image;  // the script that makes the demo's guest
  std::filesystem::path cache;        // where that script keeps its results: the user's own; "": there is none
};

// Of the running executable. The paths are those that ought to exist; require() reports one that does not.
Install find_install();

// The same for any place of the executable.
Install install_at(const std::filesystem::path& executable);

// `path` itself, or an Error that names the missing piece.
const std::filesystem::path& require(const std::filesystem::path& path, const char* what);

}  // namespace ivgpu
