// Opens descriptors for a library in a program that is not ours.
//
// The program may have closed descriptors 0 to 2 and print anyway: a file of the library at these numbers would receive
// that text. The library therefore keeps its descriptors at 3 and above, and the caller closes them. Errors are -1 or
// null, with errno. Any thread may call. tools/boundary-check holds guest/ to these functions.
//
// A new descriptor may lie below 3 between two system calls. A thread that prints to a closed output at that moment
// writes to it.
//
// ```cpp
// int open_device(const char* node) {
//   const int fd = cuabi::open_file(node, O_RDWR);  // O_CLOEXEC is added
//   return fd >= 0 ? fd : -errno;
// }
// ```
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace cuabi {

// Moves `fd` to 3 or above if it lies below; exec closes it. Returns -1, with errno, if `fd` is -1 or cannot be moved.
inline int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int why = errno;
  close(fd);
  errno = why;
  return above;
}

inline int open_file(const char* path, int flags, mode_t mode = 0) {
  return above_standard(open(path, flags | O_CLOEXEC, mode));
}

// The same for a file below an open folder.
inline int open_below(int folder, const char* name, int flags) {
  return above_standard(openat(folder, name, flags | O_CLOEXEC));
}

// Null on failure, with errno.
inline DIR* open_folder(const char* path) {
  const int fd = open_file(path, O_RDONLY | O_DIRECTORY);
  DIR* const folder = fd >= 0 ? fdopendir(fd) : nullptr;
  if (folder == nullptr && fd >= 0) close(fd);
  return folder;
}

inline int open_socket(int family, int type) { return above_standard(socket(family, type | SOCK_CLOEXEC, 0)); }

}  // namespace cuabi
