#include "tools/ivgpu/support/temp_dir.h"

#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tools/ivgpu/support/error.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* name_of_folder = "ivgpu-XXXXXX";
constexpr std::size_t longest_name = sizeof "ivgpud.control";  // name of a socket in the folder, with the NUL

// Returns 0 or an error number; ENAMETOOLONG if a socket's path would be too long.
int make_in(const fs::path& base, fs::path& made) {
  std::error_code failed;
  std::string name = (fs::absolute(base, failed) / name_of_folder).string();
  if (failed) return failed.value();
  if (name.size() + 1 + longest_name > sizeof sockaddr_un::sun_path) return ENAMETOOLONG;
  if (mkdtemp(name.data()) == nullptr) return errno;
  made = name;
  return 0;
}

bool is_given(const char* value) { return value != nullptr && *value != '\0'; }

}  // namespace

fs::path make_private_folder() {
  fs::path made;
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (is_given(runtime) && make_in(runtime, made) == 0) return made;
  if (const char* const temporary = std::getenv("TMPDIR"); is_given(temporary)) {
    const int why = make_in(temporary, made);
    if (why == 0) return made;
    if (why != ENAMETOOLONG)
      std::fprintf(stderr, "ivgpu: TMPDIR=%s does not serve: %s; taking /tmp\n", temporary, std::strerror(why));
  }
  if (const int why = make_in("/tmp", made); why != 0)
    throw Error(exit_code::missing, std::string("no folder can be made in /tmp: ") + std::strerror(why));
  return made;
}

fs::path shared_folder() {
  std::error_code failed;
  const fs::path named = fs::temp_directory_path(failed);
  if (failed) return "/tmp";
  const fs::path found = fs::absolute(named, failed);
  return failed ? fs::path("/tmp") : found;
}

TempDir::~TempDir() {
  std::error_code ignored;  // ignored: no caller can handle the error, and the system cleans up temporary files
  fs::remove_all(path_, ignored);
}

}  // namespace ivgpu
