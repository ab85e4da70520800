#include "tools/ivgpu/support/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/ivgpu/support/error.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw Error(exit_code::usage, path.string() + " cannot be written: " + std::strerror(error));
}

// True for a device or pipe such as /dev/stdout, which cannot be replaced.
bool is_stream(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none) && !fs::is_regular_file(path, none);
}

// mkstemp makes a private file. This sets the permissions that the user's umask gives new files.
void give_usual_rights(int fd) {
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
}

}  // namespace

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  if (path.empty()) return;
  int fd = -1;
  if (is_stream(path)) {
    fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    std::string name = path.string() + ".XXXXXX";
    fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) temporary_ = name;
  }
  if (fd < 0) cannot_write(path, errno);
  if (!temporary_.empty()) give_usual_rights(fd);
  file_ = fdopen(fd, "w");
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(const std::string& text) {
  if (file_ == nullptr || failed_ != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) failed_ = errno;
}

void OutputFile::finish() {
  if (file_ == nullptr) return;
  if (std::fclose(std::exchange(file_, nullptr)) != 0 && failed_ == 0) failed_ = errno;
  if (failed_ == 0 && !temporary_.empty() && rename(temporary_.c_str(), path_.c_str()) != 0) failed_ = errno;
  if (failed_ != 0) cannot_write(path_, failed_);
  temporary_.clear();
}

}  // namespace ivgpu
