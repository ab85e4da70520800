#include "guest/calls/module/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "guest/base/uncancelled.h"
#include "ring/abi/descriptor.h"

namespace guest {

std::vector<char> file_bytes(const char* path, CUresult& error) {
  const Uncancelled here;
  const int fd = cuabi::open_file(path, O_RDONLY);
  struct stat status {};
  error = CUDA_ERROR_FILE_NOT_FOUND;
  std::vector<char> bytes;
  if (fd < 0) return bytes;
  const bool known = fstat(fd, &status) == 0;
  if (known && S_ISDIR(status.st_mode)) error = CUDA_ERROR_INVALID_IMAGE;  // the path is a directory
  if (known && S_ISREG(status.st_mode)) {
    bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
    std::size_t done = 0;
    while (done + 1 < bytes.size()) {
      const ssize_t n = read(fd, bytes.data() + done, bytes.size() - 1 - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (done + 1 != bytes.size()) bytes.clear();
  }
  close(fd);
  return bytes;
}

}  // namespace guest
