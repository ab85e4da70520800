// Supports two layouts, which differ in the guest library's folder: build/guest in a build tree, PREFIX/lib/ivgpu/guest
// in an installation.
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

// The path if it is absolute, else "": a relative path would depend on the current folder.
fs::path absolute(const char* path) {
  const fs::path named = path != nullptr ? path : "";
  return named.is_absolute() ? named : fs::path();
}

// "" if the user has none. /tmp is unsuitable, since any user could create the folder first.
fs::path user_cache() {
  if (const fs::path cache = absolute(std::getenv("XDG_CACHE_HOME")); !cache.empty()) return cache / "ivgpu";
  fs::path home = absolute(std::getenv("HOME"));
  const passwd* const user = home.empty() ? getpwuid(geteuid()) : nullptr;
  if (user != nullptr) home = absolute(user->pw_dir);
  return home.empty() ? home : home / ".cache/ivgpu";
}

// True if this user, but not root, owns the folder: a file that root writes into a user's tree would block that user.
bool is_this_users(const fs::path& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 && status.st_uid == geteuid() && access(folder.c_str(), W_OK) == 0;
}

// The guest-image folder of a build tree that belongs to this user.
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
