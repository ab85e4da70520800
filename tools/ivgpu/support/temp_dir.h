// Folders for temporary files, such as the private broker's sockets.
#pragma once

#include <filesystem>

namespace ivgpu {

// Makes a folder that only this user can enter, in the first usable of XDG_RUNTIME_DIR, TMPDIR and /tmp. Its path is
// absolute and short enough for a socket's path. Reports on stderr if TMPDIR is no writable folder.
std::filesystem::path make_private_folder();

// The absolute path of a folder that other users can reach: TMPDIR if that is a folder, else /tmp.
std::filesystem::path shared_folder();

// A folder of make_private_folder(). The destructor removes it with its contents.
class TempDir {
 public:
  TempDir() : path_(make_private_folder()) {}
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ivgpu
