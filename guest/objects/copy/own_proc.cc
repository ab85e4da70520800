#include "guest/objects/copy/own_proc.h"

#include <fcntl.h>
#include <unistd.h>

#include "ring/abi/descriptor.h"

namespace guest {
OwnProc::OwnProc(const char* path) : path_(path) {
  folder_ = cuabi::open_file(path, O_PATH | O_DIRECTORY);
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

int OwnProc::open_file(const char* name, int flags) const {
  if (is_still_it())
    if (const int fd = cuabi::open_below(folder_, name, flags); fd >= 0) return fd;
  return cuabi::open_file((path_ + "/" + name).c_str(), flags);
}

const OwnProc& own_proc() {
  static const OwnProc* const folder = new OwnProc("/proc/self");
  return *folder;
}

}  // namespace guest
