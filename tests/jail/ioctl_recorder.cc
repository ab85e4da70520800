// Preloaded into a worker by tools/dev/record-ioctls. Records the device files that the process opens and the requests
// that it makes, before the jail is closed and inside it.
//
// The file is mapped before the jail closes, and all its lines have the same length. A count is updated in place, so
// nothing has to be written at the end, and a killed worker loses no data.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t line_bytes = 128, most_lines = 4096;

// One line of the file: the request, then its count as decimal text.
struct Seen {
  bool jailed, refused;
  unsigned long request;  // the flags of open() if `opens`
  bool opens;
  char path[72];
  unsigned long count;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
Seen seen[most_lines];
std::size_t lines = 0;
char* file = nullptr;

// The worker's filter refuses this call with EPERM. A filter that applies to the whole machine permits it.
bool jailed() { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == -1; }

void put_line(std::size_t at) {
  const Seen& s = seen[at];
  char text[line_bytes + 1];
  const int length =
      std::snprintf(text, sizeof text, "%-6s %-7s %-5s 0x%08lx %10lu %s", s.jailed ? "after" : "before",
                    s.refused ? "refused" : "done", s.opens ? "open" : "ioctl", s.request, s.count, s.path);
  std::memset(text + length, ' ', line_bytes - static_cast<std::size_t>(length));
  text[line_bytes - 1] = '\n';
  std::memcpy(file + at * line_bytes, text, line_bytes);
}

bool same(const Seen& a, const Seen& b) {
  return a.jailed == b.jailed && a.refused == b.refused && a.request == b.request && a.opens == b.opens &&
         std::strcmp(a.path, b.path) == 0;
}

void note(const Seen& what) {
  pthread_mutex_lock(&lock);
  std::size_t at = 0;
  while (at < lines && !same(seen[at], what)) ++at;
  if (at < most_lines) {
    if (at == lines) seen[lines++] = what;
    ++seen[at].count;
    put_line(at);
  }
  pthread_mutex_unlock(&lock);
}

// The file behind a descriptor. It is read each time, since the number may refer to another file by then.
void path_of(int fd, Seen& into) {
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, into.path, sizeof into.path - 1);
  if (length > 0) {
    into.path[length] = '\0';
    return;
  }
  struct stat status {};
  if (fstat(fd, &status) == 0)
    std::snprintf(into.path, sizeof into.path, "device %u:%u", major(status.st_rdev), minor(status.st_rdev));
  else
    std::snprintf(into.path, sizeof into.path, "no descriptor");
}

void note_open(const char* path, int flags, int result, int error) {
  if (file == nullptr || std::strncmp(path, "/dev/", 5) != 0) return;
  Seen what{jailed(), result < 0 && error == EPERM, static_cast<unsigned long>(flags), true, {}, 0};
  std::snprintf(what.path, sizeof what.path, "%s", path);
  note(what);
}

int open_and_note(int folder, const char* path, int flags, mode_t mode) {
  const long result = syscall(SYS_openat, folder, path, flags, mode);
  const int error = errno;
  note_open(path, flags, static_cast<int>(result), error);
  errno = error;
  return static_cast<int>(result);
}

// IVGPU_IOCTLS is a folder, in which each process has its own file.
__attribute__((constructor)) void open_file() {
  const char* folder = std::getenv("IVGPU_IOCTLS");
  if (folder == nullptr) return;
  char path[512];
  std::snprintf(path, sizeof path, "%s/%d", folder, getpid());
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ftruncate(static_cast<int>(fd), line_bytes * most_lines) != 0) {
    dprintf(STDERR_FILENO, "the ioctls cannot be recorded in %s: %s\n", path, std::strerror(errno));
    _exit(126);
  }
  void* at = mmap(nullptr, line_bytes * most_lines, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
  close(static_cast<int>(fd));
  if (at == MAP_FAILED) _exit(126);
  file = static_cast<char*>(at);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const long result = syscall(SYS_ioctl, fd, request, argument);
  const int error = errno;
  if (file != nullptr) {
    Seen what{jailed(), result < 0 && error == EPERM, request & 0xffffffffUL, false, {}, 0};
    path_of(fd, what);
    note(what);
  }
  errno = error;
  return static_cast<int>(result);
}

#define IVGPU_OPEN(name)                               \
  int name(const char* path, int flags, ...) {         \
    va_list arguments;                                 \
    va_start(arguments, flags);                        \
    const mode_t mode = va_arg(arguments, mode_t);     \
    va_end(arguments);                                 \
    return open_and_note(AT_FDCWD, path, flags, mode); \
  }
IVGPU_OPEN(open)
IVGPU_OPEN(open64)
#undef IVGPU_OPEN

#define IVGPU_OPENAT(name)                                 \
  int name(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                     \
    va_start(arguments, flags);                            \
    const mode_t mode = va_arg(arguments, mode_t);         \
    va_end(arguments);                                     \
    return open_and_note(folder, path, flags, mode);       \
  }
IVGPU_OPENAT(openat)
IVGPU_OPENAT(openat64)
#undef IVGPU_OPENAT
}
#pragma GCC visibility pop
