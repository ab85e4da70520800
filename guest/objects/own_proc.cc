#include "guest/objects/own_proc.h"

#include <fcntl.h>

namespace guest {
namespace {

constexpr int above_standard = 3;  // a program that closes 0 to 2 expects the next files it opens there

}  // namespace

OwnProc::OwnProc(const char* path) : path_(path) {
  const int opened = ::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  folder_ = fcntl(opened, F_DUPFD_CLOEXEC, above_standard);
  close(opened);
  if (folder_ >= 0) fstat(folder_, &status_);
}

OwnProc::~OwnProc() {
  if (is_still_it()) close(folder_);
}

bool OwnProc::is_still_it() const {
  struct stat now {};
  return folder_ >= 0 && getpid() == process_ && fstat(folder_, &now) == 0 && now.st_dev == status_.st_dev &&
         now.st_ino == status_.st_ino;
}

int OwnProc::open(const char* name, int flags) const {
  if (is_still_it())
    if (const int fd = openat(folder_, name, flags | O_CLOEXEC); fd >= 0) return fd;
  return ::open((path_ + "/" + name).c_str(), flags | O_CLOEXEC);
}

const OwnProc& own_proc() {
  static const OwnProc* const folder = new OwnProc("/proc/self");
  return *folder;
}

}  // namespace guest
