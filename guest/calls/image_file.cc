// Loads code from a file of the program's. The guest reads the file, since only the guest has it, and loads it as any
// image.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "guest/calls/calls.h"
#include "guest/process/process.h"

namespace guest::calls {
namespace {

// The file's bytes and a NUL, which ends PTX text. Empty: the file could not be read, and `error` says why.
std::vector<char> read_image(const char* path, CUresult& error) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  error = CUDA_ERROR_FILE_NOT_FOUND;
  std::vector<char> image;
  if (fd < 0) return image;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    image.resize(static_cast<std::size_t>(status.st_size) + 1);
    std::size_t done = 0;
    while (done + 1 < image.size()) {
      const ssize_t n = read(fd, image.data() + done, image.size() - 1 - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (done + 1 != image.size()) image.clear();
  }
  close(fd);
  return image;
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  const std::vector<char> image = read_image(path, error);
  return image.empty() ? error : calls::cuModuleLoadData(module, image.data());
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_names, void** jit_values,
                               unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (library == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  const std::vector<char> image = read_image(path, error);
  if (image.empty()) return error;
  return calls::cuLibraryLoadData(library, image.data(), jit_names, jit_values, jit_count, options, values, count);
}

}  // namespace guest::calls
