// How the broker makes a process: by posix_spawn() and not by fork, since a copy of the broker's page tables would make
// it take a fault for each page that it writes to next, and each of these waits for the machine's other processors. The
// broker stands still until the child has become its program, so work that can wait is done there (for workers:
// host/worker/place.h).
//
// The child has the descriptors that it is passed, /dev/null as its standard input unless one is passed, no blocked
// signal, and a process group of its own: a terminal's signals are the broker's to understand.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "host/base/fd.h"

namespace host::broker {

class ChildSetup {
 public:
  // The child's descriptors from `first_free` on are closed.
  explicit ChildSetup(int first_free);
  ~ChildSetup();
  ChildSetup(const ChildSetup&) = delete;
  ChildSetup& operator=(const ChildSetup&) = delete;

  // `fd` is open as `number` there and stays the caller's; -1 is not passed.
  void pass(int fd, int number);
  // 0, or an error number. The first argument is the program's path; `environment` is all of it, NAME=value.
  int start(pid_t& pid, const std::vector<std::string>& arguments, const std::vector<std::string>& environment);

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
  std::vector<Fd> moved_;
  const int first_free_;
  bool failed_ = false, has_input_ = false;
};

}  // namespace host::broker
