// This process's own folder in /proc, kept open, so that a program that changes its root (chroot) after cuInit can
// still register memory.
//
// Thread-safety: any. The program may close the folder's descriptor and reuse the descriptor's number, and a forked
// child inherits the parent's folder. In both cases this class opens the path again.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace guest {

class OwnProc {
 public:
  explicit OwnProc(const char* path);
  ~OwnProc();
  OwnProc(const OwnProc&) = delete;
  OwnProc& operator=(const OwnProc&) = delete;

  // Opens a file of the folder. Returns -1 and sets errno on failure.
  int open_file(const char* name, int flags) const;

 private:
  bool is_still_it() const;

  const std::string path_;
  const pid_t process_ = getpid();
  int folder_ = -1;
  struct stat status_ {};
};

// The folder of /proc/self, opened at the first call and never closed.
const OwnProc& own_proc();

}  // namespace guest
