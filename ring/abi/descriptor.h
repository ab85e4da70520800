// Opens descriptors for a library that runs inside a user's program.
//
// The program may have closed descriptors 0 to 2 and print anyway: a file of the library with one of these numbers
// would receive the printed text. The library therefore keeps its descriptors at 3 and above. The caller closes the
// descriptors. Errors are -1 or null, with errno. Any thread may call these functions. tools/boundary-check checks that
// guest/ uses only these functions.
//
// A new descriptor may have a number below 3 between two system calls. A thread that prints to a closed output at that
// moment writes to the new descriptor.
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

// Moves `fd` to 3 or above if its number is lower; exec closes the result. Returns -1, with errno, if `fd` is -1 or
// cannot be moved.
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

// Like open_file(), for a file below an open folder.
inline int open_below(int folder, const char* name, int flags) {
  return above_standard(openat(folder, name, flags | O_CLOEXEC));
}

// Opens a folder. Returns null on failure, with errno.
inline DIR* open_folder(const char* path) {
  const int fd = open_file(path, O_RDONLY | O_DIRECTORY);
  DIR* const folder = fd >= 0 ? fdopendir(fd) : nullptr;
  if (folder == nullptr && fd >= 0) close(fd);
  return folder;
}

inline int open_socket(int family, int type) { return above_standard(socket(family, type | SOCK_CLOEXEC, 0)); }

}  // namespace cuabi
