#include "tools/ivgpu/bench/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/ivgpu/error.h"

namespace ivgpu::bench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw Error(exit_code::usage, path.string() + " cannot be written: " + std::strerror(error));
}

// A device or a pipe, as /dev/stdout: there is nothing to replace.
bool is_stream(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none) && !fs::is_regular_file(path, none);
}

}  // namespace

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  if (path.empty()) return;
  if (is_stream(path)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) cannot_write(path, errno);
    close(fd);
    beside_ = path;
    return;
  }
  std::string name = path.string() + ".XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) cannot_write(path, errno);
  // mkstemp makes a file for nobody else; what the user asked for has the rights that the user's files have.
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  close(fd);
  beside_ = name;
}

OutputFile::~OutputFile() {
  if (!beside_.empty() && beside_ != path_) unlink(beside_.c_str());
}

void OutputFile::write(const std::string& text) {
  if (path_.empty()) return;
  std::ofstream out(beside_, std::ios::binary);
  if (!(out << text << std::flush)) cannot_write(path_, errno);
  out.close();
  if (beside_ == path_) return;
  if (rename(beside_.c_str(), path_.c_str()) != 0) cannot_write(path_, errno);
  beside_.clear();
}

}  // namespace ivgpu::bench
