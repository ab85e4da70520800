// Two layouts, told apart by the guest library's folder: build/guest in the build tree, PREFIX/lib/ivgpu/guest once
// installed.
#include "tools/ivgpu/install.h"

#include <cstdlib>
#include <string>

#include "tools/ivgpu/error.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

fs::path user_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "ivgpu";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache/ivgpu";
  return fs::temp_directory_path() / "ivgpu-cache";
}

}  // namespace

Install install_at(const fs::path& executable) {
  const fs::path root = executable.parent_path().parent_path();
  const bool built = !fs::exists(root / "lib/ivgpu");
  const fs::path lib = built ? root : root / "lib/ivgpu";
  return {.broker = root / "bin/ivgpud",
          .guest_lib = lib / "guest",
          .sim_lib = lib / "simgpu",
          .measure = root / "libexec/ivgpu/ivgpu-measure",
          .programs = lib / "programs",
          .guest_image = root / "share/ivgpu/guest-image",
          .cache = built ? root / "guest-image" : user_cache()};
}

Install find_install() { return install_at(fs::read_symlink("/proc/self/exe")); }

const fs::path& require(const fs::path& path, const char* what) {
  if (!fs::exists(path)) throw Error(exit_code::missing, std::string(what) + " is missing: " + path.string());
  return path;
}

}  // namespace ivgpu
