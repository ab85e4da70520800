// Folders for temporary files: above all the private broker's, which holds its sockets.
#pragma once

#include <filesystem>

namespace ivgpu {

// Makes a folder that only this user can enter. Its path is absolute and leaves room for a socket's name. It lies in the first
// of XDG_RUNTIME_DIR, TMPDIR and /tmp where that is possible. Standard error reports a TMPDIR that is no writable folder.
std::filesystem::path make_private_folder();

// The folder for what other users must reach, too: TMPDIR if that is a folder, else /tmp. The path is absolute.
std::filesystem::path shared_folder();

// A folder of make_private_folder(). The destructor removes it with everything in it.
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
