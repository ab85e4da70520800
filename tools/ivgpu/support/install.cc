// Two layouts, which differ in the guest library's folder: build/guest in the build tree, PREFIX/lib/ivgpu/guest once
// installed.
#include "tools/ivgpu/support/install.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

// An absolute path, else "": a relative one would lead elsewhere from each folder.
fs::path absolute(const char* path) {
  const fs::path named = path != nullptr ? path : "";
  return named.is_absolute() ? named : fs::path();
}

// "": this user has none. A folder in /tmp is no place for it, since any user can make it first.
fs::path user_cache() {
  if (const fs::path cache = absolute(std::getenv("XDG_CACHE_HOME")); !cache.empty()) return cache / "ivgpu";
  fs::path home = absolute(std::getenv("HOME"));
  const passwd* const user = home.empty() ? getpwuid(geteuid()) : nullptr;
  if (user != nullptr) home = absolute(user->pw_dir);
  return home.empty() ? home : home / ".cache/ivgpu";
}

// Root may write everywhere, but a file that it leaves in a user's tree would be in that user's way.
bool is_this_users(const fs::path& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 && status.st_uid == geteuid() && access(folder.c_str(), W_OK) == 0;
}

// A build tree keeps its guest's image itself, but not for somebody whose tree it is not.
fs::path cache_of_build(const fs::path& root) {
  const fs::path folder = root / "guest-image";
  return is_this_users(fs::exists(folder) ? folder : root) ? folder : user_cache();
}

}  // namespace

Install install_at(const fs::path& executable) {
  const fs::path root = executable.parent_path().parent_path();
  const bool built = !fs::exists(root / "lib/ivgpu");
  const fs::path lib = built ? root : root / "lib/ivgpu";
  return {.broker = root / "bin/ivgpud",
          .check = root / "bin/ivgpu-check",
          .guest_lib = lib / "guest",
          .sim_lib = lib / "simgpu",
          .measure = root / "libexec/ivgpu/ivgpu-measure",
          .plot = root / "libexec/ivgpu/plot",
          .torch_load = root / "libexec/ivgpu/torch_load.py",
          .programs = lib / "programs",
          .guest_image = root / "share/ivgpu/guest-image",
          .cache = built ? cache_of_build(root) : user_cache()};
}

Install find_install() { return install_at(fs::read_symlink("/proc/self/exe")); }

const fs::path& require(const fs::path& path, const char* what) {
  if (!fs::exists(path)) throw Error(exit_code::missing, std::string(what) + " is missing: " + path.string());
  return path;
}

}  // namespace ivgpu
