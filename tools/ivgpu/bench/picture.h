// Draws a picture of a run. The script `plot`, beside this program, draws it from the run's JSON.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/install.h"
#include "tools/ivgpu/support/output_file.h"

namespace ivgpu::bench {

class Picture {
 public:
  // Starts the script now, so that a machine without python3 fails before it measures for minutes. An empty `path`
  // disables the picture; draw() then does nothing.
  Picture(const Install& install, const std::filesystem::path& path);

  void draw(const std::string& json);

 private:
  OutputFile file_;
  FdPair input_;
  std::optional<Child> script_;
};

}  // namespace ivgpu::bench
